"""Candidates tried one after the other, with a progress bar, until the time is up."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence

from torch import Tensor

from graphkeel.core.steps import progress
from graphkeel.reconstruct.candidates.builder import Candidate
from graphkeel.reconstruct.guard.decision import Evaluation, Judge, Round


class Remembering:
    """A judge that tries nothing twice.

    Args:
        judge: who tries.
    """

    def __init__(self, judge: Judge) -> None:
        self.judge = judge
        self.source = judge.source
        self.folds: list[Tensor] = judge.folds
        self.served = judge.served
        self._known: dict[tuple[Candidate, ...], Evaluation] = {}

    def evaluate(self, members: Sequence[Candidate]) -> Evaluation:
        """How the candidates do on the held-back labels.

        Args:
            members: the candidates; several are averaged, none means the untouched features.
        """
        key = tuple(members)
        if key not in self._known:
            self._known[key] = self.judge.evaluate(members)
        return self._known[key]


def within(rounds: Sequence[Round], deadline: float | None) -> tuple[Round, ...]:
    """The same rounds; past the deadline they have no further candidates.

    Args:
        rounds: of further candidates.
        deadline: by `time.monotonic`; None: there is none.
    """

    def bounded(further: Round) -> Round:
        def candidates(
            leaders: Sequence[Candidate], so_far: Sequence[Candidate]
        ) -> Iterator[Candidate]:
            for candidate in further(leaders, so_far):
                if deadline is not None and time.monotonic() > deadline:
                    return
                yield candidate

        return candidates

    return tuple(bounded(further) for further in rounds)


def tried(
    candidates: tuple[Candidate, ...], judge: Judge, seconds: float | None
) -> tuple[tuple[Candidate, ...], Judge]:
    """The candidates that could be tried in this time, at least one, and a judge who remembers
    them.

    Args:
        candidates: in the order in which they are tried.
        judge: who tries.
        seconds: None: all are tried.
    """
    remembering = Remembering(judge)
    start = time.monotonic()
    done: list[Candidate] = []
    for one in progress(candidates, "trying candidates", len(candidates)):
        remembering.evaluate((one,))
        done.append(one)
        if seconds is not None and time.monotonic() - start > seconds:
            break
    return tuple(done), remembering
