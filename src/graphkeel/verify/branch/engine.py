"""The default engine: complete branch and bound with rigorous linear relaxations, on every core.

Each condition is a list of rows (conditions.py); each row is a tree of boxes (search.py) whose
leaves are proved by bounds that account for every rounding (relax.py). Decrease of a gauge that
boxes do not settle at once is tried by levels of V and cuts at units (level_search.py), in turns
with the boxes. A violation counts only after it was confirmed in exact rationals."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from graphkeel.verify.branch.cells import cells_of
from graphkeel.verify.branch.coupling import find_coupling
from graphkeel.verify.branch.homogeneous import Plan, plan
from graphkeel.verify.branch.level_search import LevelSearch, level_search
from graphkeel.verify.branch.pack import accepts_coupling, too_large
from graphkeel.verify.branch.search import Outcome, Search
from graphkeel.verify.branch.simplex import load_simplex
from graphkeel.verify.conditions import rows_of
from graphkeel.verify.engine import ConditionwiseEngine
from graphkeel.verify.engines.falsify import climb, confirmed, find_violation, first_look
from graphkeel.verify.problem import CONDITIONS, Array, Network, Problem
from graphkeel.verify.proof import Json, empty_tree, head, multipliers_entry
from graphkeel.verify.query import Row
from graphkeel.verify.result import Budget, ConditionReport, Verdict

MOST_CLIMBS = 40
# seconds of boxes and then of levels, in turns; boxes have what is left
TURNS = ((0.75, 5.0), (5.0, 15.0), (20.0, 60.0))
NOT_STORED = "proved; the tree was not stored: too large, or zero is touched in too many cells"


class BranchVerifier(ConditionwiseEngine):
    """Branch and bound; `proved` comes with the tree that shows it."""

    name = "branch"

    def supports(self, problem: Problem) -> str | None:
        """None unless numbers come near to overflow.

        Args:
            problem: the problem.
        """
        rows = [row for condition in CONDITIONS for row in rows_of(problem, condition)]
        if any(map(too_large, rows)):
            return "weights or states are too large for float64 bounds"
        return None

    def prepare(self) -> None:
        """Load the compiled kernels."""
        warm_up()

    def decide(self, problem: Problem, condition: str, budget: Budget) -> ConditionReport:
        """One condition: on the faces alone where the loop is homogeneous, else over the whole
        box.

        Args:
            problem: the problem.
            condition: the name of one of its conditions.
            budget: this condition's own share.
        """
        rows = rows_of(problem, condition)
        if any(map(too_large, rows)):
            reason = "numerical: magnitudes near overflow"
            return ConditionReport(condition, Verdict.UNKNOWN, self.name, reason)
        run = _Verification(problem, condition, budget)
        return replace(run.report(rows), engine=self.name)


@dataclass(eq=False)
class _Gap(Exception):
    """A row that was neither proved nor refuted, and why."""

    reason: str


class _Paused(Exception):
    """Boxes have had their turn."""


@dataclass(eq=False)
class _Refuted(Exception):
    """A state that violates the condition, confirmed."""

    point: Array


class _Verification:
    """One condition on its way to an answer; all its trees share one budget.

    Reads: problem, condition, budget. Writes: `nodes`, the boxes explored so far.
    """

    def __init__(self, problem: Problem, condition: str, budget: Budget) -> None:
        self.problem = problem
        self.condition = condition
        self.budget = budget
        self.deadline = budget.now() + budget.seconds
        self.pause = self.deadline  # when boxes have to wait
        self.searches: dict[tuple[str, str], Search] = {}  # by row and face
        self.trees: dict[tuple[str, str], Json | None] = {}
        self.confirm = Confirmation(problem, condition)
        self.nodes = 0

    def report(self, rows: list[Row]) -> ConditionReport:
        """The answer."""
        try:
            self._first_look()
            return self._proved(rows)
        except _Refuted as refuted:
            reason = "found by falsification" if self.confirm.found_by_search else ""
            return self._answer(Verdict.REFUTED, reason, counterexample=refuted.point)
        except _Gap as gap:
            return self._answer(Verdict.UNKNOWN, gap.reason)

    def _first_look(self) -> None:
        point = self.confirm.first_look()
        if point is not None:
            raise _Refuted(point)

    def _proved(self, rows: list[Row]) -> ConditionReport:
        """By boxes, in turns with levels where the row is made for these."""
        faces = plan(self.problem, self.condition)
        levels = level_search(self.problem, rows[0], self.confirm, faces)
        start = self.budget.now()
        for boxes, seconds in TURNS:
            if levels is None or levels.given_up:
                break
            self.pause = min(start + boxes, self.deadline)
            try:
                return self._by_boxes(rows, faces)
            except _Paused:
                report = self._by_levels(levels, seconds)
            if report is not None:
                return report
            start += seconds
        self.pause = self.deadline
        return self._by_boxes(rows, faces)

    def _by_levels(self, levels: LevelSearch, seconds: float) -> ConditionReport | None:
        """A tree of levels and units, if that is found in time."""
        end = min(self.budget.now() + seconds, self.deadline)
        outcome = levels.run(lambda: self.budget.now() >= end)
        self.nodes += outcome.nodes
        if outcome.counterexample is not None:
            raise _Refuted(outcome.counterexample)
        if outcome.entry is None:
            return None
        reason = "bounded on every leaf of a tree of levels and units"
        proof = head("homogeneous" if levels.faces else "branch", self.condition)
        if levels.faces:
            proof["margin"] = levels.bounds.shift
        return self._answer(Verdict.PROVED, reason, proof=proof | outcome.entry)

    def _by_boxes(self, rows: list[Row], faces: Plan | None) -> ConditionReport:
        if faces is not None:
            try:
                return self._by_faces(faces)
            except _Gap:
                if self.nodes >= self.budget.nodes:
                    raise  # else the whole box is left to be tried
        return self._by_rows(rows)

    def _by_rows(self, rows: list[Row]) -> ConditionReport:
        """A tree per row over the box without the hole; a violation ends it, a gap does not."""
        trees: list[Json | None] = []
        gaps = []
        for row in rows:
            if row.empty:
                trees.append(empty_tree(row))
                continue
            try:
                trees.append(self._tree(row))
            except _Gap as gap:
                gaps.append(gap)
        if gaps:
            raise gaps[0]
        reason = f"bounded on every leaf of {len(trees)} tree(s)"
        proof = head("branch", self.condition) | multipliers_entry(rows)
        return self._with_proof(reason, proof, "trees", trees)

    def _by_faces(self, faces: Plan) -> ConditionReport:
        """A tree per row and face with a margin."""
        theta = None
        if accepts_coupling(faces.faces[0].row):
            theta = find_coupling(self.problem, self.problem.lower, self.problem.upper)
        trees: list[Json | None] = []
        for face in faces.faces:
            tree = self._tree(face.row, faces.margin, theta, f"{face.side} {face.axis}")
            trees.append(None if tree is None else {"side": face.side} | tree)
        reason = f"homogeneous around Y; bounded on {len(trees)} face(s)"
        proof = head("homogeneous", self.condition) | {"margin": faces.margin}
        return self._with_proof(reason, proof, "faces", trees)

    def _tree(
        self, row: Row, shift: float = 0.0, theta: Array | None = None, face: str = ""
    ) -> Json | None:
        """The finished tree of a row, None if it was too large to be kept."""
        key = (row.name, face)
        if key in self.trees:
            return self.trees[key]
        if self.nodes >= self.budget.nodes:
            raise _Gap(f"node budget: {self.nodes} boxes explored")
        outcome = self._searched(key, row, shift, theta)
        if outcome.counterexample is not None:
            raise _Refuted(outcome.counterexample)
        if outcome.late and self.pause < self.deadline:
            raise _Paused
        if outcome.reason:
            raise _Gap(outcome.reason)
        piece = outcome.piece
        self.trees[key] = None if piece is None else piece.entry(row, outcome.couplings)
        return self.trees[key]

    def _searched(
        self, key: tuple[str, str], row: Row, shift: float, theta: Array | None
    ) -> Outcome:
        """The boxes of a row, begun or gone on with."""
        if key in self.searches:
            search = self.searches[key]
            self.nodes -= search.nodes
            outcome = search.resume(self.pause)
        else:
            rest = replace(self.budget, nodes=self.budget.nodes - self.nodes)
            cells = cells_of(self.problem, self.condition, row, shift)
            search = self.searches[key] = Search(
                row,
                rest,
                self.pause,
                self.confirm,
                loop=self.problem,
                shift=shift,
                theta=theta,
                cells=cells,
            )
            outcome = search.run()
        self.nodes += outcome.nodes
        return outcome

    def _with_proof(
        self, reason: str, proof: Json, key: str, trees: list[Json | None]
    ) -> ConditionReport:
        if any(tree is None for tree in trees):
            return self._answer(Verdict.PROVED, NOT_STORED)
        return self._answer(Verdict.PROVED, reason, proof=proof | {key: trees})

    def _answer(self, verdict: Verdict, reason: str, **more: Any) -> ConditionReport:
        return ConditionReport(self.condition, verdict, "", reason, nodes=self.nodes, **more)


class Confirmation:
    """Turns a suspicious point into a confirmed counterexample, if it is or leads to one.

    Reads: problem, condition. Writes: `climbs`, `searched`, `found_by_search`.
    """

    def __init__(self, problem: Problem, condition: str, searched: bool = False) -> None:
        self.problem = problem
        self.condition = condition
        self.climbs = 0
        self.searched = searched
        self.found_by_search = False

    def __call__(self, point: Array) -> Array | None:
        """The point, or one that a climb from it leads to, if that violates the condition."""
        if confirmed(self.problem, self.condition, point):
            return point
        if self.climbs >= MOST_CLIMBS:
            return None
        self.climbs += 1
        higher = climb(self.problem, self.condition, point)
        if higher is None or not confirmed(self.problem, self.condition, higher):
            return None
        return higher

    def first_look(self) -> Array | None:
        """A violation that a few states show: no solver should be asked about it."""
        point = None if self.searched else first_look(self.problem, self.condition)
        self.found_by_search = point is not None
        return point

    def search(self) -> Array | None:
        """Falsification, once per condition."""
        if self.searched:
            return None
        self.searched = True
        point = find_violation(self.problem, self.condition)
        self.found_by_search = point is not None
        return point


_warm = False


def warm_up() -> None:
    """Load the compiled kernels (compile them on the very first use), so that no solve pays for
    it."""
    global _warm
    if _warm:
        return
    network = Network.of((np.eye(1), np.zeros(1)), (np.eye(1), np.zeros(1)))
    tiny = Problem(network, network, np.array([1.0]), np.array([2.0]), np.array([1.0]), rho=0.5)
    row = rows_of(tiny, "decrease")[0]
    confirm = Confirmation(tiny, "decrease", searched=True)
    Search(row, Budget(threads=1), time.monotonic() + 1.0, confirm, loop=tiny).run()
    load_simplex()
    _warm = True
