"""Rows: the functions that have to be shown non-positive, and that building them loses nothing."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from known_loops import ALL
from loops import Known, base, corner_only, stable

from graphkeel.core.errors import ProblemError
from graphkeel.verify.affine import compose
from graphkeel.verify.attack import ConditionAttack
from graphkeel.verify.boxes.pack import (
    Net,
    first_layers,
    no_coupling,
    pack,
    pack_coupling,
    row_network,
)
from graphkeel.verify.boxes.relax import begin_box, bound_needed, forward, measure, workspace
from graphkeel.verify.conditions import rows_of
from graphkeel.verify.problem import Affine, Network
from graphkeel.verify.query import Row


def test_the_rows_of_each_condition() -> None:
    problem = stable().problem
    assert [row.name for row in rows_of(problem, "decrease")] == ["decrease"]
    assert [row.name for row in rows_of(problem, "positivity")] == ["+0", "-0", "+1", "-1"]
    assert [row.name for row in rows_of(problem, "invariance")] == [
        "upper 0",
        "lower 0",
        "upper 1",
        "lower 1",
    ]
    assert [
        row.strict for row in rows_of(base("x", np.eye(2), rho=1.0, positivity=0.0), "decrease")
    ] == [True]
    assert rows_of(base("x", np.eye(2), positivity=0.0), "positivity")[0].strict
    with pytest.raises(ProblemError, match="condition"):
        rows_of(problem, "stability")


def test_a_distance_row_looks_at_its_side_of_the_hole_only() -> None:
    plus, minus, *_ = rows_of(stable().problem, "positivity")
    assert plus.lower[0] <= 0.125 and plus.lower[0] > 0.1249 and plus.upper[0] == 1.0
    assert minus.upper[0] >= -0.125 and minus.upper[0] < -0.1249
    beyond = base("x", np.eye(2), hole_radius=2.0)
    assert all(row.empty for row in rows_of(beyond, "positivity"))


@pytest.mark.parametrize("known", ALL, ids=lambda known: known.name)
@pytest.mark.parametrize("condition", ["positivity", "decrease", "invariance"])
def test_the_largest_row_is_the_margin(known: Known, condition: str) -> None:
    problem = known.problem
    rows = rows_of(problem, condition)
    points = np.random.default_rng(0).uniform(problem.lower, problem.upper, (50, problem.n))
    values = np.array([[value(row, point) for row in rows] for point in points])
    assert np.allclose(
        values.max(axis=1),
        ConditionAttack(problem, condition).network.outputs_at(points).max(axis=1),
        atol=1e-12,
    )


def test_composition_covers_its_rounding() -> None:
    rng = np.random.default_rng(1)
    outer, inner = (Affine(rng.normal(size=(3, 3)), rng.normal(size=3)) for _ in range(2))
    both = compose(outer, inner)
    for i in range(3):
        for j in range(3):
            exact = sum(
                Fraction(float(outer.weight[i, k])) * Fraction(float(inner.weight[k, j]))
                for k in range(3)
            )
            assert both.weight_error is not None
            assert abs(exact - Fraction(float(both.weight[i, j]))) <= Fraction(
                float(both.weight_error[i, j])
            )
            assert both.weight_error[i, j] < 1e-13


def packed(row: Row) -> Net:
    return pack(row_network(row), first_layers(row))


def value(row: Row, point: np.ndarray) -> float:
    net = packed(row)
    return forward(net, workspace(net), point, False)


def bounds(
    row: Row, theta: np.ndarray | None, lower: np.ndarray, upper: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Of all units: chain A, then chain B."""
    net = packed(row)
    work = workspace(net)
    coupling = no_coupling(row.n) if theta is None else pack_coupling(row, theta, 1)
    measure(net, coupling, work, row.lower, row.upper)
    begin_box(net, work, lower, upper)
    bound_needed(net, coupling, work, net.needs[0], lower, upper)
    units = np.arange(row.n, row.n + row.units)
    order = np.roll(units, -sum(layer.n_out for layer in row.hidden[1]))
    return work.low[order], work.high[order]


@pytest.mark.parametrize("make", [stable, corner_only])
def test_hidden_bounds_hold_at_sampled_states(make: object) -> None:
    problem = make().problem  # type: ignore[operator]
    row = rows_of(problem, "decrease")[0]
    rng = np.random.default_rng(2)
    for _ in range(20):
        lower, upper = np.sort(rng.uniform(-1, 1, (2, problem.n)), axis=0)
        low, high = bounds(row, None, lower, upper)
        points = rng.uniform(lower, upper, (200, problem.n))
        units = []
        for chain in row.hidden:
            x = points
            for layer in chain:
                z = x @ layer.weight.T + layer.bias
                units.append(z)
                x = np.maximum(z, 0.0)
        z = np.concatenate(units, axis=1)
        assert (z >= low).all() and (z <= high).all()


def test_a_coupling_is_exact_on_what_it_explains() -> None:
    """F halves the state through units that stay active, so V∘F's units are half of V's and nothing
    remains."""
    eye = np.eye(2)
    problem = base(
        "x", eye, closed_loop=Network.of((eye, 2 * np.ones(2)), (0.5 * eye, -np.ones(2)))
    )
    row = rows_of(problem, "decrease")[0]
    after = slice(2, 6)  # the units of V∘F
    low, high = bounds(row, None, -np.ones(2), np.ones(2))
    assert np.allclose(high[after], 0.5) and np.allclose(low[after], -0.5)
    low, high = bounds(row, 0.5 * np.eye(4), -np.ones(2), np.ones(2))
    assert (np.abs(high[after]) < 1e-12).all() and (np.abs(low[after]) < 1e-12).all()


def test_networks_without_hidden_layers_become_affine_rows() -> None:
    flat = Network.of((0.5 * np.eye(2), np.zeros(2)))
    v = Network.of((np.array([[1.0, 2.0]]), np.array([0.25])))
    problem = base("x", np.eye(2), closed_loop=flat, lyapunov=v)
    row = rows_of(problem, "decrease")[0]
    assert row.units == 0
    point = np.array([0.3, -0.2])
    assert value(row, point) == pytest.approx(
        float(ConditionAttack(problem, "decrease").network.outputs_at(point[None])[0, 0]), abs=1e-12
    )
