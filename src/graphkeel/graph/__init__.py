"""Graphs: tasks, files of your own, digits, biased splits, propagation.

The names load on first use: `GraphTask` needs no loader, and a list of datasets no torch."""

from typing import TYPE_CHECKING

from graphkeel.core.lazy import lazy_names

_REGISTRY = "graphkeel.graph.datasets.registry"
_HOMES = {
    "DATASETS": "graphkeel.graph.datasets",
    "GraphTask": "graphkeel.graph.task",
    "RawGraph": "graphkeel.graph.datasets.raw",
    "Split": "graphkeel.graph.splits",
    "UNLABELLED": "graphkeel.graph.task",
    "load": _REGISTRY,
    "load_graph": _REGISTRY,
    "make_sbm": "graphkeel.graph.datasets.sbm",
    "make_split": "graphkeel.graph.splits",
    "make_task": _REGISTRY,
}

__all__ = [
    "DATASETS",
    "UNLABELLED",
    "GraphTask",
    "RawGraph",
    "Split",
    "load",
    "load_graph",
    "make_sbm",
    "make_split",
    "make_task",
]

if TYPE_CHECKING:
    from graphkeel.graph.datasets import DATASETS
    from graphkeel.graph.datasets.raw import RawGraph
    from graphkeel.graph.datasets.registry import load, load_graph, make_task
    from graphkeel.graph.datasets.sbm import make_sbm
    from graphkeel.graph.splits import Split, make_split
    from graphkeel.graph.task import UNLABELLED, GraphTask
else:
    __getattr__, __dir__ = lazy_names(__name__, _HOMES)
