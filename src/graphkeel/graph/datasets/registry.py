"""One call from a dataset's name to a `GraphTask`: load, split, prepare the features."""

from __future__ import annotations

import warnings
from functools import lru_cache
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from graphkeel.core.errors import DataError
from graphkeel.core.files import is_there
from graphkeel.core.names import check_name, did_you_mean
from graphkeel.graph.datasets import DATASETS, PAPER_DATASETS
from graphkeel.graph.datasets.digits import digits_by_name
from graphkeel.graph.datasets.npz import load_folder, load_npz
from graphkeel.graph.datasets.raw import RawGraph
from graphkeel.graph.datasets.sbm import sbm_by_name
from graphkeel.graph.features import PREPARATION, FittedPca, dense, row_normalise
from graphkeel.graph.splits import Split, make_split
from graphkeel.graph.task import UNLABELLED, GraphTask, check_edges, check_features

FEATURES = ("auto", "raw", "rownorm", "pca", "pca-raw")


def load(
    name: str = "digits",
    *,
    seed: int = 0,
    split: str = "biased",
    features: str = "auto",
    pca: int = PREPARATION.pca,
) -> GraphTask:
    """A dataset by name, or the path of an `.npz` graph, with split number `seed`.

    Args:
        name: `digits` (embedded; `digits:0,1,2` for some of them), `sbm` (or
            `sbm:nodes=1e6,edges=1e7,features=100`), `FILE.npz`, or a folder of `.npy` files.
        seed: number of the split, and seed of what is drawn.
        split: `biased` (shifted; the default), `random`, or `public`; a file's own masks count as
            public.
        features: `raw`; `rownorm` (rows divided by their sum); `pca` (rownorm, then PCA to `pca`
            dimensions); `pca-raw` (PCA of the features as they are); `auto`: as the dataset says,
            which is `raw` for files.
        pca: number of principal components.
    """
    return make_task(load_graph(name), seed=seed, split=split, features=features, pca=pca)


def make_task(
    graph: RawGraph,
    *,
    seed: int = 0,
    split: str | Split = "biased",
    features: str = "auto",
    pca: int = PREPARATION.pca,
) -> GraphTask:
    """Split a loaded graph and prepare its features.

    Args:
        graph: the loaded graph.
        seed: number of the split.
        split: biased, random or public, or one that is drawn already.
        features: one of `FEATURES`.
        pca: dimensions of a PCA.
    """
    drawn = split if isinstance(split, Split) else make_split(graph, split, seed)
    return assemble(graph, drawn, prepare_features(graph, features, pca))


@lru_cache(maxsize=8)
def load_graph(name: str, labels: bool = True) -> RawGraph:
    """The graph behind a name; each is read and checked once a process.

    Args:
        name: a dataset, a file or a folder.
        labels: whether y must be there.
    """
    if name.endswith(".npz"):
        return _checked(load_npz(Path(name), labels))
    if "/" in name or is_there(Path(name, "x.npy").is_file):
        return _checked(load_folder(Path(name), labels))
    key = name.lower()
    if key == "digits" or key.startswith("digits:"):
        return digits_by_name(key)
    if key == "sbm" or key.startswith("sbm:"):
        return sbm_by_name(key)
    if key in PAPER_DATASETS:
        raise DataError(
            f"{key} is one of the datasets of graphkeel-paper: say keel-paper where you said keel, "
            f"as in keel-paper run --dataset {key}",
        )
    raise DataError(
        f"there is no dataset of that name; there are {', '.join(DATASETS)}, and for keel-paper "
        f"{', '.join(PAPER_DATASETS)}",
        got=repr(name),
        fix=did_you_mean(key, (*DATASETS, *PAPER_DATASETS), near=0.5)
        or "A graph of your own goes in as the path of an .npz file.",
    )


@lru_cache(maxsize=4)
def prepare_features(
    graph: RawGraph, features: str = "auto", pca: int = PREPARATION.pca
) -> NDArray[np.float32]:
    """Apply one of `FEATURES`; PCA is fitted on all nodes, labels unseen (transductive, as in the
    paper).

    Args:
        graph: the loaded graph.
        features: one of `FEATURES`.
        pca: dimensions of a PCA.
    """
    check_name("features", features, FEATURES)
    if features == "auto":
        features = graph.auto_features
    if features == "raw":
        return dense(graph.x)
    normalised = graph.x if features == "pca-raw" else row_normalise(graph.x)
    if features == "rownorm":
        return dense(normalised)
    return FittedPca.fit(normalised, pca).transform(normalised)


def _checked(graph: RawGraph) -> RawGraph:
    """The checks that drawing a split relies on; `GraphTask` makes the rest."""
    if graph.x.ndim != 2 or graph.x.shape[0] != graph.n_nodes:
        raise DataError(
            "x must have one row per label in y", got=f"x {graph.x.shape}, y {graph.y.shape}"
        )
    check_edges(torch.from_numpy(graph.edge_index), graph.n_nodes)
    check_features(_tensor(graph.x))  # PCA would fail on NaN before the task is made
    return graph


def assemble(
    graph: RawGraph, split: Split, x: NDArray[np.float32], n_classes: int | None = None
) -> GraphTask:
    """A graph with its split and prepared features, shape (N, d)."""
    masks = []
    for ids in (split.train, split.val, split.test):
        mask = torch.zeros(graph.n_nodes, dtype=torch.bool)
        mask[torch.from_numpy(ids)] = True
        masks.append(mask & torch.from_numpy(graph.y != UNLABELLED))
    return GraphTask(
        x=_tensor(x),
        edge_index=torch.from_numpy(graph.edge_index),
        y=torch.from_numpy(graph.y),
        train_mask=masks[0],
        val_mask=masks[1],
        test_mask=masks[2],
        n_classes=graph.n_classes if n_classes is None else n_classes,
        name=graph.name,
        mapped=isinstance(x, np.memmap),
    )


def _tensor(x: NDArray[np.float32]) -> torch.Tensor:
    with (
        warnings.catch_warnings()
    ):  # a file mapped for reading; the task never writes to its features
        warnings.filterwarnings("ignore", message="The given NumPy array is not writable")
        return torch.from_numpy(x)
