"""False claims about message passing and about properties of networks, every seal recomputed.

As in forgeries.py each starts from a file that is accepted and differs in one place. Where numbers
of the claim are changed, that it is false is shown here: κ is computed in plain Fractions, and an
input that satisfies all inequalities is found."""

from __future__ import annotations

import copy
import math
import random
from collections.abc import Callable, Iterator
from fractions import Fraction
from itertools import product

from checker_cases import square
from forgeries import Forgery, nudged
from graph_cases import (
    BENT_LOOPS,
    FASTER,
    HALVES,
    ONE,
    TWO_LAYERS,
    Layers,
    graph_entry,
    passing,
    plain_kappa,
    scaled,
    scaled_layers,
)
from hand_loops import Hand, Json, array, decoded, sealed_bytes
from property_cases import (
    BENT_TENT,
    CUT,
    TENT,
    THREE,
    TINY,
    absolute,
    asked,
    leaves,
    proof,
    ramp,
    skipped,
    tent,
    values,
)

# ---- message passing

Loops = tuple[Hand, ...]
PLAIN: Loops = (square(0), square(1))
GRAPHS: dict[str, tuple[Layers, list[float], Loops]] = {
    "graph": (HALVES, [1.0, 1.0], PLAIN),
    "graph, near one": ([[(0, scaled(ONE, 2.0)), (3, scaled(ONE, 2 - TINY))]], [1.0, 1.0], PLAIN),
    "graph, two layers": (scaled_layers(TWO_LAYERS, 0.5), [1.0, 1.0], PLAIN),
    "graph, uneven gauge": ([[(0, [[2.0, 0.0], [1.0, 2.0]])]], [2.0, 1.0], PLAIN),
    "graph, two speeds": ([[(0, scaled(ONE, 1.25))]], [1.0, 1.0], FASTER),
    "graph, bent": (HALVES, [1.0, 1.0], BENT_LOOPS),
}


def false_kappa(content: Json, rng: random.Random) -> str:
    old = content["graph"]["kappa"]
    lower = [math.nextafter(old, 0.0), old / 2, old * rng.random(), 0.0, 1e-300, -old]
    content["graph"]["kappa"] = rng.choice([*lower, 0, None, str(old), True])
    return "κ lowered"


def false_sentence(content: Json, rng: random.Random) -> str:
    entry = content["graph"]
    old = entry["sentence"]
    name, new = rng.choice(
        [
            ("sentence", old.replace("exactly one equilibrium", "at least one equilibrium")),
            ("sentence", old.replace("factor 0.", "factor 0.0")),
            ("sentence", old.replace("Ŝ ≥ 0 that", "Ŝ that")),
            ("sentence", old.replace("class 0, 1", "class 0, 1, 2")),
            ("sentence", ""),
            ("contraction", "refuted"),
            ("contraction", True),
        ]
    )
    new = f"{old} Always." if new == old else new
    entry[name] = new
    return "words of the graph"


def word_left_out(content: Json, rng: random.Random) -> str | None:
    """κ and the sentence stay those of all words."""
    layer = rng.choice(content["graph"]["layers"])
    if len(layer) < 2:
        return None
    layer.pop(rng.randrange(len(layer)))
    return "word left out"


def covered_too_much(content: Json, rng: random.Random) -> str:
    content["not_covered"].pop(rng.randrange(len(content["not_covered"])))
    return "what is not covered, shortened"


SAYINGS = (false_kappa, false_sentence, word_left_out, covered_too_much)


def grown_weight(layers: Layers, gauge: list[float], rng: random.Random) -> str:
    layer = rng.choice(layers)
    rows = rng.choice(layer)[1]
    row = rng.choice(rows)
    row[rng.randrange(2)] = rng.choice([nudged(4.0, rng), 2.0 ** rng.randint(3, 300), -5.0])
    return "weight of a layer"


def branch_more(layers: Layers, gauge: list[float], rng: random.Random) -> str:
    layer = rng.choice(layers)
    layer.append((max(p for p, _ in layer) + 1, scaled(ONE, rng.choice([4.0, 8.0, -9.0]))))
    return "branch added"


def gauge_moved(layers: Layers, gauge: list[float], rng: random.Random) -> str:
    gauge[rng.randrange(2)] *= 2.0 ** rng.choice([-300, -20, -5, 5, 20, 300])
    return "norm moved"


CHANGES = (grown_weight, branch_more, gauge_moved)


def false_graph(rng: random.Random) -> Forgery | None:
    """Either the words are changed, or the numbers, so that κ ≥ 1 or another than stated."""
    rule = rng.choice(list(GRAPHS))
    layers, gauge, loops = copy.deepcopy(GRAPHS[rule])
    content = passing(layers, gauge, loops)
    if rng.random() < 0.5:
        said = rng.choice(SAYINGS)(content, rng)
        return None if said is None else Forgery(said, rule, sealed_bytes(content))
    before = plain_kappa(list(loops), layers, gauge)
    name = rng.choice(CHANGES)(layers, gauge, rng)
    weights = [w for layer in layers for _, rows in layer for row in rows for w in row]
    if not all(w == 0 or 2.0**-400 <= abs(w) <= 2.0**400 for w in weights):
        return None
    after = plain_kappa(list(loops), layers, gauge)
    if rng.random() < 0.5 and after >= 1:  # everything derived anew, and called proved
        return Forgery(f"{name}, κ ≥ 1", rule, sealed_bytes(passing(layers, gauge, loops)))
    if after <= before:
        return None
    content["graph"] |= graph_entry(layers, gauge)
    return Forgery(f"{name}, κ as before", rule, sealed_bytes(content))


# ---- properties of networks

# |x_0| + |x_1| ≥ 2 + 1/64 on a square, with both inputs cut
BOTH = [[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]]
SQUARE = [
    {"terms": [{"source": 0, "weight": array(BOTH)}], "bias": array([0.0] * 4), "relu": True},
    {"terms": [{"source": 1, "weight": array([[1.0] * 4])}], "bias": array([0.0]), "relu": False},
]
QUARTERS = leaves([0, 1, -2, -2, 1, -2, -2], [[1]] * 4, (0.0, 0.0, 0.0), relus=4)
CORNERS = ([-1.0, -1.0], [1.0, 1.0])
PROOFS: dict[str, Callable[[], Json]] = {
    "property, ramp": ramp(math.nextafter(1.0, 2.0)),
    "property, one point": ramp(0.5 + TINY, ends=([0.5], [0.5])),
    "property, halves": absolute(leaves(*CUT, relus=2), TINY),
    "property, slopes": absolute(leaves([-3], [[1, 1]], (), ([255, 0],)), TINY),
    "property, tent": tent(TENT, TINY, THREE, (0.0, 0.5)),
    "property, bent tent": tent(BENT_TENT, TINY, THREE, (0.0, 0.5)),
    "property, skip": skipped(1.5 + TINY),
    "property, square": lambda: proof(
        2, SQUARE, asked(CORNERS, [[0.0, 0.0, 1.0]], [-2.0 - TINY], QUARTERS)
    ),
}


def rescaled(content: Json, scale: float) -> Json:
    """A proof with its inputs in another size; ReLU networks are positively homogeneous."""
    content = copy.deepcopy(content)
    places = [(one, "bias") for one in content["network"]["blocks"]]
    for case in content["cases"]:
        places += [(case, name) for name in ("lower", "upper", "constant")]
        places.append((case["tree"], "cut"))
    for holder, name in places:
        old = holder[name]
        holder[name] = array([scale * x for x in decoded(old)], old["shape"])
    return content


def is_false(content: Json, rng: random.Random) -> bool:
    """Whether some input of a box satisfies all inequalities of its case."""
    for case in content["cases"]:
        low, high = (list(map(Fraction, decoded(case[name]))) for name in ("lower", "upper"))
        constant = decoded(case["constant"])
        flat, width = decoded(case["weight"]), case["weight"]["shape"][1]
        middle = [(a + b) / 2 for a, b in zip(low, high, strict=True)]
        three = [a + (b - a) * Fraction(3, 4) for a, b in zip(low, high, strict=True)]
        shares = [[Fraction(rng.random()) for _ in low] for _ in range(6)]
        points = [list(p) for p in product(*zip(low, middle, three, high, strict=True))]
        points += [
            [a + (b - a) * t for a, b, t in zip(low, high, share, strict=True)] for share in shares
        ]
        for x in points:
            known = [*x, *values(content["network"]["blocks"], x, decoded)]
            sums = [
                sum(Fraction(w) * v for w, v in zip(flat[i * width :][:width], known, strict=True))
                + Fraction(c)
                for i, c in enumerate(constant)
            ]
            if all(s >= 0 for s in sums):
                return True
    return False


def changed_number(holder: Json, name: str, rng: random.Random) -> None:
    old = holder[name]
    numbers = decoded(old)
    place = rng.randrange(len(numbers))
    numbers[place] = nudged(numbers[place], rng)
    holder[name] = array(numbers, old["shape"])


def other_network(content: Json, rng: random.Random) -> str:
    one = rng.choice(content["network"]["blocks"])
    if rng.random() < 0.4:
        changed_number(one, "bias", rng)
    else:
        changed_number(rng.choice(one["terms"]), "weight", rng)
    return "number of the network"


def other_inequality(content: Json, rng: random.Random) -> str:
    case = content["cases"][0]
    if rng.random() < 0.5:
        changed_number(case, rng.choice(["weight", "constant"]), rng)
        return "number of an inequality"
    for name in ("weight", "constant"):
        case[name] = array([-x for x in decoded(case[name])], case[name]["shape"])
    return "inequalities flipped"


def wider_box(content: Json, rng: random.Random) -> str:
    case = content["cases"][0]
    name, sign = rng.choice([("lower", -1), ("upper", 1)])
    numbers = decoded(case[name])
    place = rng.randrange(len(numbers))
    numbers[place] += sign * rng.choice([TINY, 1.0, 2.0**20]) * max(map(abs, numbers))
    case[name] = array(numbers)
    return "box widened"


def case_added(content: Json, rng: random.Random) -> str:
    """A second case that is false, with the proof of the first."""
    content["cases"].append(copy.deepcopy(content["cases"][0]))
    other = content["cases"][1]
    other["constant"] = array([abs(x) for x in decoded(other["constant"])])
    return "false case added"


FALSE = (other_network, other_network, other_inequality, wider_box, case_added)


def leaf_left_out(tree: Json, rng: random.Random) -> str:
    tree["axis"] = array(decoded(tree["axis"])[:-1], dtype="<i2")
    height, width = tree["multipliers"]["shape"]
    numbers = decoded(tree["multipliers"])[: (height - 1) * width]
    tree["multipliers"] = array(numbers, [height - 1, width], "<i4")
    return "leaf left out"


def cut_on_an_end(tree: Json, rng: random.Random) -> str | None:
    cuts = decoded(tree["cut"])
    if not cuts:
        return None
    cuts[0] = 2.0**300
    tree["cut"] = array(cuts)
    return "cut outside"


def multiplier_changed(tree: Json, rng: random.Random) -> str | None:
    """In the upper of two halves that nearly touch, only equal multipliers do it."""
    height, width = tree["multipliers"]["shape"]
    numbers = decoded(tree["multipliers"])
    place = rng.randrange(len(numbers))
    last = width > 1 and place >= len(numbers) - width
    new = [numbers[place] + 1, 0, -1, 2**31 - 1] if last else [-1, -(2**31)]
    numbers[place] = rng.choice(new)
    tree["multipliers"] = array(numbers, [height, width], "<i4")
    return "multiplier changed by one"


def slope_changed(tree: Json, rng: random.Random) -> str | None:
    numbers = decoded(tree["slopes"])
    if not numbers:
        return None
    place = rng.randrange(len(numbers))
    numbers[place] = rng.choice([q for q in range(256) if q != numbers[place]])
    tree["slopes"] = array(numbers, tree["slopes"]["shape"], "|u1")
    return "slope changed"


def kind_changed(tree: Json, rng: random.Random) -> str:
    axis = decoded(tree["axis"])
    place = rng.choice([k for k, a in enumerate(axis) if a < 0])
    axis[place] = rng.choice([-1, -4, -32768, 7])
    tree["axis"] = array(axis, dtype="<i2")
    return "kind of a leaf"


SPOILED = (leaf_left_out, cut_on_an_end, multiplier_changed, slope_changed, kind_changed)


def false_property(rng: random.Random) -> Forgery | None:
    rule = rng.choice(list(PROOFS))
    content = rescaled(PROOFS[rule](), 2.0 ** rng.choice([0, 0, rng.randint(-300, 300)]))
    if rng.random() < 0.5:
        tree = rng.choice(content["cases"])["tree"]
        name = rng.choice(SPOILED)(tree, rng)
        return None if name is None else Forgery(name, rule, sealed_bytes(content))
    name = rng.choice(FALSE)(content, rng)
    return Forgery(name, rule, sealed_bytes(content)) if is_false(content, rng) else None


def more_forgeries(seed: int, count: int) -> Iterator[Forgery]:
    """So many, graphs and properties in turn, the same ones for the same seed."""
    rng = random.Random(seed)
    made = 0
    while made < count:
        try:
            found = (false_graph, false_property)[made % 2](rng)
        except (ArithmeticError, ValueError):
            continue
        if found is not None:
            made += 1
            yield found


def true_ones() -> Iterator[tuple[str, bytes]]:
    """True certificates that the forgeries start from."""
    for rule, (layers, gauge, loops) in GRAPHS.items():
        yield rule, sealed_bytes(passing(layers, gauge, loops))
    for rule, make in PROOFS.items():
        for exponent in (0, 300, -300):
            yield f"{rule}, 2^{exponent}", sealed_bytes(rescaled(make(), 2.0**exponent))
