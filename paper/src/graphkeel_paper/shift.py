"""How shifted is a split? Distances between the training nodes and the nodes the model is asked
about."""

from __future__ import annotations

from dataclasses import asdict, dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse

from graphkeel.graph.propagate.adjacency import normalise
from graphkeel.graph.propagate.local import hops_of
from graphkeel.graph.task import GraphTask

Array = NDArray[np.float64]


@dataclass(frozen=True)
class _Settings:
    """How shift is measured.

    Attributes:
        hops: the features are smoothed as a GNN sees them.
        sample: rows at most in the kernel matrices.
        teleport, steps: of personalised PageRank.
    """

    hops: int = 2
    sample: int = 2000
    teleport: float = 0.1
    steps: int = 60


_SETTINGS = _Settings()


@dataclass(frozen=True)
class ShiftReport:
    """Zero means no shift for the first four; each is also given for a random training set of the
    same size.

    Attributes:
        cmd: central moment discrepancy (orders 1 to 5) of the smoothed features, train against the
            rest.
        mmd: squared maximum mean discrepancy, RBF kernel at the median distance, unbiased.
        class_balance: total variation between the class shares of train and test; None without test
            labels.
        conditional_cmd: mean over classes of the CMD inside the class (labels of both sides
            needed), else None.
        ppr_distance: mean PPR mass that a test node receives from the training set, as a share of
            what it would receive from a uniformly spread set of the same size; 1 is unbiased,
            smaller is farther.
        random_cmd, random_mmd: the same for a random training set, as a yardstick.
    """

    cmd: float
    mmd: float
    ppr_distance: float
    random_cmd: float
    random_mmd: float
    class_balance: float | None = None
    conditional_cmd: float | None = None

    def as_dict(self) -> dict[str, float | None]:
        return asdict(self)


def shift_report(task: GraphTask, *, use_labels: bool = True, seed: int = 0) -> ShiftReport:
    """Measure train against test (against all other nodes where there is no test mask).

    Args:
        task: graph, features, labels and split.
        use_labels: whether test labels may be used, for the figures that need them.
        seed: of everything random.
    """
    train = task.train_mask.numpy()
    test = task.test_mask.numpy() if task.test_mask.any() else ~train
    matrix = normalise(task.edge_index.numpy(), task.n_nodes)
    smooth = hops_of(matrix, task.x.numpy(), _SETTINGS.hops).astype(np.float64)
    rng = np.random.default_rng(seed)
    yardstick = np.zeros_like(train)
    yardstick[rng.choice(np.flatnonzero(train | test), int(train.sum()), replace=False)] = True
    known = use_labels and bool(task.test_mask.any())
    return ShiftReport(
        cmd=cmd(smooth[train], smooth[test]),
        mmd=mmd(smooth[train], smooth[test], rng),
        ppr_distance=_ppr_share(matrix, train, test),
        random_cmd=cmd(smooth[yardstick], smooth[test]),
        random_mmd=mmd(smooth[yardstick], smooth[test], rng),
        class_balance=_class_balance(task) if known else None,
        conditional_cmd=_conditional_cmd(task, smooth) if known else None,
    )


def cmd(a: Array, b: Array, *, orders: int = 5) -> float:
    """Central moment discrepancy of two samples of shape (n, d): distance of the means plus that of
    the central moments 2..orders."""
    spread = np.maximum(np.maximum(a.max(0), b.max(0)) - np.minimum(a.min(0), b.min(0)), 1e-12)
    a = a / spread
    b = b / spread
    total = float(np.linalg.norm(a.mean(0) - b.mean(0)))
    ca = a - a.mean(0)
    cb = b - b.mean(0)
    for k in range(2, orders + 1):
        total += float(np.linalg.norm((ca**k).mean(0) - (cb**k).mean(0)))
    return total


def mmd(a: Array, b: Array, rng: np.random.Generator) -> float:
    """Unbiased squared MMD of two samples of shape (n, d), with an RBF kernel at the median
    distance; at most 2000 rows a side are used."""
    a = _subsample(a, rng)
    b = _subsample(b, rng)
    both = np.concatenate([a, b])
    norms = (both**2).sum(1)
    squared = np.maximum(norms[:, None] + norms[None] - 2 * both @ both.T, 0.0)
    kernel = np.exp(-squared / max(float(np.median(squared)), 1e-12))
    n = len(a)
    m = len(b)
    within_a = (kernel[:n, :n].sum() - n) / max(n * (n - 1), 1)
    within_b = (kernel[n:, n:].sum() - m) / max(m * (m - 1), 1)
    return float(within_a + within_b - 2 * kernel[:n, n:].mean())


def _subsample(rows: Array, rng: np.random.Generator) -> Array:
    most = _SETTINGS.sample
    return rows if len(rows) <= most else rows[rng.choice(len(rows), most, replace=False)]


def _ppr_share(
    matrix: sparse.csr_matrix, train: NDArray[np.bool_], test: NDArray[np.bool_]
) -> float:
    """PPR mass from train to test over the mass an even spread of the same total would send
    there."""
    source = np.stack([train / train.sum(), np.full(len(train), 1 / len(train))], axis=1)
    mass = hops_of(matrix, source.astype(np.float32), _SETTINGS.steps, _SETTINGS.teleport)
    return float(mass[test, 0].mean() / mass[test, 1].mean())


def _class_balance(task: GraphTask) -> float:
    shares = [
        torch.bincount(task.y[mask], minlength=task.n_classes).double() / mask.sum()
        for mask in (task.train_mask, task.test_mask)
    ]
    return float((shares[0] - shares[1]).abs().sum() / 2)


def _conditional_cmd(task: GraphTask, smooth: Array) -> float:
    y = task.y.numpy()
    train = task.train_mask.numpy()
    test = task.test_mask.numpy()
    per_class = [
        cmd(smooth[train & (y == c)], smooth[test & (y == c)])
        for c in range(task.n_classes)
        if (test & (y == c)).any()
    ]
    return float(np.mean(per_class))
