"""The default engine: complete branch and bound with rigorous linear relaxations, on every core.

Each condition is a list of rows (conditions.py); each row is a tree of boxes (search.py) whose
leaves are proved by bounds that account for every rounding (boxes/relax.py). Those on a sublevel
set are cases of a property (property/sublevel.py). Positivity of a convex V is a linear program or
two an axis (gauge/convex.py). Decrease of a gauge that boxes do not prove at once is tried by
levels of V and cuts at units (gauge/level_search.py), in turns with the boxes. Conditions take
turns, too: each has a quick check before one of them gets a long search. A violation counts only
after it was confirmed in exact rationals."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from graphkeel.verify.attack import ConditionAttack
from graphkeel.verify.boxes.coupling import find_coupling
from graphkeel.verify.boxes.pack import accepts_coupling, row_network, too_large
from graphkeel.verify.boxes.question import row_question
from graphkeel.verify.cells import cells_of
from graphkeel.verify.conditions import rows_of
from graphkeel.verify.engine import (
    DECIDED_LAST,
    ConditionwiseEngine,
    first_refuted,
    skipped_report,
)
from graphkeel.verify.gauge.convex import convex_positivity
from graphkeel.verify.gauge.homogeneous import Plan, plan
from graphkeel.verify.gauge.level_search import LevelSearch, level_search
from graphkeel.verify.problem import (
    CONDITIONS,
    SUBLEVEL,
    Array,
    Problem,
    check_conditions,
)
from graphkeel.verify.proof import Json, empty_tree, head, multipliers_entry
from graphkeel.verify.property.sublevel import SublevelRun
from graphkeel.verify.query import Row
from graphkeel.verify.result import Budget, ConditionReport, Verdict, VerifyReport
from graphkeel.verify.search import Outcome, Search
from graphkeel.verify.settings import BRANCH, BranchSettings
from graphkeel.verify.warm import load_kernels

NOT_STORED = "proved; the tree was not stored: too large, or zero is touched in too many cells"


class BranchVerifier(ConditionwiseEngine):
    """Branch and bound; `proved` comes with the tree that shows it."""

    name = "branch"
    settings = BRANCH

    def __init__(self, settings: BranchSettings | None = None) -> None:
        if settings is not None:
            self.settings = settings

    def supports(self, problem: Problem) -> str | None:
        """None unless numbers come near to overflow."""
        rows = [row for condition in CONDITIONS for row in rows_of(problem, condition)]
        if any(_is_too_large(row, self.settings) for row in rows):
            return "weights or states are too large for float64 bounds"
        return None

    def prepare(self) -> None:
        """Load the compiled kernels."""
        load_kernels()

    def decide(self, problem: Problem, condition: str, budget: Budget) -> ConditionReport:
        """Decide one condition: on the faces alone where the loop is homogeneous, else over the
        whole box."""
        return self.solve(problem, budget, (condition,))[condition]

    def solve(
        self,
        problem: Problem,
        budget: Budget | None = None,
        conditions: Sequence[str] = tuple(CONDITIONS),
    ) -> VerifyReport:
        """Check every condition quickly, then search for them in turns that get longer: none waits
        for another, and none uses up the time."""
        check_conditions(problem, conditions)
        budget = budget or Budget()
        self.prepare()
        schedule = _Schedule(self.name, problem, budget, self.settings)
        return schedule.report(conditions)


class _Schedule:
    """The conditions of one problem, in turns.

    Reads: problem, budget. Writes: the searches that go on, the answers, and their seconds.
    """

    def __init__(
        self, engine: str, problem: Problem, budget: Budget, settings: BranchSettings
    ) -> None:
        self.settings = settings
        self.engine = engine
        self.problem = problem
        self.budget = budget
        self.start = budget.now()
        self.deadline = self.start + budget.seconds
        self.runs: dict[str, _Verification | SublevelRun] = {}
        self.answers: dict[str, ConditionReport] = {}
        self.seconds: dict[str, float] = {}

    def report(self, conditions: Sequence[str]) -> VerifyReport:
        """The answers, in this order."""
        for condition in sorted(conditions, key=lambda name: name == DECIDED_LAST):
            self._enter(condition)
        self._every_run(lambda run: run.quick_check())
        seconds = self.settings.first_turn
        while self.runs and self.budget.now() < self.deadline:
            self._every_run(partial(self._advanced, seconds))
            seconds *= 2.0
        for condition, run in self.runs.items():
            self.answers[condition] = run.out_of_time()
        answers = tuple(self._answer(condition) for condition in conditions)
        return VerifyReport(answers, self.budget.now() - self.start)

    def _enter(self, condition: str) -> None:
        """Begin with a condition, or answer at once what boxes cannot decide."""
        self.seconds[condition] = 0.0
        if condition in SUBLEVEL:
            if self.problem.exact:
                self.runs[condition] = SublevelRun(self.problem, condition, self.budget)
                return
            reason = "unsupported: a sublevel set needs layers without error bounds"
        else:
            rows = rows_of(self.problem, condition)
            if not any(_is_too_large(row, self.settings) for row in rows):
                self.runs[condition] = _Verification(
                    self.problem, condition, rows, self.budget, self.settings
                )
                return
            reason = "numerical: magnitudes near overflow"
        self.answers[condition] = ConditionReport(condition, Verdict.UNKNOWN, "", reason)

    def _advanced(self, seconds: float, run: _Verification | SublevelRun) -> ConditionReport | None:
        """A turn of a search: not longer than its share of what is left, between it and those that
        come after it."""
        now = self.budget.now()
        order = list(self.runs.values())
        share = max(self.deadline - now, 0.0) / (len(order) - order.index(run))
        return run.advance(now + min(seconds, share), now + share)

    def _every_run(
        self, turn: Callable[[_Verification | SublevelRun], ConditionReport | None]
    ) -> None:
        """Give every search a turn; the first refutation may end them all."""
        for condition, run in list(self.runs.items()):
            began = self.budget.now()
            answer = turn(run)
            self.seconds[condition] += self.budget.now() - began
            if answer is not None:
                del self.runs[condition]
                self.answers[condition] = answer
            refuted = first_refuted(self.answers)
            if self.budget.first_refutation and refuted is not None:
                for other in self.runs:
                    self.answers[other] = skipped_report(other, refuted, self.engine)
                self.runs.clear()
                return

    def _answer(self, condition: str) -> ConditionReport:
        answer = self.answers[condition]
        return replace(answer, engine=self.engine, seconds=self.seconds[condition])


@dataclass(eq=False)
class _Undecided(Exception):
    """A row that is neither proved nor refuted, and why."""

    reason: str


class _TurnOver(Exception):
    """The turn is over."""


@dataclass(eq=False)
class _Refuted(Exception):
    """A state that violates the condition, confirmed."""

    point: Array


class _Verification:
    """The search of one condition, in turns; all its trees share one budget.

    Reads: problem, condition, rows, budget. Writes: `nodes`, the boxes explored so far, the
    searches and finished trees, and the seconds of boxes and of levels.
    """

    def __init__(
        self,
        problem: Problem,
        condition: str,
        rows: list[Row],
        budget: Budget,
        settings: BranchSettings,
    ) -> None:
        self.settings = settings
        self.problem = problem
        self.condition = condition
        self.rows = rows
        self.budget = budget
        self.pause = 0.0  # when the turn is over
        self.last = 0.0
        self.spent = 0.0  # seconds of all turns
        self.falsify_seconds = 0.0  # of these, seconds of falsification from other states
        self.begun = False
        self.faces: Plan | None = None
        self.theta: Array | None = None  # a coupling for the faces
        self.levels: LevelSearch | None = None
        self.turns = [
            list(pair) for pair in settings.turns
        ]  # seconds left of boxes, then of levels
        self.searches: dict[tuple[str, str], Search] = {}  # by row and face
        self.trees: dict[tuple[str, str], Json | None] = {}
        self.attack = ConditionAttack(problem, condition)
        self.nodes = 0
        self.timed_out = "time budget: no box explored"

    def quick_check(self) -> ConditionReport | None:
        """The answer, if a few states or linear programs give one."""
        return self._answered(self._quick_check)

    def advance(self, end: float, last: float) -> ConditionReport | None:
        """Go on until the turn is over; the answer, if there is one."""
        self.last = last
        began = self.budget.now()
        answer = self._answered(lambda: self._turn_until(end))
        self.spent += self.budget.now() - began
        return answer

    def _turn_until(self, end: float) -> ConditionReport:
        self._falsify_again(end)
        return self._searched_until(end)

    def _falsify_again(self, end: float) -> None:
        """Falsification from new states, for a share of the time: a violation that one sample of
        states misses may take boxes minutes to find."""
        if self.spent < self.settings.falsify_after:
            return
        for _ in range(self.settings.falsify_runs):
            began = self.budget.now()
            if began >= end or self.falsify_seconds >= self.settings.falsify_share * self.spent:
                return
            point = self.attack.search_again()
            if point is not None:
                raise _Refuted(point)
            self.falsify_seconds += self.budget.now() - began

    def out_of_time(self) -> ConditionReport:
        """The answer when there is no time left."""
        return self._answer(Verdict.UNKNOWN, self.timed_out)

    def _answered(self, step: Callable[[], ConditionReport | None]) -> ConditionReport | None:
        try:
            return step()
        except _TurnOver:
            return None
        except _Refuted as refuted:
            return self._answer(Verdict.REFUTED, "", counterexample=refuted.point)
        except _Undecided as undecided:
            return self._answer(Verdict.UNKNOWN, undecided.reason)

    def _quick_check(self) -> ConditionReport | None:
        point = self.attack.quick()
        if point is not None:
            raise _Refuted(point)
        return self._by_programs() if self.condition == "positivity" else None

    def _by_programs(self) -> ConditionReport | None:
        """Positivity of a convex V."""
        outcome = convex_positivity(self.problem, self.rows, self.attack)
        self.nodes += outcome.programs
        if outcome.counterexample is not None:
            raise _Refuted(outcome.counterexample)
        if outcome.trees is None:
            return None
        proof = head("branch", self.condition) | {"trees": outcome.trees}
        reason = f"V is convex; shown by {outcome.programs} linear program(s)"
        return self._answer(Verdict.PROVED, reason, proof=proof)

    def _searched_until(self, end: float) -> ConditionReport:
        """By boxes, in turns with levels where these apply."""
        if not self.begun:
            self.begun = True
            settings = self.settings
            self.faces = plan(self.problem, self.condition, settings.max_margin)
            self.levels = level_search(
                self.problem, self.rows[0], self.attack, self.faces, settings.levels
            )
        while self.turns and self.levels is not None and not self.levels.given_up:
            left = self.turns[0]
            if left[0] > 0.0:
                report = self._timed(left, 0, end, self._by_boxes)
            else:
                report = self._timed(left, 1, end, self._by_levels)
            if report is not None:
                return report
            if left[1] <= 0.0:
                self.turns.pop(0)
            if self.budget.now() >= end:
                raise _TurnOver
        self.pause = end
        return self._by_boxes()

    def _timed(
        self,
        left: list[float],
        which: int,
        end: float,
        attempt: Callable[[], ConditionReport | None],
    ) -> ConditionReport | None:
        """One of two ways, for the seconds it has left or up to the end of the turn."""
        start = self.budget.now()
        self.pause = min(start + left[which], end)
        try:
            return attempt()
        except _TurnOver:
            return None
        finally:
            left[which] -= max(self.budget.now() - start, 1e-6)

    def _by_levels(self) -> ConditionReport | None:
        """A tree of levels and units, if that is found in time."""
        levels = self.levels
        assert levels is not None  # or boxes would have all the time
        outcome = levels.run(lambda: self.budget.now() >= self.pause)
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

    def _by_boxes(self) -> ConditionReport:
        if self.faces is not None:
            try:
                return self._by_faces(self.faces)
            except _Undecided:
                if self.nodes >= self.budget.nodes:
                    raise  # else the whole box is left to be tried
        return self._by_rows(self.rows)

    def _by_rows(self, rows: list[Row]) -> ConditionReport:
        """A tree per row over the box without the hole; a violation ends it, an undecided row
        does not."""
        trees: list[Json | None] = []
        undecided = []
        for row in rows:
            if row.empty:
                trees.append(empty_tree(row))
                continue
            try:
                trees.append(self._tree(row))
            except _Undecided as row_undecided:
                undecided.append(row_undecided)
        if undecided:
            raise undecided[0]
        reason = f"bounded on every leaf of {len(trees)} tree(s)"
        proof = head("branch", self.condition) | multipliers_entry(rows)
        return self._with_proof(reason, proof, "trees", trees)

    def _by_faces(self, faces: Plan) -> ConditionReport:
        """A tree per row and face with a margin."""
        if self.theta is None and accepts_coupling(faces.faces[0].row):
            box = (self.problem.lower, self.problem.upper)
            self.theta = find_coupling(self.problem, *box, self.settings.couplings)
        trees: list[Json | None] = []
        for face in faces.faces:
            tree = self._tree(face.row, faces.margin, self.theta, f"{face.side} {face.axis}")
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
            raise _Undecided(f"node budget: {self.nodes} boxes explored")
        if self.budget.now() >= self.pause:
            raise _TurnOver
        outcome = self._searched(key, row, shift, theta)
        if outcome.counterexample is not None:
            raise _Refuted(outcome.counterexample)
        if outcome.timed_out:
            self.timed_out = outcome.reason
            raise _TurnOver
        if not outcome.closed:
            raise _Undecided(outcome.reason)
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
            outcome = search.resume(self.pause, self.last)
        else:
            rest = replace(self.budget, nodes=self.budget.nodes - self.nodes)
            settings = self.settings
            cells = cells_of(self.problem, self.condition, row, shift, settings.search.cells)
            question = row_question(row, self.problem, shift, theta, settings)
            search = self.searches[key] = Search(
                question,
                rest,
                self.pause,
                self.attack,
                cells=cells,
                last=self.last,
                settings=settings.search,
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


def _is_too_large(row: Row, settings: BranchSettings) -> bool:
    return too_large(row_network(row), row.lower, row.upper, settings.max_magnitude)
