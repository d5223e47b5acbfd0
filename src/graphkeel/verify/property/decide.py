"""`unsat`, `sat` or `unknown` for a network and a property, in the words of VNN-LIB.

Cases are attacked first, as far as that is quick: it needs no compiler. Then they are searched in
turns that get longer, with attacks from new inputs in between. Loading the compiled kernels counts
neither as time spent nor against the limit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from graphkeel.verify.attack import CaseAttack
from graphkeel.verify.problem import Array
from graphkeel.verify.proof import Json
from graphkeel.verify.property.network import BlockNetwork
from graphkeel.verify.property.proof import proof_entry
from graphkeel.verify.property.question import Property
from graphkeel.verify.rational import nearest_float, rationals
from graphkeel.verify.result import Budget
from graphkeel.verify.settings import PROPERTY
from graphkeel.verify.warm import load_kernels

if TYPE_CHECKING:
    from graphkeel.verify.search import Outcome, Search

UNSAT, SAT, UNKNOWN = "unsat", "sat", "unknown"
NOT_STORED = "the proof is too large to be stored, or was not finished in time"
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
    budget: Budget | None = None,
    keep: bool = True,
) -> Answer:
    """Decide whether an input satisfies one of the property's cases."""
    budget = budget or Budget()
    started = budget.now()
    prop.check_fits(network)
    decision = Decision(network, prop, budget, keep)
    end = started + budget.seconds
    answer = decision.attack(min(started + PROPERTY.attack_share * budget.seconds, end))
    loading = 0.0
    if answer is None and budget.now() < end:
        before = budget.now()
        load_kernels()
        loading = budget.now() - before
        answer = decision.advance(end + loading)
    spent = budget.now() - started - loading
    found = answer or decision.out_of_time()
    return Answer(**{**vars(found), "seconds": spent, "nodes": decision.nodes})


@dataclass(eq=False)
class _Found(Exception):
    """A counterexample."""

    point: Array


def _raise_if_found(point: Array | None) -> None:
    if point is not None:
        raise _Found(point)


def case_search(attack: CaseAttack, budget: Budget, keep: bool) -> Search:
    """The search of a case, with the attack on it for confirming what looks like a member."""
    from graphkeel.verify.boxes.pack import too_large  # these compile kernels
    from graphkeel.verify.boxes.question import case_question
    from graphkeel.verify.search import Search

    case, network = attack.case, attack.network
    question = case_question(network, case.lower, case.upper, PROPERTY)
    search = Search(question, budget, 0.0, attack, keep=keep, settings=PROPERTY.search)
    if too_large(network, case.lower, case.upper, PROPERTY.max_magnitude):
        search.reason = "numbers come too near to the largest float"
    return search


class _CaseTurns:
    """One case, attacked and searched in turns.

    Writes: its search and outcome, and the seconds of both.
    """

    def __init__(self, attack: CaseAttack, budget: Budget) -> None:
        self.attack = attack
        self.budget = budget
        self.search: Search | None = None
        self.outcome: Outcome | None = None  # before the first turn
        self.seconds = 0.0  # of the search
        self.attack_seconds = 0.0  # from new inputs

    @property
    def is_waiting(self) -> bool:
        """Whether more time might help."""
        return self.outcome is None or self.outcome.timed_out

    @property
    def reason(self) -> str:
        """Why the case is not closed, or nothing."""
        if self.outcome is not None and self.outcome.closed:
            return ""
        return (self.outcome and self.outcome.reason) or "time budget: no box explored"

    def attack_first(self) -> None:
        """The first attack, once."""
        _raise_if_found(self.attack.search())

    def advance(self, keep: bool, end: float, last: float) -> None:
        """Go on until the end of a turn."""
        self.attack_first()
        began = self.budget.now()
        if self.search is not None:
            self.outcome = self.search.resume(end, last)
        else:
            self.search = case_search(self.attack, self.budget, keep)
            self.search.deadline, self.search.last = end, last
            self.outcome = self.search.run()
        self.seconds += self.budget.now() - began
        _raise_if_found(self.outcome.counterexample)
        if self.outcome.timed_out:
            self._attack_again(end)
        else:
            self.search = None  # its arrays are large

    def _attack_again(self, end: float) -> None:
        """Attacks from new inputs, for a share of the time: what one sample misses may take boxes
        minutes to find."""
        share = PROPERTY.attack_share * self.seconds
        while self.attack_seconds < share and self.budget.now() < end + share:
            began = self.budget.now()
            _raise_if_found(self.attack.search_again())
            self.attack_seconds += max(self.budget.now() - began, 1e-6)


class Decision:
    """A question on its way to an answer.

    Writes: its cases, and the seconds of the next turn.
    """

    def __init__(
        self, network: BlockNetwork, prop: Property, budget: Budget, keep: bool = True
    ) -> None:
        self.network = network
        self.prop = prop
        self.budget = budget
        self.keep = keep
        self.cases = [_CaseTurns(CaseAttack(network, case), budget) for case in prop.cases]
        self.turn = PROPERTY.first_turn

    @property
    def nodes(self) -> int:
        """The boxes explored in all cases."""
        return sum(case.outcome.nodes for case in self.cases if case.outcome is not None)

    def attack(self, end: float) -> Answer | None:
        """Attack the cases, as far as the time allows; that needs no compiler."""
        if not self.cases:
            return Answer(UNSAT, reason=_VACUOUS)
        try:
            for case in self.cases:
                case.attack_first()
                if self.budget.now() >= end:
                    break
        except _Found as found:
            return self._sat(found.point)
        return None

    def advance(self, end: float) -> Answer | None:
        """Search the cases in turns until a time; None where more of it might help."""
        try:
            while self._waiting() and self.budget.now() < end:
                self._every_case(end)
        except _Found as found:
            return self._sat(found.point)
        return None if self._waiting() else self._answer()

    def out_of_time(self) -> Answer:
        """The answer when there is no time left."""
        if not self.nodes:
            return Answer(UNKNOWN, reason="time budget: spent on the search for a counterexample")
        return self._answer()

    def _waiting(self) -> list[_CaseTurns]:
        return [case for case in self.cases if case.is_waiting]

    def _every_case(self, end: float) -> None:
        """Give every case that waits a turn; turns get longer."""
        waiting = self._waiting()
        for k, case in enumerate(waiting):
            now = self.budget.now()
            if now >= end:
                return
            share = (end - now) / (len(waiting) - k)
            case.advance(self.keep, now + min(self.turn, share), now + share)
        self.turn *= 2.0

    def _answer(self) -> Answer:
        undecided = [case.reason for case in self.cases if case.reason]
        if undecided:
            return Answer(UNKNOWN, reason=undecided[0])
        outcomes = [case.outcome for case in self.cases]
        trees = [one.piece for one in outcomes if one is not None and one.piece is not None]
        if len(trees) < len(outcomes):
            return Answer(UNSAT, reason=NOT_STORED if self.keep else "")
        forms = [case.attack.rewritten for case in self.cases]
        return Answer(UNSAT, proof=proof_entry(self.network, self.prop, trees, forms))

    def _sat(self, point: Array) -> Answer:
        inputs = tuple(float(x) for x in point)
        exact = self.network.exact_outputs(rationals(inputs))
        return Answer(SAT, inputs, tuple(nearest_float(y) for y in exact))
