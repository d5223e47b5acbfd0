"""The graph as a matrix, and products with it."""

from graphkeel.graph.propagate.adjacency import NORMS, neighbours, normalise, normalise_as_given
from graphkeel.graph.propagate.local import multiply

__all__ = [
    "NORMS",
    "multiply",
    "neighbours",
    "normalise",
    "normalise_as_given",
]
