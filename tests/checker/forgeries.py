"""A seeded generator of false certificates, every seal and every derived part recomputed.

Each forgery starts from a certificate that is accepted and differs from it in one place:

* *false loops*: a number of the loop or of the question is changed so that a condition that is
  called proved is false. That it is false is shown here, by a state replayed in exact Fractions;
* *broken proofs*: the claim stays, and its proof is spoiled in a way that no reader may let pass;
* *false words*: weights and proofs stay, and what is said of them is changed.

Before that, states are rescaled by a power of two, so that the same lie is told with numbers of all
sizes; a few are scaled beyond what may be read."""

from __future__ import annotations

import copy
import math
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import product
from typing import Any

from checker_cases import (
    flat,
    on_edge,
    skewed,
    sloped,
    square,
)
from hand_loops import (
    Hand,
    Json,
    array,
    certificate,
    contraction,
    coupled,
    decoded,
    line,
    plane,
    rederived,
    sealed_bytes,
    section,
    slices,
    stated,
    thirds,
)

from graphkeel.checker import Rejected, Unreadable

PROVED = ("positivity", "decrease", "invariance", "region")


@dataclass(frozen=True)
class Forgery:
    """A false certificate: `rule` names the kind of proof that is to hold it up."""

    lie: str
    rule: str
    raw: bytes


def bases() -> dict[str, list[Hand]]:
    """Loops whose certificates are accepted, by the rule that proves them."""
    strong = {name: contraction(name) for name in ("decrease", "positivity")}
    return {
        "branch": [line()],
        "unit cuts": [thirds()],
        "unit cuts of F": [flat()],
        "couplings": [coupled()],
        "levels": [slices()],
        "section": [section()],
        "stored slopes": [sloped([255, 0])()],
        "homogeneous": [plane()],
        "homogeneous, skew": [skewed()],
        "homogeneous, on an edge": [
            replace(plane(), lower=[1.0, -1.0], proofs={"decrease": on_edge()})
        ],
        "contraction": [plane(proofs=strong)],
        "region": [square(0)],
        "two classes": [square(0), square(1)],
    }


# ---- the same loop at another scale


def rescaled(loop: Hand, scale: float) -> Hand:
    """The loop s·F(y/s) with s·V(y/s), D, Y and the hole to match; s is a power of two."""

    def moved(layers: Any) -> Any:
        return [(weight, [scale * b for b in bias]) for weight, bias in layers]

    def times(values: Any) -> Any:
        return None if values is None else [scale * value for value in values]

    return replace(
        loop,
        forward=moved(loop.forward),
        lyapunov=moved(loop.lyapunov),
        lower=times(loop.lower),
        upper=times(loop.upper),
        equilibrium=times(loop.equilibrium),
        hole_radius=scale * loop.hole_radius,
        delta=scale * loop.delta,
        margin=scale * loop.margin,
        anchor=times(loop.anchor),
        proofs={name: scaled_proof(value, scale) for name, value in loop.proofs.items()},
    )


def scaled_proof(value: Json, scale: float) -> Json:
    value = copy.deepcopy(value)
    for name in {"margin", "level"} & set(value):
        value[name] *= scale
    for tree in trees_of(value):
        tree["lower"] = [scale * end for end in tree["lower"]]
        tree["upper"] = [scale * end for end in tree["upper"]]
        tree["cut"] = array([scale * cut for cut in decoded(tree["cut"])])
    return value


def trees_of(value: Json) -> list[Json]:
    found = [*value.get("trees", []), *value.get("faces", []), value.get("tree")]
    return [tree for tree in found if isinstance(tree, dict) and "axis" in tree]


# ---- whether a claim is false, in Fractions


def exact(layers: Any, y: list[Fraction]) -> list[Fraction]:
    for k, (weight, bias) in enumerate(layers):
        y = [
            sum((Fraction(w) * x for w, x in zip(row, y, strict=True)), Fraction(b))
            for row, b in zip(weight, bias, strict=True)
        ]
        y = y if k + 1 == len(layers) else [max(x, Fraction(0)) for x in y]
    return y


def states(loop: Hand, rng: random.Random) -> Iterator[list[Fraction]]:
    """States of D where a condition may fail: corners, the hole's shell, some in between."""
    low, high = ([Fraction(x) for x in ends] for ends in (loop.lower, loop.upper))
    centre, radius = [Fraction(x) for x in loop.equilibrium], Fraction(loop.hole_radius)
    yield from (list(corner) for corner in product(*zip(low, high, strict=True)))
    for axis in range(loop.n):
        for sign in (1, -1):
            for length in (radius, 2 * radius):
                point = list(centre)
                point[axis] += sign * length
                yield point
    for _ in range(12):
        yield [a + (b - a) * Fraction(rng.random()) for a, b in zip(low, high, strict=True)]


def violated(loop: Hand, condition: str, y: list[Fraction]) -> bool:
    """Whether a state of D refutes a condition (docs/formats.md, section 1)."""
    low, high = loop.lower, loop.upper
    if not all(a <= x <= b for a, x, b in zip(low, y, high, strict=True)):
        return False
    away = max(abs(x - Fraction(c)) for x, c in zip(y, loop.equilibrium, strict=True))
    after = exact(loop.forward, y)
    if condition == "invariance":
        return not all(a <= x <= b for a, x, b in zip(low, after, high, strict=True))
    if condition == "region":
        here, there = (lead(state, loop.label) for state in (y, after))
        return here >= loop.margin and (there < loop.margin or there <= 0)
    if away < loop.hole_radius or away == 0:
        return False
    gauge = exact(loop.lyapunov, y)[0]
    if condition == "positivity":
        return gauge < Fraction(loop.positivity) * away or (loop.positivity == 0 >= gauge)
    fall = Fraction(loop.rho) * gauge - exact(loop.lyapunov, after)[0]
    return fall < 0 or (fall == 0 and loop.rho == 1)


def lead(state: list[Fraction], label: int) -> Fraction:
    others = [value for k, value in enumerate(state) if k != label]
    return state[label] - max(others, default=state[label] - 1)


def is_false(loop: Hand, rng: random.Random) -> bool:
    """Whether some condition that is called proved has a counterexample."""
    claimed = [name for name in PROVED if name in loop.proofs]
    return any(violated(loop, name, y) for y in states(loop, rng) for name in claimed)


# ---- false loops


def size(rng: random.Random) -> float:
    """A number of any size: one ulp, a little, or anything that a float can be."""
    kind = rng.random()
    if kind < 0.3:
        return 2.0**-52
    if kind < 0.6:
        return rng.uniform(0.01, 2.0)
    return 10.0 ** rng.uniform(-320, 308)


def nudged(value: float, rng: random.Random) -> float:
    """Another number: an ulp away, or by any amount."""
    kind = rng.random()
    if kind < 0.3:
        return math.nextafter(value, rng.choice([-math.inf, math.inf]))
    if kind < 0.8:
        return value + rng.choice([-1, 1]) * size(rng)
    return rng.choice([-1, 1]) * size(rng)


def with_weight(layers: Any, rng: random.Random, *, last: bool = False, bias: bool = False) -> Any:
    """The layers with one number changed."""
    changed = copy.deepcopy(layers)
    weight, offset = changed[-1] if last else rng.choice(changed)
    row = rng.randrange(len(weight))
    if bias:
        offset[row] = nudged(offset[row], rng)
    else:
        column = rng.randrange(len(weight[row]))
        weight[row][column] = nudged(weight[row][column], rng)
    return changed


def grown(loop: Hand, rng: random.Random) -> Hand:
    """Y + f·(F − Y) with f beyond one."""
    factor = rng.choice([2.0 ** rng.randint(1, 300), rng.uniform(2, 8)])
    *hidden, (weight, bias) = loop.forward
    rows = [[factor * w for w in row] for row in weight]
    moved = [factor * b + (1 - factor) * y for b, y in zip(bias, loop.equilibrium, strict=True)]
    return replace(loop, forward=[*hidden, (rows, moved)])


def still(loop: Hand, rng: random.Random) -> Hand:
    """F = identity: a plateau, with ρ = 1 or below."""
    rows = [[float(i == j) for j in range(loop.n)] for i in range(loop.n)]
    return replace(loop, forward=[(rows, [0.0] * loop.n)], rho=rng.choice([1.0, loop.rho]))


def leaving(loop: Hand, rng: random.Random) -> Hand:
    return replace(loop, forward=with_weight(loop.forward, rng, last=True, bias=True))


def not_positive(loop: Hand, rng: random.Random) -> Hand:
    *hidden, (weight, bias) = copy.deepcopy(loop.lyapunov)
    unit = rng.randrange(len(weight[0]))
    weight[0][unit] = rng.choice([0.0, -weight[0][unit], -size(rng), size(rng)])
    return replace(loop, lyapunov=[*hidden, (weight, bias)])


def other_weight(loop: Hand, rng: random.Random) -> Hand:
    name = rng.choice(["forward", "lyapunov"])
    layers = with_weight(getattr(loop, name), rng, bias=rng.random() < 0.4)
    return replace(loop, **{name: layers})


def lower_rho(loop: Hand, rng: random.Random) -> Hand:
    new = rng.choice([math.nextafter(loop.rho, 0), loop.rho * rng.random(), 2.0**-399, 1e-320])
    return replace(loop, rho=new)


def higher_c(loop: Hand, rng: random.Random) -> Hand:
    new = rng.choice([math.nextafter(loop.positivity, math.inf), loop.positivity + size(rng)])
    return replace(loop, positivity=new)


def larger_domain(loop: Hand, rng: random.Random) -> Hand:
    """D moved or enlarged along one axis, the proofs' roots with it."""
    axis, name = rng.randrange(loop.n), rng.choice(["lower", "upper"])
    ends = list(getattr(loop, name))
    old, ends[axis] = ends[axis], nudged(ends[axis], rng)
    changed = copy.deepcopy(loop.proofs)
    for value in changed.values():
        for tree in trees_of(value):
            for side in ("lower", "upper"):
                if tree[side][axis] == old:
                    tree[side][axis] = ends[axis]
    return replace(loop, **{name: ends}, proofs=changed)


def higher_margin(loop: Hand, rng: random.Random) -> Hand:
    return replace(loop, margin=loop.margin + size(rng))


def moved_hole(loop: Hand, rng: random.Random) -> Hand:
    centre = list(loop.equilibrium)
    axis = rng.randrange(loop.n)
    centre[axis] = nudged(centre[axis], rng)
    return replace(loop, equilibrium=centre, anchor=centre)


FALSE_LOOPS: dict[str, Callable[[Hand, random.Random], Hand]] = {
    "unstable": grown,
    "plateau": still,
    "leaves D": leaving,
    "not positive": not_positive,
    "another weight": other_weight,
    "ρ lowered": lower_rho,
    "c raised": higher_c,
    "D changed": larger_domain,
    "γ raised": higher_margin,
    "hole moved": moved_hole,
}


def false_loop(rng: random.Random, rule: str, loops: list[Hand]) -> Forgery | None:
    name = rng.choice(list(FALSE_LOOPS))
    index = rng.randrange(len(loops))
    loops = list(loops)
    try:
        loops[index] = FALSE_LOOPS[name](loops[index], rng)
        if not all(map(finite, loops)) or not is_false(loops[index], rng):
            return None
    except OverflowError:
        return None
    return Forgery(name, rule, forged_bytes(*loops))


def finite(loop: Hand) -> bool:
    layers = [*loop.forward, *loop.lyapunov]
    numbers = [x for weight, bias in layers for row in (*weight, bias) for x in row]
    numbers += [*loop.lower, *loop.upper, *loop.equilibrium, loop.hole_radius, loop.margin]
    return all(map(math.isfinite, [*numbers, loop.positivity, loop.rho]))


def forged_bytes(*loops: Hand) -> bytes:
    """The sealed bytes. Where nothing can be derived from such numbers, a true loop's words stand
    in: the reader refuses the numbers first."""
    content = stated(*loops)
    try:
        content = rederived(content)
    except (Rejected, Unreadable, ArithmeticError):
        true = certificate(line())
        said = true["classes"][0]
        for entry in content["classes"]:
            entry["conditions"] = {**said["conditions"], **entry["conditions"]}
            entry |= {name: said[name] for name in ("verdict", "setting", "conclusion")}
        content["together"] = true["together"]
    return sealed_bytes(content)


# ---- broken proofs


def some_tree(value: Json, rng: random.Random) -> Json | None:
    found = trees_of(value)
    return rng.choice(found) if found else None


def put_axis(tree: Json, axis: list[int]) -> None:
    tree["axis"] = array(axis, dtype="|i1")


def leaf_left_out(value: Json, tree: Json, rng: random.Random) -> bool:
    put_axis(tree, decoded(tree["axis"])[:-1])
    return True


def leaf_too_many(value: Json, tree: Json, rng: random.Random) -> bool:
    put_axis(tree, [*decoded(tree["axis"]), -2])
    return True


def cut_on_an_end(value: Json, tree: Json, rng: random.Random) -> bool:
    """A cut at an end of the root, or an ulp outside: one half is empty, or lies elsewhere."""
    cuts = decoded(tree["cut"])
    if not cuts or "supports" in tree:
        return False
    first = next(a for a in decoded(tree["axis"]) if a >= 0)
    low, high = tree["lower"][first], tree["upper"][first]
    cuts[0] = rng.choice([low, high, math.nextafter(low, -1e300), math.nextafter(high, 1e300)])
    tree["cut"] = array(cuts)
    return True


def root_shrunk(value: Json, tree: Json, rng: random.Random) -> bool:
    axis = rng.randrange(len(tree["lower"]))
    sided = tree["row"][0] in "+-" and value["kind"] == "branch"
    side = {"+": "upper", "-": "lower"}[tree["row"][0]] if sided else rng.choice(["lower", "upper"])
    towards = math.inf if side == "lower" else -math.inf
    end = tree[side][axis]
    middle = (tree["lower"][axis] + tree["upper"][axis]) / 2
    new = rng.choice([math.nextafter(end, towards), middle])
    if new == end or 0 < abs(new) < 2.0**-400:
        return False
    tree[side][axis] = new
    return True


def trees_shuffled(value: Json, tree: Json, rng: random.Random) -> bool:
    found = value.get("trees", value.get("faces"))
    if len(found) < 2:
        return False
    i, j = rng.sample(range(len(found)), 2)
    how = rng.choice(["swap", "copy", "drop"])
    if how == "swap":
        found[i], found[j] = found[j], found[i]
    elif how == "copy":
        found[i] = copy.deepcopy(found[j])
    else:
        found.pop(i)
    return True


def row_renamed(value: Json, tree: Json, rng: random.Random) -> bool:
    tree["row"] = rng.choice(["decrease ", "+9", "upper 9", "", "class 9"])
    return True


def hole_leaf(value: Json, tree: Json, rng: random.Random) -> bool:
    """A leaf outside of the hole is called inside."""
    axis = decoded(tree["axis"])
    places = [k for k, a in enumerate(axis) if a == -2]
    if not places:
        return False
    axis[rng.choice(places)] = -1
    put_axis(tree, axis)
    return True


def multiplier_spoiled(value: Json, tree: Json, rng: random.Random) -> bool:
    """The multipliers of `thirds` and `flat` touch zero: no other number does it."""
    lines = tree.get("multipliers")
    if not lines:
        return False
    entry = rng.choice(lines)
    how = rng.choice(["negative", "zero", "short", "long", "drop", "float", "more"])
    place = rng.randrange(1, len(entry))
    if how == "negative":
        entry[place] = -rng.randint(1, 10**9)
    elif how == "zero":
        entry[0] = 0
    elif how == "short":
        entry.pop()
    elif how == "long":
        entry.append(0)
    elif how == "drop":
        lines.remove(entry)
    elif how == "float":
        entry[place] = float(entry[place])
    else:
        entry[place] += rng.choice([1, 10**40])
    return True


def unit_cut_twice(value: Json, tree: Json, rng: random.Random) -> bool:
    axis = decoded(tree["axis"])
    n = len(tree["lower"])
    if not any(a >= n for a in axis) or "supports" in tree:
        return False
    put_axis(tree, [axis[0] if a >= n else a for a in axis])
    return True


def coupling_spoiled(value: Json, tree: Json, rng: random.Random) -> bool:
    if not tree["couplings"]["shape"][0]:
        return False
    numbers = decoded(tree["couplings"])
    place = rng.choice([k for k, number in enumerate(numbers) if number])
    numbers[place] = rng.choice([-numbers[place], -size(rng), numbers[place] / 2, 0.0])
    tree["couplings"] = array(numbers, tree["couplings"]["shape"])
    return True


def support_spoiled(value: Json, tree: Json, rng: random.Random) -> bool:
    """The first three supports of `slices` and `section` are as large as they have to be."""
    if "supports" not in tree:
        return False
    numbers = decoded(tree["supports"])
    place = rng.choice([k for k, number in enumerate(numbers[:12]) if number])
    numbers[place] = rng.choice([-numbers[place], -size(rng), numbers[place] / 2, 0.0])
    tree["supports"] = array(numbers, tree["supports"]["shape"])
    return True


def support_exchanged(value: Json, tree: Json, rng: random.Random) -> bool:
    """A leaf names another support for one of its units, or one that is not there."""
    if "supports" not in tree:
        return False
    numbers = decoded(tree["supported"])
    place = rng.choice([k for k, number in enumerate(numbers) if number == 1])
    # on the section the box bounds the units as well as their supports do
    numbers[place] = rng.choice([2, 3, -1, 99, *([0] if decoded(tree["cut"]) else [])])
    tree["supported"] = array(numbers, tree["supported"]["shape"], "<i4")
    return True


def level_moved(value: Json, tree: Json, rng: random.Random) -> bool:
    """The bound of the third slice of `slices` touches zero."""
    cuts = decoded(tree["cut"])
    if "supports" not in tree or not cuts:
        return False
    cuts[2] = rng.choice([math.nextafter(cuts[2], -math.inf), cuts[2] / 2, 0.0, -size(rng)])
    tree["cut"] = array(cuts)
    return True


def slope_spoiled(value: Json, tree: Json, rng: random.Random) -> bool:
    """The slopes of `sloped` are the only ones, those of `coupled` come in equal pairs."""
    numbers = decoded(tree["slopes"])
    if not numbers or tree["couplings"]["shape"][0] or "supports" in tree:
        return False
    place = rng.randrange(len(numbers))
    numbers[place] = rng.choice([k for k in range(256) if k != numbers[place]])
    tree["slopes"] = array(numbers, tree["slopes"]["shape"], "|u1")
    return True


def pull_spoiled(value: Json, tree: Json, rng: random.Random) -> bool:
    """λ at the class itself, or below zero."""
    if value["condition"] != "region" or not decoded(value["multipliers"]):
        return False
    shape = value["multipliers"]["shape"]
    numbers = decoded(value["multipliers"])
    own = next(k for k in range(shape[1]) if not numbers[k])
    other = 1 - own
    if rng.random() < 0.5:
        numbers[own] = min(size(rng) + 2.0**-300, 2.0**300)
    else:
        numbers[other] = -min(size(rng) + 2.0**-300, 2.0**300)
    value["multipliers"] = array(numbers, shape)
    return True


def margin_spoiled(value: Json, tree: Json, rng: random.Random) -> bool:
    """`plane` touches its margin; zero is no margin."""
    if "margin" not in value or len(tree["lower"]) == 1 or decoded(tree["axis"]).count(-2) > 2:
        return False
    value["margin"] = rng.choice(
        [math.nextafter(value["margin"], math.inf), 0.0, -value["margin"], 2 * value["margin"]]
    )
    return True


def header_spoiled(value: Json, tree: Json, rng: random.Random) -> bool:
    name, new = rng.choice(
        [
            ("version", 2),
            ("version", 4.0),
            ("version", True),
            ("condition", "stability"),
            ("kind", "box"),
            ("kind", None),
        ]
    )
    value[name] = new
    return True


BROKEN: dict[str, Callable[[Json, Json, random.Random], bool]] = {
    "leaf left out": leaf_left_out,
    "leaf too many": leaf_too_many,
    "cut on an end": cut_on_an_end,
    "root shrunk": root_shrunk,
    "trees shuffled": trees_shuffled,
    "row renamed": row_renamed,
    "hole leaf": hole_leaf,
    "multiplier spoiled": multiplier_spoiled,
    "unit cut twice": unit_cut_twice,
    "coupling spoiled": coupling_spoiled,
    "slope spoiled": slope_spoiled,
    "support spoiled": support_spoiled,
    "support exchanged": support_exchanged,
    "level moved": level_moved,
    "λ spoiled": pull_spoiled,
    "margin spoiled": margin_spoiled,
    "header spoiled": header_spoiled,
}


def broken_proof(rng: random.Random, rule: str, loops: list[Hand]) -> Forgery | None:
    content = certificate(*loops)
    entry = rng.choice(content["classes"])
    proofs = [a["proof"] for n, a in entry["conditions"].items() if n in PROVED and a["proof"]]
    value = rng.choice(proofs)
    tree = some_tree(value, rng)
    if tree is None:
        header_spoiled(value, {}, rng)
        return Forgery("header spoiled", rule, sealed_bytes(content))
    names = rng.sample(list(BROKEN), len(BROKEN))
    name = next(name for name in names if BROKEN[name](value, tree, rng))
    return Forgery(name, rule, sealed_bytes(content))


# ---- false words and verdicts


def swapped_proofs(content: Json, rng: random.Random) -> str | None:
    """The proof of another condition, or of another class."""
    entry = rng.choice(content["classes"])
    shown = [name for name in PROVED if entry["conditions"][name]["proof"]]
    if len(shown) < 2:
        return None
    first, second = rng.sample(shown, 2)
    entry["conditions"][first]["proof"] = entry["conditions"][second]["proof"]
    return "another condition's proof"


def false_verdict(content: Json, rng: random.Random) -> str | None:
    """Unknown called proved, or proved called refuted by a state that satisfies it."""
    entry = rng.choice(content["classes"])
    name = rng.choice(PROVED)
    answer = entry["conditions"][name]
    if answer["verdict"] == "unknown":
        answer["verdict"] = "proved"
        return "verdict flipped"
    ends = [decoded(entry["problem"][end]) for end in ("lower", "upper")]
    point = [rng.choice([a, b, a + (b - a) * rng.random()]) for a, b in zip(*ends, strict=True)]
    point = [x if not x or abs(x) >= 2.0**-400 else 0.0 for x in point]
    answer.update(verdict="refuted", proof=None, counterexample=array(point))
    content.update(rederived(content))
    return "a counterexample that is none"


def false_words(content: Json, rng: random.Random) -> str | None:
    """One of the derived entries says something else."""
    places: list[tuple[Json, str]] = []
    for entry in content["classes"]:
        places += [(entry, name) for name in ("verdict", "setting")]
        places += [(entry["conclusion"], name) for name in entry["conclusion"]]
        for name in ("representative", "hole"):
            places += [(entry["conditions"][name], key) for key in entry["conditions"][name]]
    places += [(content["together"], name) for name in content["together"]]
    holder, name = rng.choice(places)
    old = holder[name]
    options: list[Any] = [None, "proved", True, False, 0.0, 1, "asymptotic", "Y is stable."]
    if isinstance(old, str):
        options += [old.upper() + "!", old.replace("1", "2"), old + " "]
    if isinstance(old, float):
        options += [math.nextafter(old, -1.0), math.nextafter(old, 9e99), old / 2]
    if type(old) is int:
        options += [old - 1, old + 1, float(old)]
    holder[name] = rng.choice(
        [o for o in options if o is None or type(o) is not type(old) or o != old]
    )
    return "words changed" if repr(holder[name]) != repr(old) else None


def loose_delta(content: Json, rng: random.Random) -> str | None:
    """δ so large that any anchor represents Y."""
    entry = rng.choice(content["classes"])
    centre = max(map(abs, decoded(entry["problem"]["equilibrium"])))
    entry["problem"]["delta"] = centre * rng.choice([0.1250001, 1.0, 2.0**40])
    entry["anchor"] = array([0.0] * len(decoded(entry["anchor"])))
    entry["conditions"]["representative"]["verdict"] = "proved"
    return "δ enlarged"


def anchor_moved(content: Json, rng: random.Random) -> str | None:
    entry = rng.choice(content["classes"])
    numbers = decoded(entry["anchor"])
    place = rng.randrange(len(numbers))
    old = numbers[place]
    numbers[place] = nudged(old, rng)
    if numbers[place] == old or not math.isfinite(numbers[place]):
        return None
    entry["anchor"] = array(numbers)
    return "anchor changed"


SAID = (swapped_proofs, false_verdict, false_words, false_words, loose_delta, anchor_moved)


def false_saying(rng: random.Random, rule: str, loops: list[Hand]) -> Forgery | None:
    content = certificate(*loops)
    name = rng.choice(SAID)(content, rng)
    return None if name is None else Forgery(name, rule, sealed_bytes(content))


# ---- all of them


def forgeries(seed: int, count: int) -> Iterator[Forgery]:
    """So many false certificates, the same ones for the same seed."""
    rng = random.Random(seed)
    known = bases()
    made = 0
    while made < count:
        rule = rng.choice(list(known))
        loops = known[rule]
        exponent = rng.choice([0, 0, rng.randint(-300, 300), rng.randint(-340, 340)])
        if exponent:
            loops = [rescaled(loop, 2.0**exponent) for loop in loops]
        try:
            found = rng.choice((false_loop, false_loop, broken_proof, false_saying))(
                rng, rule, loops
            )
        except (ArithmeticError, ValueError):
            continue
        if found is not None:
            made += 1
            yield found
