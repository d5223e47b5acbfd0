"""Random small loops: what is proved has no violation, what is refuted has one, and every proof can
be re-checked."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from peer_engines import peer
from reproof import reprove

from graphkeel.core.optional import is_installed
from graphkeel.verify import CONDITIONS, Affine, Budget, Network, Problem, Verdict, verify
from graphkeel.verify.attack import ConditionAttack
from graphkeel.verify.branch import NOT_STORED
from graphkeel.verify.rational import violates

BUDGET = Budget(seconds=600.0, nodes=3000, threads=1)


def layer(rng: np.random.Generator, n_out: int, n_in: int, coarse: bool, spread: float) -> Affine:
    """Coarse weights are quarters: kinks meet, planes coincide, and values are hit exactly."""
    weight = spread * rng.normal(size=(n_out, n_in)) / np.sqrt(n_in)
    bias = 0.5 * spread * rng.normal(size=n_out)
    if coarse:
        weight, bias = np.round(4 * weight) / 4, np.round(4 * bias) / 4
    error = 0.01 * rng.random((n_out, n_in)) if rng.random() < 0.15 else None
    return Affine(weight, bias, error, None)


def gauge(rng: np.random.Generator, n: int, coarse: bool) -> Network:
    """A V that has a chance: positive around the origin, so that proofs happen."""
    rows = np.vstack([np.eye(n), -np.eye(n), rng.normal(size=(1, n))])
    if coarse:
        rows = np.round(4 * rows) / 4
    return Network.of((rows, np.zeros(len(rows))), (0.5 + rng.random((1, len(rows))), np.zeros(1)))


def random_problem(seed: int) -> Problem:
    rng = np.random.default_rng(seed)
    n, coarse = int(rng.integers(1, 4)), bool(rng.random() < 0.4)
    widths = [n, *rng.integers(1, 5, size=int(rng.integers(0, 3))), n]
    spread = float(rng.choice([0.3, 0.8, 1.5]))
    loop = Network(
        tuple(layer(rng, int(b), int(a), coarse, spread) for a, b in itertools.pairwise(widths))
    )
    if rng.random() < 0.7:
        v = gauge(rng, n, coarse)
    else:
        sizes = [n, *rng.integers(1, 5, size=int(rng.integers(0, 3))), 1]
        v = Network(
            tuple(layer(rng, int(b), int(a), coarse, 1.0) for a, b in itertools.pairwise(sizes))
        )
    return Problem(
        loop,
        v,
        -np.ones(n) - rng.random(n) * (not coarse),
        np.ones(n),
        np.zeros(n) if rng.random() < 0.8 else rng.choice([-1.0, 0.25, 1.0], size=n),
        hole_radius=float(rng.choice([0.0, 0.25, 0.5])),
        hole_norm=str(rng.choice(["inf", "2"])),
        rho=float(rng.choice([0.5, 0.9, 1.0])),
        positivity=float(rng.choice([0.0, 0.25])),
    )


def sampled_violation(problem: Problem, condition: str, seed: int) -> np.ndarray | None:
    """The worst of many states (a grid, so that coarse kinks are hit, and random ones), if it
    really violates."""
    rng = np.random.default_rng(seed)
    axes = [
        np.linspace(a, b, 33 if problem.n < 3 else 13)
        for a, b in zip(problem.lower, problem.upper, strict=True)
    ]
    grid = np.stack(np.meshgrid(*axes), axis=-1).reshape(-1, problem.n)
    attack = ConditionAttack(problem, condition)
    others = rng.uniform(problem.lower, problem.upper, (1000, problem.n))
    points = attack.project(np.concatenate([grid, others]))
    worst = np.argsort(-attack.margins(points))[:3]
    return next((points[i] for i in worst if violates(problem, condition, points[i])), None)


def check(seed: int) -> list[Verdict]:
    problem = random_problem(seed)
    verdicts = []
    for report in verify(problem, "branch", BUDGET).conditions:
        name = report.condition
        verdicts.append(report.verdict)
        if report.verdict is Verdict.REFUTED:
            assert report.counterexample is not None and violates(
                problem, name, report.counterexample
            )
        if report.verdict is Verdict.PROVED:
            assert sampled_violation(problem, name, seed) is None, name
            if report.reason != NOT_STORED:  # zero is touched in too many cells
                reprove(problem, report.proof)
    return verdicts


@pytest.mark.parametrize("block", range(6))
def test_proved_and_refuted_are_true_on_random_loops(block: int) -> None:
    """6 × 60 loops, always the same ones, most of them decided."""
    verdicts = [
        verdict for seed in range(1000 * block, 1000 * block + 60) for verdict in check(seed)
    ]
    decided = sum(verdict is not Verdict.UNKNOWN for verdict in verdicts)
    assert decided > 0.8 * len(verdicts)
    assert verdicts.count(Verdict.PROVED) > 20 and verdicts.count(Verdict.REFUTED) > 20


@settings(max_examples=80, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.integers(min_value=10_000, max_value=10_000_000))
def test_no_random_loop_fools_the_engine(seed: int) -> None:
    check(seed)


@pytest.mark.skipif(not is_installed("highspy"), reason="highspy is not installed")
@pytest.mark.parametrize("block", range(4))
def test_branch_and_highs_agree(block: int) -> None:
    for seed in range(100 * block, 100 * block + 15):
        problem = random_problem(seed)
        ours = verify(problem, "branch", BUDGET)
        theirs = peer("milp").solve(problem, Budget(seconds=5.0))
        for condition in CONDITIONS:
            pair = {ours[condition].verdict, theirs[condition].verdict}
            assert pair != {Verdict.PROVED, Verdict.REFUTED}, (seed, condition)
