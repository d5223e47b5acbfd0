"""The guard: who judges the candidates, on which labels, and what is decided."""
