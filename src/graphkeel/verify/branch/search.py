"""One row, decided by branch and bound on every core.

A worker takes a box, explores it depth-first up to a node limit and hands the boxes still open back
as new work: these are exactly the next subtrees of the preorder, so the pieces of the proof fit
together whoever finished them, and the work list stays as short as the trees are deep."""

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
from graphkeel.verify.branch.pack import Net, pack, size_of
from graphkeel.verify.branch.relax import workspace
from graphkeel.verify.branch.tree import CELLS, Piece, join
from graphkeel.verify.conditions import inner_radius
from graphkeel.verify.kernel import CANDIDATE, CUTS, FEW, FINISHED, FULL, NODES, OPEN, STUCK
from graphkeel.verify.problem import Array, Problem
from graphkeel.verify.proof import slope_columns
from graphkeel.verify.query import Row
from graphkeel.verify.result import Budget, Progress
from graphkeel.verify.settings import BRANCH, BranchSettings

STUCK_REASON = (
    "numerical margin: some boxes are too small to cut further, and float64 bounds leave them "
    "open; the condition is tight there"
)
LATE = "time budget"


class Confirm(Protocol):
    """How a search gets its counterexamples confirmed."""

    def __call__(self, point: Array) -> Array | None:
        """The point, or one it leads to, if that is a real counterexample."""

    def search(self) -> Array | None:
        """A counterexample found by other means than boxes."""


@dataclass(eq=False)
class Task:
    """A box to explore, the number of its coupling, and where its piece of the proof belongs."""

    lower: Array
    upper: Array
    number: int
    home: Piece
    place: int
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
    late: bool = False  # whether more time might help


class Search:
    """The shared state of the workers on one row.

    Reads: the row and what is made of it. Writes: the work list, the pieces of the tree, counts and
    the answer, all under `lock`.

    Args:
        row: the row to decide.
        budget: nodes and threads.
        deadline: on the budget's clock; where a turn ends, the search can be resumed.
        confirm: how suspicious states become counterexamples.
        loop: the problem that the row is about, for its hole and its couplings, if there is one.
        shift: added to g, so that g + shift ≤ 0 is what gets shown.
        theta: a coupling for the whole box, shape (K, K).
        cells: the exact row, for boxes that cuts do not settle.
        last: when a look at cells has to end, which goes on beyond the end of a turn; None: at the
            deadline.
        settings: of the engine.
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
        self.size = size_of(row)
        self.hole = _hole_of(row, loop)
        self.narrowest = (row.upper - row.lower) * settings.narrowest
        self.couplings = Couplings(loop, row, theta, settings.couplings)
        self.columns = slope_columns(row)
        self.cell_budget = CellBudget(cells, self._is_over, row.n, settings.cells)
        self.lock = threading.Condition()
        self.started = time.monotonic()
        self.told = self.started  # when progress was last reported
        self.tasks: list[Task] = []
        self.busy = 0
        self.nodes = 0
        self.stuck = 0  # boxes too small to cut
        self.best = -np.inf  # the largest value of g seen
        self.failed = 0  # states that were not confirmed
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
        first = Task(*box, self.couplings.first(), self.root, 0)
        self._explore(first, self.settings.first_piece)
        if (self.tasks or self.stuck) and self.counterexample is None:
            # not easy: a violation would spare the long way
            self.counterexample = self.confirm.search()
        if self.tasks and not self._stopped():
            self._run_workers()
        return self._outcome(self.root)

    def resume(self, deadline: float, last: float) -> Outcome:
        """Go on after a deadline."""
        self.deadline = deadline
        self.last = last
        if self.reason == LATE:
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

    def _is_late(self) -> bool:
        return self.budget.now() >= self.deadline

    def _is_over(self) -> bool:
        return self.budget.now() >= self.last

    def _tell_progress(self) -> None:
        """Say where the search is, about once a second; the caller holds the lock."""
        tell = self.budget.on_progress
        now = time.monotonic()
        if tell is None or now < self.told + 1.0:
            return
        self.told = now
        tell(Progress(self.row.name, self.nodes, len(self.tasks), now - self.started))

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

    def _explore(self, task: Task, limit: int) -> None:
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
        work = workspace(*self.size)
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
                self._look_at(out)
            if why in (STUCK, FEW):
                self._look_closer(why == STUCK, boxes, waited, out, leaves)
            elif why != CANDIDATE:
                break
        self._file(task, number, boxes, waited, out, leaves, complete=why != FULL)

    def _look_closer(
        self,
        stuck: bool,
        boxes: Array,
        waited: NDArray[np.int64],
        out: Output,
        leaves: list[CellTree],
    ) -> None:
        """Cutting the top box gets nowhere: try its cells, which end in a proof, a suspicious
        state, or neither."""
        top = out.counts[OPEN] - 1
        leaf = self.cell_budget.look(boxes[top], stuck)
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
            self.cell_budget.helped()
        elif stuck:
            out.counts[OPEN] -= 1
            self._count_stuck()
        else:
            waited[top] = -self.settings.cells.retry_after
            self.cell_budget.in_vain()

    def _confirm_point(self, leaf: CellLeaf) -> None:
        """A state that the cells point to is tried as a counterexample."""
        if leaf.point is not None and self.counterexample is None:
            self.counterexample = self.confirm(leaf.point)

    def _look_at(self, out: Output) -> None:
        """A point better than any before: see whether it is, or leads to, a real counterexample."""
        value = float(out.value[0])
        worth = self.failed < self.settings.unconfirmed or value > 1.5 * self.tested
        if value <= self.best:
            return
        self.best = value
        if worth:
            self.tested = max(value, 0.0)
            self.failed += 1
            found = self.confirm(out.point.copy())
            if found is not None:
                self.counterexample = found

    def _count_stuck(self) -> None:
        with self.lock:
            self.stuck += 1
            if self.stuck >= self.settings.stuck_boxes:
                self.reason = STUCK_REASON

    def _file(
        self,
        task: Task,
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
            task.home.rest[task.place] = piece
            self.pending += children - 1
            # the top of the stack comes next in preorder; pushed last, it is also explored first
            for place in range(children - 1, -1, -1):
                at = children - 1 - place
                box = (boxes[at, 0].copy(), boxes[at, 1].copy())
                self.tasks.append(Task(*box, number, piece, place, int(waited[at])))
            if self.nodes >= self.budget.nodes and not self._stopped() and self.tasks:
                self.reason = f"node budget: {self.nodes} boxes explored"
            self._tell_progress()
            if self._is_late() and not self._stopped() and self.tasks:
                self.reason = LATE
            self.lock.notify_all()

    def _outcome(self, root: Piece) -> Outcome:
        if self.counterexample is not None:
            return Outcome(counterexample=self.counterexample, nodes=self.nodes)
        if self.reason == LATE:
            boxes = f"{self.nodes} boxes explored, {len(self.tasks)} still open"
            return Outcome(reason=f"{LATE}: {boxes}", nodes=self.nodes, late=True)
        if self.reason or self.stuck:
            return Outcome(reason=self.reason or STUCK_REASON, nodes=self.nodes)
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
