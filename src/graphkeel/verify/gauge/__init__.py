"""Proofs for a gauge V, convex and of one hidden layer: linear programs, levels of V, faces."""
