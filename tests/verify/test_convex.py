"""Positivity of a convex V by linear programs: proofs that the checker accepts, and violations."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from reproof import reprove

from graphkeel.verify import Budget, Network, Problem, Verdict, verify
from graphkeel.verify.attack import ConditionAttack
from graphkeel.verify.branch import BranchVerifier
from graphkeel.verify.conditions import rows_of
from graphkeel.verify.gauge.convex import convex_positivity
from graphkeel.verify.rational import violates


def gauge_problem(seed: int, n: int, units: int, **changes: object) -> Problem:
    """A gauge around Y = e_0 whose rows are no axes; F is the identity.

    Args:
        seed: of the weights.
        n: coordinates of the state.
        units: of V, more than n.
        changes: of the problem.
    """
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(n, n))
    closing = -rng.uniform(0.5, 1.5, n) @ rows
    free = rng.normal(size=(units - n - 1, n))
    every = np.vstack([rows, closing, free])
    centre = np.zeros(n)
    centre[0] = 1.0
    v = rng.uniform(0.5, 1.5, (1, units))
    lyapunov = Network.of((every, -every @ centre), (v, np.zeros(1)))
    loop = Network.of((np.eye(n), np.zeros(n)))
    box = (centre - 5.0, centre + 5.0 * rng.uniform(0.5, 1.5, n), centre)
    problem = Problem(loop, lyapunov, *box, hole_radius=1e-3)
    return replace(problem, **changes)


def largest_c(problem: Problem) -> float:
    """The least V on the sup-norm sphere around Y that sampling and descent along axes find."""
    rng = np.random.default_rng(0)
    z = rng.uniform(-1.0, 1.0, (20_000, problem.n))
    z /= np.abs(z).max(axis=1, keepdims=True)
    return float(problem.lyapunov(problem.equilibrium + z)[:, 0].min())


@pytest.mark.parametrize("share", [0.0, 0.2])
@pytest.mark.parametrize(("n", "units"), [(1, 2), (3, 6), (8, 12), (15, 20)])
def test_positivity_of_a_gauge_is_proved_by_programs(n: int, units: int, share: float) -> None:
    problem = gauge_problem(n, n, units)
    # a fifth of the sampled minimum: in many dimensions samples are far above it
    problem = replace(problem, positivity=share * largest_c(problem) / n)
    report = verify(problem, "branch", Budget(threads=1), ("positivity",))["positivity"]
    assert report.verdict is Verdict.PROVED and report.proof is not None
    assert report.nodes <= 2 * n
    assert reprove(problem, report.proof) >= 2 * n


@pytest.mark.parametrize("seed", range(20))
def test_programs_decide_both_sides_of_the_least_value(seed: int) -> None:
    """V with offsets and a constant: not homogeneous, still convex."""
    rng = np.random.default_rng(seed)
    problem = gauge_problem(seed, 3, 6)
    first, last = problem.lyapunov.layers
    bias = first.bias + 0.05 * rng.normal(size=6)
    lyapunov = Network.of((first.weight, bias), (last.weight, 0.02 * rng.normal(size=1)))
    problem = replace(problem, lyapunov=lyapunov, hole_radius=0.25)
    c = rng.uniform(0.5, 1.5) * largest_c(problem)
    problem = replace(problem, positivity=max(c, 1e-3))
    attack = ConditionAttack(problem, "positivity")
    outcome = convex_positivity(problem, rows_of(problem, "positivity"), attack)
    if outcome.trees is None:
        assert outcome.counterexample is not None
        assert violates(problem, "positivity", outcome.counterexample)
    else:
        proof = {"version": 4, "kind": "branch", "condition": "positivity"}
        assert reprove(problem, proof | {"trees": outcome.trees}) == 6


def test_nothing_is_said_of_a_v_that_is_not_convex() -> None:
    problem = gauge_problem(0, 3, 6, positivity=0.01)
    first, last = problem.lyapunov.layers
    weight = last.weight.copy()
    weight[0, 5] = -1e-6
    changed = replace(
        problem, lyapunov=Network.of((first.weight, first.bias), (weight, np.zeros(1)))
    )
    outcome = convex_positivity(changed, rows_of(changed, "positivity"), lambda y: y)
    assert outcome.trees is None and outcome.counterexample is None and outcome.programs == 0


def test_a_row_without_states_keeps_its_place() -> None:
    """Y on the upper end along one axis: the row of that side is empty."""
    problem = gauge_problem(1, 3, 6, positivity=0.01)
    upper = problem.upper.copy()
    upper[1] = problem.equilibrium[1]
    problem = replace(problem, upper=upper)
    report = BranchVerifier().solve(problem, Budget(threads=1), ("positivity",))["positivity"]
    assert report.verdict is Verdict.PROVED and report.proof is not None
    assert report.proof["trees"][2] == {"row": "+1", "empty": True}
    assert reprove(problem, report.proof) == 5
