"""Known labels, and which of them each of several sets may use (cross-fitting)."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float32]
Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class LabelSets:
    """Known labels, and which of them each of S sets may use.

    Attributes:
        nodes: int64, shape (L,).
        classes: int64, shape (L,).
        used: bool, shape (S, L).
        n_classes: C.
    """

    nodes: NDArray[np.int64]
    classes: NDArray[np.int64]
    used: NDArray[np.bool_]
    n_classes: int

    def members(self) -> Array:
        """One-hot labels, zero where a set may not use them, shape (S, L, C)."""
        one_hot = np.eye(self.n_classes, dtype=np.float32)[self.classes]
        return self.used[:, :, None] * one_hot

    def written_on(self, values: Array, ids: NDArray[np.int64]) -> Array:
        """Some nodes' values (n, S, C), of ascending ids (n,), whose labelled rows now say what is
        known to each set; written in place."""
        rows, labels = self._here(ids)
        one_hot = np.eye(self.n_classes, dtype=np.float32)[self.classes[labels]]
        used = self.used[:, labels].T[:, :, None]
        values[rows] = np.where(used, one_hot[:, None, :], values[rows])
        return values

    def _here(self, ids: Ints) -> tuple[Ints, Ints]:
        """The labels of these nodes: places in ids, and in the labels."""
        place = np.minimum(np.searchsorted(ids, self.nodes), len(ids) - 1)
        here = np.flatnonzero(ids[place] == self.nodes)
        return place[here], here

    def soft(self, posterior: Array, ids: NDArray[np.int64]) -> Array:
        """Memberships of some nodes: the answer (n, S, C) made sharper, and what is known; ids (n,)
        ascend."""
        found = posterior**2
        found /= found.sum(axis=2, keepdims=True)
        return self.written_on(found, ids)

    def known_at(self, ids: NDArray[np.int64], *_: Array) -> Array:
        """The known labels as a function of ascending ids (n,), zero elsewhere, shape (n, S, C)."""
        nothing = np.zeros((len(ids), len(self.used), self.n_classes), np.float32)
        return self.written_on(nothing, ids)

    def unlabelled(self, posterior: Array, ids: NDArray[np.int64]) -> NDArray[np.int64]:
        """The likeliest class of some nodes, of answers (n, S, C) and ascending ids (n,), for each
        set, -1 where it knows the label, shape (n, S)."""
        found = posterior.argmax(axis=2)
        rows, labels = self._here(ids)
        found[rows] = np.where(self.used[:, labels].T, -1, found[rows])
        return found

    def with_surest(
        self,
        least: Array,
        last: NDArray[np.int64],
        sure: Array,
        classes: NDArray[np.int64],
        ids: NDArray[np.int64],
    ) -> Array:
        """One-hot rows at known labels and at nodes of which a set is surer than `least` (S, C), or
        just as sure and up to the node `last` (S, C); zero elsewhere. Of ascending ids (n,), `sure`
        and `classes` (n, S) say how sure it is of which class, -1 where it knows the label."""
        found = self.known_at(ids)
        sets = np.arange(len(self.used))
        bound = least[sets, classes]
        equal = (sure == bound) & (ids[:, None] <= last[sets, classes])
        nodes, chosen = np.nonzero((classes >= 0) & ((sure > bound) | equal))
        found[nodes, chosen, classes[nodes, chosen]] = 1.0
        return found


@dataclass(frozen=True, eq=False)
class Known:
    """The labels at hand.

    Attributes:
        nodes, classes: int64, shape (L,).
        judging: bool, shape (L,): labels that the model was not trained on.
        n_classes: C.
        cross_fitted: judging labels also serve, in turns; else they only judge.
    """

    nodes: Ints
    classes: Ints
    judging: NDArray[np.bool_]
    n_classes: int
    cross_fitted: bool = True

    def sets(self, folds: int, seed: int) -> tuple[LabelSets, Ints]:
        """Sets of labels, the last with all that serve, and the set that each judging label is
        judged by.

        Args:
            folds: parts in which labels judge.
            seed: of these parts.
        """
        parts = self.parts(folds, seed)
        if not self.cross_fitted:
            serving = ~self.judging
            used = np.ones((1, int(serving.sum())), dtype=bool)
            chosen = LabelSets(self.nodes[serving], self.classes[serving], used, self.n_classes)
            return chosen, np.zeros_like(parts)
        fold = np.full(len(self.nodes), -1)
        fold[self.judging] = parts
        n_folds = int(fold.max(initial=-1)) + 1
        used = np.stack([*(fold != part for part in range(n_folds)), np.ones(len(fold), bool)])
        return LabelSets(self.nodes, self.classes, used, self.n_classes), parts

    def count(self, trained: float) -> float:
        """Labels that serve.

        Args:
            trained: for how many one counts that the model was trained on.
        """
        n_judging = int(self.judging.sum())
        return trained * (len(self.nodes) - n_judging) + n_judging * self.cross_fitted

    def chosen(self, kept: NDArray[np.bool_]) -> Known:
        """Some of the labels.

        Args:
            kept: which, bool, shape (L,).
        """
        return replace(
            self, nodes=self.nodes[kept], classes=self.classes[kept], judging=self.judging[kept]
        )

    def parts(self, folds: int, seed: int) -> Ints:
        """The fold of each judging label, shape (n,).

        Args:
            folds: at most so many.
            seed: of the order.
        """
        n_judging = int(self.judging.sum())
        return np.random.default_rng(seed).permutation(n_judging) % max(1, min(folds, n_judging))
