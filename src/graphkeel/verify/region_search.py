"""Deciding whether a class keeps its states: branch and bound on a region's rows, and the search
for violations."""

from __future__ import annotations

import time

import numpy as np
from scipy.optimize import linprog

from graphkeel.verify.branch import warm_up
from graphkeel.verify.branch.pack import too_large
from graphkeel.verify.branch.search import Search
from graphkeel.verify.branch.tree import encode, tree_entry
from graphkeel.verify.engines.falsify import local
from graphkeel.verify.problem import Array
from graphkeel.verify.region import Region, multipliers, region_rows, violates
from graphkeel.verify.result import Budget, ConditionReport, Verdict

STARTS = 4096  # states sampled for a violation
CLIMBS = 8  # of the best of them, taken into linear programs
MOST_CLIMBS = 40  # from the boxes of one region


def decide_region(region: Region, budget: Budget | None = None) -> ConditionReport:
    """Branch and bound on every row; `proved` comes with multipliers and trees, `refuted` with a
    confirmed state."""
    budget, start = budget or Budget(), time.monotonic()
    weights = multipliers(region)
    rows, confirm = region_rows(region, weights), _Confirm(region)
    if any(map(too_large, rows)):
        return ConditionReport(
            "region", Verdict.UNKNOWN, "branch", "numerical: magnitudes near overflow"
        )
    warm_up()
    trees, nodes, gap = [], 0, ""
    for row in rows:
        outcome = Search(region.problem, row, budget, start + budget.seconds, confirm).run()
        nodes += outcome.nodes
        if outcome.counterexample is not None:
            seconds, point = time.monotonic() - start, outcome.counterexample
            return ConditionReport("region", Verdict.REFUTED, "branch", "", point, seconds, nodes)
        kept = outcome.piece is not None and not outcome.reason
        gap = gap or outcome.reason or ("" if kept else "the tree was too large to be stored")
        if outcome.piece is not None:
            trees.append(tree_entry(row, outcome.piece, outcome.lenses))
    seconds = time.monotonic() - start
    if gap:
        return ConditionReport(
            "region", Verdict.UNKNOWN, "branch", gap, seconds=seconds, nodes=nodes
        )
    proof = {
        "version": 1,
        "kind": "branch",
        "condition": "region",
        "multipliers": encode(weights),
        "trees": trees,
    }
    reason = f"bounded on every leaf of {len(trees)} tree(s)"
    return ConditionReport(
        "region", Verdict.PROVED, "branch", reason, seconds=seconds, nodes=nodes, proof=proof
    )


class _Confirm:
    """Turns a suspicious state into a confirmed violation, if it is or leads to one."""

    def __init__(self, region: Region) -> None:
        self.region, self.searched, self.climbs = region, False, 0

    def __call__(self, point: Array) -> Array | None:
        if violates(self.region, point):
            return point
        if self.climbs >= MOST_CLIMBS:
            return None
        self.climbs += 1
        return _climbed(self.region, _moved_in(self.region, point[None])[0])

    def search(self) -> Array | None:
        if self.searched:
            return None
        self.searched = True
        return find_violation(self.region)


def find_violation(region: Region) -> Array | None:
    """Sampled states of the region, the best of them climbed; only what exact arithmetic
    confirms."""
    rng, problem = np.random.default_rng(0), region.problem
    inside = rng.uniform(problem.lower, problem.upper, (STARTS, problem.n))
    corners = np.where(rng.random((STARTS, problem.n)) < 0.5, problem.lower, problem.upper)
    points = _moved_in(region, np.concatenate([inside, corners]))
    points = points[region.lead(points) >= region.margin]
    if not len(points):
        return None
    best = np.argsort(region.lead(problem.closed_loop(points)))[:CLIMBS]
    for point in points[best]:
        found = point if violates(region, point) else _climbed(region, point)
        if found is not None:
            return found
    return None


def _moved_in(region: Region, points: Array) -> Array:
    """Lower the rivals' logits to where the class leads, as far as the box allows."""
    points = points.copy()
    top = points[:, [region.axis]] - region.margin
    points[:, region.rivals] = np.minimum(points[:, region.rivals], top)
    return np.maximum(points, region.problem.lower)


def _climbed(region: Region, point: Array) -> Array | None:
    """The state of the point's activation cell in which a rival gains most, if it is a
    violation."""
    problem, n, c = region.problem, region.problem.n, region.axis
    piece = local(problem.closed_loop, np.eye(n), np.zeros(n), point)
    gains = piece.weight[region.rivals] - piece.weight[c]
    values = gains @ point + piece.bias[region.rivals] - piece.bias[c]
    leading = np.eye(n)[region.rivals] - np.eye(n)[c]  # ≤ −γ in the region
    answer = linprog(
        -gains[int(np.argmax(values))],
        A_ub=np.concatenate([-piece.normals, leading]),
        b_ub=np.concatenate([piece.offsets, np.full(len(leading), -region.margin)]),
        bounds=np.stack([problem.lower, problem.upper], axis=1),
        method="highs",
    )
    if answer.x is None:
        return None
    found = _moved_in(region, np.clip(answer.x, problem.lower, problem.upper)[None])[0]
    return found if violates(region, found) else None
