"""The datasets: one loader a file, found by name in the registry."""
