"""One question about a box, decided by branch and bound on every core.

A worker takes a box, explores it depth-first up to a node limit and hands the boxes still open back
as new work: these are exactly the next subtrees of the preorder, so the pieces of the proof fit
together whichever worker finished them, and the work list stays as short as the trees are deep.

Where no proof is wanted, a box that stays open is clipped to where its linear bounds leave room for
a violation; what is cut off is closed by the bounds of the box around it. A checker bounds every
leaf by itself, and cutting at the middle makes fewer leaves."""

from __future__ import annotations

import os
import threading
import time
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from graphkeel.verify.boxes.question import Question
from graphkeel.verify.cells import CellBudget, Cells, CellTree
from graphkeel.verify.kernel import (
    CANDIDATE,
    CUTS,
    FEW,
    FINISHED,
    FULL,
    LEAVES,
    NODES,
    OPEN,
    SLOPES,
    STUCK,
    Output,
    Stack,
)
from graphkeel.verify.problem import Array
from graphkeel.verify.result import Budget, Progress
from graphkeel.verify.settings import SEARCH, SearchSettings
from graphkeel.verify.tree import CELLS, Lines, Piece, empty_piece, join

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
    """A stack of boxes to explore, the number of their coupling, and where their piece of the
    proof belongs."""

    boxes: Array  # (count, 2, n)
    number: int | None
    parent: Piece
    position: int
    waited: int = 0


@dataclass(eq=False)
class Outcome:
    """The result of a search: a finished tree, a confirmed counterexample, or the reason for
    neither."""

    closed: bool = False  # whether every box is closed
    piece: Piece | None = None  # of a closed tree, unless it was too large
    couplings: list[Array] = field(default_factory=list)
    counterexample: Array | None = None
    reason: str = ""
    nodes: int = 0
    timed_out: bool = False  # whether more time might help


class Search:
    """The shared state of the workers on one question.

    Reads: the kernel and the settings. Writes: the work list, the pieces of the tree, counts and
    the answer, all under `lock`.

    The deadline is the end of a turn, after which the search can be resumed; an attempt at cells
    may go on until `last`. `cells` is the exact row, and `keep` whether the tree is wanted.
    """

    def __init__(
        self,
        kernel: Question,
        budget: Budget,
        deadline: float,
        confirm: Confirm,
        *,
        cells: Cells | None = None,
        last: float | None = None,
        keep: bool = True,
        settings: SearchSettings = SEARCH,
    ) -> None:
        self.settings = settings
        self.kernel = kernel
        self.budget = budget
        self.deadline = deadline
        self.last = deadline if last is None else last
        self.confirm = confirm
        n = kernel.root.shape[1]
        self.cell_budget = CellBudget(cells, self._time_is_over, n, settings.cells)
        self.lock = threading.Condition()
        self.started = time.monotonic()
        self.reported = self.started  # when progress was last reported
        self.limit = settings.first_piece  # nodes of one piece of work
        self.spent = 0.0  # processor seconds of all pieces
        self.tasks: list[_Task] = []
        self.busy = 0
        self.nodes = 0
        self.stuck = 0  # boxes too small to cut
        self.best = -np.inf  # the largest value seen
        self.unconfirmed = 0  # states that were not confirmed
        self.tested = 0.0
        self.keep = keep  # whether the tree is still small enough to be stored
        self.stored_bytes = 0
        self.reason = ""
        self.counterexample: Array | None = None
        self.failure: Exception | None = None
        self.pending = 1  # boxes handed out and not yet filed
        self.root = empty_piece(kernel.columns, 1)

    def run(self) -> Outcome:
        """Search until the question is decided or the deadline is over."""
        root = self.kernel.root[None].copy()
        self._explore(_Task(root, None, self.root, 0))
        if (self.tasks or self.stuck) and self.counterexample is None:
            # not easy: a violation would end the search at once
            self.counterexample = self.confirm.search()
        if self.tasks and not self._stopped():
            self._run_workers()
        return self._outcome()

    def resume(self, deadline: float, last: float) -> Outcome:
        """Go on after a deadline."""
        self.deadline = deadline
        self.last = last
        if self.reason == _TIMED_OUT:
            self.reason = ""
        if self.tasks and not self._stopped():
            self._run_workers()
        return self._outcome()

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
        report(Progress(self.kernel.name, self.nodes, len(self.tasks), now - self.started))

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
                self._explore(task)
            except Exception as error:
                # a lost piece must never pass for a finished one: the main thread raises this again
                self.failure, self.reason = error, "a worker failed"
            finally:
                with self.lock:
                    self.busy -= 1
                    self.lock.notify_all()

    def _explore(self, task: _Task) -> None:
        """Run the kernel on one task; file its piece and the boxes it left open."""
        began = time.thread_time()
        count, _, n = task.boxes.shape
        number = self.kernel.number_for(task.boxes[0], task.number, self.nodes)
        most = count + self.settings.open_boxes
        waited = np.full(most, task.waited, np.int64)
        stack = Stack(np.zeros((most, 2, n)), np.zeros(most, np.bool_), waited)
        stack.boxes[:count] = task.boxes
        leaves: list[CellTree] = []
        out = self._output(count)
        share = 1.0 if self.keep else self.settings.clipped_share
        why = FULL
        while not self._stopped():
            cuts = self.cell_budget.cuts
            why = self.kernel.run(number, share, stack, cuts, out)
            if why != FINISHED:
                self._test_point(out)
            if why in (STUCK, FEW):
                self._try_cells(why == STUCK, stack, out, leaves)
            elif why != CANDIDATE:
                break
        with self.lock:
            self.spent += time.thread_time() - began
        self._store_piece(task, number, stack, out, leaves, why != FULL)

    def _output(self, count: int) -> Output:
        """Room for a piece of work that takes about a set time."""
        settings = self.settings
        pace = max(self.spent, 1e-4) / max(self.nodes, 1)
        limit = settings.first_piece
        if self.nodes:
            limit = int(np.clip(settings.piece_seconds / pace, limit, settings.piece))
        limit += 4 * self.kernel.root.shape[1] + 4  # what one box may add
        counts = np.zeros(5, dtype=np.int64)
        counts[OPEN] = count
        return Output(
            np.zeros(limit, np.int16),
            np.zeros(limit),
            np.zeros((limit, self.kernel.columns[0]), np.int32),
            np.zeros((limit, self.kernel.columns[1]), np.uint8),
            counts,
            np.zeros(self.kernel.root.shape[1]),
            np.array([max(self.best, -1e300)]),
        )

    def _try_cells(self, stuck: bool, stack: Stack, out: Output, leaves: list[CellTree]) -> None:
        """Try the cells of the top box, which end in a proof, a suspicious state, or neither."""
        top = out.counts[OPEN] - 1
        leaf = self.cell_budget.decide(stack.boxes[top], stuck)
        if leaf is None:
            stack.waited[top] = -self.settings.cells.postpone
            return
        if leaf.point is not None and self.counterexample is None:
            self.counterexample = self.confirm(leaf.point)
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
            stack.waited[top] = -self.settings.cells.retry_after
            self.cell_budget.record_failure()

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
        stack: Stack,
        out: Output,
        leaves: list[CellTree],
        complete: bool,
    ) -> None:
        counts = out.counts
        children = 0 if complete else int(counts[OPEN])
        with self.lock:
            self.nodes += int(counts[NODES])
            piece = self._piece(out, leaves, children)
            task.parent.children[task.position] = piece
            self.pending -= 1
            # the top of the stack comes next in preorder; pushed last, it is also explored first
            for position in range(children - 1, -1, -1):
                at = children - 1 - position
                if stack.clipped[at]:
                    continue
                self.pending += 1
                box = stack.boxes[at : at + 1].copy()
                self.tasks.append(_Task(box, number, piece, position, int(stack.waited[at])))
            if self.nodes >= self.budget.nodes and not self._stopped() and self.tasks:
                self.reason = f"node budget: {self.nodes} boxes explored"
            self._report_progress()
            if self._turn_is_over() and not self._stopped() and self.tasks:
                self.reason = _TIMED_OUT
            self.lock.notify_all()

    def _piece(self, out: Output, leaves: list[CellTree], children: int) -> Piece:
        """The finished part of a tree; without nodes where the tree is too large to be stored."""
        counts = out.counts
        axis = out.axis[: counts[NODES]].copy()
        cut = out.cut[: counts[CUTS]].copy()
        weights = out.weights[: counts[LEAVES]].copy()
        slopes = out.slopes[: counts[SLOPES]].copy()
        self.stored_bytes += axis.nbytes + cut.nbytes + weights.nbytes + slopes.nbytes
        self.keep = self.keep and self.stored_bytes <= self.settings.stored_bytes
        if not self.keep:
            return empty_piece(self.kernel.columns, children)
        return Piece(axis, cut, Lines(weights, slopes), [None] * children, leaves)

    def _outcome(self) -> Outcome:
        if self.counterexample is not None:
            return Outcome(counterexample=self.counterexample, nodes=self.nodes)
        if self.reason == _TIMED_OUT:
            boxes = f"{self.nodes} boxes explored, {len(self.tasks)} still open"
            return Outcome(reason=f"{_TIMED_OUT}: {boxes}", nodes=self.nodes, timed_out=True)
        if self.reason or self.stuck:
            return Outcome(reason=self.reason or _STUCK_REASON, nodes=self.nodes)
        if self.pending:
            raise RuntimeError(f"{self.pending} boxes were handed out and never came back")
        tree = join(self.root) if self.keep else None
        return Outcome(True, tree, self.kernel.couplings, nodes=self.nodes)
