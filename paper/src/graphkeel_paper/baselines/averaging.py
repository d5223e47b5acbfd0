"""Our averaging rule for methods that are not ours.

`auto` does not take its luckiest candidate: it averages those that are not measurably worse than
the best one. A rival's row `NAME+avg` gets the same, over the same settings that its own row
chooses from, and `rivals+avg` pools the settings of all of them, so that nothing of our lead is
owed to the rule or to the number of settings."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from graphkeel.runs.method import Given, MethodResult
from graphkeel_paper.baselines.rival import Candidate, Judged, Rival


class Averaged(Rival):
    """The settings of one rival or of several, averaged by our rule."""

    def __init__(self, name: str, rivals: Sequence[Rival]) -> None:
        self.name = name
        self.rivals = tuple(rivals)
        self.retrains = any(rival.retrains for rival in rivals)
        self.needs_labels = all(rival.needs_labels for rival in rivals)
        self.uses_labels = any(rival.uses_labels for rival in rivals)

    def candidates(self, given: Given) -> Iterator[Candidate]:
        for rival in self.rivals:
            for candidate in rival.candidates(given):
                setting = {"rival": rival.name, **candidate.setting}
                scores = candidate.result.scores
                if scores is not None and len(self.rivals) > 1:
                    yield Candidate(setting, MethodResult(votes(scores)))
                else:
                    yield Candidate(setting, candidate.result)

    def choose(self, judged: Sequence[Judged]) -> MethodResult:
        return average(judged)


def average(judged: Sequence[Judged]) -> MethodResult:
    """The mean belief of the candidates that are not measurably worse than the best one."""
    best = max(judged, key=lambda one: int(one.correct.sum()))
    members = [one for one in judged if not measurably_worse(one.correct, best.correct)]
    scores = [one.candidate.result.scores for one in members]
    known = [as_beliefs(one) for one in scores if one is not None]
    if not known:
        return best.result([best.candidate])
    mean = MethodResult(torch.stack(known).mean(dim=0))
    together = Judged(Candidate({}, mean), best.correct)
    return together.result([one.candidate for one in members])


def measurably_worse(correct: Tensor, best: Tensor) -> bool:
    """Whether fewer are right (bool, shape (n,)), by more than one standard error of the paired
    difference."""
    if not len(best):
        return False
    difference = best.double() - correct.double()
    error = float(difference.std(correction=0)) / math.sqrt(len(best))
    return float(difference.mean()) > error


def votes(scores: Tensor, tie: float = 1e-3) -> Tensor:
    """One vote a node, so that rivals whose scores are flatter than others' count as much; beliefs,
    of weight `tie`, break ties."""
    chosen = torch.nn.functional.one_hot(scores.argmax(dim=1), scores.shape[1])
    return chosen + tie * as_beliefs(scores)


def as_beliefs(scores: Tensor) -> Tensor:
    """Scores of any scale as rows that sum to one: shares where none is negative, else a
    softmax."""
    if bool((scores < 0).any()):
        return scores.softmax(dim=1)
    total = scores.sum(dim=1, keepdim=True)
    even = torch.full_like(scores, 1.0 / scores.shape[1])
    return torch.where(total > 0, scores / total.clamp_min(1e-30), even)
