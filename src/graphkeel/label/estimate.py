"""How good the predictions are, from nodes that were drawn at random, and when to stop labelling.

Suggested nodes are the hard ones: among them the model looks worse than it is. So every so often a
node is drawn at random, and what was predicted for it *before* it was answered counts (test, then
train). The figure lags behind what labels have gained since, on the safe side."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binomtest
from sklearn.metrics import cohen_kappa_score

from graphkeel.label.view import RANDOM, Row


@dataclass(frozen=True)
class LabelSettings:
    """Numbers of a session.

    Attributes:
        round: labels after which they are taken in, and the estimate is told anew.
        random_every: one node in so many is drawn at random.
        ahead: suggestions that wait; more than a round uses up.
        confidence: how often the interval is meant to cover.
        stable: agreement (Cohen's kappa) of the predictions before and after a round, on average
            over the last `window` rounds, from which on more labels change little. The rule is
            Bloodgood and Vijay-Shanker's ("A method for stopping active learning based on
            stabilizing predictions", CoNLL 2009), with the numbers of small-text's KappaAverage;
            their stop set is here all nodes without a label.
        window: rounds that it looks back.
    """

    round: int = 10
    random_every: int = 3
    ahead: int = 30
    confidence: float = 0.9
    stable: float = 0.99
    window: int = 3


@dataclass(frozen=True)
class Estimate:
    """Accuracy on nodes without a label, in percent, with the ends of its interval."""

    labels: int  # how many there were when it was made
    # right, of: random nodes predicted rightly, and all of them
    right: int
    of: int
    skipped: int  # random nodes that nobody could label; the estimate does not speak for such
    accuracy: float
    low: float
    high: float


@dataclass(frozen=True)
class Change:
    """The effect of a round of labels on the predictions of nodes without a label."""

    labels: int  # how many were taken in at once
    # changed, of: nodes whose class is another now, and all of them
    changed: int
    of: int
    agreement: float  # Cohen's kappa of the classes before and after

    @classmethod
    def between(cls, before: NDArray[np.int64], after: NDArray[np.int64], labels: int) -> Change:
        """Of predictions of the same nodes, both of shape (n,)."""
        changed = int((before != after).sum())
        agreement = cohen_kappa_score(before, after) if changed else 1.0
        return cls(labels, changed, len(after), float(agreement))


def estimates(rows: Sequence[Row], settings: LabelSettings) -> list[Estimate]:
    """The estimate after every round, as far as a random node was answered by then."""
    found = []
    labels = 0
    for end, row in enumerate(rows, start=1):
        labels += row.label is not None
        if row.label is not None and labels % settings.round == 0:
            found.append(_estimate(rows[:end], labels, settings.confidence))
    return [one for one in found if one is not None]


def _estimate(rows: Sequence[Row], labels: int, confidence: float) -> Estimate | None:
    drawn = [row for row in rows if row.why == RANDOM]
    answered = [row for row in drawn if row.label is not None]
    if not answered:
        return None
    right = sum(row.label == row.predicted for row in answered)
    # Clopper and Pearson's: where nearly all are right, Wilson's ends too low after one that is not
    ends = binomtest(right, len(answered)).proportion_ci(confidence, method="exact")
    return Estimate(
        labels=labels,
        right=right,
        of=len(answered),
        skipped=len(drawn) - len(answered),
        accuracy=100.0 * right / len(answered),
        low=100.0 * float(ends.low),
        high=100.0 * float(ends.high),
    )


def advice(labels: int, changes: Sequence[Change], settings: LabelSettings) -> str:
    """A sentence: go on, or stop, and why."""
    missing = settings.round - labels % settings.round
    if not changes:
        return f"{missing} more labels, and you see how good it is and what they have changed."
    last = changes[-1]
    did = f"the last {last.labels} labels changed the class of {last.changed:,} of {last.of:,}"
    seen = changes[-settings.window :]
    if len(seen) < settings.window:
        return f"Go on: {did} other nodes. After {settings.window} rounds you see if that settles."
    if math.fsum(one.agreement for one in seen) / len(seen) >= settings.stable:
        return (
            f"You can stop: {did} other nodes, and the rounds before it few as well. "
            "More labels would mostly make the interval narrower."
        )
    return f"Go on: {did} other nodes."
