"""Statements about the answers: accuracy and gain with intervals, and prediction sets.

All of it reads the cross-fitted pool: answers at labels that were left out of the evidence and of
its last weights (strengths of ridges, the first round's weights and the prior's two numbers are
chosen with all labels: paper/docs/research.md has what that flatters). Those were made from a part
of the labels, while what ships is made from all; the statement allows for it by the usual law of
learning curves.
Assumption: the judged nodes are a random sample of those predicted."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binomtest

from graphkeel.core.errors import ConfigError
from graphkeel.core.statistics import agresti_min, wilson

Bools = NDArray[np.bool_]
Array = NDArray[np.float32]


@dataclass(frozen=True)
class StatementSettings:
    """Numbers of the statement; paper/docs/research.md has the studies that chose them.

    Attributes:
        confidence: how often intervals are meant to cover.
        learning: errors fall as labels^−learning.
        cross_fitted: how much wider than those of as many fresh labels the intervals of
            cross-validation are (Bates, Hastie and Tibshirani 2021); labels that serve and judge
            are not independent of what they judge.
    """

    confidence: float = 0.9
    learning: float = 0.2
    cross_fitted: float = 1.1


@dataclass(frozen=True)
class Statement:
    """Estimates in percent, each with the ends of its interval.

    Attributes:
        confidence: how often the intervals are meant to cover.
        n_labels: how many labels they rest on.
        accuracy, accuracy_low, accuracy_high: percent right with what ships.
        gain, gain_low, gain_high: points over the untouched model.
        exact: the bounds hold for every sample size (held-out labels); else they are approximate.
    """

    confidence: float
    n_labels: int
    accuracy: float
    accuracy_low: float
    accuracy_high: float
    gain: float
    gain_low: float
    gain_high: float
    exact: bool = False


def approximate_statement(
    after: Bools,
    before: Bools,
    *,
    n_predicted: int | None = None,
    served: float = 1.0,
    settings: StatementSettings = StatementSettings(),
) -> Statement | None:
    """Wilson's interval for the accuracy, Agresti and Min's for the paired gain.

    What is stated is the accuracy on the nodes that are predicted. Where these are few, luck
    decides there as well: labels and nodes together count as 1/(1/n + 1/m) labels.

    Args:
        after: which labels what ships has right, shape (n,).
    """
    n = len(after)
    if n == 0:
        return None
    size = n if not n_predicted else 1.0 / (1.0 / n + 1.0 / n_predicted)
    judged = float(after.mean())
    learnt = (1.0 - judged) * (1.0 - served**settings.learning)
    won, lost = float((after & ~before).mean()), float((before & ~after).mean())
    if served < 1.0:
        size /= settings.cross_fitted**2
    accuracy = wilson(judged + learnt, size, settings.confidence)
    low, high = agresti_min(won, lost, size, settings.confidence)
    return Statement(
        settings.confidence,
        n,
        100.0 * (judged + learnt),
        100.0 * accuracy[0],
        100.0 * accuracy[1],
        100.0 * (won - lost + learnt),
        100.0 * (low + learnt),
        100.0 * min(1.0, high + learnt),
    )


def exact_statement(
    after: Bools, before: Bools, settings: StatementSettings = StatementSettings()
) -> Statement | None:
    """Clopper and Pearson's bounds; the gain's from those of wins and of losses, each at half the
    error.

    Args:
        after: which held-out labels are right, shape (n,); none of them had a part in anything.
    """
    n = len(after)
    if n == 0:
        return None
    confidence = settings.confidence
    right = int(after.sum())
    wins, losses = int((after & ~before).sum()), int((before & ~after).sum())
    interval = binomtest(right, n).proportion_ci(confidence, method="exact")
    halved = 1.0 - (1.0 - confidence) / 2.0
    won = binomtest(wins, n).proportion_ci(halved, method="exact")
    lost = binomtest(losses, n).proportion_ci(halved, method="exact")
    return Statement(
        confidence,
        n,
        100.0 * right / n,
        100.0 * float(interval.low),
        100.0 * float(interval.high),
        100.0 * (wins - losses) / n,
        100.0 * float(won.low - lost.high),
        100.0 * float(won.high - lost.low),
        exact=True,
    )


# ---- prediction sets


def margins_behind(scores: Array) -> Array:
    """How far each class lies behind the best other one: negative for the class in front.

    Args:
        scores: shape (n, C).
    """
    order = np.sort(scores, axis=1)
    best, second = order[:, -1:], order[:, -2:-1]
    front = scores.argmax(axis=1)[:, None] == np.arange(scores.shape[1])
    behind: Array = np.where(front, second, best) - scores
    return behind


def allowed_margin(scores: Array, classes: NDArray[np.int64], coverage: float) -> float:
    """Split conformal prediction: how far behind the asked share of labels stays; infinite where
    labels are too few.

    Args:
        scores: at labels that had no part in them, shape (n, C).
        classes: the labels, shape (n,).
    """
    if not 0.0 < coverage < 1.0:
        raise ConfigError("coverage must lie strictly between 0 and 1", got=coverage)
    n = len(classes)
    rank = math.ceil((n + 1) * coverage)
    if rank > n:
        return math.inf
    own = margins_behind(scores)[np.arange(n), classes]
    return float(np.sort(own)[rank - 1])
