"""The default engine: complete branch and bound with rigorous linear relaxations, on every core.

Each condition is a list of rows (query.py); each row is a tree of boxes (search.py) whose leaves
are proved by bounds that account for every rounding (relax.py). A violation counts only after it
was confirmed in exact rationals."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import numpy as np

from graphkeel.verify.branch.cells import cells_of
from graphkeel.verify.branch.homogeneous import Plan, plan
from graphkeel.verify.branch.lens import find_lens
from graphkeel.verify.branch.pack import accepts_lens, too_large
from graphkeel.verify.branch.search import Search
from graphkeel.verify.branch.tree import tree_entry
from graphkeel.verify.engines.falsify import climb, find_violation, first_look
from graphkeel.verify.exact import violates
from graphkeel.verify.problem import CONDITIONS, Array, Problem, check_conditions
from graphkeel.verify.query import Row, rows_of
from graphkeel.verify.result import Budget, ConditionReport, Verdict, VerifyReport

MOST_CLIMBS = 40


class BranchVerifier:
    """Branch and bound; `proved` comes with the tree that shows it."""

    name = "branch"

    def supports(self, problem: Problem) -> str | None:
        rows = [row for condition in CONDITIONS for row in rows_of(problem, condition)]
        return (
            "weights or states are too large for float64 bounds"
            if any(map(too_large, rows))
            else None
        )

    def solve(
        self,
        problem: Problem,
        budget: Budget | None = None,
        conditions: tuple[str, ...] = tuple(CONDITIONS),
    ) -> VerifyReport:
        check_conditions(conditions)
        budget = budget or Budget()
        warm_up()
        start = time.monotonic()
        reports = tuple(
            self.decide(problem, condition, budget, start + budget.seconds)
            for condition in conditions
        )
        return VerifyReport(reports, time.monotonic() - start)

    def decide(
        self, problem: Problem, condition: str, budget: Budget, deadline: float
    ) -> ConditionReport:
        """One condition: on the faces alone where the loop is homogeneous, else over the whole
        box."""
        start = time.monotonic()
        if any(map(too_large, rows_of(problem, condition))):
            return self._report(
                condition, Verdict.UNKNOWN, start, 0, reason="numerical: magnitudes near overflow"
            )
        confirm = _Confirm(problem, condition)
        seen = confirm.first_look()
        if seen is not None:
            return self._refuted(condition, start, 0, seen, confirm)
        nodes = 0
        faces = plan(problem, condition)
        if faces is not None:
            report = self._by_faces(problem, condition, faces, budget, deadline, confirm)
            if report.verdict is not Verdict.UNKNOWN:
                return report
            nodes = report.nodes
            if nodes >= budget.nodes:
                return report
        return self._by_rows(problem, condition, budget, deadline, confirm, nodes)

    def _by_rows(
        self,
        problem: Problem,
        condition: str,
        budget: Budget,
        deadline: float,
        confirm: _Confirm,
        nodes: int,
    ) -> ConditionReport:
        """A tree per row over the box without the hole; a violation ends it, a gap does not."""
        start = time.monotonic()
        trees: list[dict[str, Any] | None] = []
        gap = ""
        for row in rows_of(problem, condition):
            if row.empty:
                trees.append({"row": row.name, "empty": True})
                continue
            if nodes >= budget.nodes:
                gap = gap or _no_nodes_left(nodes)
                break
            cells = cells_of(problem, condition, row, 0.0)
            outcome = Search(
                problem, row, _rest(budget, nodes), deadline, confirm, cells=cells
            ).run()
            nodes += outcome.nodes
            if outcome.counterexample is not None:
                return self._refuted(condition, start, nodes, outcome.counterexample, confirm)
            gap = gap or outcome.reason
            trees.append(
                None if outcome.piece is None else tree_entry(row, outcome.piece, outcome.lenses)
            )
        if gap:
            return self._report(condition, Verdict.UNKNOWN, start, nodes, reason=gap)
        reason = f"bounded on every leaf of {len(trees)} tree(s)"
        return self._proved(condition, start, nodes, reason, {"kind": "branch"}, "trees", trees)

    def _by_faces(
        self,
        problem: Problem,
        condition: str,
        faces: Plan,
        budget: Budget,
        deadline: float,
        confirm: _Confirm,
    ) -> ConditionReport:
        """A tree per row and face with a margin; a gap here leaves the whole box to be tried."""
        start = time.monotonic()
        trees: list[dict[str, Any] | None] = []
        nodes = 0
        lens = (
            find_lens(problem, problem.lower, problem.upper)
            if accepts_lens(faces.faces[0].row)
            else None
        )
        for face in faces.faces:
            if nodes >= budget.nodes:
                return self._report(
                    condition, Verdict.UNKNOWN, start, nodes, reason=_no_nodes_left(nodes)
                )
            cells = cells_of(problem, condition, face.row, faces.margin)
            rest = _rest(budget, nodes)
            outcome = Search(
                problem, face.row, rest, deadline, confirm, faces.margin, lens, cells
            ).run()
            nodes += outcome.nodes
            if outcome.counterexample is not None:
                return self._refuted(condition, start, nodes, outcome.counterexample, confirm)
            if outcome.reason:
                return self._report(condition, Verdict.UNKNOWN, start, nodes, reason=outcome.reason)
            entry = (
                None
                if outcome.piece is None
                else tree_entry(face.row, outcome.piece, outcome.lenses)
            )
            trees.append(None if entry is None else {"side": face.side} | entry)
        head = {"kind": "homogeneous", "margin": faces.margin}
        reason = f"homogeneous around Y; bounded on {len(trees)} face(s)"
        return self._proved(condition, start, nodes, reason, head, "faces", trees)

    def _refuted(
        self, condition: str, start: float, nodes: int, point: Array, confirm: _Confirm
    ) -> ConditionReport:
        """A violation, confirmed; it says so where falsification found it."""
        report = self._report(condition, Verdict.REFUTED, start, nodes, counterexample=point)
        return (
            replace(report, reason="found by falsification") if confirm.found_by_search else report
        )

    def _proved(
        self,
        condition: str,
        start: float,
        nodes: int,
        reason: str,
        head: dict[str, Any],
        key: str,
        trees: list[dict[str, Any] | None],
    ) -> ConditionReport:
        if any(tree is None for tree in trees):
            return self._report(
                condition,
                Verdict.PROVED,
                start,
                nodes,
                reason="proved; the tree was too large to be stored",
            )
        proof = {"version": 1, **head, "condition": condition, key: trees}
        return self._report(condition, Verdict.PROVED, start, nodes, reason=reason, proof=proof)

    def _report(
        self, condition: str, verdict: Verdict, start: float, nodes: int, **more: Any
    ) -> ConditionReport:
        return ConditionReport(
            condition, verdict, self.name, seconds=time.monotonic() - start, nodes=nodes, **more
        )


def _rest(budget: Budget, nodes: int) -> Budget:
    """What the trees of a condition have left of its nodes: they share one budget."""
    return replace(budget, nodes=budget.nodes - nodes)


def _no_nodes_left(nodes: int) -> str:
    return f"node budget: {nodes} boxes explored"


class _Confirm:
    """Turns a suspicious point into a confirmed counterexample, if it is or leads to one."""

    def __init__(self, problem: Problem, condition: str, searched: bool = False) -> None:
        self.problem, self.condition, self.climbs = problem, condition, 0
        self.searched, self.found_by_search = searched, False

    def __call__(self, point: Array) -> Array | None:
        if violates(self.problem, self.condition, point):
            return point
        if self.climbs >= MOST_CLIMBS:
            return None
        self.climbs += 1
        higher = climb(self.problem, self.condition, point)
        return (
            higher
            if higher is not None and violates(self.problem, self.condition, higher)
            else None
        )

    def first_look(self) -> Array | None:
        """What a solver should not be asked about: a violation that a few states show."""
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
    from graphkeel.verify.problem import Network

    network = Network.of((np.eye(1), np.zeros(1)), (np.eye(1), np.zeros(1)))
    tiny = Problem(network, network, np.array([1.0]), np.array([2.0]), np.array([1.0]), rho=0.5)
    row: Row = rows_of(tiny, "decrease")[0]
    Search(
        tiny,
        row,
        Budget(threads=1),
        time.monotonic() + 1.0,
        _Confirm(tiny, "decrease", searched=True),
    ).run()
    _warm = True
