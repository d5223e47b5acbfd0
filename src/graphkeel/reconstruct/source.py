"""A probe of the source, for a model on another graph: a closed-form regression of the source's
labels on its features, said of the target's features.

What differs between graphs is taken out on the way: each graph's features are centred on its own
mean, and spread further on the target than on the source. No label of the target is needed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils.extmath import randomized_svd
from torch import Tensor

from graphkeel.graph.features import unit_rows
from graphkeel.graph.propagate.local import hops_of
from graphkeel.graph.propagate.rowwise import rowwise
from graphkeel.graph.rows import log_rows, log_softmax, softmax
from graphkeel.reconstruct.scene import Scene

Array = NDArray[np.float32]


@dataclass(frozen=True)
class SourceSettings:
    """Numbers of the probe; paper/docs/research.md has the study that chose them.

    Attributes:
        narrow: principal components of both graphs' features, where there are more.
        iterations: that find them.
        near: hops of the source's features;
        far: of the target's.
        strength: of the ridge; rows have length one.
        sharpness: factors of the memberships before the softmax; some labels of the source say
            which, on features spread as far as the target's. The smallest stands for nothing
            to say: where neighbours differ, far features mix the classes.
        asked: their share; they are fitted afterwards.
    """

    narrow: int = 256
    iterations: int = 4
    near: int = 2
    far: int = 20
    strength: float = 2.0
    sharpness: tuple[float, ...] = (1.0, 2.5, 5.0, 10.0)
    asked: float = 0.2


_SETTINGS = SourceSettings()


@dataclass(frozen=True, eq=False)
class SourceProbe:
    """Log-probabilities of the classes as a function of a graph's features.

    Attributes:
        directions: components, shape (d, k), or the identity, shape (0, 0).
        slopes: shape (k, C).
        centre: shares of the classes, shape (C,).
        sharpness: of memberships, shape ().
    """

    directions: Array
    slopes: Array
    centre: Array
    sharpness: Array

    @classmethod
    def fit(cls, source: Scene, nodes: Any, classes: Any, target: Scene) -> SourceProbe | None:
        """The probe of a source for a target; None where it has nothing to say.

        Args:
            nodes, classes: the source's labels, int64, shape (L,).
        """
        directions = _directions(source, target)
        one_hot = np.eye(source.n_classes, dtype=np.float32)[classes]
        near, far = (_seen(source, directions, h)[nodes] for h in (_SETTINGS.near, _SETTINGS.far))
        order = np.random.default_rng(0).permutation(len(nodes))
        asked, fitted = np.split(order, [int(_SETTINGS.asked * len(nodes))])
        slopes, centre = _ridge(near[fitted], one_hot[fitted])
        said = far[asked] @ slopes + centre
        likely = [(one_hot[asked] * log_softmax(t * said)).sum() for t in _SETTINGS.sharpness]
        best = int(np.argmax(likely))
        if best == 0:
            return None
        sharpness = np.asarray(_SETTINGS.sharpness[best], dtype=np.float32)
        return cls(directions, *_ridge(near, one_hot), sharpness)

    def logs(self, target: Scene) -> Array:
        """Of every node, the probabilities smoothed, shape (N, C)."""
        far = _seen(target, self.directions, _SETTINGS.far)
        said = softmax(self.sharpness * (far @ self.slopes + self.centre))
        return log_rows(target.spread(said, over=True))

    def stored(self) -> dict[str, Tensor]:
        """As tensors by name."""
        return {name: torch.from_numpy(part) for name, part in vars(self).items()}

    @classmethod
    def restored(cls, tensors: dict[str, Tensor]) -> SourceProbe:
        """From `stored`.

        Args:
            tensors: by name.
        """
        return cls(**{name: part.numpy() for name, part in tensors.items()})


def _directions(source: Scene, target: Scene) -> Array:
    if source.x.shape[1] <= _SETTINGS.narrow:
        return np.zeros((0, 0), np.float32)
    both = [one.unit_words[:: 1 + one.n_nodes // one.settings.sample] for one in (source, target)]
    joined = sparse.vstack(both) if any(map(sparse.issparse, both)) else np.concatenate(both)
    _, _, found = randomized_svd(
        joined, _SETTINGS.narrow, n_iter=_SETTINGS.iterations, random_state=source.seed
    )
    return np.ascontiguousarray(found.T, dtype=np.float32)


def _seen(scene: Scene, directions: Array, hops: int) -> Array:
    """Features some hops away, about their mean, rows of length one."""

    def turned(rows: Any) -> Array:
        rows = rows @ directions if directions.size else rows
        return np.asarray(rows.todense() if sparse.issparse(rows) else rows, dtype=np.float32)

    return unit_rows(hops_of(scene.matrix, rowwise(turned, scene.unit_words), hops), centred=True)


def _ridge(rows: Array, one_hot: Array) -> tuple[Array, Array]:
    """Slopes (k, C) and centre (C,)."""
    centre = one_hot.mean(axis=0)
    gram = (rows.T @ rows).astype(np.float64)
    gram[np.diag_indices_from(gram)] += _SETTINGS.strength
    return np.linalg.solve(gram, rows.T @ (one_hot - centre)).astype(np.float32), centre
