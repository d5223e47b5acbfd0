"""Graphs: tasks, files of your own, digits, biased splits, feature reduction, propagation.

The names load on first use: `GraphTask` needs no loader, and a list of datasets no torch."""

from typing import TYPE_CHECKING

from graphkeel.core.lazy import lazy_names

_REGISTRY = "graphkeel.graph.datasets.registry"
_HOMES = {
    "DATASETS": "graphkeel.graph.datasets.names",
    "ExactBiasedSampler": "graphkeel.graph.sampler",
    "FittedPca": "graphkeel.graph.features",
    "GraphTask": "graphkeel.graph.task",
    "RawGraph": "graphkeel.graph.datasets.raw",
    "ScalableBiasedSampler": "graphkeel.graph.sampler",
    "Split": "graphkeel.graph.splits",
    "UNLABELLED": "graphkeel.graph.task",
    "exact_sampler": "graphkeel.graph.splits",
    "load": _REGISTRY,
    "load_graph": _REGISTRY,
    "make_sbm": "graphkeel.graph.datasets.sbm",
    "make_split": "graphkeel.graph.splits",
    "make_task": _REGISTRY,
    "prepare_features": _REGISTRY,
    "row_normalise": "graphkeel.graph.features",
    "scalable_sampler": "graphkeel.graph.splits",
}

__all__ = [
    "DATASETS",
    "UNLABELLED",
    "ExactBiasedSampler",
    "FittedPca",
    "GraphTask",
    "RawGraph",
    "ScalableBiasedSampler",
    "Split",
    "exact_sampler",
    "load",
    "load_graph",
    "make_sbm",
    "make_split",
    "make_task",
    "prepare_features",
    "row_normalise",
    "scalable_sampler",
]

if TYPE_CHECKING:
    from graphkeel.graph.datasets.names import DATASETS
    from graphkeel.graph.datasets.raw import RawGraph
    from graphkeel.graph.datasets.registry import load, load_graph, make_task, prepare_features
    from graphkeel.graph.datasets.sbm import make_sbm
    from graphkeel.graph.features import FittedPca, row_normalise
    from graphkeel.graph.sampler import ExactBiasedSampler, ScalableBiasedSampler
    from graphkeel.graph.splits import Split, exact_sampler, make_split, scalable_sampler
    from graphkeel.graph.task import UNLABELLED, GraphTask
else:
    __getattr__, __dir__ = lazy_names(__name__, _HOMES)
