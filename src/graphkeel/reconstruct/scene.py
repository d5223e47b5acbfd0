"""The scene, which no label changes: the frozen model's answers on its graph, and the features,
smoothed and seen from several sides; computed on first use and kept."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.extmath import randomized_svd

from graphkeel.graph.features import ReluFeatures, UnitRows, sparse_rows, unit_rows
from graphkeel.graph.propagate.adjacency import normalise
from graphkeel.graph.propagate.local import hops_of, pagerank, walked_on
from graphkeel.graph.propagate.rowwise import fold, mean_row, rowwise
from graphkeel.graph.propagate.view import Links, View, kept
from graphkeel.graph.rows import softmax

Array = NDArray[np.float32]
_OF_FEATURES = ("reduced", "projection", "smoothed", "smoothed_directions", "views", "relu_units")


@dataclass(frozen=True)
class SceneSettings:
    """Attributes:
    teleport: share of a random walk that returns to where it began.
    steps: of the walk that smooths features and answers.
    sweeps: steps of a walk that is taken up again, at the nodes that have changed.
    wide: features beyond which they are reduced for covariances, to
    narrow: principal components, found on about
    sample: evenly spaced nodes, but not many more than
    sampled: numbers, which is all of a citation graph with 6,775 features. No more than `wide`
        features see random ReLU units instead of a linear probe of labels. Probes of the pooled
        answer always do.
    units: of a probe on own features; twice as many with those of neighbours.
    bias: of a unit, in standard deviations of its input.
    """

    teleport: float = 0.1
    steps: int = 10
    sweeps: int = 3
    wide: int = 64
    narrow: int = 32
    sample: int = 20_000
    sampled: int = 1 << 26
    units: int = 256
    bias: float = 0.5


class Scene:
    """A frozen model's answers on a graph; the arrays may live on a cluster.

    Args:
        logits: of the model as it is, float32, shape (N, C).
        x: features, float32, shape (N, d).
        edges: int64, shape (2, E); taken both ways. Or Ŝ itself, where it lives on a cluster.
        seed: of the projection of wide features.
    """

    def __init__(
        self,
        logits: Array,
        x: Array,
        edges: Any,
        *,
        seed: int = 0,
        settings: SceneSettings = SceneSettings(),
    ) -> None:
        self.logits = logits
        self.x = x
        self.n_nodes, self.n_classes = logits.shape
        self.seed = seed
        self.settings = settings
        self.matrix = normalise(edges, len(x)) if isinstance(edges, np.ndarray) else edges
        self._walks: dict[str, Array] = {}  # of then, to be taken up at
        self._stale = np.zeros(0, np.int64)  # nodes

    def spread(self, values: Array, steps: int | None = None, *, over: bool = False) -> Array:
        """Personalised PageRank of values (N, …), cut off after some steps; written over them, if
        that is allowed."""
        flat = values.reshape(self.n_nodes, -1)
        if isinstance(flat, np.ndarray):
            flat = np.ascontiguousarray(flat, dtype=np.float32)
        steps = self.settings.steps if steps is None else steps
        out = flat if over else None
        found = pagerank(self.matrix, flat, steps, self.settings.teleport, out)
        return found.reshape(values.shape)

    def forget_features(self) -> None:
        """Let go of what is made of the features; it is made again when it is asked for."""
        for name in _OF_FEATURES:
            vars(self).pop(name, None)

    @contextmanager
    def taken_up(
        self, walks: dict[str, Array], projection: Array, stale: NDArray[np.int64]
    ) -> Iterator[None]:
        """Walks within go on from these, at these nodes.

        Args:
            walks: of then, by name.
            projection: of the features, then.
            stale: ascending ids of the nodes that have come or have changed since.
        """
        before = dict(vars(self))
        vars(self).pop("smoothed_beliefs", None)
        self.forget_features()
        self._walks, self._stale, self.projection = walks, stale, projection
        try:
            yield
        finally:
            vars(self).clear()
            vars(self).update(before)

    def walked(
        self, name: str, steps: int | None, function: Callable[..., Array], *arrays: Any
    ) -> Array:
        """A function of rows of arrays, spread over the graph; taken up from the walk of then at
        nodes that have changed since, where there is one.

        Args:
            name: of the walk.
            steps: None: those that smooth.
            function: of blocks of the arrays, to values of shape (n, …).
            arrays: with a row for each node.
        """
        if name not in self._walks:
            return kept(self.spread(rowwise(function, *arrays), steps, over=True))
        found = self._walks[name]
        if not len(self._stale):
            return found
        flat = found.reshape(len(found), -1)
        values = function(*(array[self._stale] for array in arrays))
        numbers = (self.settings.sweeps, self.settings.teleport)
        anew = values.reshape(len(values), -1)
        again = walked_on(self.matrix, flat, self._stale, anew, *numbers)
        return again.reshape(self.n_nodes, *found.shape[1:])

    @cached_property
    def smoothed_beliefs(self) -> Array:
        return self.walked("model~", None, softmax, self.logits)

    @cached_property
    def reduced(self) -> Array:
        """The features, or their principal components where there are many."""
        if not self.is_wide:
            return self.x
        mean, directions = self.projection[0], self.projection[1:]
        return kept(rowwise(lambda part: (part - mean) @ directions.T, self.x))

    @cached_property
    def projection(self) -> Array:
        """The mean of the features, and directions below it, shape (1 + r, d)."""
        mean = mean_row(self.x)
        sample = min(self.settings.sample, self.settings.sampled // self.x.shape[1])
        some = self.x[:: max(1, self.n_nodes // max(1, sample))] - mean
        n_kept = min(self.settings.narrow, *some.shape)
        _, _, directions = randomized_svd(some, n_kept, n_iter=2, random_state=self.seed)
        return np.concatenate([mean[None], directions])

    @property
    def is_wide(self) -> bool:
        return self.x.shape[1] > self.settings.wide

    @cached_property
    def smoothed(self) -> Array:
        return self.walked("features", None, np.asarray, self.reduced)

    @cached_property
    def smoothed_directions(self) -> Array:
        return kept(unit_rows(self.smoothed, centred=True))

    @cached_property
    def views(self) -> dict[str, list[View]]:
        """All features, as sums of views: own ones; with those of neighbours; with links."""
        own, hops = self._word_views() if self.is_wide else self._relu_views()
        return {"own": own, "hops": hops, "links": [*hops, View(Links(self.matrix))]}

    def _word_views(self) -> tuple[list[View], list[View]]:
        """Many features as they are, and those of one and two hops."""
        words: Any = UnitRows(self.x)
        if fold(np.count_nonzero, self.x) < 0.1 * self.x.size:
            words = sparse_rows(words)
        hops = [View(words, self.matrix, hops) for hops in range(3)]
        return hops[:1], hops

    def _relu_views(self) -> tuple[list[View], list[View]]:
        own, hops = self.relu_units
        return [View(own)], [View(hops)]

    @cached_property
    def relu_units(self) -> tuple[ReluFeatures, ReluFeatures]:
        """Random ReLU features of nodes, and of nodes with their neighbourhoods: classes need not
        be separated by planes."""
        one = hops_of(self.matrix, self.reduced, 1)
        two = hops_of(self.matrix, one, 1)
        walks = [self.reduced, kept(one), kept(two), self.smoothed]
        rng = np.random.default_rng(self.seed)
        units, bias = self.settings.units, self.settings.bias
        own = ReluFeatures(UnitRows(self.reduced, centred=True), units, bias, rng)
        return own, ReluFeatures(UnitRows(*walks, centred=True), 2 * units, bias, rng)
