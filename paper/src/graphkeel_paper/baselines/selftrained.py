"""A self-training round for methods that are not ours.

One source of `auto`'s evidence is a round of self-training. A rival's row `NAME+self` gets one,
too, so that nothing of our lead is owed to it: each of its settings stands to choice twice, as it
is and with the surest predictions of each class among the labels."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import torch
from torch import Tensor

from graphkeel.runs.method import Given
from graphkeel_paper.baselines.averaging import as_beliefs
from graphkeel_paper.baselines.rival import Candidate, Rival

SHARE = 0.3  # of the nodes predicted as a class, the surest so many


class SelfTrained(Rival):
    """The settings of a rival, each before and after one round of self-training.

    What becomes a label is decided by the mean of all its settings, so that no label judges twice.
    """

    def __init__(self, name: str, rival: Rival) -> None:
        self.name = name
        self.rivals = (rival,)
        self.retrains = rival.retrains
        self.needs_labels = rival.needs_labels

    def candidates(self, given: Given) -> Iterator[Candidate]:
        (rival,) = self.rivals
        first = list(rival.candidates(given))
        yield from (_in_round(1, one) for one in first)
        known = [as_beliefs(c.result.scores) for c in first if c.result.scores is not None]
        if known:
            taught = with_pseudo_labels(given, torch.stack(known).mean(dim=0))
            yield from (_in_round(2, one) for one in rival.candidates(taught))


def _in_round(number: int, candidate: Candidate) -> Candidate:
    return Candidate({"round": number, **candidate.setting}, candidate.result)


def with_pseudo_labels(given: Given, beliefs: Tensor, share: float = SHARE) -> Given:
    """What is given, with the surest predictions of each class as labels beside the known ones.

    Validation nodes keep their labels for choosing and get none."""
    free = torch.ones(given.task.n_nodes, dtype=torch.bool)
    free[torch.cat([given.labelled, given.validation])] = False
    sureness, predicted = beliefs.max(dim=1)
    added: Sequence[Tensor] = [
        _surest(sureness, ((predicted == label) & free).nonzero().flatten(), share)
        for label in range(given.task.n_classes)
    ]
    pseudo = torch.cat(list(added))
    classes = given.task.y.clone()
    classes[pseudo] = predicted[pseudo]
    labelled = torch.cat([given.labelled, pseudo])
    return given._replace(task=replace(given.task, y=classes), labelled=labelled)


def _surest(sureness: Tensor, nodes: Tensor, share: float) -> Tensor:
    order = sureness[nodes].argsort(descending=True, stable=True)
    return nodes[order[: round(share * len(nodes))]]
