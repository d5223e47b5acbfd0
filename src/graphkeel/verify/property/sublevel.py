"""A condition on a sublevel set as a question about one network (docs/formats.md, 8).

The network is y -> (V(y), V(F(y)), F(y)). The layers of F and of V stay as they are, V twice, and
none is multiplied with another, so that nothing is rounded: the network's numbers are those of the
problem. A state violates the condition if it satisfies one of the cases."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from graphkeel.verify.conditions import inner_radius
from graphkeel.verify.problem import STAYS, Network, Problem, Region, Sublevel, sublevel_of
from graphkeel.verify.proof import VERSION, Json, encode, head
from graphkeel.verify.property.decide import NOT_STORED, SAT, UNSAT, Answer, Decision
from graphkeel.verify.property.network import Block, BlockNetwork, append_network
from graphkeel.verify.property.proof import FORMAT, as_text
from graphkeel.verify.property.question import Case, Inequality, Property
from graphkeel.verify.rational import in_hole, rationals, violates
from graphkeel.verify.result import Budget, ConditionReport, Verdict

_DIFFERS = "the violating state is not confirmed by a second replay"
_ONE = Fraction(1)
_Ends = list[tuple[Fraction, Fraction]]


def sublevel_network(problem: Problem) -> BlockNetwork:
    """The network y -> (V(y), V(F(y)), F(y))."""
    blocks: list[Block] = []
    after = append_network(blocks, problem.closed_loop, 0)
    there = append_network(blocks, problem.lyapunov, after)
    here = append_network(blocks, problem.lyapunov, 0)
    n = problem.n
    height = n + 2
    place = np.eye(height)
    parts = ((here, place[:, :1]), (there, place[:, 1:2]), (after, place[:, 2:]))
    blocks.append(Block(parts, np.zeros(height), relu=False))
    return BlockNetwork(n, tuple(blocks))


def sublevel_property(problem: Problem, condition: str) -> Property:
    """The cases of a violation, in the order of the proof format."""
    outputs = problem.n + 2
    if condition == STAYS:
        cases = [Case.of(ends, rows, outputs) for ends, rows in _invariance_cases(problem)]
    else:
        found = [Case.of(ends, rows, outputs) for ends, rows in _decrease_cases(problem)]
        cases = [replace(case, counts=lambda y: not in_hole(problem, y)) for case in found]
    return Property(problem.n, outputs, tuple(cases))


def loop_entry(problem: Problem) -> Json:
    """The loop as a proof has it: all that a checker compiles rows and cases from. A round hole is
    the box around it for conditions on D, and the box inside it for those on a sublevel set."""
    levels = {}
    if problem.sublevel is not None:
        levels = {"level": problem.sublevel.level, "floor": problem.sublevel.floor}
    region = problem.region or Region(0)
    return {
        "F": _layers(problem.closed_loop),
        "V": _layers(problem.lyapunov),
        "lower": encode(problem.lower),
        "upper": encode(problem.upper),
        "equilibrium": encode(problem.equilibrium),
        "hole_radius": float(problem.hole_radius),
        "inner_radius": inner_radius(problem),
        "rho": float(problem.rho),
        "positivity": float(problem.positivity),
        "class": region.axis,
        "margin": float(region.margin),
        **{name: float(level) for name, level in levels.items() if level is not None},
    }


def loop_proof(problem: Problem, proofs: Mapping[str, Json]) -> Json:
    """The proof file of a loop's conditions; the caller seals it."""
    stored = {name: proof.get("cases", proof) for name, proof in proofs.items()}
    return {
        "format": FORMAT,
        "version": VERSION,
        "loop": loop_entry(problem),
        "conditions": stored,
    }


def loop_difference(content: Json, problem: Problem) -> str | None:
    """How a proof's loop differs from a problem, or None. A problem without a sublevel set of its
    own takes the proof's."""
    stored = content.get("loop")
    if stored is None:
        return "the proof is about a network, not about a loop"
    if problem.sublevel is None and "level" in stored:
        problem = replace(problem, sublevel=Sublevel(stored["level"], stored.get("floor")))
    wanted = loop_entry(problem)
    names = sorted({*wanted, *stored})
    other = [name for name in names if as_text(stored.get(name)) != as_text(wanted.get(name))]
    return f"the proof is about another loop: {', '.join(other)} differ" if other else None


def _layers(network: Network) -> list[list[Json]]:
    return [[{"weight": encode(a.weight), "bias": encode(a.bias)}] for a in network.layers]


def _box(problem: Problem) -> _Ends:
    return list(zip(rationals(problem.lower), rationals(problem.upper), strict=True))


def _in_sublevel(problem: Problem) -> Inequality:
    """level − V(y) ≥ 0."""
    return Inequality({problem.n: -_ONE}, Fraction(sublevel_of(problem).level))


def _invariance_cases(problem: Problem) -> list[tuple[_Ends, list[Inequality]]]:
    """V(y) ≤ c, and V(F(y)) > c or F_i(y) > upper_i or F_i(y) < lower_i."""
    n, ends = problem.n, _box(problem)
    level = Fraction(sublevel_of(problem).level)
    violations = [Inequality({n + 1: _ONE}, -level, strict=True)]
    for axis, (low, high) in enumerate(ends):
        image = n + 2 + axis
        violations.append(Inequality({image: _ONE}, -high, strict=True))
        violations.append(Inequality({image: -_ONE}, low, strict=True))
    return [(ends, [_in_sublevel(problem), one]) for one in violations]


def _decrease_cases(problem: Problem) -> list[tuple[_Ends, list[Inequality]]]:
    """c₁ ≤ V(y) ≤ c and V(F(y)) > ρ·V(y), on every part of the box outside the hole."""
    n, rho = problem.n, Fraction(problem.rho)
    rows = [_in_sublevel(problem)]
    floor = sublevel_of(problem).floor
    if floor is not None:
        rows.append(Inequality({n: _ONE}, -Fraction(floor)))
    rows.append(Inequality({n + 1: _ONE, n: -rho}, Fraction(0), strict=rho < 1))
    return [(ends, rows) for ends in _outside_hole(problem)]


def _outside_hole(problem: Problem) -> list[_Ends]:
    """Slabs around the hole, whose union is the box without it: those of an axis lie between those
    of the axes before. The hole of radius 0 leaves nothing out."""
    rest, radius = _box(problem), Fraction(inner_radius(problem))
    if radius == 0:
        return [rest]
    parts = []
    for axis, centre in enumerate(rationals(problem.equilibrium)):
        low, high = rest[axis]
        above = (max(low, centre + radius), high)
        below = (low, min(high, centre - radius))
        parts += [[*rest[:axis], ends, *rest[axis + 1 :]] for ends in (above, below)]
        rest[axis] = (max(low, centre - radius), min(high, centre + radius))
    return [part for part in parts if all(low <= high for low, high in part)]


class SublevelRun:
    """Attack, then branch and bound over boxes; `proved` comes with a tree for every case."""

    def __init__(self, problem: Problem, condition: str, budget: Budget) -> None:
        self.problem = problem
        self.condition = condition
        self.budget = budget
        self.prop = sublevel_property(problem, condition)
        self.decision = Decision(sublevel_network(problem), self.prop, budget)

    def quick_check(self) -> ConditionReport | None:
        """The answer, if the attack gives one."""
        return self._report(self.decision.attack(self.budget.now() + self.decision.turn))

    def advance(self, end: float, last: float) -> ConditionReport | None:
        """Go on until the turn is over; the answer, if there is one."""
        return self._report(self.decision.advance(end))

    def out_of_time(self) -> ConditionReport:
        """The answer when there is no time left."""
        return self._answered(Verdict.UNKNOWN, self.decision.out_of_time().reason)

    def _report(self, answer: Answer | None) -> ConditionReport | None:
        if answer is None:
            return None
        if answer.verdict == UNSAT:
            return self._proved(answer)
        if answer.verdict != SAT:
            return self._answered(Verdict.UNKNOWN, answer.reason)
        point = np.array(answer.inputs)
        if not violates(self.problem, self.condition, point):  # the problem's own replay
            return self._answered(Verdict.UNKNOWN, _DIFFERS)
        return self._answered(Verdict.REFUTED, "", counterexample=point)

    def _proved(self, answer: Answer) -> ConditionReport:
        cases = len(self.prop.cases)
        if answer.proof is None:
            vacuous = "vacuous: no state of the box is outside the hole"
            return self._answered(Verdict.PROVED, NOT_STORED if cases else vacuous)
        # the roots and trees: the checker compiles its question itself
        kept = ("lower", "upper", "tree")
        trees = [{name: case[name] for name in kept} for case in answer.proof["cases"]]
        proof = head("sublevel", self.condition) | {"cases": trees}
        reason = f"no state satisfies any of {cases} case(s) of a violation"
        return self._answered(Verdict.PROVED, reason, proof=proof)

    def _answered(self, verdict: Verdict, reason: str, **more: Any) -> ConditionReport:
        nodes = self.decision.nodes
        return ConditionReport(self.condition, verdict, "", reason, nodes=nodes, **more)
