"""What can be said of a choice: estimated accuracy and gain, with intervals.

The labels that judge have also chosen, which flatters the winner. So the choice is made anew
without each fold and scored on it: the estimate is of the way of choosing, not of its luck.
Cross-fitting judges features made from a part of the labels, while those made from all of them
ship; the statement allows for it by the usual law of learning curves.
Assumption: the judged nodes are a random sample of those predicted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import torch
from scipy.stats import binomtest, norm
from torch import Tensor

CONFIDENCE = 0.9
LEARNING = 0.2  # errors fall as labels^-0.2 (docs/research.md: 0.05 to 0.35 on Cora and Citeseer)
# Labels that serve and judge are not independent of what they judge, so cross-validation's own
# error is larger than that of as many fresh labels (Bates, Hastie and Tibshirani 2021); by how much
# was measured (docs/research.md). The paired gain needs less: what both sides share drops out.
CROSS_FITTED = 1.25
CROSS_FITTED_GAIN = 1.1
Member = TypeVar("Member")


@dataclass(frozen=True)
class Statement:
    """Estimates in percent, each with the ends of its interval.

    Attributes:
        confidence: how often the intervals are meant to cover.
        n_labels: how many labels they rest on.
        accuracy, accuracy_low, accuracy_high: percent right with the shipped features.
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
    correct: Tensor,
    base: Tensor,
    confidence: float = CONFIDENCE,
    *,
    n_predicted: int | None = None,
    served: float = 1.0,
) -> Statement | None:
    """Wilson's interval for the accuracy, Agresti and Min's for the paired gain.

    What is stated is the accuracy on the nodes that are predicted. Where these are few, luck
    decides there as well: labels and nodes together count as 1/(1/n + 1/m) labels.
    Features from a share s of the labels err more than those from all; s^`LEARNING` of the errors
    are expected to be left.

    Args:
        correct: which labels the choice predicts rightly, bool, shape (k,).
        base: the same for the untouched model.
        confidence: of the intervals.
        n_predicted: m, the nodes that the statement is about; None: very many.
        served: s, the share of the labels that the judged features were made from.
    """
    n = len(correct)
    if n == 0:
        return None
    size = n if not n_predicted else 1.0 / (1.0 / n + 1.0 / n_predicted)
    judged = float(correct.double().mean())
    learnt = (1.0 - judged) * (1.0 - served**LEARNING)
    right = judged + learnt
    won, lost = (count / n for count in _paired(correct, base))
    spread, gain_spread = (CROSS_FITTED, CROSS_FITTED_GAIN) if served < 1.0 else (1.0, 1.0)
    accuracy = _wilson(right, size / spread**2, confidence)
    low, high = _agresti_min(won, lost, size / gain_spread**2, confidence)
    return Statement(
        confidence,
        n,
        100.0 * right,
        100.0 * accuracy[0],
        100.0 * accuracy[1],
        100.0 * (won - lost + learnt),
        100.0 * (low + learnt),
        100.0 * min(1.0, high + learnt),
    )


def exact_statement(
    correct: Tensor, base: Tensor, confidence: float = CONFIDENCE
) -> Statement | None:
    """Clopper and Pearson's bounds; the gain's from those of wins and of losses, each at half the
    error.

    Args:
        correct: which held-out labels are predicted rightly, bool, shape (k,); none of them had a
            part in the choice.
        base: the same for the untouched model.
        confidence: of the intervals.
    """
    n = len(correct)
    if n == 0:
        return None
    right = int(correct.sum())
    interval = binomtest(right, n).proportion_ci(confidence, method="exact")
    wins, losses = _paired(correct, base)
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


def _paired(correct: Tensor, base: Tensor) -> tuple[int, int]:
    return int((correct & ~base).sum()), int((base & ~correct).sum())


def _wilson(share: float, size: float, confidence: float) -> tuple[float, float]:
    """Wilson's score interval for a share seen in a sample of this size."""
    z = float(norm.ppf(0.5 + confidence / 2.0))
    centre = (share + z * z / (2.0 * size)) / (1.0 + z * z / size)
    spread = (share * (1.0 - share) / size + z * z / (4.0 * size * size)) ** 0.5
    reach = z * spread / (1.0 + z * z / size)
    return max(0.0, centre - reach), min(1.0, centre + reach)


def _agresti_min(won: float, lost: float, size: float, confidence: float) -> tuple[float, float]:
    """An adjusted Wald interval for the difference of paired proportions: half a label is added to
    each of the four cells."""
    total = size + 2.0
    won = (won * size + 0.5) / total
    lost = (lost * size + 0.5) / total
    centre = won - lost
    error = ((won + lost - centre**2) / total) ** 0.5
    reach = float(norm.ppf(0.5 + confidence / 2.0)) * error
    return max(-1.0, centre - reach), min(1.0, centre + reach)


def chosen_without_each_fold(
    folds: Sequence[Tensor],
    choose: Callable[[Tensor], tuple[Member, ...]],
    correct_of: Callable[[tuple[Member, ...]], Tensor],
) -> Tensor:
    """Which labels the way of choosing predicts rightly when it has not seen them.

    Args:
        folds: positions among the judged labels, each int64, together all of them.
        choose: from the positions that may be looked at to the members it would take.
        correct_of: which labels these predict rightly, bool, shape (k,).
    """
    n_labels = sum(len(fold) for fold in folds)
    correct = torch.zeros(n_labels, dtype=torch.bool)
    for fold in folds:
        others = torch.ones(n_labels, dtype=torch.bool)
        others[fold] = False
        members = choose(others.nonzero().flatten())
        correct[fold] = correct_of(members)[fold]
    return correct
