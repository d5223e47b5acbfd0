"""The paper's datasets: one loader a file, found by name in the registry."""

from typing import TYPE_CHECKING

from graphkeel.core.lazy import lazy_names
from graphkeel.graph.datasets import DATASETS as PLAIN
from graphkeel.graph.datasets import PAPER_DATASETS

DATASETS = ("digits", *PAPER_DATASETS, *PLAIN[1:])
_REGISTRY = "graphkeel_paper.datasets.registry"
_HOMES = dict.fromkeys(("load", "load_graph", "split_of"), _REGISTRY)

__all__ = ["DATASETS", "load", "load_graph", "split_of"]

if TYPE_CHECKING:
    from graphkeel_paper.datasets.registry import load, load_graph, split_of
else:
    __getattr__, __dir__ = lazy_names(__name__, _HOMES)
