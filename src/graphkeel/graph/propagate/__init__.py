"""Features spread over a graph of any size: Ŝ^K X in float32, in blocks, on all cores."""

from graphkeel.graph.propagate.adjacency import NORMS, neighbours, normalise, normalise_as_given
from graphkeel.graph.propagate.api import propagate
from graphkeel.graph.propagate.local import multiply

__all__ = [
    "NORMS",
    "multiply",
    "neighbours",
    "normalise",
    "normalise_as_given",
    "propagate",
]
