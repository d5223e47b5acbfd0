"""The contract of a verification engine: never wrong, never over budget, `unknown` always with a
reason.

`loops` has the loops."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from unittest import SkipTest

import numpy as np
from loops import (
    KNOWN,
    Known,
    corner_only,
    hard_loop,
    random_loop,
    stable,
    suspicious_states,
    unstable,
)

from graphkeel.core.memory import peak_mb, reset_peak
from graphkeel.testing.checks import (
    Check,
    Conformance,
    Subject,
    expect,
    expect_refusal,
    global_seed,
    left_alone,
    run_all,
)
from graphkeel.verify.problem import CONDITIONS, Network, Problem
from graphkeel.verify.rational import violates
from graphkeel.verify.result import Budget, ConditionReport, Verdict, Verifier, VerifyReport


@dataclass(frozen=True)
class Limits:
    """Limits of an engine's runs.

    Attributes:
        seconds: for each known loop.
        grace: seconds an engine may compute beyond its budget on every core, for the step it is
            in.
        nodes_grace: boxes it may go beyond its node budget, for the batch it is in.
        memory_mb: growth of the process while it works on a hard loop.
        random_loops: how many of them its proofs are compared on with a grid of states.
    """

    seconds: float = 10.0
    grace: float = 5.0
    nodes_grace: int = 5_000
    memory_mb: float = 1024.0
    random_loops: int = 12


def check_verifier(
    verifier: Verifier | type[Verifier], *, complete: bool = False, limits: Limits | None = None
) -> Conformance:
    """Run every check on an engine.

    Args:
        verifier: the engine, or its class.
        complete: it claims to decide what can be decided, so `unknown` on an easy loop is a
            failure.
        limits: time and memory.
    """
    return run_all(yield_verifier_checks(verifier, complete=complete, limits=limits))


def yield_verifier_checks(
    verifier: Verifier | type[Verifier], *, complete: bool = False, limits: Limits | None = None
) -> Iterator[Check]:
    """The checks one by one, each to be called.

    Args:
        verifier: an instance, or its class.
        complete: it has to decide every known loop.
        limits: of time and memory.
    """
    subject = _Subject(
        verifier() if isinstance(verifier, type) else verifier, complete, limits or Limits()
    )
    for known in KNOWN:
        yield subject.check(f"is not wrong about: {known.name}", _is_not_wrong, known)
    functions = (
        _proves_nothing_that_a_grid_contradicts,
        _decides_something,
        _answers_what_it_is_asked,
        _says_beforehand_what_it_cannot_do,
        _keeps_to_its_time,
        _keeps_to_its_nodes,
        _keeps_to_its_memory,
        _answers_the_same_again,
        _leaves_the_problem_alone,
        _leaves_its_surroundings_alone,
        _refuses_unknown_conditions,
    )
    yield from subject.checks(functions)


@dataclass
class _Subject(Subject):
    verifier: Verifier
    complete: bool
    limits: Limits

    @property
    def name(self) -> str:
        return self.verifier.name

    def solve(
        self,
        problem: Problem,
        budget: Budget | None = None,
        conditions: tuple[str, ...] = tuple(CONDITIONS),
    ) -> VerifyReport:
        self.need(problem)
        return self.verifier.solve(
            problem, budget or Budget(seconds=self.limits.seconds), conditions
        )

    def need(self, problem: Problem) -> None:
        against = self.verifier.supports(problem)
        if against is not None:
            raise SkipTest(f"unsupported: {against}")


# ---- the truth


def _is_not_wrong(subject: _Subject, known: Known) -> None:
    report = subject.solve(known.problem)
    for condition in CONDITIONS:
        answer, truth = report[condition], known.truth[condition]
        _expect_a_whole_answer(known.problem, answer)
        right = {True: Verdict.PROVED, False: Verdict.REFUTED, None: Verdict.UNKNOWN}[truth]
        given = f"{answer.verdict.value} ({answer.reason})"
        expect(
            answer.verdict in (right, Verdict.UNKNOWN),
            f"{condition} to be {right.value} or unknown",
            given,
        )
        if subject.complete and condition in known.decisive:
            expect(
                answer.verdict is right,
                f"a complete engine to find {condition} {right.value}",
                given,
            )


def _expect_a_whole_answer(problem: Problem, answer: ConditionReport) -> None:
    """A refutation has a state that violates the condition in exact rationals, an `unknown` has a
    reason."""
    state, condition = answer.counterexample, answer.condition
    expect(isinstance(answer.verdict, Verdict), f"a Verdict on {condition}", answer.verdict)
    if answer.verdict is Verdict.UNKNOWN:
        expect(bool(answer.reason), f"a reason why {condition} is unknown", "none")
    if answer.verdict is not Verdict.REFUTED:
        expect(
            state is None,
            f"no counterexample to {condition}, which is {answer.verdict.value}",
            state,
        )
        return
    if state is None:
        expect(False, f"a state that refutes {condition}", "none")
        return
    form = (state.dtype, state.shape)
    expect(form == (np.float64, (problem.n,)), f"a float64 state of shape ({problem.n},)", form)
    expect(
        violates(problem, condition, state),
        f"a state that violates {condition} over the rationals",
        state.tolist(),
    )


def _proves_nothing_that_a_grid_contradicts(subject: _Subject) -> None:
    for problem in map(random_loop, range(subject.limits.random_loops)):
        if subject.verifier.supports(problem) is not None:
            continue
        for answer in subject.solve(problem).conditions:
            _expect_a_whole_answer(problem, answer)
            if answer.verdict is not Verdict.PROVED:
                continue
            states = suspicious_states(problem, answer.condition)
            wrong = next(
                (state for state in states if violates(problem, answer.condition, state)), None
            )
            what = f"no proof of {answer.condition} for {problem.name!r} next to a violation"
            expect(wrong is None, what, f"proved, though {wrong} violates it")


def _decides_something(subject: _Subject) -> None:
    for known in (stable(), unstable(), corner_only()):
        if subject.verifier.supports(known.problem) is None:
            verdicts = {answer.verdict for answer in subject.solve(known.problem).conditions}
            if verdicts != {Verdict.UNKNOWN}:
                return
    expect(False, "a verdict on the stable or an unstable loop", "unknown throughout")


# ---- what was asked for, and what it may cost


def _answers_what_it_is_asked(subject: _Subject) -> None:
    for asked in (("decrease",), ("invariance", "positivity"), tuple(CONDITIONS), ()):
        report = subject.solve(stable().problem, conditions=asked)
        expect(isinstance(report, VerifyReport), "a VerifyReport", type(report).__name__)
        answered = tuple(answer.condition for answer in report.conditions)
        expect(answered == asked, f"answers to {asked}, in that order", answered)


def _says_beforehand_what_it_cannot_do(subject: _Subject) -> None:
    for known in KNOWN:
        against = subject.verifier.supports(known.problem)
        is_reason = against is None or (isinstance(against, str) and bool(against))
        expect(is_reason, "None or a reason against it from supports()", against)


def _keeps_to_its_time(subject: _Subject) -> None:
    subject.solve(stable().problem)  # what is compiled or loaded on first use is not the budget's
    for seconds in (0.0, 1.5):
        begun = _processor_seconds()
        report = subject.solve(hard_loop(), Budget(seconds=seconds))
        taken = (_processor_seconds() - begun) / (os.cpu_count() or 1)
        allowed = seconds + subject.limits.grace
        expect(
            taken <= allowed,
            f"an answer within {allowed} s of a budget of {seconds} s",
            f"{taken:.1f} s",
        )
        for answer in report.conditions:
            _expect_a_whole_answer(hard_loop(), answer)


def _processor_seconds() -> float:
    """Of this process, its threads and its children that have ended. What a busy machine lets an
    engine wait for is not counted against it."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def _keeps_to_its_nodes(subject: _Subject) -> None:
    budget = Budget(seconds=subject.limits.seconds, nodes=500)
    answer = subject.solve(hard_loop(), budget, ("decrease",))["decrease"]
    allowed = budget.nodes + subject.limits.nodes_grace
    expect(
        answer.nodes <= allowed,
        f"at most {allowed} nodes for a budget of {budget.nodes}",
        answer.nodes,
    )


def _keeps_to_its_memory(subject: _Subject) -> None:
    status = Path("/proc/self/status")
    if not status.exists():
        raise SkipTest("the process's memory can only be watched on Linux")
    subject.solve(stable().problem)
    before = next(
        int(line.split()[1]) / 1024
        for line in status.read_text().splitlines()
        if line.startswith("VmRSS")
    )
    reset_peak()
    subject.solve(hard_loop(), Budget(seconds=2.0), ("decrease",))
    grown = peak_mb() - before
    expect(
        grown <= subject.limits.memory_mb,
        f"at most {subject.limits.memory_mb} MB",
        f"{grown:.0f} MB",
    )


# ---- nothing but the problem counts, and nothing but the answer changes


def _answers_the_same_again(subject: _Subject) -> None:
    for known in (stable(), unstable(), corner_only()):
        subject.need(known.problem)
        answers = []
        for seed in (1, 2):
            with global_seed(seed):
                answers.append(subject.solve(known.problem))
        for condition in CONDITIONS:
            first, second = (report[condition] for report in answers)
            given = f"{first.verdict.value}, then {second.verdict.value}"
            expect(first.verdict is second.verdict, f"the same verdict on {condition} again", given)
            states = np.asarray(first.counterexample), np.asarray(second.counterexample)
            same = np.array_equal(states[0], states[1])
            expect(same, f"the same counterexample to {condition} again", states)


def _leaves_the_problem_alone(subject: _Subject) -> None:
    problem = corner_only().problem
    before = _numbers(problem)
    subject.solve(problem)
    expect(before == _numbers(problem), "the problem's arrays to be left alone", "a change")


def _numbers(problem: Problem) -> list[bytes]:
    def of(network: Network) -> list[bytes]:
        return [array.tobytes() for layer in network.layers for array in (layer.weight, layer.bias)]

    box = [array.tobytes() for array in (problem.lower, problem.upper, problem.equilibrium)]
    return [*of(problem.closed_loop), *of(problem.lyapunov), *box]


def _leaves_its_surroundings_alone(subject: _Subject) -> None:
    with left_alone():
        subject.solve(unstable().problem)


def _refuses_unknown_conditions(subject: _Subject) -> None:
    problem = stable().problem
    subject.need(problem)
    expect_refusal(
        lambda: subject.verifier.solve(problem, None, ("hope",)), "a condition that does not exist"
    )
