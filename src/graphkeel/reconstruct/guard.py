"""Guard: the decided answers against the untouched model's, on the same labels that had no part in
them. One test, and no other rule."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm

from graphkeel.reconstruct.statement import Statement

Bools = NDArray[np.bool_]


@dataclass(frozen=True)
class GuardDecision:
    """Whether the change is kept, and why.

    Attributes:
        kept: the features are changed; else they are left as they were.
        reason: a sentence.
        source: the labels it was judged on.
        n_labels: how many those were.
        wins, losses: labels that only the decided answer, or only the untouched model, has right.
        p_value: chance of as much gain if both were equally good, ties counted half; None where no
            label judged.
        untouched, accuracy: percent of the labels right, before and with what is predicted now;
            None where no label judged.
        balanced_untouched, balanced_accuracy: means of the classes' own percentages.
        statement: what can be said of the nodes that are predicted; None where no label judged.
        expected: percent of nodes right by the posterior's own account; of use where no label
            judges.
    """

    kept: bool
    reason: str
    source: str = "no labels"
    n_labels: int = 0
    wins: int = 0
    losses: int = 0
    p_value: float | None = None
    untouched: float | None = None
    accuracy: float | None = None
    balanced_untouched: float | None = None
    balanced_accuracy: float | None = None
    statement: Statement | None = None
    expected: float | None = None

    @property
    def left_alone(self) -> bool:
        return not self.kept

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_dict(cls, stored: dict[str, Any]) -> GuardDecision:
        """The decision that `to_dict` gave.

        Args:
            stored: what `to_dict` gave.
        """
        statement = stored.get("statement")
        told = None if statement is None else Statement(**statement)
        return cls(**{**stored, "statement": told})


def mid_p(wins: int, losses: int) -> float:
    """One-sided mid-p McNemar test: the chance of more wins than these if both sides were equally
    good, plus half the chance of as many.

    Args:
        wins: labels that only the change has right.
        losses: labels that only the untouched model has right.

    >>> mid_p(wins=9, losses=1), mid_p(wins=3, losses=3)
    (0.005859375, 0.5)
    """
    n = wins + losses
    above = sum(math.comb(n, k) for k in range(wins + 1, n + 1))
    return float((2 * above + math.comb(n, wins)) / 2 ** (n + 1))


def weighted_p(difference: NDArray[np.float64]) -> float:
    """The same for labels of different weight: the normal approximation of random signs."""
    spread = math.sqrt(float(difference @ difference))
    return float(norm.sf(difference.sum() / spread)) if spread else 0.5


def compare(
    after: Bools, before: Bools, weights: NDArray[np.float64] | None
) -> tuple[int, int, float]:
    """Wins, losses and the p-value of a change.

    Args:
        after: which labels the decided answer has right, shape (n,).
    """
    wins = int((after & ~before).sum())
    losses = int((before & ~after).sum())
    if weights is None:
        return wins, losses, mid_p(wins, losses)
    return wins, losses, weighted_p(weights * (after.astype(float) - before.astype(float)))


def balanced(right: Bools, classes: NDArray[np.int64]) -> float:
    """Percent right, every class counting alike.

    Args:
        right: shape (n,).
        classes: the labels, shape (n,).
    """
    shares = [right[classes == label].mean() for label in np.unique(classes)]
    return 100.0 * float(np.mean(shares))
