"""Candidates for large graphs: labels change them locally; linear models answer at few nodes."""
