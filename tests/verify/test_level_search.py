"""Decrease by levels of V: the programs, the bounds, and proofs that the checker accepts."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from reproof import reprove
from scipy.optimize import linprog

from graphkeel.verify import Budget, Network, Problem, Verdict
from graphkeel.verify.branch import BranchVerifier
from graphkeel.verify.conditions import rows_of
from graphkeel.verify.gauge.homogeneous import plan
from graphkeel.verify.gauge.level_search import LevelSearch, level_search
from graphkeel.verify.gauge.levels import Part, Signs
from graphkeel.verify.gauge.simplex import Program, maximise
from graphkeel.verify.problem import Array
from graphkeel.verify.proof import head
from graphkeel.verify.rational import violates
from graphkeel.verify.settings import BranchSettings

BOXES_ALONE = BranchVerifier(BranchSettings(turns=()))


def gauge_loop(
    seed: int, n: int, hidden: int, rate: float, offset: float = 0.3, width: float = 3.0
) -> Problem:
    """A random loop around Y = e_0 with a general gauge; V(F)/V is about `rate` at most on samples.

    Args:
        seed: of the weights.
        n: coordinates of the state.
        hidden: units of F; V has two more than n.
        rate: the largest sampled V(F(y))/V(y).
        offset: of F's units at Y; 0 makes the loop homogeneous.
        width: half of the box's width.
    """
    rng = np.random.default_rng(seed)
    rows = np.eye(n) * rng.uniform(0.8, 1.3, n)
    closing = -rng.uniform(0.5, 1.0, n) @ rows
    rows = np.vstack([rows, closing, rng.normal(size=n)])
    v = rng.uniform(0.5, 1.0, n + 2)
    centre = np.zeros(n)
    centre[0] = 1.0
    inner = rng.normal(size=(hidden, n)) / n
    shift = offset * rng.normal(size=hidden)
    outer = rng.normal(size=(n, hidden)) / hidden
    lyapunov = Network.of((rows, -rows @ centre), (v[None], np.zeros(1)))

    def forward(scale: float) -> Network:
        rest = centre - scale * outer @ np.maximum(shift, 0.0)
        return Network.of((inner, shift - inner @ centre), (scale * outer, rest))

    problem = Problem(
        forward(1.0),
        lyapunov,
        centre - width,
        centre + width * rng.uniform(0.7, 1.3, n),
        centre,
        hole_radius=0.05,
        rho=0.9,
    )
    return replace(problem, closed_loop=forward(rate / _largest_rate(problem, rng)))


def _largest_rate(problem: Problem, rng: np.random.Generator) -> float:
    states = rng.uniform(problem.lower, problem.upper, (4000, problem.n))
    before = problem.lyapunov(states)[:, 0]
    after = problem.lyapunov(problem.closed_loop(states))[:, 0]
    return float((after / before).max())


def search_of(problem: Problem) -> LevelSearch:
    row = rows_of(problem, "decrease")[0]
    found = level_search(problem, row, lambda y: None, plan(problem, "decrease"))
    assert found is not None
    return found


# ---- the programs


def random_program(rng: np.random.Generator) -> tuple[Program, Array, Array]:
    n, m, q = int(rng.integers(1, 8)), int(rng.integers(1, 16)), int(rng.integers(0, 5))
    most = float(rng.choice([np.inf, 0.5, 2.0, 5.0]))
    least = float(rng.choice([-np.inf, 0.25]))
    program = Program(
        rng.normal(size=(m, n)),
        rng.normal(size=m) * rng.choice([0.0, 0.1]),
        np.where(rng.random(m) < 0.8, rng.random(m), 0.0),
        least,
        most,
        rng.normal(size=(q, n)),
        rng.normal(size=q) + 1.0,
        -5.0 * rng.random(n),
        5.0 * rng.random(n),
    )
    cost = -np.where(rng.random(m) < 0.5, rng.random(m), 0.0)
    return program, rng.normal(size=n), cost


def by_scipy(program: Program, f: Array, cost: Array) -> float | None:
    m = len(program.bias)
    n = len(f)
    level = np.concatenate([np.zeros(n), program.weight])
    lines = [np.hstack([program.rows, -np.eye(m)])]
    ends = [-program.bias]
    if np.isfinite(program.most):
        lines.append(level[None])
        ends.append(np.array([program.most]))
    if np.isfinite(program.least):
        lines.append(-level[None])
        ends.append(np.array([-program.least]))
    lines.append(np.hstack([-program.half, np.zeros((len(program.half), m))]))
    ends.append(program.offset)
    bounds = [*zip(program.lower, program.upper, strict=True), *[(0.0, None)] * m]
    answer = linprog(
        -np.concatenate([f, cost]),
        A_ub=np.vstack(lines),
        b_ub=np.concatenate(ends),
        bounds=bounds,
        method="highs",
    )
    return None if answer.x is None else -float(answer.fun)


def shown(program: Program, f: Array, theta: Array, level: float, beta: Array) -> float:
    """The bound of the maximum that the multipliers prove."""
    form = f - theta @ program.rows + beta @ program.half
    total = float(np.maximum(form * program.lower, form * program.upper).sum())
    total += float(beta @ program.offset - theta @ program.bias)
    if level > 0.0:
        return total + level * program.most
    return total + (level * program.least if level < 0.0 else 0.0)


@pytest.mark.parametrize("seed", range(40))
def test_the_simplex_agrees_with_highs(seed: int) -> None:
    program, f, cost = random_program(np.random.default_rng(seed))
    solved, y, theta, level, beta = maximise(program, f, cost, 0.0)
    truth = by_scipy(program, f, cost)
    found = shown(program, f, theta, level, beta)
    limit = -cost + level * program.weight + 1e-9
    assert solved == (truth is not None)
    assert (theta >= -1e-12).all() and (theta <= limit).all() and (beta >= -1e-12).all()
    if truth is None:
        assert found < 0.0
    else:
        assert found == pytest.approx(truth, abs=1e-7)
        assert ((y >= program.lower - 1e-9) & (y <= program.upper + 1e-9)).all()


# ---- the bounds


@pytest.mark.parametrize("seed", range(12))
def test_a_bound_lies_above_every_state_of_its_part(seed: int) -> None:
    rng = np.random.default_rng(seed)
    problem = gauge_loop(seed, 3, 5, rate=0.8)
    bounds = search_of(problem).bounds
    states = rng.uniform(problem.lower, problem.upper, (20_000, 3))
    height = problem.lyapunov(states)[:, 0]
    low, high = np.quantile(height, [0.3, 0.6])
    part = Part(problem.lower, problem.upper, high=float(high))
    states = states[(height >= low) & (height <= high)]
    inputs = (
        states @ bounds.weight.T + bounds.bias,
        np.maximum(states @ bounds.weight.T + bounds.bias, 0.0) @ bounds.after.T
        + bounds.after_bias,
    )
    signs: Signs = {}
    keep = np.ones(len(states), bool)
    for layer, unit in ((0, 1), (1, 2), (0, 3)):
        positive = inputs[layer][:, unit] >= 0.0
        active = bool(positive[keep].mean() > 0.5)
        signs[layer, unit] = active
        keep &= positive == active
    hidden = bounds.hidden(part, signs, bounds.first_layer(part))
    leaf = bounds.bounded(hidden, float(low))
    assert keep.any()
    assert bounds.value(states[keep]).max() <= leaf.bound
    assert (
        bounds.value(states).max()
        <= bounds.bounded(bounds.hidden(part, {}, hidden.first), float(low)).bound
    )


# ---- proofs


@pytest.mark.parametrize("offset", [0.3, 0.0])
@pytest.mark.parametrize("seed", range(3))
def test_proofs_by_levels_are_accepted(seed: int, offset: float) -> None:
    problem = gauge_loop(seed, 4, 5, rate=0.5, offset=offset)
    search = search_of(problem)
    outcome = search.run(lambda: False)
    assert outcome.entry is not None
    kind = "branch" if offset else "homogeneous"
    proof = head(kind, "decrease") | outcome.entry
    if not offset:
        proof["margin"] = search.bounds.shift
    assert reprove(problem, proof) > 0


def test_levels_decide_what_boxes_leave_open() -> None:
    problem = gauge_loop(1, 10, 8, rate=0.1)
    boxes = Budget(seconds=600.0, nodes=10_000, threads=1)
    outcome = search_of(problem).run(lambda: False)
    assert outcome.entry is not None
    assert outcome.nodes < 3_000
    report = BOXES_ALONE.solve(problem, boxes, ("decrease",))["decrease"]
    assert report.verdict is Verdict.UNKNOWN


def levels_first(problem: Problem) -> Verdict:
    """The engine's answer with the boxes' first turn over at once."""
    engine = BranchVerifier(BranchSettings(turns=((0.0, 600.0),)))
    report = engine.solve(problem, Budget(seconds=600, threads=1), ("decrease",))
    found = report["decrease"]
    if found.proof is not None:
        assert reprove(problem, found.proof) > 0
    if found.counterexample is not None:
        assert violates(problem, "decrease", found.counterexample)
    return found.verdict


@pytest.mark.parametrize("seed", range(16))
def test_levels_never_contradict_boxes(seed: int) -> None:
    """Rates on both sides of ρ, loops with and without offsets; every answer is shown exactly."""
    rng = np.random.default_rng(seed)
    offset = 0.3 if seed % 2 else 0.0
    problem = gauge_loop(seed, 2 + seed % 2, 4, float(rng.uniform(0.75, 0.97)), offset)
    boxes = BOXES_ALONE.solve(problem, Budget(seconds=600, threads=1), ("decrease",))
    verdicts = {boxes["decrease"].verdict, levels_first(problem)} - {Verdict.UNKNOWN}
    assert len(verdicts) == 1


def test_no_levels_where_v_is_no_gauge() -> None:
    problem = gauge_loop(0, 3, 4, rate=0.5)
    first, last = problem.lyapunov.layers
    negative = Network.of((first.weight, first.bias), (-last.weight, last.bias))
    row = rows_of(problem, "decrease")[0]
    assert level_search(problem, row, lambda y: None, None) is not None
    for changed in (
        replace(problem, lyapunov=negative),
        replace(problem, hole_radius=0.0),
        replace(problem, equilibrium=problem.upper + 1.0),
    ):
        row = rows_of(changed, "decrease")[0]
        assert level_search(changed, row, lambda y: None, None) is None
    assert level_search(problem, rows_of(problem, "positivity")[0], lambda y: None, None) is None
