"""Algorithm 1 with verifiers whose answers are known."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from heads import logits_of, random_head

from graphkeel.core.errors import ConfigError
from graphkeel.lyapunov import LyapunovConfig, RoundLog
from graphkeel.lyapunov.result import TrainResult, TrainState
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


def run(ask: Scripted, **options: object) -> tuple[TrainResult, list[tuple[RoundLog, TrainState]]]:
    rounds: list[tuple[RoundLog, TrainState]] = []
    resume = options.pop("resume", None)
    config = LyapunovConfig(
        **{"samples": 60, "steps": 5, "batch": 32, "falsify_rounds": 0, **options}
    )  # type: ignore[arg-type]

    def keep(log: RoundLog, state: TrainState) -> None:
        rounds.append((log, state))

    result = train(
        HEAD, LOGITS, config=config, ask=ask, regions=False, on_round=keep, resume=resume
    )
    return result, rounds


def test_proved_classes_leave_and_keep_their_weights() -> None:
    result, rounds = run(Scripted())
    assert result.stopped == "proved"
    assert result.verdict is Verdict.PROVED
    assert [log.classes for log, _ in rounds] == [[0, 1, 2], [1, 2], [2]]
    first = rounds[0][1].tensors["controller.raw_inner"]
    last = rounds[-1][1].tensors["controller.raw_inner"]
    assert torch.equal(first[0], last[0])
    assert all(
        set(log.losses) >= {"positivity", "decrease", "equilibrium", "invariance"}
        for log, _ in rounds
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
    learnt = [log.counterexamples for log, _ in rounds]
    denied = [log.not_reproduced for log, _ in rounds]
    assert [a + b for a, b in zip(learnt[0], denied[0], strict=True)] == [1, 1, 1]
    for k in range(3):
        states = rounds[-1][1].tensors[f"states.{k}"]
        assert len(states) == 16 * sum(counts[k] for counts in learnt)
    # an anchored loop that is nearly constant contracts everywhere: the same point is no
    # counterexample of it
    _, rounds = run(Scripted(patience=9, point=far), rounds=1, steps=200)
    assert rounds[0][0].counterexamples == [0, 0, 0]
    assert rounds[0][0].not_reproduced == [1, 1, 1]


def test_ending_without_a_proof_is_an_outcome() -> None:
    result, rounds = run(Scripted(patience=99), rounds=2)
    assert result.stopped == "rounds"
    assert result.verdict is Verdict.UNKNOWN
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


def test_an_interrupted_run_goes_on_as_if_it_had_not_been() -> None:
    whole, rounds = run(Scripted(patience=99), rounds=4)
    half = rounds[1][1]
    resumed, later = run(Scripted(patience=99), rounds=4, resume=half)
    assert [log.round for log, _ in later] == [2, 3]
    for a, b in zip(whole.outcomes, resumed.outcomes, strict=True):
        for name, tensor in a.control.tensors().items():
            assert torch.equal(tensor, b.control.tensors()[name])


def test_a_resumed_run_asks_again_about_what_was_proved() -> None:
    _, rounds = run(Scripted())
    ask = Scripted()
    resumed, later = run(ask, resume=rounds[1][1])
    assert resumed.stopped == "proved"
    assert later[0][0].classes == [1, 2]  # this verifier takes its time with class 1 once more
    assert ask.asked["class 0, anchored"] == 1


def test_the_same_seed_gives_the_same_weights_and_another_does_not() -> None:
    first, second, other = (run(Scripted(), seed=seed)[0] for seed in (3, 3, 4))
    assert torch.equal(first.outcomes[1].control.inner, second.outcomes[1].control.inner)
    assert not torch.equal(first.outcomes[1].control.inner, other.outcomes[1].control.inner)


def test_impossible_requests_are_refused() -> None:
    for classes in ([], [3], [0, 0]):
        with pytest.raises(ConfigError, match="classes"):
            train(HEAD, LOGITS, classes, ask=Scripted(), regions=False)
