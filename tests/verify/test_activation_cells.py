"""Cells: what they decide that cutting boxes alone does not, and that they never say too much."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from known_loops import touching, turning

from graphkeel.verify import Affine, Budget, Network, Problem, Verdict, verify
from graphkeel.verify.cells import cells_of
from graphkeel.verify.conditions import rows_of
from graphkeel.verify.rational import violates

ONE = np.ones(1)
BUDGET = Budget(seconds=600.0, nodes=100_000)


def test_a_kink_that_touches_zero_needs_cells(monkeypatch: pytest.MonkeyPatch) -> None:
    report = verify(touching(1.0), "branch", BUDGET, ("invariance",))["invariance"]
    assert report.verdict is Verdict.PROVED
    monkeypatch.setattr("graphkeel.verify.branch.cells_of", lambda *_: None)
    blind = verify(touching(1.0), "branch", BUDGET, ("invariance",))["invariance"]
    assert blind.verdict is Verdict.UNKNOWN and "numerical margin" in blind.reason


def test_a_kink_one_last_bit_too_high_is_refuted_or_unknown() -> None:
    """At 1/3 F is above 1 by 2⁻⁵², but no float state may show it: `proved` would be wrong,
    `unknown` is not."""
    report = verify(touching(float(np.nextafter(1.0, 2.0))), "branch", BUDGET, ("invariance",))[
        "invariance"
    ]
    assert report.verdict is not Verdict.PROVED
    if report.counterexample is not None:
        assert violates(
            touching(float(np.nextafter(1.0, 2.0))), "invariance", report.counterexample
        )


def test_no_hole_is_needed_where_cells_close_it(monkeypatch: pytest.MonkeyPatch) -> None:
    report = verify(turning(0.8), "branch", BUDGET)
    assert report.verdict is Verdict.PROVED
    monkeypatch.setattr("graphkeel.verify.branch.cells_of", lambda *_: None)
    assert verify(turning(0.8), "branch", BUDGET, ("decrease",)).verdict is Verdict.UNKNOWN


def test_the_tightest_rate_is_proved_and_the_next_float_below_is_not() -> None:
    """Where F does not bend, its worst rate in the one-norm is 1/2 + 1/8 = 5/8, reached along whole
    cells."""
    small = {"lower": -0.25 * np.ones(2), "upper": 0.25 * np.ones(2)}
    exactly = verify(replace(turning(0.625), **small), "branch", BUDGET, ("decrease",))["decrease"]
    assert exactly.verdict is Verdict.PROVED
    less = replace(turning(float(np.nextafter(0.625, 0.0))), **small)
    assert verify(less, "branch", BUDGET, ("decrease",))["decrease"].verdict is not Verdict.PROVED


def random_row(seed: int) -> Problem:
    """Small integer weights, so that touching, kinks and ties are common."""
    rng = np.random.default_rng(seed)
    n, width, units = (int(rng.integers(1, 3)), int(rng.integers(1, 4)), int(rng.integers(1, 4)))
    draw = lambda *shape: rng.integers(-2, 3, shape).astype(float)  # noqa: E731
    loop = Network.of((draw(width, n), draw(width)), (0.25 * draw(n, width), 0.25 * draw(n)))
    gauge = Network.of((draw(units, n), draw(units)), (draw(1, units), draw(1)))
    return Problem(
        loop,
        gauge,
        -np.ones(n),
        np.ones(n),
        np.zeros(n),
        0.0,
        rho=0.5,
        positivity=float(rng.integers(0, 2)),
    )


def exact_value(problem: Problem, condition: str, name: str, point: np.ndarray) -> Fraction:
    from graphkeel.verify.rational import evaluate, rationals

    state = [(y, y) for y in rationals(point)]
    after = evaluate(problem.closed_loop, state)
    if condition == "invariance":
        axis = int(name.split()[1])
        high, low = Fraction(float(problem.upper[axis])), Fraction(float(problem.lower[axis]))
        return after[axis][0] - high if name.startswith("upper") else low - after[axis][0]
    here = evaluate(problem.lyapunov, state)[0][0]
    if condition == "decrease":
        return evaluate(problem.lyapunov, after)[0][0] - Fraction(problem.rho) * here
    if problem.positivity == 0.0:
        return -here
    axis, sign = int(name[1:]), 1 if name[0] == "+" else -1
    return sign * Fraction(problem.positivity) * Fraction(float(point[axis])) - here


@pytest.mark.parametrize("condition", ["decrease", "positivity", "invariance"])
def test_cells_agree_with_exact_values_on_random_rows(condition: str) -> None:
    """A box called proved has no exact value above zero on a fine grid; one that is not has the
    value it points to."""
    proved = shown = 0
    for seed in range(60):
        problem = random_row(seed)
        for row in rows_of(problem, condition):
            cells = cells_of(problem, condition, row, 0.0)
            assert cells is not None
            leaf = cells.decide(row.lower, row.upper)
            grid = np.stack(
                np.meshgrid(
                    *[np.linspace(a, b, 9) for a, b in zip(row.lower, row.upper, strict=True)]
                )
            )
            points = grid.reshape(problem.n, -1).T
            highest = max(exact_value(problem, condition, row.name, point) for point in points)
            if leaf.proved:
                proved += 1
                assert highest < 0 if row.strict else highest <= 0, (seed, row.name)
            elif leaf.point is not None:
                shown += exact_value(problem, condition, row.name, leaf.point) >= 0
            else:
                assert highest >= 0, (seed, row.name)
    assert proved > 10 and shown > 10


def test_uncertain_weights_have_no_cells() -> None:
    problem = touching(1.0)
    first, last = problem.closed_loop.layers
    vague = Network((Affine(first.weight, first.bias, np.full((2, 1), 1e-9)), last))
    row = rows_of(problem, "invariance")[0]
    assert cells_of(replace(problem, closed_loop=vague), "invariance", row, 0.0) is None
