"""One row, decided by branch and bound on every core.

A worker takes a box, explores it depth-first up to a node limit and hands the boxes still open back
as new work: these are exactly the next subtrees of the preorder, so the pieces of the proof fit
together whichever worker finished them, and the work list stays as short as the trees are deep."""

from __future__ import annotations

import os
import threading
import time
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from graphkeel.verify.branch.cell_budget import CellBudget
from graphkeel.verify.branch.cells import CellLeaf, Cells, CellTree
from graphkeel.verify.branch.coupling import Couplings
from graphkeel.verify.branch.explore import ROWS, Hole, Output, explore
from graphkeel.verify.branch.pack import Net, pack
from graphkeel.verify.branch.relax import workspace
from graphkeel.verify.branch.tree import CELLS, Piece, join
from graphkeel.verify.conditions import inner_radius
from graphkeel.verify.kernel import CANDIDATE, CUTS, FEW, FINISHED, FULL, NODES, OPEN, STUCK
from graphkeel.verify.problem import Array, Problem
from graphkeel.verify.proof import slope_columns
from graphkeel.verify.query import Row
from graphkeel.verify.result import Budget, Progress
from graphkeel.verify.settings import BRANCH, BranchSettings

_STUCK_REASON = (
    "numerical margin: some boxes are too small to cut further, and float64 bounds leave them "
    "open; the condition is tight there"
)
_TIMED_OUT = "time budget"


class Confirm(Protocol):
    """How a search gets its counterexamples confirmed."""

    def __call__(self, point: Array) -> Array | None:
        """The point, or one that a climb from it reaches, if that is a counterexample."""

    def search(self) -> Array | None:
        """A counterexample found by other means than boxes."""


@dataclass(eq=False)
class _Task:
    """A box to explore, the number of its coupling, and where its piece of the proof belongs."""

    lower: Array
    upper: Array
    number: int
    parent: Piece
    position: int
    waited: int = 0


@dataclass(eq=False)
class Outcome:
    """The result of a search: a finished tree, a confirmed counterexample, or the reason for
    neither."""

    piece: Piece | None = None
    couplings: list[Array] = field(default_factory=list)
    counterexample: Array | None = None
    reason: str = ""
    nodes: int = 0
    timed_out: bool = False  # whether more time might help


class Search:
    """The shared state of the workers on one row.

    Reads: the row and what is made of it. Writes: the work list, the pieces of the tree, counts and
    the answer, all under `lock`.

    The deadline is the end of a turn, after which the search can be resumed; an attempt at cells
    may go on until `last`. `loop` gives the hole and the couplings, `shift` is added to g, `theta`
    is a coupling (K, K) for the whole box, and `cells` the exact row.
    """

    def __init__(
        self,
        row: Row,
        budget: Budget,
        deadline: float,
        confirm: Confirm,
        *,
        loop: Problem | None = None,
        shift: float = 0.0,
        theta: Array | None = None,
        cells: Cells | None = None,
        last: float | None = None,
        settings: BranchSettings = BRANCH,
    ) -> None:
        self.settings = settings
        self.row = row
        self.budget = budget
        self.deadline = deadline
        self.last = deadline if last is None else last
        self.confirm = confirm
        self.net: Net = pack(row, shift)
        self.hole = _hole_of(row, loop)
        self.narrowest = (row.upper - row.lower) * settings.narrowest
        self.couplings = Couplings(loop, row, theta, settings.couplings)
        self.columns = slope_columns(row)
        self.cell_budget = CellBudget(cells, self._time_is_over, row.n, settings.cells)
        self.lock = threading.Condition()
        self.started = time.monotonic()
        self.reported = self.started  # when progress was last reported
        self.tasks: list[_Task] = []
        self.busy = 0
        self.nodes = 0
        self.stuck = 0  # boxes too small to cut
        self.best = -np.inf  # the largest value of g seen
        self.unconfirmed = 0  # states that were not confirmed
        self.tested = 0.0
        self.keep = True  # whether the tree is still small enough to be stored
        self.reason = ""
        self.counterexample: Array | None = None
        self.failure: Exception | None = None
        self.pending = 1  # boxes handed out and not yet filed
        empty = np.zeros((0, self.columns), np.uint8)
        self.root = Piece(np.zeros(0, np.int8), np.zeros(0), empty, [None])

    def run(self) -> Outcome:
        """Search until the row is decided or the deadline is over."""
        box = (self.row.lower.copy(), self.row.upper.copy())
        first = _Task(*box, self.couplings.first(), self.root, 0)
        self._explore(first, self.settings.first_piece)
        if (self.tasks or self.stuck) and self.counterexample is None:
            # not easy: a violation would end the search at once
            self.counterexample = self.confirm.search()
        if self.tasks and not self._stopped():
            self._run_workers()
        return self._outcome(self.root)

    def resume(self, deadline: float, last: float) -> Outcome:
        """Go on after a deadline."""
        self.deadline = deadline
        self.last = last
        if self.reason == _TIMED_OUT:
            self.reason = ""
        if self.tasks and not self._stopped():
            self._run_workers()
        return self._outcome(self.root)

    def _run_workers(self) -> None:
        count = self.budget.threads or os.cpu_count() or 1
        workers = [threading.Thread(target=self._work, daemon=True) for _ in range(count - 1)]
        for worker in workers:
            worker.start()
        try:
            self._work()
        except BaseException:
            self.reason = "interrupted"
            raise
        finally:
            for worker in workers:
                worker.join()
        if self.failure is not None:
            raise self.failure

    def _turn_is_over(self) -> bool:
        return self.budget.now() >= self.deadline

    def _time_is_over(self) -> bool:
        return self.budget.now() >= self.last

    def _report_progress(self) -> None:
        """Report progress, about once a second; the caller holds the lock."""
        report = self.budget.on_progress
        now = time.monotonic()
        if report is None or now < self.reported + 1.0:
            return
        self.reported = now
        report(Progress(self.row.name, self.nodes, len(self.tasks), now - self.started))

    def _stopped(self) -> bool:
        return bool(self.reason) or self.counterexample is not None

    def _work(self) -> None:
        while True:
            with self.lock:
                while not self.tasks and self.busy and not self._stopped():
                    self.lock.wait(0.05)
                if not self.tasks or self._stopped():
                    self.lock.notify_all()
                    return
                task = self.tasks.pop()
                self.busy += 1
            try:
                self._explore(task, self.settings.piece)
            except Exception as error:
                # a lost piece must never pass for a finished one: the main thread raises this again
                self.failure, self.reason = error, "a worker failed"
            finally:
                with self.lock:
                    self.busy -= 1
                    self.lock.notify_all()

    def _explore(self, task: _Task, limit: int) -> None:
        """Run the kernel on one task; file its piece and the boxes it left open."""
        n = task.lower.shape[0]
        number = self.couplings.number_for(task.lower, task.upper, task.number, self.nodes)
        boxes = np.zeros((self.settings.open_boxes, 2, n))
        boxes[0, 0] = task.lower
        boxes[0, 1] = task.upper
        waited = np.full(len(boxes), task.waited, np.int64)
        leaves: list[CellTree] = []
        out = Output(
            np.zeros(limit, np.int8),
            np.zeros(limit),
            np.zeros((limit, self.columns), np.uint8),
            np.array([1, 0, 0, 0], dtype=np.int64),
            np.zeros(n),
            np.array([max(self.best, -1e300)]),
        )
        work = workspace(self.row)
        why = FULL
        while not self._stopped():
            why = explore(
                self.net,
                self.couplings[number],
                number,
                self.settings.kernel,
                work,
                self.hole,
                self.row.strict,
                self.narrowest,
                boxes,
                waited,
                self.cell_budget.cuts,
                out,
            )
            if why != FINISHED:
                self._test_point(out)
            if why in (STUCK, FEW):
                self._try_cells(why == STUCK, boxes, waited, out, leaves)
            elif why != CANDIDATE:
                break
        self._store_piece(task, number, boxes, waited, out, leaves, complete=why != FULL)

    def _try_cells(
        self,
        stuck: bool,
        boxes: Array,
        waited: NDArray[np.int64],
        out: Output,
        leaves: list[CellTree],
    ) -> None:
        """Try the cells of the top box, which end in a proof, a suspicious state, or neither."""
        top = out.counts[OPEN] - 1
        leaf = self.cell_budget.decide(boxes[top], stuck)
        if leaf is None:
            waited[top] = -self.settings.cells.postpone
            return
        self._confirm_point(leaf)
        if leaf.proved:
            out.axis[out.counts[NODES]] = CELLS
            out.counts[NODES] += 1
            out.counts[OPEN] -= 1
            leaves.append(leaf.tree or CellTree([], []))
            self.keep = self.keep and leaf.tree is not None
            self.cell_budget.record_success()
        elif stuck:
            out.counts[OPEN] -= 1
            self._count_stuck()
        else:
            waited[top] = -self.settings.cells.retry_after
            self.cell_budget.record_failure()

    def _confirm_point(self, leaf: CellLeaf) -> None:
        """A state that the cells point to is tried as a counterexample."""
        if leaf.point is not None and self.counterexample is None:
            self.counterexample = self.confirm(leaf.point)

    def _test_point(self, out: Output) -> None:
        """Test a point higher than any before as a counterexample."""
        value = float(out.value[0])
        worth = self.unconfirmed < self.settings.unconfirmed or value > 1.5 * self.tested
        if value <= self.best:
            return
        self.best = value
        if worth:
            self.tested = max(value, 0.0)
            self.unconfirmed += 1
            found = self.confirm(out.point.copy())
            if found is not None:
                self.counterexample = found

    def _count_stuck(self) -> None:
        with self.lock:
            self.stuck += 1
            if self.stuck >= self.settings.stuck_boxes:
                self.reason = _STUCK_REASON

    def _store_piece(
        self,
        task: _Task,
        number: int,
        boxes: Array,
        waited: NDArray[np.int64],
        out: Output,
        leaves: list[CellTree],
        complete: bool,
    ) -> None:
        counts = out.counts
        children = 0 if complete else int(counts[OPEN])
        with self.lock:
            self.nodes += int(counts[NODES])
            self.keep = self.keep and self.nodes <= self.settings.stored_nodes
            nodes, cuts, rows = (
                (int(counts[at]) if self.keep else 0) for at in (NODES, CUTS, ROWS)
            )
            piece = Piece(
                out.axis[:nodes].copy(),
                out.cut[:cuts].copy(),
                out.slopes[:rows].copy(),
                [None] * children,
                leaves if self.keep else [],
            )
            task.parent.children[task.position] = piece
            self.pending += children - 1
            # the top of the stack comes next in preorder; pushed last, it is also explored first
            for position in range(children - 1, -1, -1):
                at = children - 1 - position
                box = (boxes[at, 0].copy(), boxes[at, 1].copy())
                self.tasks.append(_Task(*box, number, piece, position, int(waited[at])))
            if self.nodes >= self.budget.nodes and not self._stopped() and self.tasks:
                self.reason = f"node budget: {self.nodes} boxes explored"
            self._report_progress()
            if self._turn_is_over() and not self._stopped() and self.tasks:
                self.reason = _TIMED_OUT
            self.lock.notify_all()

    def _outcome(self, root: Piece) -> Outcome:
        if self.counterexample is not None:
            return Outcome(counterexample=self.counterexample, nodes=self.nodes)
        if self.reason == _TIMED_OUT:
            boxes = f"{self.nodes} boxes explored, {len(self.tasks)} still open"
            return Outcome(reason=f"{_TIMED_OUT}: {boxes}", nodes=self.nodes, timed_out=True)
        if self.reason or self.stuck:
            return Outcome(reason=self.reason or _STUCK_REASON, nodes=self.nodes)
        if self.pending:
            raise RuntimeError(f"{self.pending} boxes were handed out and never came back")
        piece = join(root) if self.keep else None
        return Outcome(piece=piece, couplings=self.couplings.thetas, nodes=self.nodes)


def _hole_of(row: Row, loop: Problem | None) -> Hole:
    """The hole as the kernel sees it."""
    if loop is None:
        return Hole(False, np.zeros(row.n), 0.0, 0.0, False)
    centre = loop.equilibrium.copy()
    return Hole(row.hole, centre, loop.hole_radius, inner_radius(loop), loop.hole_norm == "2")
