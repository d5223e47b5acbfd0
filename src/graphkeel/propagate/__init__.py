"""Features spread over a graph of any size: Ŝ^K X in float32, in blocks, on all cores or on a cluster."""

from graphkeel.propagate.adjacency import NORMS, normalise
from graphkeel.propagate.api import ENGINES, propagate
from graphkeel.propagate.local import multiply

__all__ = ["ENGINES", "NORMS", "multiply", "normalise", "propagate"]
