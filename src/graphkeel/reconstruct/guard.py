"""Guard: the decided answers against the untouched model's, where the two differ. One test, and no
other rule.

Let q be the share of nodes with the decided class right among those on which just one of both is.
The posterior itself has an opinion of q; it counts for a few labels. Labels that had no part in
the decision count for the rest. The change is kept if q < 1/2 is improbable enough."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import betainc

from graphkeel.graph.propagate.rowwise import fold
from graphkeel.reconstruct.statement import Statement

Bools = NDArray[np.bool_]


@dataclass(frozen=True)
class GuardSettings:
    """Attributes:
    trust: labels that the posterior's own opinion counts for; with 0 only labels speak.
    """

    trust: float = 8.0


@dataclass(frozen=True)
class GuardDecision:
    """Whether the change is kept, and why.

    Attributes:
        kept: the features are changed; else they are left as they were.
        reason: a sentence.
        source: the labels it was judged on.
        n_labels: how many those were.
        wins, losses: labels that only the decided answer, or only the untouched model, has right.
        harm: probability that the change is for the worse.
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
    harm: float | None = None
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
        whole = None if statement is None else Statement(**statement)
        return cls(**{**stored, "statement": whole})


def probability_of_harm(
    wins: float, losses: float, believed: float = 0.5, trust: float = 0.0
) -> float:
    """P(q < 1/2) after wins and losses, with q ~ Beta before them.

    Args:
        wins: labels that only the change has right.
        losses: labels that only the untouched model has right.
        believed: q by the posterior's own account, in [0, 1].
        trust: labels that this account counts for; one more counts for q = 1/2.
    """
    for_it = wins + trust * believed + 0.5
    against = losses + trust * (1.0 - believed) + 0.5
    return 0.5 if for_it == against else float(betainc(for_it, against, 0.5))


def contests(
    after: Bools, before: Bools, weights: NDArray[np.float64] | None = None
) -> tuple[float, float]:
    """Wins and losses; weighted ones count for as many as have the same variance (Kish).

    Args:
        after: which labels the decided answer has right, shape (n,).
        before: which the untouched model has right, shape (n,).
        weights: of the labels, shape (n,).
    """
    won, lost = after & ~before, before & ~after
    if weights is None:
        return float(won.sum()), float(lost.sum())
    mine = weights[won | lost]
    scale = mine.sum() / (mine**2).sum() if len(mine) else 1.0
    return float(scale * weights[won].sum()), float(scale * weights[lost].sum())


def believed_share(posterior: NDArray[np.float32], untouched: NDArray[np.int64]) -> float:
    """q by the posterior's own account, over nodes on which it differs from the untouched model.

    Args:
        posterior: shape (N, C).
        untouched: the model's classes, shape (N,).
    """

    def sums(part: NDArray[np.float32], before: NDArray[np.int64]) -> NDArray[np.float64]:
        decided = part.argmax(axis=1)
        differ = np.flatnonzero(decided != before)
        both = part[differ, decided[differ]], part[differ, before[differ]]
        return np.array([side.sum(dtype=np.float64) for side in both])

    won, lost = fold(sums, posterior, untouched).tolist()
    return won / (won + lost) if won + lost > 0 else 0.5


def class_weights(classes: NDArray[np.int64], n_classes: int) -> NDArray[np.float64]:
    """Weights of labels with which classes count alike; they sum to the number of labels."""
    counts = np.bincount(classes, minlength=n_classes)
    present = max(1, int((counts > 0).sum()))
    return np.asarray(len(classes) / (present * np.maximum(counts, 1)[classes]))


def balanced(right: Bools, classes: NDArray[np.int64]) -> float:
    """Percent right, every class counting alike.

    Args:
        right: shape (n,).
        classes: the labels, shape (n,).
    """
    shares = [right[classes == label].mean() for label in np.unique(classes)]
    return 100.0 * float(np.mean(shares))
