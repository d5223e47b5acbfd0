"""No wrong verdict: random and adversarial loops against exact replay, the exact checker, what is
known of them by hand, and two other solvers.

The default run takes a sample; `-m slow` takes 2,000 loops. Counts are printed in the summary."""

from __future__ import annotations

import numpy as np
import pytest
from adversarial_loops import KINDS, Adversary, adversarial_loop
from peer_engines import peer
from reproof import reprove
from test_properties import random_problem, sampled_violation

from graphkeel.checker import Unreadable
from graphkeel.core.optional import is_installed
from graphkeel.verify import CONDITIONS, Budget, Problem, Verdict, VerifyReport, verify
from graphkeel.verify.rational import violates
from tally import TALLY

BUDGET = Budget(seconds=600.0, nodes=2000, threads=1)  # nodes end a search, not the clock
PEERS = {"smt": "z3", "milp": "highspy"}
PEER_SECONDS = 0.5
PROVED, REFUTED = Verdict.PROVED, Verdict.REFUTED


def is_small(problem: Problem) -> bool:
    units = sum(problem.closed_loop.hidden) + sum(problem.lyapunov.hidden)
    largest = max(float(np.abs(problem.upper).max()), float(np.abs(problem.lower).max()))
    return problem.n <= 2 and units <= 12 and 1e-9 < largest < 1e9


def right_by_itself(problem: Problem, report: VerifyReport, seed: int) -> None:
    """Counterexamples replay in rationals; what is proved has no violation among many states, and
    its proof is accepted by the exact checker."""
    for answer in report.conditions:
        name = answer.condition
        if answer.verdict is REFUTED:
            assert answer.counterexample is not None
            assert violates(problem, name, answer.counterexample), name
        if answer.verdict is PROVED:
            assert sampled_violation(problem, name, seed) is None, name
            if answer.proof is not None:
                re_proved(problem, answer.proof)


def re_proved(problem: Problem, proof: dict) -> None:
    """By the checker, unless numbers are beyond what it reads."""
    try:
        reprove(problem, proof)
        TALLY["verdicts, how they were confirmed", "proof accepted"] += 1
    except (Unreadable, ArithmeticError):
        TALLY["verdicts, how they were confirmed", "beyond the checker's numbers"] += 1


def right_to_peers(problem: Problem, report: VerifyReport) -> None:
    """Z3 decides in rationals. HiGHS has tolerances: its violations are replayed, its proofs are
    not, so a proof of its own against a replayed counterexample is its mistake, and counted."""
    for engine, package in PEERS.items():
        if not is_installed(package):
            continue
        theirs = peer(engine).solve(problem, Budget(seconds=PEER_SECONDS, threads=1))
        for answer, other in zip(report.conditions, theirs.conditions, strict=True):
            pair = (answer.verdict, other.verdict)
            assert pair != (PROVED, REFUTED), (engine, answer.condition)
            if pair == (REFUTED, PROVED):
                assert engine == "milp", answer.condition
                TALLY["verdicts against peers", f"{engine} is wrong"] += 1
            elif Verdict.UNKNOWN not in pair:
                TALLY["verdicts against peers", f"{engine} agrees"] += 1


def checked(kind: str, problem: Problem, seed: int, *, peers: bool) -> VerifyReport:
    report = verify(problem, "auto", BUDGET)
    right_by_itself(problem, report, seed)
    if peers and is_small(problem):
        right_to_peers(problem, report)
    for answer in report.conditions:
        TALLY["verdicts, by loop", f"{kind}: {answer.verdict.value}"] += 1
    return report


def check_adversary(seed: int, *, peers: bool) -> None:
    adversary: Adversary = adversarial_loop(seed)
    report = checked(adversary.kind, adversary.problem, seed, peers=peers)
    for name, holds in adversary.truth.items():
        wrong = REFUTED if holds else PROVED
        assert report[name].verdict is not wrong, (adversary.kind, name)
    if adversary.twin is not None:
        other = checked(adversary.kind, adversary.twin, seed, peers=False)
        for name in CONDITIONS:
            pair = {report[name].verdict, other[name].verdict}
            assert pair != {PROVED, REFUTED}, (adversary.kind, name)


@pytest.mark.parametrize("block", range(4))
def test_random_loops(block: int) -> None:
    for seed in range(20_000 + 1000 * block, 20_000 + 1000 * block + 8):
        checked("random", random_problem(seed), seed, peers=block == 0)


@pytest.mark.parametrize("block", range(2))
def test_adversarial_loops(block: int) -> None:
    for seed in range(10 * block, 10 * block + 10):
        check_adversary(seed, peers=block == 0)


def test_every_kind_of_adversary_is_met() -> None:
    assert {adversarial_loop(seed).kind for seed in range(10)} == set(KINDS)


@pytest.mark.slow
@pytest.mark.parametrize("block", range(20))
def test_two_thousand_loops(block: int) -> None:
    """20 × (50 random and 50 adversarial) loops, the small ones also for Z3 and HiGHS."""
    for seed in range(50 * block, 50 * block + 50):
        checked("random", random_problem(50_000 + seed), seed, peers=True)
        check_adversary(100_000 + seed, peers=True)
