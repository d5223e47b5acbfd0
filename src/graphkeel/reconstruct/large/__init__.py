"""Candidates for large graphs: labels change them locally, and linear models are asked at few nodes."""
