"""Real graphs under real shift: loaders, biased splits, feature reduction, and a measure of the
shift."""

from graphkeel.graph.datasets.raw import RawGraph
from graphkeel.graph.datasets.registry import (
    DATASETS,
    load,
    load_graph,
    make_task,
    prepare_features,
)
from graphkeel.graph.datasets.sbm import make_sbm
from graphkeel.graph.features import FittedPca, row_normalise
from graphkeel.graph.sampler import ExactBiasedSampler, ScalableBiasedSampler
from graphkeel.graph.shift import ShiftReport, shift_report
from graphkeel.graph.splits import Split, exact_sampler, make_split, scalable_sampler
from graphkeel.graph.task import UNLABELLED, GraphTask

__all__ = [
    "DATASETS",
    "UNLABELLED",
    "ExactBiasedSampler",
    "FittedPca",
    "GraphTask",
    "RawGraph",
    "ScalableBiasedSampler",
    "ShiftReport",
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
    "shift_report",
]
