"""Every engine of ours keeps the contract; engines that break it are caught, with a message that
says how."""

from __future__ import annotations

import os
import time
from dataclasses import replace

import numpy as np
import pytest
from engine_contract import Limits, check_verifier, yield_verifier_checks
from known import installed
from loops import random_loop, suspicious_states

from graphkeel.testing import ConformanceError
from graphkeel.verify import (
    CONDITIONS,
    Budget,
    ConditionReport,
    Verdict,
    VerifyReport,
    load_engine,
)
from graphkeel.verify.branch import BranchVerifier
from graphkeel.verify.rational import violates

COMPLETE = ("auto", "branch")
ENGINES = {name: load_engine(name) for name in installed()}
QUICK = Limits(seconds=2.0)
PLENTY = Limits(seconds=120.0)  # for those that must decide, on a busy machine, too
CHECKS = [
    check
    for name, engine in ENGINES.items()
    for check in yield_verifier_checks(
        engine, complete=name in COMPLETE, limits=PLENTY if name in COMPLETE else QUICK
    )
]


@pytest.mark.parametrize("check", CHECKS, ids=str)
def test_ours_conform(check) -> None:
    check()


def test_the_engines_that_need_no_extra_were_checked() -> None:
    assert {"auto", "branch", "contraction", "falsify"} <= set(ENGINES)


class Missing:
    """An engine whose solver is not installed."""

    name = "missing"

    def supports(self, problem):
        return "its solver is not installed"

    def solve(self, problem, budget=None, conditions=tuple(CONDITIONS)):
        reports = (ConditionReport(c, Verdict.UNKNOWN, self.name, "missing") for c in conditions)
        return VerifyReport(tuple(reports))


def test_an_engine_that_cannot_load_here_only_skips() -> None:
    for check in yield_verifier_checks(Missing()):
        if check.name.startswith("is not wrong"):
            with pytest.raises(BaseException, match="unsupported"):
                check()


def test_some_random_loops_hold_and_some_fail() -> None:
    """Else a grid could not contradict anybody."""
    for condition in CONDITIONS:
        failing = [
            any(
                violates(problem, condition, state)
                for state in suspicious_states(problem, condition)
            )
            for problem in map(random_loop, range(12))
        ]
        assert 0 < sum(failing) < 12, condition


class Broken:
    """The branch engine with a fault in its answers."""

    name = "broken"

    def supports(self, problem):
        return None

    def solve(self, problem, budget=None, conditions=tuple(CONDITIONS)):
        report = BranchVerifier().solve(problem, budget, conditions)
        return VerifyReport(tuple(self.spoil(problem, answer) for answer in report.conditions))

    def spoil(self, problem, answer: ConditionReport) -> ConditionReport:
        return answer


class Optimist(Broken):
    """Looks at a few states and calls it a proof."""

    def spoil(self, problem, answer):
        states = np.random.default_rng(0).uniform(problem.lower, problem.upper, (64, problem.n))
        if any(violates(problem, answer.condition, state) for state in states):
            return answer
        return ConditionReport(answer.condition, Verdict.PROVED, self.name)


class Tolerant(Broken):
    """Takes what is within 1e-9 for right, as a solver with tolerances does."""

    def spoil(self, problem, answer):
        if problem.name == "rounding trap" and answer.condition == "decrease":
            return ConditionReport(answer.condition, Verdict.PROVED, self.name)
        return answer


class Pointless(Broken):
    def spoil(self, problem, answer):
        return replace(answer, counterexample=None)


class NextDoor(Broken):
    """Hands over a state that is only near a violation."""

    def spoil(self, problem, answer):
        if answer.counterexample is None:
            return answer
        return replace(answer, counterexample=problem.equilibrium.copy())


class Silent(Broken):
    def spoil(self, problem, answer):
        return ConditionReport(answer.condition, Verdict.UNKNOWN, self.name)


class Shrug(Broken):
    def spoil(self, problem, answer):
        return ConditionReport(answer.condition, Verdict.UNKNOWN, self.name, "no idea")


class Slow(Broken):
    def solve(self, problem, budget=None, conditions=tuple(CONDITIONS)):
        if problem.name == "hard loop":
            until = time.process_time() + 0.6 * (os.cpu_count() or 1)
            while time.process_time() < until:
                pass
        return super().solve(problem, budget, conditions)


class Greedy(Broken):
    def solve(self, problem, budget=None, conditions=tuple(CONDITIONS)):
        hoard = np.ones(30 * 2**20)
        return super().solve(problem, Budget(seconds=0.1 + hoard[0] * 0), conditions)


class Endless(Broken):
    def spoil(self, problem, answer):
        return replace(answer, nodes=10_000_000)


class Moody(Broken):
    def spoil(self, problem, answer):
        if answer.counterexample is None or np.random.rand() < 0.5:
            return answer
        return replace(answer, verdict=Verdict.UNKNOWN, counterexample=None, reason="a bad day")


class Chatty(Broken):
    def solve(self, problem, budget=None, conditions=tuple(CONDITIONS)):
        return super().solve(problem, budget)


@pytest.mark.parametrize(
    ("broken", "check", "message"),
    [
        (
            Optimist,
            "is not wrong about: corner only",
            "expected decrease to be refuted or unknown (got proved",
        ),
        (Optimist, "proves nothing that a grid contradicts", "next to a violation"),
        (
            Tolerant,
            "is not wrong about: rounding trap",
            "expected decrease to be refuted or unknown (got proved",
        ),
        (
            Pointless,
            "is not wrong about: unstable",
            "expected a state that refutes decrease (got none)",
        ),
        (
            NextDoor,
            "is not wrong about: unstable",
            "expected a state that violates decrease over the rationals",
        ),
        (Silent, "is not wrong about: stable", "expected a reason why positivity is unknown"),
        (Shrug, "decides something", "expected a verdict on the stable or an unstable loop"),
        (
            Shrug,
            "is not wrong about: stable",
            "expected a complete engine to find positivity proved",
        ),
        (Slow, "keeps to its time", "expected an answer within 0.3 s of a budget of 0.0 s"),
        (Greedy, "keeps to its memory", "expected at most 150 MB"),
        (
            Endless,
            "keeps to its nodes",
            "expected at most 5500 nodes for a budget of 500 (got 10000000)",
        ),
        (Moody, "answers the same again", "again"),
        (
            Moody,
            "leaves its surroundings alone",
            "expected NumPy's global random generator to be left alone",
        ),
        (Chatty, "answers what it is asked", "expected answers to ('decrease',), in that order"),
    ],
)
def test_faults_are_found_and_named(broken, check, message) -> None:
    limits = Limits(seconds=120.0, grace=0.3 if broken is Slow else 5.0, memory_mb=150)
    (found,) = [
        one
        for one in yield_verifier_checks(broken(), complete=True, limits=limits)
        if one.name == check
    ]
    with pytest.raises(ConformanceError) as caught:
        found()
    assert str(caught.value).startswith(f"broken does not pass the check {check!r}: ")
    assert message in str(caught.value)


def test_the_whole_suite_stops_at_the_first_fault() -> None:
    with pytest.raises(AssertionError, match="is not wrong about: stable"):
        check_verifier(Silent())
