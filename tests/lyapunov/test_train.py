"""Algorithm 1 with verifiers whose answers are known."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from small_models import logits_of, random_head

from graphkeel.core.errors import ConfigError
from graphkeel.lyapunov import LyapunovConfig, RoundLog
from graphkeel.lyapunov.loop_batch import LoopBatch
from graphkeel.lyapunov.result import TrainResult
from graphkeel.lyapunov.training import train
from graphkeel.verify.problem import Problem
from graphkeel.verify.result import ConditionReport, Verdict, VerifyReport

HEAD = random_head((12, 3))
LOGITS = logits_of(HEAD)


def answer(
    verdict: Verdict, point: np.ndarray | None = None, condition: str = "decrease"
) -> VerifyReport:
    return VerifyReport((ConditionReport(condition, verdict, "scripted", counterexample=point),))


class Scripted:
    """Proves a class once it has been asked about it often enough; gives counterexamples before."""

    def __init__(self, patience: int = 1, point: np.ndarray | None = None) -> None:
        self.patience, self.point, self.asked = patience, point, {}

    def __call__(self, problem: Problem, *, seconds: float, complete: bool) -> VerifyReport:
        count = self.asked[problem.name] = self.asked.get(problem.name, 0) + 1
        if count >= self.patience + int(
            problem.name[6]
        ):  # class 2 takes two rounds longer than class 0
            return answer(Verdict.PROVED)
        if self.point is None:
            return answer(Verdict.UNKNOWN)
        return answer(Verdict.REFUTED, self.point)


def run(ask: Scripted, **options: object) -> tuple[TrainResult, list[RoundLog]]:
    rounds: list[RoundLog] = []
    config = LyapunovConfig(
        **{"samples": 60, "steps": 5, "batch": 32, "falsify_rounds": 0, **options}
    )  # type: ignore[arg-type]

    result = train(HEAD, LOGITS, config=config, oracle=ask, regions=False, on_round=rounds.append)
    return result, rounds


def test_proved_classes_leave_and_keep_their_weights() -> None:
    result, rounds = run(Scripted())
    assert result.stopped == "proved"
    assert {one.verdict for one in result.outcomes} == {Verdict.PROVED}
    assert [log.classes for log in rounds] == [[0, 1, 2], [1, 2], [2]]
    for outcome in result.outcomes:  # the question is of the round in which it was proved
        proved = outcome.problem.closed_loop.layers[0].weight
        np.testing.assert_array_equal(proved, outcome.control.inner.double().numpy())
    assert all(
        set(log.losses) >= {"positivity", "decrease", "equilibrium", "invariance"} for log in rounds
    )


def test_the_question_is_about_the_shipped_weights() -> None:
    seen: list[Problem] = []

    def ask(problem: Problem, *, seconds: float, complete: bool) -> VerifyReport:
        seen.append(problem)
        return answer(Verdict.PROVED)

    result, _ = run(ask)  # type: ignore[arg-type]
    for outcome, problem in zip(result.outcomes, seen, strict=True):
        assert outcome.problem is problem
        np.testing.assert_array_equal(
            problem.closed_loop.layers[0].weight, outcome.control.inner.double().numpy()
        )


def test_true_counterexamples_are_learnt_and_false_ones_are_counted() -> None:
    far = np.array([3.0, -2.0, 1.0])
    config = {"form": "paper", "rounds": 2, "steps": 1}
    _, rounds = run(Scripted(patience=9, point=far), **config)
    for log in rounds:
        pairs = zip(log.counterexamples, log.not_reproduced, strict=True)
        assert [learnt + denied for learnt, denied in pairs] == [1, 1, 1]
    batch = LoopBatch(HEAD, LOGITS, [0, 1, 2], LyapunovConfig(form="paper"))
    for k in range(3):
        is_learnt = batch.learn(k, "decrease", far)
        assert len(batch.states.extra[k]) == 16 * is_learnt
    # an anchored loop that is nearly constant contracts everywhere: the same point is no
    # counterexample of it
    _, rounds = run(Scripted(patience=9, point=far), rounds=1, steps=200)
    assert rounds[0].counterexamples == [0, 0, 0]
    assert rounds[0].not_reproduced == [1, 1, 1]


def test_ending_without_a_proof_is_an_outcome() -> None:
    result, rounds = run(Scripted(patience=99), rounds=2)
    assert result.stopped == "rounds"
    assert Verdict.UNKNOWN in {one.verdict for one in result.outcomes}
    assert len(rounds) == 2
    result, _ = run(Scripted(patience=99), seconds=1e-9)
    assert result.stopped == "seconds"
    assert len(result.outcomes) == 3


def test_quick_questions_that_bring_nothing_are_asked_again_completely() -> None:
    asked: list[bool] = []

    def ask(problem: Problem, *, seconds: float, complete: bool) -> VerifyReport:
        asked.append(complete)
        return answer(Verdict.PROVED if complete else Verdict.UNKNOWN)

    run(ask, falsify_rounds=1)  # type: ignore[arg-type]
    assert asked == [False, True] * 3


def test_the_same_seed_gives_the_same_weights_and_another_does_not() -> None:
    first, second, other = (run(Scripted(), seed=seed)[0] for seed in (3, 3, 4))
    assert torch.equal(first.outcomes[1].control.inner, second.outcomes[1].control.inner)
    assert not torch.equal(first.outcomes[1].control.inner, other.outcomes[1].control.inner)


def test_impossible_requests_are_refused() -> None:
    for classes in ([], [3], [0, 0]):
        with pytest.raises(ConfigError, match="classes"):
            train(HEAD, LOGITS, classes, oracle=Scripted(), regions=False)
