"""Features spread over a graph of any size: Ŝ^K X in float32, in blocks, on all cores or on a cluster."""

from graphkeel.propagate.adjacency import NORMS, neighbours, normalise, normalise_as_given
from graphkeel.propagate.api import ENGINES, propagate
from graphkeel.propagate.local import multiply, rows_after

__all__ = ["ENGINES", "NORMS", "multiply", "neighbours", "normalise", "normalise_as_given", "propagate", "rows_after"]
