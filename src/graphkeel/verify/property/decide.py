"""`unsat`, `sat` or `unknown` for a network and a property, in the words of VNN-LIB.

Every case is attacked first, which needs no compiler; then each is searched with its share of the
time that is left. Loading the compiled kernels in between counts neither as time spent nor against
the limit."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from graphkeel.verify.problem import Array
from graphkeel.verify.proof import Json
from graphkeel.verify.property.attack import Attack
from graphkeel.verify.property.network import BlockNetwork
from graphkeel.verify.property.proof import proof_entry
from graphkeel.verify.property.question import Property
from graphkeel.verify.rational import nearest_float, rationals

if TYPE_CHECKING:
    from graphkeel.verify.property.search import Search

UNSAT, SAT, UNKNOWN = "unsat", "sat", "unknown"
NOT_STORED = "the proof is too large to be stored"
_VACUOUS = "vacuous: no input satisfies the assertions about the inputs, whatever the network"


@dataclass(frozen=True, eq=False)
class Answer:
    """The verdict on a property."""

    verdict: str  # "unsat": no input satisfies the assertions; "sat"; or "unknown"
    inputs: tuple[float, ...] = ()  # of a counterexample, replayed exactly
    outputs: tuple[float, ...] = ()  # there, each the float nearest to the exact value
    reason: str = ""  # why nothing was decided, or a remark
    seconds: float = 0.0  # without loading compiled kernels
    nodes: int = 0  # boxes explored
    proof: Json | None = None  # of "unsat"; None where it was too large, or for a vacuous property

    def counterexample_text(self) -> str:
        """The competition's format: ((X_0 1.0) … (Y_0 …))."""
        named = [f"(X_{i} {value!r})" for i, value in enumerate(self.inputs)]
        named += [f"(Y_{i} {value!r})" for i, value in enumerate(self.outputs)]
        lines = "\n ".join(named)
        return f"({lines})"


def decide(
    network: BlockNetwork,
    prop: Property,
    seconds: float = 60.0,
    seed: int = 0,
    now: Callable[[], float] = time.monotonic,
) -> Answer:
    """Decide whether an input satisfies one of the property's cases."""
    started = now()
    prop.check_fits(network)
    decision = _Decision(network, prop, started + seconds, seed, now)
    answer = decision.answer()
    spent = now() - started - decision.loading
    return Answer(**{**vars(answer), "seconds": spent, "nodes": decision.nodes})


class _Decision:
    """The state of one decision.

    Writes: nodes, loading and the deadline, and the trees and reasons of its cases.
    """

    def __init__(
        self,
        network: BlockNetwork,
        prop: Property,
        deadline: float,
        seed: int,
        now: Callable[[], float],
    ) -> None:
        self.now = now
        self.network = network
        self.prop = prop
        self.deadline = deadline
        self.attacks = [Attack(network, case, seed) for case in prop.cases]
        self.nodes = 0
        self.loading = 0.0  # seconds

    def answer(self) -> Answer:
        if not self.attacks:
            return Answer(UNSAT, reason=_VACUOUS)
        for attack in self.attacks:
            point = attack.search()
            if point is not None:
                return self._sat(point)
            if self.now() >= self.deadline:
                return Answer(
                    UNKNOWN, reason="time budget: spent on the search for a counterexample"
                )
        return self._searched()

    def _searched(self) -> Answer:
        search_class = self._loaded()
        trees, reasons = [], []
        for k, (case, attack) in enumerate(zip(self.prop.cases, self.attacks, strict=True)):
            start = self.now()
            share = (self.deadline - start) / (len(self.attacks) - k)
            outcome = search_class(self.network, case, attack, start + share, self.now).run()
            self.nodes += outcome.nodes
            if outcome.counterexample is not None:
                return self._sat(outcome.counterexample)
            if not outcome.closed:
                reasons.append(outcome.reason)
            trees.append(outcome.tree)
        if reasons:
            return Answer(UNKNOWN, reason=reasons[0])
        kept = [tree for tree in trees if tree is not None]
        if len(kept) < len(trees):
            return Answer(UNSAT, reason=NOT_STORED)
        return Answer(UNSAT, proof=proof_entry(self.network, self.prop, kept))

    def _loaded(self) -> type[Search]:
        """The search, its kernels loaded outside the time."""
        before = self.now()
        from graphkeel.verify.property.search import Search, warm_up

        warm_up()
        self.loading = self.now() - before
        self.deadline += self.loading
        return Search

    def _sat(self, point: Array) -> Answer:
        inputs = tuple(float(x) for x in point)
        exact = self.network.exact_outputs(rationals(inputs))
        return Answer(SAT, inputs, tuple(nearest_float(y) for y in exact))
