"""Measurements: jobs, the file that keeps them, means and tests over seeds."""
