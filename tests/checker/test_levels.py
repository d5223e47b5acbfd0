"""Supports of levels: whatever a file chooses, the bound lies above the row."""

from __future__ import annotations

import random
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise

import pytest
from hand_loops import array, tree

from graphkeel.checker.blocks import Row
from graphkeel.checker.exact import Matrix, Vector, Work, folded, rise
from graphkeel.checker.levels import Gauge, Levels
from graphkeel.checker.networks import Layer, Network, value_at
from graphkeel.checker.problem import Loop, Problem
from graphkeel.checker.reading import Rejected
from graphkeel.checker.relaxation import Leaf, Relaxation, Signs
from graphkeel.checker.trees import Tree


def matrix(rows: list[list[float]]) -> Matrix:
    flat = Vector.of([value for row in rows for value in row])
    return Matrix(folded(flat.ints, len(rows[0])), flat.exp)


def network(rng: random.Random, sizes: list[int], positive: bool = False) -> Network:
    layers = []
    for n_in, n_out in pairwise(sizes):
        weight = [[rng.uniform(-1, 1) for _ in range(n_in)] for _ in range(n_out)]
        if positive and n_out == 1:
            weight = [[rng.choice([0.0, rng.random()]) for _ in range(n_in)]]
        bias = [rng.choice([0.0, rng.uniform(-1, 1)]) for _ in range(n_out)]
        layers.append(Layer(matrix(weight), Vector.of(bias)))
    return layers


def random_problem(rng: random.Random) -> Problem:
    n = rng.randint(1, 3)
    deep = [rng.randint(1, 4) for _ in range(rng.randint(0, 2))]
    forward = network(rng, [n, *deep, n])
    gauge = network(rng, [n, rng.randint(1, 4), 1], positive=True)
    lower = [rng.uniform(-2, 0) for _ in range(n)]
    upper = [rng.uniform(0, 2) for _ in range(n)]
    ends = [Vector.of(values) for values in (lower, upper, [0.0] * n)]
    numbers = [Fraction(value) for value in (0.125, rng.choice([0.5, 0.75, 1.0]), 0.5, 0.0, 0.0)]
    return Problem(0, forward, gauge, *ends, *numbers)


def unit_inputs(row: Row, y: Vector) -> list[Fraction]:
    """The inputs of all units of the stacked networks at a state."""
    found = []
    values = y
    for stage in row.stages:
        inputs = stage.weight.apply(values) + stage.bias
        found += inputs.fractions()
        values = values.joined(inputs.each(rise))
    return found


def random_supports(
    rng: random.Random, problem: Problem, levels: Levels, own: float
) -> list[float]:
    """λ, γ and θ that a checker has to accept with ω = own, often at their very limit."""
    up = rng.choice([0.0, rng.random(), 4.0 * rng.random()]) if levels.high is not None else 0.0
    down = rng.choice([0.0, rng.random() * (own + up)]) if levels.low is not None else 0.0
    share = (own + up - down) * (1 - 2.0**-40)
    outer = problem.lyapunov[1].weight.row(0).fractions()
    return [up, down, *(share * float(v) * rng.choice([0.0, 1.0, rng.random()]) for v in outer)]


@pytest.mark.parametrize("seed", range(150))
def test_no_choice_bounds_the_row_from_below(seed: int) -> None:
    rng = random.Random(seed)
    problem = random_problem(rng)
    row = Loop(problem, Work(10**12)).rows("decrease")[0]
    state = [rng.uniform(float(a), float(b)) for a, b in zip(*ends_of(problem), strict=True)]
    y = Vector.of(state)
    here = problem.gauge(y)
    low = here - Fraction(rng.choice([0.0, rng.random()])) if rng.random() < 0.7 else None
    high = here + Fraction(rng.choice([0.0, rng.random()])) if rng.random() < 0.8 else None
    levels = Levels(low, high)
    inputs = unit_inputs(row, y)
    signs: Signs = {}
    for unit, value in enumerate(inputs):
        if rng.random() < 0.3:
            signs[unit] = value > 0 or (value == 0 and rng.random() < 0.5)
    units = range(row.gauge)
    lines = [random_supports(rng, problem, levels, 0.0) for _ in range(2 * len(units))]
    lines.append(random_supports(rng, problem, levels, float(problem.rho)))
    gauge = Gauge(problem.lyapunov, problem.rho, array(lines), "a tree")
    numbers = [rng.choice([0, k + 1]) for k in range(len(lines))]
    *pairs, (own,) = folded(gauge.supports(numbers, levels), 2)
    weights = [rng.randint(1, 9), *(rng.randint(0, 9) for _ in signs)]
    slopes = {unit: rng.randint(0, 255) for unit in row.sloped}
    if own is not None:
        own = (own[0].times(Fraction(weights[0])), weights[0] * own[1])
    box = problem.lower.joined(problem.upper)
    for level in (low, high):
        box = box.joined(Vector.of([] if level is None else [level]))
    box = box.joined(Vector([], box.exp + gauge.exp))
    n = problem.n
    ints = (box.ints[:n], box.ints[n : 2 * n])
    leaf = Leaf([0, *weights], signs, slopes, {}, dict(enumerate(pairs)), own)
    found = Relaxation(row.without_gauge(), box.exp, Work(10**12), set(signs), False, 64)
    bound = found.upper(found.root, ints, leaf)
    g = problem.gauge(value_at(problem.forward, y)) - problem.rho * here
    assert weights[0] * g <= bound


@pytest.mark.parametrize("seed", range(100))
def test_no_choice_bounds_positivity_from_below(seed: int) -> None:
    rng = random.Random(seed)
    problem = replace(random_problem(rng), positivity=Fraction(rng.choice([0.0, 0.5])))
    row = rng.choice(Loop(problem, Work(10**12)).rows("positivity"))
    y = Vector.of([rng.uniform(float(a), float(b)) for a, b in zip(*ends_of(problem), strict=True)])
    here = problem.gauge(y)
    high = here + Fraction(rng.choice([0.0, rng.random()])) if rng.random() < 0.5 else None
    support = random_supports(rng, problem, Levels(None, high), own=1.0)
    leaf = {"supports": array([support]), "supported": array([[1]], dtype="<i4")}
    box = problem.lower.joined(problem.upper).fractions()
    value = tree(row.name, *map(floats, folded(box, problem.n)), [-4], slopes=[[0] * row.held])
    root = problem.lower.joined(problem.upper)
    found = Tree(
        row, value | leaf, root, "a tree", Work(10**12), None, problem.lyapunov, Levels(None, high)
    )
    chosen = found._supported(Leaf([1]), [1], Levels(None, high))
    bound = found.relaxation.upper(found.relaxation.root, found.box, chosen)
    distance = Fraction(0)
    if row.side is not None:
        away = (y - problem.equilibrium).fractions()[row.side % problem.n]
        distance = problem.positivity * (away if row.side < problem.n else -away)
    assert distance - here <= bound


def floats(values: list[Fraction]) -> list[float]:
    return [float(value) for value in values]


def ends_of(problem: Problem) -> tuple[list[Fraction], list[Fraction]]:
    return problem.lower.fractions(), problem.upper.fractions()


@pytest.mark.parametrize(
    ("support", "whole"),
    [
        ([0.5, 0.0, 0.5 + 2.0**-50, 0.0], False),
        ([0.0, 0.0, 0.25, 0.0], False),
        ([0.0, 0.0, 0.75 + 2.0**-50, 0.0], True),
        ([0.0, 1.0, 0.0, 0.0], True),
    ],
)
def test_more_of_v_than_there_is_cannot_be_used(support: list[float], whole: bool) -> None:
    first = Layer(matrix([[1.0], [-1.0]]), Vector.of([0.0, 0.0]))
    last = Layer(matrix([[1.0, 1.0]]), Vector.of([0.0]))
    gauge = Gauge([first, last], Fraction(3, 4), array([support]), "a tree")
    numbers = [0, 1] if whole else [1, 0]
    with pytest.raises(Rejected, match="more of V than there is"):
        gauge.supports(numbers, Levels(Fraction(1, 4), Fraction(1, 2)))
