"""Conditions on a sublevel set of a loop, compiled from the loop itself (proof format, 8).

A proof carries F, V, the box and the levels, never the network or the inequalities that the search
used: blocks, cases and the parts of the box that they need are derived here. A case lists what
a violating state satisfies; all cases together are all violations.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise
from typing import Any, NamedTuple

from graphkeel.checker.exact import Vector, Work
from graphkeel.checker.limits import WEIGHT_COST
from graphkeel.checker.networks import Layer, Network
from graphkeel.checker.reading import Unreadable, items, mapping, matrix, number, vector
from graphkeel.property_checker.stages import Block, Form, Unit, forms_of

STAYS, FALLS = "sublevel-invariance", "sublevel-decrease"
_ARRAYS = ("lower", "upper", "equilibrium")
_NUMBERS = ("hole_radius", "rho", "level")
Ends = list[tuple[Fraction, Fraction]]


class Case(NamedTuple):
    """A part of the box, and forms that are all ≥ 0 at a violating state of it."""

    ends: Ends
    forms: list[Form]


class Loop(NamedTuple):
    """F and V as blocks over y, where their outputs stand in them, and the numbers."""

    blocks: list[Block]
    after: list[Unit]  # F(y)
    here: Unit  # V(y)
    there: Unit  # V(F(y))
    box: Ends
    centre: list[Fraction]
    radius: Fraction
    rho: Fraction
    level: Fraction
    floor: Fraction | None

    def set_name(self, condition: str) -> str:
        """The set that a condition is about, in numbers."""
        low = "" if self.floor is None or condition == STAYS else f"{float(self.floor)!r} ≤ "
        return f"{{{low}V ≤ {float(self.level)!r}}}"


def read_loop(value: Any, work: Work) -> Loop:
    """The loop of a proof."""
    content = mapping(value, "loop", {"F", "V", *_ARRAYS, *_NUMBERS}, frozenset({"floor"}))
    forward, gauge = _network(content["F"], "F", work), _network(content["V"], "V", work)
    n = forward[0].weight.width
    widths = (forward[-1].weight.height, gauge[0].weight.width, gauge[-1].weight.height)
    lower, upper, centre = (vector(content[name], name, n).fractions() for name in _ARRAYS)
    radius, rho, level = (Fraction(number(content[name], name)) for name in _NUMBERS)
    floor = Fraction(number(content["floor"], "floor")) if "floor" in content else None
    if widths != (n, n, 1):
        raise Unreadable("F must map the states to states, and V to numbers")
    if any(low > high for low, high in zip(lower, upper, strict=True)):
        raise Unreadable("the box is empty")
    if radius < 0 or not 0 < rho <= 1 or (floor is not None and floor > level):
        raise Unreadable("the radius must be ≥ 0, ρ in (0, 1], and the floor not above the level")
    blocks = [Block([], False)]
    end = _append(blocks, forward, 0)
    here, there = _append(blocks, gauge, 0), _append(blocks, gauge, end)
    after = [(end, i) for i in range(n)]
    box = list(zip(lower, upper, strict=True))
    return Loop(blocks, after, (here, 0), (there, 0), box, centre, radius, rho, level, floor)


def cases_of(loop: Loop, condition: str) -> list[Case]:
    """All ways to violate a condition, in the order of the format."""
    below: Form = {loop.here: Fraction(-1), None: loop.level}
    if condition == STAYS:
        grown: Form = {loop.there: Fraction(1), None: -loop.level}
        wrong = [grown]
        for unit, (low, high) in zip(loop.after, loop.box, strict=True):
            wrong += [{unit: Fraction(1), None: -high}, {unit: Fraction(-1), None: low}]
        return [Case(loop.box, [below, form]) for form in wrong]
    forms = [below]
    if loop.floor is not None:
        forms.append({loop.here: Fraction(1), None: -loop.floor})
    forms.append({loop.there: Fraction(1), loop.here: -loop.rho, None: Fraction(0)})
    return [Case(part, forms) for part in _outside_hole(loop)]


def covers(lower: Vector, upper: Vector, case: Case) -> bool:
    """Whether a stored root holds all of a case's part of the box."""
    stored = zip(lower.fractions(), upper.fractions(), case.ends, strict=True)
    return all(low <= ends[0] and ends[1] <= high for low, high, ends in stored)


def _outside_hole(loop: Loop) -> list[Ends]:
    """Boxes that cover the box without the open hole; with radius 0, the whole box."""
    if loop.radius == 0:
        return [loop.box]
    parts = []
    for axis, (low, high) in enumerate(loop.box):
        middle = loop.centre[axis]
        above, below = max(low, middle + loop.radius), min(high, middle - loop.radius)
        for ends in ((above, high), (low, below)):
            if ends[0] <= ends[1]:
                parts.append([*loop.box[:axis], ends, *loop.box[axis + 1 :]])
    return parts


def _network(value: Any, where: str, work: Work) -> Network:
    network = []
    for layer in items(value, where, most=64):
        content = mapping(layer, where, {"weight", "bias"})
        weight = matrix(content["weight"], f"{where}.weight")
        work.spend(weight.height * weight.width * WEIGHT_COST, weight.bits)
        bias = vector(content["bias"], f"{where}.bias", weight.height)
        network.append(Layer(weight, bias))
    if any(after.weight.width != before.weight.height for before, after in pairwise(network)):
        raise Unreadable(f"{where}: the layers do not fit together")
    return network


def _append(blocks: list[Block], network: Network, source: int) -> int:
    """Add a network that reads one value; the number of its output."""
    for k, layer in enumerate(network):
        forms = forms_of([(source, layer.weight)], layer.bias)
        blocks.append(Block(forms, relu=k + 1 < len(network)))
        source = len(blocks) - 1
    return source
