"""A property of a network, proved: no input of a case's box has all s_j ≥ 0 (proof format, 7).

    s(x) = A·x + B·N(x) + c, one line for each inequality of the case.

A leaf carries μ ≥ 0, not all 0: where Σ μ_j·s_j < 0 on its box, not all s_j are ≥ 0. Conditions on
a loop's sublevel set (proof format, 8) are cases of a network that is compiled from the loop.
"""

from __future__ import annotations

from typing import Any

from graphkeel.checker import CheckResult
from graphkeel.checker.certificate import guarded
from graphkeel.checker.exact import Matrix, Vector, Work
from graphkeel.checker.levels import EVERYWHERE
from graphkeel.checker.limits import MOST_BOUNDS, WEIGHT_COST
from graphkeel.checker.problem import Row
from graphkeel.checker.reading import (
    Rejected,
    Unreadable,
    array,
    items,
    mapping,
    matrix,
    read_bytes,
    vector,
)
from graphkeel.checker.relaxation import Box, Lines, Pair, RowBound, Supports
from graphkeel.checker.trees import DEFAULT, STORED, Part, parts, spend
from graphkeel.property_checker.stages import Block, Form, Shape, forms_of, row_of, shape_of
from graphkeel.property_checker.sublevel import FALLS, STAYS, Loop, cases_of, covers, read_loop

_FORMAT = "graphkeel-proof"
_REMARKS = frozenset({"sha256", "provenance"})
_TREE = {"axis", "cut", "slopes", "multipliers"}


class _Bound(RowBound):
    """Inputs of units are bounded by substitution, never by intervals: as the search does. Values
    that only go along are none of its units; intervals are exact for them."""

    def __init__(self, row: Row, exp: int, owns: list[int]) -> None:
        super().__init__(row, exp)
        self.owns = owns  # units of each stage, in front of the values that go along

    def _bounds(
        self, k: int, unit: int, lines: list[Lines], box: Box, outputs: Box, supports: Supports
    ) -> Pair:
        row, _ = self._input(k, unit)
        affine = k == 0 or not any(row[: self.stages[k - 1].relus])
        if affine or unit >= self.owns[k]:
            return super()._bounds(k, unit, lines, box, outputs, supports)
        return self._by_substitution(k, unit, lines, box)


def check_file(path: str) -> CheckResult:
    """Check the file of a property's proof; raises Unreadable for what is none.

    Args:
        path: of the file.
    """
    return check_bytes(read_bytes(path))


def check_bytes(raw: bytes) -> CheckResult:
    """Check the bytes of such a file.

    Args:
        raw: all of them.
    """
    return guarded(raw, _FORMAT, _check)


def _check(content: dict[str, Any], work: Work) -> dict[str, Any]:
    """Re-prove every case."""
    if "loop" in content:
        return _check_loop(content, work)
    top = mapping(content, "the proof", {"format", "version", "network", "cases"}, _REMARKS)
    network = mapping(top["network"], "network", {"inputs", "blocks"})
    if type(network["inputs"]) is not int or not isinstance(top["cases"], list):
        raise Unreadable("inputs must be a number, and cases a list")
    if not top["cases"]:
        raise Unreadable("the proof is vacuous: without cases it says nothing of the network")
    blocks, widths = _read_blocks(network, work)
    leaves = sum(_check_case(case, blocks, widths, work) for case in top["cases"])
    reason = f"no input satisfies any of {len(top['cases'])} case(s); {leaves} leaves re-proved"
    return {"reason": reason, "leaves": leaves}


def _check_loop(content: dict[str, Any], work: Work) -> dict[str, Any]:
    """Re-prove the conditions on a loop's sublevel set."""
    top = mapping(content, "the proof", {"format", "version", "loop", "conditions"}, _REMARKS)
    stored = mapping(top["conditions"], "conditions", set(), frozenset({STAYS, FALLS}))
    if not stored:
        raise Unreadable("the proof shows no condition")
    loop = read_loop(top["loop"], work)
    leaves = sum(_check_condition(loop, name, stored[name], work) for name in sorted(stored))
    shown = ", ".join(f"{name} of {loop.set_name(name)}" for name in sorted(stored))
    return {"reason": f"shown: {shown}; {leaves} leaves re-proved", "leaves": leaves}


def _check_condition(loop: Loop, name: str, value: Any, work: Work) -> int:
    """That no state of the box satisfies any case of a violation; the number of leaves."""
    cases = cases_of(loop, name)
    if not cases:
        raise Unreadable(f"{name} is vacuous: no state of the box is outside the hole")
    if not isinstance(value, list) or len(value) != len(cases):
        raise Rejected(f"{name} needs a list of {len(cases)} cases")
    leaves = 0
    for case, stored in zip(cases, value, strict=True):
        mapping(stored, f"a case of {name}", {"lower", "upper", "tree"})
        n = len(loop.box)
        lower, upper = (vector(stored[side], side, n) for side in ("lower", "upper"))
        if not covers(lower, upper, case):
            raise Rejected(f"{name}: a root leaves out a part of the box")
        leaves += _check_tree(stored["tree"], lower, upper, loop.blocks, case.forms, work)
    return leaves


def _read_blocks(network: dict[str, Any], work: Work) -> tuple[list[Block], list[int]]:
    """The blocks, value 0 first, and the widths of all values."""
    widths = [network["inputs"]]
    blocks: list[Block] = [Block([], False)]
    for value in items(network["blocks"], "blocks", most=10_000):
        mapping(value, "a block", {"terms", "bias", "relu"})
        if type(value["relu"]) is not bool:
            raise Unreadable("relu must be true or false")
        bias = vector(value["bias"], "a bias")
        given = items(value["terms"], "terms", most=10_000)
        terms = [_term(term, widths, len(bias), work) for term in given]
        blocks.append(Block(forms_of(terms, bias), value["relu"]))
        widths.append(len(bias))
    return blocks, widths


def _term(value: Any, widths: list[int], height: int, work: Work) -> tuple[int, Matrix]:
    content = mapping(value, "a term", {"source", "weight"})
    source, weight = content["source"], matrix(content["weight"], "a weight")
    known = type(source) is int and 0 <= source < len(widths)
    if not known or (weight.height, weight.width) != (height, widths[source]):
        raise Unreadable("the blocks do not fit together")
    work.spend(height * weight.width * WEIGHT_COST, weight.bits)
    return source, weight


def _check_case(value: Any, blocks: list[Block], widths: list[int], work: Work) -> int:
    case = mapping(value, "a case", {"lower", "upper", "weight", "constant", "tree"})
    inputs, outputs = widths[0], widths[-1]
    lower, upper = (vector(case[name], name, inputs) for name in ("lower", "upper"))
    weight, constant = matrix(case["weight"], "weight"), vector(case["constant"], "constant")
    if (weight.height, weight.width) != (len(constant), inputs + outputs):
        raise Unreadable("the inequalities do not fit the network")
    if min((upper - lower).ints) < 0:
        raise Unreadable("the box is empty")
    places = [(0, i) for i in range(inputs)] + [(len(widths) - 1, i) for i in range(outputs)]
    rows = [dict(zip(places, weight.row(i).fractions(), strict=True)) for i in range(weight.height)]
    forms = [{**row, None: c} for row, c in zip(rows, constant.fractions(), strict=True)]
    return _check_tree(case["tree"], lower, upper, blocks, forms, work)


def _check_tree(
    value: Any, lower: Vector, upper: Vector, blocks: list[Block], forms: list[Form], work: Work
) -> int:
    content = mapping(value, "a tree", _TREE)
    axis, _ = array(content["axis"], "axis", 1, ("<i2",))
    cut, _ = array(content["cut"], "cut", 1)
    slopes, (stored, width) = array(content["slopes"], "slopes", 2, ("|u1",))
    flat, (leaves, count) = array(content["multipliers"], "multipliers", 2, ("<i4",))
    n = len(lower)
    relus = [
        (b, i) for b, block in enumerate(blocks) if block.relu for i in range(len(block.forms))
    ]
    wanted = [sum(a >= 0 for a in axis), axis.count(STORED), len(relus), sum(a < 0 for a in axis)]
    if [len(cut), stored, width, leaves] != wanted or count != len(forms):
        raise Rejected("the numbers of nodes, cuts, slopes and multipliers do not fit together")
    every = lower.joined(upper).joined(Vector.of(cut))
    root: Part = ((every.ints[:n], every.ints[n : 2 * n]), {}, EVERYWHERE)
    shapes: dict[tuple[int, ...], Shape] = {}  # by the inequalities that a leaf uses
    line = 0
    for k, (kind, box, *_) in enumerate(parts(root, axis, every.ints[2 * n :], [], "a tree")):
        weights = flat[k * count : (k + 1) * count]
        used = tuple(j for j, mu in enumerate(weights) if mu)
        if not used or min(weights) < 0 or kind not in (DEFAULT, STORED):
            raise Rejected("a leaf needs multipliers ≥ 0 that are not all 0, and a known kind")
        if used not in shapes:
            if len(shapes) == MOST_BOUNDS:
                shapes.clear()
            shapes[used] = shape_of(blocks, [forms[j] for j in used], n, work)
        shape = shapes[used]
        row = row_of(shape, [weights[j] for j in used])
        spend(work, row, every, 1, 0)
        bound = _Bound(row, every.exp, shape.owns)
        choices: list[int] = []
        if kind == STORED:
            chosen = dict(zip(relus, slopes[line * width : (line + 1) * width], strict=True))
            choices = [0 if unit is None else chosen[unit] for unit in shape.units]
            line += 1
        if bound.upper(box, choices, {}, [1]) >= 0:
            raise Rejected("the bound of a leaf does not show what is claimed of it")
    return leaves
