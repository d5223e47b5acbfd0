"""Features spread over a graph of any size: Ŝ^K X in float32, in blocks, on all cores or on a
cluster."""

from graphkeel.graph.propagate.adjacency import NORMS, neighbours, normalise, normalise_as_given
from graphkeel.graph.propagate.api import ENGINES, propagate
from graphkeel.graph.propagate.local import multiply
from graphkeel.graph.propagate.partitions import Partitions, partition, partition_edges

__all__ = [
    "ENGINES",
    "NORMS",
    "Partitions",
    "multiply",
    "neighbours",
    "normalise",
    "normalise_as_given",
    "partition",
    "partition_edges",
    "propagate",
]
