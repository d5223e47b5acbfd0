"""HiGHS and Z3 as verifiers: right or unknown on known loops, never next to a violation on random
ones."""

from __future__ import annotations

import os
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from known import KNOWN, scaling, with_errors
from loops import random_loop, suspicious_states
from peer_engines import peer

from graphkeel.core.optional import is_installed
from graphkeel.verify.problem import CONDITIONS, Network, Problem
from graphkeel.verify.rational import nearest_confirmed, violates
from graphkeel.verify.result import Budget, Verdict, Verifier

PACKAGES = {"milp": "highspy", "smt": "z3"}
ENGINES = [peer(name) for name, package in PACKAGES.items() if is_installed(package)]
DECIDES_ALL_BUT = {
    "milp": {
        "tangent",
        "plateau",
        "no hole",
        "equilibrium on a face",
    },  # zero is within its tolerances
    "smt": set(),
}


@pytest.fixture(params=ENGINES, ids=lambda engine: engine.name)
def engine(request: pytest.FixtureRequest) -> Verifier:
    against = request.param.supports(scaling(0.5))
    if against is not None:
        pytest.skip(against)
    return request.param  # type: ignore[no-any-return]


@pytest.mark.parametrize("name", sorted(KNOWN))
def test_known_loops(engine: Verifier, name: str) -> None:
    problem, truth = KNOWN[name]
    report = engine.solve(problem, Budget(seconds=600))
    for condition in CONDITIONS:
        answer = report[condition]
        if answer.verdict is Verdict.UNKNOWN:
            assert answer.reason
            assert name in DECIDES_ALL_BUT[engine.name], (condition, answer.reason)
            continue
        assert answer.verdict.value == truth[condition], (condition, answer)
        if answer.verdict is Verdict.REFUTED:
            assert answer.counterexample is not None
            assert violates(problem, condition, answer.counterexample)


@pytest.mark.skipif(not is_installed("highspy"), reason="highspy is not installed")
def test_milp_says_that_it_is_numerical() -> None:
    report = peer("milp").solve(scaling(0.5))
    assert report.verdict is Verdict.PROVED
    assert all(answer.reason.startswith("numerical") for answer in report.conditions)


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_no_proof_next_to_a_violation_and_no_disagreement(seed: int) -> None:
    problem = random_loop(seed)
    reports = [
        engine.solve(problem, Budget(seconds=10))
        for engine in ENGINES
        if engine.supports(problem) is None
    ]
    for condition in CONDITIONS:
        verdicts = {report[condition].verdict for report in reports} - {Verdict.UNKNOWN}
        assert len(verdicts) <= 1
        if Verdict.PROVED in verdicts:
            suspects = suspicious_states(problem, condition)
            assert not any(violates(problem, condition, point) for point in suspects[:20])


def hard_problem() -> Problem:
    rng = np.random.default_rng(0)
    n, h = 8, 40
    return Problem(
        Network.of(
            (rng.normal(size=(h, n)), rng.normal(size=h)),
            (0.05 * rng.normal(size=(n, h)), np.zeros(n)),
        ),
        Network.of(
            (rng.normal(size=(h, n)), 0.1 * rng.normal(size=h)), (np.ones((1, h)), np.zeros(1))
        ),
        lower=-np.ones(n),
        upper=np.ones(n),
        equilibrium=np.zeros(n),
        hole_radius=0.1,
        rho=0.999,
    )


def test_the_budget_is_kept(engine: Verifier) -> None:
    """In processor time: how long a busy machine lets it wait is not the engine's doing."""
    start = time.process_time()
    answer = engine.solve(hard_problem(), Budget(seconds=2.0), ("decrease",))["decrease"]
    assert time.process_time() - start < 8.0 * (os.cpu_count() or 1)
    if answer.verdict is not Verdict.REFUTED:  # some versions of HiGHS are quick enough for that
        assert answer.verdict is Verdict.UNKNOWN and answer.reason == "time"


def test_weight_errors_that_matter_are_not_proved_over(engine: Verifier) -> None:
    """Halving with every weight known to ±0.2 only: ρ = 0.75 can fail within the bounds."""
    report = engine.solve(with_errors(scaling(0.5), 0.2), Budget(seconds=20))
    assert report["decrease"].verdict is Verdict.UNKNOWN


def test_a_counterexample_at_the_hole_is_pushed_out() -> None:
    problem = scaling(2.0, hole_radius=0.1)
    inside = np.array([np.nextafter(0.1, 0.0), 0.0])
    assert not violates(problem, "decrease", inside)
    moved = nearest_confirmed(problem, "decrease", inside)
    assert moved is not None and violates(problem, "decrease", moved)
