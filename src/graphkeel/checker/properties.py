"""A proof by itself: about a network's property, or about a loop (proof format, 7 and 8).

A property: no input of a case's box has all s_j ≥ 0, s(x) = A·x + B·N(x) + c, one line for each
inequality of the case. A leaf carries μ ≥ 0, not all 0: where Σ μ_j·s_j < 0 on its box, not all s_j
are ≥ 0. A loop's proof carries F, V, the box and the numbers, never the network or the inequalities
that a search used: its rows, and the cases of a sublevel set, are derived here.
"""

from dataclasses import replace
from fractions import Fraction
from typing import Any

from .blocks import Block, Row, row_of
from .certificate import ASKED, reprove
from .exact import Matrix, Vector, Work
from .networks import collapsed, read_source
from .problem import FALLS, STAYS, Loop, Problem, read_problem
from .reading import Rejected, Unreadable, items, mapping, matrix, number, vector
from .squares import rewritten
from .trees import Tree

_REMARKS = frozenset({"sha256", "provenance"})
_TREE = {"axis", "cut", "slopes", "multipliers"}
_PROBLEM = {"lower", "upper", "equilibrium", "hole_radius", "rho", "positivity", "margin"}


def check_proof(content: dict[str, Any], work: Work) -> dict[str, Any]:
    """Re-prove every case of a property, or every condition of a loop."""
    if "loop" in content:
        return _check_loop(content, work)
    top = mapping(content, "the proof", {"format", "version", "network", "cases"}, _REMARKS)
    network = mapping(top["network"], "network", {"inputs", "blocks"})
    if type(network["inputs"]) is not int or not isinstance(top["cases"], list):
        raise Unreadable("inputs must be a number, and cases a list")
    if not top["cases"]:
        raise Unreadable("the proof is vacuous: without cases it says nothing of the network")
    blocks, widths = _read_blocks(network)
    leaves = sum(_check_case(case, blocks, widths, work) for case in top["cases"])
    reason = f"no input satisfies any of {len(top['cases'])} case(s); {leaves} leaves re-proved"
    return {"reason": reason, "leaves": leaves}


def _read_blocks(network: dict[str, Any]) -> tuple[list[Block], list[int]]:
    """The blocks, and the widths of all values."""
    widths = [network["inputs"]]
    blocks: list[Block] = []
    for value in items(network["blocks"], "blocks", most=10_000):
        mapping(value, "a block", {"terms", "bias", "relu"}, frozenset({"square"}))
        relu, square = value["relu"], value.get("square", False)
        if type(relu) is not bool or type(square) is not bool or (relu and square):
            raise Unreadable("relu and square must be true or false, and not both true")
        bias = vector(value["bias"], "a bias")
        given = items(value["terms"], "terms", most=10_000)
        terms = [_term(term, widths, len(bias)) for term in given]
        blocks.append(Block(terms, bias, relu, square))
        widths.append(len(bias))
    return blocks, widths


def _term(value: Any, widths: list[int], height: int) -> tuple[int, Matrix]:
    content = mapping(value, "a term", {"source", "weight"})
    source, weight = content["source"], matrix(content["weight"], "a weight")
    known = type(source) is int and 0 <= source < len(widths)
    if not known or (weight.height, weight.width) != (height, widths[source]):
        raise Unreadable("the blocks do not fit together")
    return source, weight


def _check_case(value: Any, blocks: list[Block], widths: list[int], work: Work) -> int:
    names = {"lower", "upper", "weight", "constant", "tree"}
    case = mapping(value, "a case", names, frozenset({"squares", "outputs"}))
    inputs, outputs = widths[0], widths[-1]
    lower, upper = (vector(case[name], name, inputs) for name in ("lower", "upper"))
    weight, constant = matrix(case["weight"], "weight"), vector(case["constant"], "constant")
    if (weight.height, weight.width) != (len(constant), inputs + outputs):
        raise Unreadable("the inequalities do not fit the network")
    if min((upper - lower).ints) < 0:
        raise Unreadable("the box is empty")
    over_x = Matrix([line[:inputs] for line in weight.rows], weight.exp)
    over_n = Matrix([line[inputs:] for line in weight.rows], weight.exp)
    units = [number for number, block in enumerate(blocks, 1) if block.is_units]
    asked = Block([(0, over_x), (len(blocks), over_n)], constant)
    row = row_of(blocks, asked, inputs, units, work)
    root = lower.joined(upper)
    if "squares" in case:
        row = rewritten(row, case["squares"], case.get("outputs"), root, work)
    return _check_tree(row, case["tree"], root, "a case", work)


def _check_tree(row: Row, value: Any, root: Vector, where: str, work: Work) -> int:
    content = mapping(value, f"the tree of {where}", _TREE)
    return Tree(row, content, root, where, work).check()


# ---- loops


def _check_loop(content: dict[str, Any], work: Work) -> dict[str, Any]:
    """Re-prove the conditions of a loop."""
    top = mapping(content, "the proof", {"format", "version", "loop", "conditions"}, _REMARKS)
    stored = mapping(top["conditions"], "conditions", set(), frozenset({*ASKED, STAYS, FALLS}))
    if not stored:
        raise Unreadable("the proof shows no condition")
    problem = _read_loop(top["loop"], work)
    leaves = 0
    for name in sorted(stored):
        check = _check_sublevel if name in (STAYS, FALLS) else reprove
        leaves += check(problem, name, stored[name], work)
    shown = "; ".join(_claim(problem, name) for name in sorted(stored))
    return {"reason": f"shown: {shown}; {leaves} leaves re-proved", "leaves": leaves}


def _read_loop(value: Any, work: Work) -> Problem:
    names = {"F", "V", "class", "inner_radius", *_PROBLEM}
    content = mapping(value, "loop", names, frozenset({"level", "floor"}))
    forward, gauge = (collapsed(read_source(content[k], k), k, work) for k in ("F", "V"))
    given = {name: content[name] for name in _PROBLEM} | {"delta": 0.0}
    problem = read_problem(given, content["class"], forward, gauge, "loop")
    inner = Fraction(number(content["inner_radius"], "inner_radius"))
    level, floor = (_level(content, name) for name in ("level", "floor"))
    if inner < 0 or (floor is not None and (level is None or floor > level)):
        raise Unreadable("the inner radius must be ≥ 0, and the floor not above the level")
    return replace(problem, inner=inner, level=level, floor=floor)


def _level(content: dict[str, Any], name: str) -> Fraction | None:
    return Fraction(number(content[name], name)) if name in content else None


def _check_sublevel(problem: Problem, name: str, value: Any, work: Work) -> int:
    """That no state of the box satisfies any case of a violation; the number of leaves."""
    cases = Loop(problem, work).cases(name)
    if not cases:
        raise Unreadable(f"{name} is vacuous: no state of the box is outside the hole")
    if not isinstance(value, list) or len(value) != len(cases):
        raise Rejected(f"{name} needs a list of {len(cases)} cases")
    leaves = 0
    n = problem.n
    for (part, row), case in zip(cases, value, strict=True):
        mapping(case, f"a case of {name}", {"lower", "upper", "tree"})
        root = vector(case["lower"], "lower", n).joined(vector(case["upper"], "upper", n))
        ends = zip(root.fractions(), part, strict=True)
        if any(end > own if i < n else end < own for i, (end, own) in enumerate(ends)):
            raise Rejected(f"{name}: a root leaves out a part of the box")
        leaves += _check_tree(row, case["tree"], root, name, work)
    return leaves


def _claim(problem: Problem, name: str) -> str:
    """A condition that was shown, in numbers."""
    rho, radius = float(problem.rho), float(problem.radius)
    if name in (STAYS, FALLS):
        level = float(problem.level or 0)
        low = "" if problem.floor is None or name == STAYS else f"{float(problem.floor)!r} ≤ "
        falls = f" with ρ = {rho!r}, ‖y − Y‖ ≥ {float(problem.inner)!r}" if name == FALLS else ""
        return f"{name} of {{{low}V ≤ {level!r}}}{falls}"
    more = {
        "decrease": f" with ρ = {rho!r}, ‖y − Y‖ ≥ {radius!r}",
        "positivity": f" with c = {float(problem.positivity)!r}, ‖y − Y‖ ≥ {radius!r}",
        "region": f" of class {problem.label} with γ = {float(problem.margin)!r}",
    }
    return name + more.get(name, "")
