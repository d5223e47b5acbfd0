"""One case decided by branch and bound over boxes: closed everywhere, or a member found."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cache

import numpy as np
from numpy.typing import NDArray

from graphkeel.verify.kernel import CANDIDATE, CUTS, FINISHED, NODES, OPEN, STUCK
from graphkeel.verify.problem import Array
from graphkeel.verify.property.attack import Attack
from graphkeel.verify.property.explore import LEAVES, SLOPES, Output, explore
from graphkeel.verify.property.network import Block, BlockNetwork
from graphkeel.verify.property.pack import pack, too_large, with_inequalities
from graphkeel.verify.property.question import Case, Inequality
from graphkeel.verify.property.relax import workspace
from graphkeel.verify.settings import PROPERTY, PropertySettings

_STUCK_REASON = "numerical margin: some boxes are too small to cut, and float64 leaves them open"


@dataclass(eq=False)
class Tree:
    """A finished tree in preorder (docs/formats.md, 7)."""

    axis: NDArray[np.int16]
    cut: Array
    weights: NDArray[np.int32]
    slopes: NDArray[np.uint8]


@dataclass(eq=False)
class Outcome:
    """The result of a search: a tree, a member of the case, or the reason for neither."""

    tree: Tree | None = None
    closed: bool = False
    counterexample: Array | None = None
    reason: str = ""
    nodes: int = 0


class Search:
    """The search of one case, up to a deadline on the clock `now`."""

    def __init__(
        self,
        network: BlockNetwork,
        case: Case,
        attack: Attack,
        deadline: float,
        now: Callable[[], float] = time.monotonic,
        settings: PropertySettings = PROPERTY,
    ) -> None:
        self.settings = settings
        self.now = now
        self.case = case
        self.attack = attack
        self.deadline = deadline
        self.relus = network.relus
        self.joined = with_inequalities(network, case)
        self.net = pack(self.joined)
        self.pieces: list[Output] = []
        self.stored_bytes = 0
        self.nodes = 0
        self.tested = 0
        self.best = -np.inf

    def run(self) -> Outcome:
        """Search until the case is decided or time is up."""
        settings = self.settings
        if too_large(self.joined, self.case, settings.max_magnitude):
            return Outcome(reason="numbers come too near to the largest float")
        n = self.case.lower.shape[0]
        boxes = np.zeros((settings.open_boxes, 2, n))
        boxes[0, 0] = self.case.lower
        boxes[0, 1] = self.case.upper
        work = workspace(self.net, n)
        narrowest = (self.case.upper - self.case.lower) * settings.narrowest
        limit, waiting = settings.first_piece, 1
        while waiting:
            out = self._output(limit, waiting)
            started = time.monotonic()
            why = explore(
                self.net,
                work,
                settings.slope_steps,
                settings.combined_weight,
                narrowest,
                boxes,
                out,
            )
            spent = time.monotonic() - started
            self._store(out)
            found = self._test_point(out, why)
            if found is not None:
                return Outcome(counterexample=found, nodes=self.nodes)
            waiting = int(out.counts[OPEN])
            reason = self._reason(why, waiting)
            if reason:
                return Outcome(reason=reason, nodes=self.nodes)
            pace = max(spent, 1e-4) / max(int(out.counts[NODES]), 1)
            wanted = max(settings.first_piece, settings.piece_seconds / pace)
            limit = int(min(settings.piece_nodes, wanted))
        return Outcome(tree=self._tree(), closed=True, nodes=self.nodes)

    def _output(self, limit: int, waiting: int) -> Output:
        rows = self.case.constant.shape[0]
        counts = np.zeros(5, dtype=np.int64)
        counts[OPEN] = waiting
        return Output(
            np.zeros(limit, np.int16),
            np.zeros(limit),
            np.zeros((limit, rows), np.int32),
            np.zeros((limit, self.relus), np.uint8),
            counts,
            np.zeros(self.case.lower.shape[0]),
            np.array([self.best]),
        )

    def _store(self, out: Output) -> None:
        """Keep the finished part of the tree, if the proof is not yet too large."""
        counts = out.counts
        piece = Output(
            out.axis[: counts[NODES]].copy(),
            out.cut[: counts[CUTS]].copy(),
            out.weights[: counts[LEAVES]].copy(),
            out.slopes[: counts[SLOPES]].copy(),
            counts,
            out.point,
            out.value,
        )
        self.nodes += int(counts[NODES])
        self.stored_bytes += sum(part.nbytes for part in piece[:4])
        self.pieces = (
            [*self.pieces, piece] if self.stored_bytes <= self.settings.stored_bytes else []
        )

    def _test_point(self, out: Output, why: int) -> Array | None:
        """Test the best point as a counterexample, unless the case is easy."""
        value = float(out.value[0])
        better = value > self.best
        self.best = max(self.best, value)
        if why == FINISHED or not better or self.tested >= self.settings.confirmations:
            return None
        self.tested += 1
        return self.attack.confirm(out.point)

    def _reason(self, why: int, waiting: int) -> str:
        """Why the search has to end, or nothing."""
        if why == STUCK:
            return _STUCK_REASON
        if waiting + 1 >= self.settings.open_boxes:
            return "too many boxes are open at once"
        if why not in (FINISHED, CANDIDATE) and self.now() >= self.deadline:
            return f"time budget: {self.nodes} boxes explored, {waiting} still open"
        return ""

    def _tree(self) -> Tree | None:
        if self.stored_bytes > self.settings.stored_bytes:
            return None
        parts = [
            np.concatenate(columns) for columns in zip(*(p[:4] for p in self.pieces), strict=True)
        ]
        return Tree(*parts)


@cache
def warm_up() -> None:
    """Load the compiled kernels (compile them on the very first use), so that no search pays for
    it."""
    first = Block(((0, np.eye(1)),), np.zeros(1), relu=True)
    last = Block(((1, np.eye(1)),), np.zeros(1), relu=False)
    network = BlockNetwork(1, (first, last))
    below = Inequality({1: Fraction(-1)}, Fraction(-1))  # −relu(x) − 1 ≥ 0: never
    case = Case.of([(Fraction(-1), Fraction(1))], [below], 1)
    Search(network, case, Attack(network, case), time.monotonic() + 60.0).run()
