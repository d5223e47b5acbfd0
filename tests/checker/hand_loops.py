"""Small closed loops by hand, their proofs and their certificates; standard library only.

F is shipped as the controller, and the head is the identity, so that a loop is what its layers say.
Weights are multiples of small powers of two: every number in a test can be worked out on paper."""

from __future__ import annotations

import base64
import copy
import hashlib
import json
import math
import struct
from dataclasses import dataclass, field, replace
from typing import Any

from graphkeel.checker import certificate as checker
from graphkeel.checker.conclusion import NOT_COVERED, all_together
from graphkeel.checker.exact import Work
from graphkeel.checker.networks import read_source

Pair = tuple[list[list[float]], list[float]]
Json = dict[str, Any]
CODES = {"<f8": "d", "<f4": "f", "|i1": "b", "<i2": "h", "<i4": "i", "|u1": "B"}


def array(values: Any, shape: list[int] | None = None, dtype: str = "<f8") -> Json:
    """Nested lists of numbers as the format stores them."""
    flat, found = list(values), [len(values)]
    while flat and isinstance(flat[0], (list, tuple)):
        found.append(len(flat[0]))
        flat = [entry for line in flat for entry in line]
    raw = struct.pack(f"<{len(flat)}{CODES[dtype]}", *flat)
    text = base64.b64encode(raw).decode("ascii")
    return {"dtype": dtype, "shape": found if shape is None else shape, "base64": text}


def decoded(value: Json) -> list[Any]:
    """The flat numbers of an encoded array."""
    raw = base64.b64decode(value["base64"])
    return list(struct.unpack(f"<{math.prod(value['shape'])}{CODES[value['dtype']]}", raw))


def source(*layers: Pair) -> list[list[Json]]:
    return [[{"weight": array(weight), "bias": array(bias)}] for weight, bias in layers]


def identity(n: int) -> list[list[float]]:
    return [[float(i == j) for j in range(n)] for i in range(n)]


@dataclass(frozen=True)
class Hand:
    """A loop and the question about it."""

    forward: list[Pair]
    lyapunov: list[Pair]
    lower: list[float]
    upper: list[float]
    equilibrium: list[float]
    hole_radius: float = 0.125
    rho: float = 0.75
    positivity: float = 0.5
    delta: float = 0.0
    margin: float = 0.0
    label: int = 0
    anchor: list[float] | None = None
    proofs: dict[str, Json] = field(default_factory=dict)
    points: dict[str, list[float]] = field(default_factory=dict)

    @property
    def n(self) -> int:
        return len(self.equilibrium)

    def value(self, y: list[float]) -> list[float]:
        """F(y), in floats: exact for what the tests use it for."""
        for k, (weight, bias) in enumerate(self.forward):
            y = [
                sum(a * b for a, b in zip(w, y, strict=True)) + c
                for w, c in zip(weight, bias, strict=True)
            ]
            y = y if k + 1 == len(self.forward) else [max(z, 0.0) for z in y]
        return y


def question(loop: Hand) -> Json:
    arrays = {name: array(getattr(loop, name)) for name in ("lower", "upper", "equilibrium")}
    names = ("hole_radius", "rho", "positivity", "delta", "margin")
    return arrays | {name: getattr(loop, name) for name in names}


def answer(loop: Hand, condition: str) -> Json:
    proof, point = loop.proofs.get(condition), loop.points.get(condition)
    verdict = "proved" if proof is not None else "refuted" if point is not None else "unknown"
    stored = None if point is None else array(point)
    return {"verdict": verdict, "proof": copy.deepcopy(proof), "counterexample": stored}


def certificate(*loops: Hand) -> Json:
    """The certificate of some classes, its derived parts by the checker's own code."""
    return rederived(stated(*loops))


def stated(*loops: Hand) -> Json:
    """Weights, questions and answers; nothing that is derived from them."""
    entries = []
    for loop in loops:
        anchor = loop.value(loop.equilibrium) if loop.anchor is None else loop.anchor
        entries.append(
            {
                "class": loop.label,
                "form": "paper",
                "controller": source(*loop.forward),
                "lyapunov": source(*loop.lyapunov),
                "anchor": array(anchor),
                "problem": question(loop),
                "conditions": {name: answer(loop, name) for name in checker.ASKED},
            }
        )
    n = loops[0].n
    return {
        "format": "graphkeel-certificate",
        "version": 4,
        "head": source((identity(n), [0.0] * n)),
        "classes": entries,
        "not_covered": list(NOT_COVERED),
    }


def rederived(content: Json) -> Json:
    """The content with everything derived anew from weights and verdicts, as a forger would."""
    content = copy.deepcopy(content)
    head = read_source(content["head"], "head")
    for entry in content["classes"]:
        problem = checker.class_problem(head, entry, "a class", Work(10**12))
        derived = checker.derive(head, problem, entry)
        conditions = {**entry["conditions"], **derived["conditions"]}
        entry.update({**derived, "conditions": conditions})
    content["together"] = all_together(content["classes"])
    return content


def sealed_bytes(content: Any) -> bytes:
    """The bytes of the file, its seal computed here by hand."""
    body = json.dumps(content, indent=1).removeprefix("{\n").encode("ascii") + b"\n"
    return b'{\n "sha256": "' + hashlib.sha256(body).hexdigest().encode() + b'",\n' + body


def resealed(raw: bytes) -> bytes:
    """Bytes whose body was changed, with a seal that fits."""
    body = raw.split(b"\n", 2)[2]
    return b'{\n "sha256": "' + hashlib.sha256(body).hexdigest().encode() + b'",\n' + body


# ---- proofs


def head(kind: str, condition: str) -> Json:
    return {"version": 4, "kind": kind, "condition": condition}


def contraction(condition: str) -> Json:
    return head("contraction", condition)


def tree(
    row: str,
    lower: list[float],
    upper: list[float],
    axis: list[int],
    cut: tuple[float, ...] = (),
    slopes: list[list[int]] | None = None,
    couplings: list[list[list[float]]] | None = None,
    multipliers: list[list[int]] | None = None,
) -> Json:
    content = {
        "row": row,
        "lower": list(lower),
        "upper": list(upper),
        "axis": array(axis, dtype="|i1"),
        "cut": array(list(cut)),
        "slopes": array(slopes or [], None if slopes else [0, 0], "|u1"),
        "couplings": array(couplings or [], None if couplings else [0, 0, 0]),
    }
    return content if multipliers is None else content | {"multipliers": multipliers}


def branch(condition: str, *trees: Json, **more: Any) -> Json:
    return head("branch", condition) | {"trees": list(trees)} | more


def faces(condition: str, margin: float, *trees: Json) -> Json:
    return head("homogeneous", condition) | {"margin": margin, "faces": list(trees)}


# ---- a line: F halves the distance to Y = 1, V = |y − 1|, D = [0, 2]

ABSOLUTE: list[Pair] = [([[1.0], [-1.0]], [-1.0, 1.0]), ([[1.0, 1.0]], [0.0])]
ENDS = ([0.0], [2.0])


def line(**changes: Any) -> Hand:
    """ρ = 1/2 and c = 1 hold with equality."""
    loop = Hand([([[0.5]], [0.5])], ABSOLUTE, [0.0], [2.0], [1.0], rho=0.5, positivity=1.0)
    loop = replace(loop, **changes)
    return loop if loop.proofs else replace(loop, proofs=line_proofs(loop))


def line_proofs(loop: Hand) -> dict[str, Json]:
    radius = loop.hole_radius
    below, above = 1 - radius / 2, 1 + radius / 2
    decrease = tree("decrease", *ENDS, [0, -2, 0, -1, -2], (below, above))
    up = tree("+0", [1 + radius], [2.0], [-2])
    down = tree("-0", [0.0], [1 - radius], [-2])
    ends = [tree(name, *ENDS, [-2]) for name in ("upper 0", "lower 0")]
    return {
        "decrease": branch("decrease", decrease),
        "positivity": branch("positivity", up, down),
        "invariance": branch("invariance", *ends),
        "region": branch("region", multipliers=array([], [0, 1])),
    }


# ---- a plane: z → J·z around Y = (1, 0) with J = [[1/2, 1/4], [0, 1/2]], V = |z_0| + |z_1|

PLANE_V: list[Pair] = [
    ([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0], [0.0, -1.0]], [-1.0, 0.0, 1.0, 0.0]),
    ([[1.0, 1.0, 1.0, 1.0]], [0.0]),
]
LOW, HIGH = [0.0, -1.0], [2.0, 1.0]


def plane(shift: float = 0.0, **changes: Any) -> Hand:
    """κ = 3/4. On the faces of D the decrease is at most −1/8, positivity with c = 1/2 at most
    −1/2. `shift` moves F_0."""
    forward: list[Pair] = [([[0.5, 0.25], [0.0, 0.5]], [0.5 + shift, 0.0])]
    loop = replace(Hand(forward, PLANE_V, LOW, HIGH, [1.0, 0.0], rho=0.875), **changes)
    return loop if loop.proofs else replace(loop, proofs=plane_proofs())


def plane_faces(condition: str, margin: float, rows: tuple[str, ...]) -> Json:
    """Every face cut once, at Y."""
    found = []
    for row in rows:
        for axis in (0, 1):
            for side in ("lower", "upper"):
                low, high = list(LOW), list(HIGH)
                low[axis] = high[axis] = (low if side == "lower" else high)[axis]
                cut = (0.0,) if axis == 0 else (1.0,)
                found.append({"side": side, **tree(row, low, high, [1 - axis, -2, -2], cut)})
    return faces(condition, margin, *found)


def plane_proofs() -> dict[str, Json]:
    rows = ("upper 0", "lower 0", "upper 1", "lower 1")
    none = array([[0.0, 0.0]])
    return {
        "decrease": plane_faces("decrease", 0.125, ("decrease",)),
        "positivity": plane_faces("positivity", 0.5, ("+0", "-0", "+1", "-1")),
        "invariance": branch("invariance", *[tree(row, LOW, HIGH, [-2]) for row in rows]),
        "region": branch("region", tree("class 1", LOW, HIGH, [-2]), multipliers=none),
    }


# ---- unit cuts: V = 3·|y − 1| and rows over all of D; the multipliers are thirds

THIRDS: list[Pair] = [([[3.0], [-3.0]], [-3.0, 3.0]), ([[1.0, 1.0]], [0.0])]
# leaves: z_0 ≤ 0 then z_1 ≤ 0, z_1 ≥ 0; z_0 ≥ 0 then the same; with z = y − 1, z_0 = 3z = −z_1
UP_MULTIPLIERS = [[3, 1, 0], [3, 4, 0], [3, 2, 0], [3, 0, 1]]
DOWN_MULTIPLIERS = [[3, 0, 1], [3, 0, 2], [3, 0, 4], [3, 1, 0]]


def thirds(**changes: Any) -> Hand:
    """c·z − 3·|z| ≤ 0 where z ≥ r, shown over all of D by four cells with exact multipliers."""
    loop = Hand([([[0.5]], [0.5])], THIRDS, [0.0], [2.0], [1.0], positivity=1.0)
    loop = replace(loop, **changes)
    cells = [1, 2, -2, -2, 2, -2, -2]
    up = tree("+0", *ENDS, cells, multipliers=UP_MULTIPLIERS)
    down = tree("-0", *ENDS, cells, multipliers=DOWN_MULTIPLIERS)
    proofs = {"positivity": branch("positivity", up, down)}
    return loop if loop.proofs else replace(loop, proofs=proofs)


# ---- couplings: one leaf for all of D, no hole


def coupled(**changes: Any) -> Hand:
    """V(F(y)) = V(y)/2: each unit of V∘F is half of V's own unit."""
    loop = line(hole_radius=0.0, **changes)
    theta = [[[0.5, 0.0], [0.0, 0.5]]]
    leaf = tree("decrease", *ENDS, [-3], slopes=[[0, 0, 128, 128, 1, 1]], couplings=theta)
    return replace(loop, proofs={"decrease": branch("decrease", leaf)})


# ---- a two-layer loop: F(y) = 1 + relu(y − 1)/2 − relu(1 − y)/2, so that F has units to cut


BENT: list[Pair] = [([[1.0], [-1.0]], [-1.0, 1.0]), ([[0.5, -0.5]], [1.0])]


# ---- levels: F halves the distance to Y = 1, V = |y − 1|, ρ = 3/4, a hole of 3/8


LEVEL = 5  # the number of a level cut: one axis, four units
SLICES = [LEVEL, LEVEL, LEVEL, 0, -4, 0, -1, -4, -4, -4, -4]
# V ≥ 11/16; down to 15/32; down to 5/16, where the bound touches zero; the rest lies in the hole
SLICE_CUTS = (11 / 16, 15 / 32, 5 / 16, 21 / 32, 43 / 32)
# λ, γ, θ: (y − 1)/2 ≤ V/2 and the other way round; V ≥ c₁; V > 5/16 left and right of the hole
SUPPORTS = [
    [0.5, 0.0, 0.5, 0.0],
    [0.5, 0.0, 0.0, 0.5],
    [0.0, 0.75, 0.0, 0.0],
    [8.0, 0.0, 0.0, 8.5],
    [8.0, 0.0, 8.5, 0.0],
]
SUPPORTED = [[0, 0, 0, 0, 4], [0, 0, 0, 0, 5], [1, 2, 2, 1, 3], [1, 2, 2, 1, 3], [0, 0, 0, 0, 3]]


def level_tree(
    axis: list[int] | None = None,
    cut: tuple[float, ...] = SLICE_CUTS,
    supports: list[list[float]] | None = None,
    supported: list[list[int]] | None = None,
    **more: Any,
) -> Json:
    numbers = SUPPORTED if supported is None else supported
    found = SLICES if axis is None else axis
    leaf = tree("decrease", *ENDS, found, cut, [[0] * 6] * len(numbers), **more)
    table = array(SUPPORTS if supports is None else supports)
    return leaf | {"supports": table, "supported": array(numbers, dtype="<i4")}


def slices(value: Json | None = None, **changes: Any) -> Hand:
    """V(F(y)) = V(y)/2, shown slice by slice: no box is cut but around the hole."""
    loop = line(hole_radius=0.375, **({"rho": 0.75} | changes))
    return replace(loop, proofs={"decrease": branch("decrease", value or level_tree())})


def section(**changes: Any) -> Hand:
    """A section, V = 1 alone, which are the two ends of D: the bound is −1/4 there."""
    loop = line(hole_radius=0.0, rho=0.75)
    supports = [[0.5, 0.0, 0.5, 0.0], [0.5, 0.0, 0.0, 0.5], [0.0, 0.75, 0.0, 0.0]]
    supports += [[1.0, 0.0, 0.0, 1.0], [1.0, 0.0, 1.0, 0.0], [0.0, 0.0, 0.0, 0.0]]
    leaf = level_tree([-4], (), supports, [[1, 2, 2, 1, 3]])
    value = head("homogeneous", "decrease") | {"margin": 0.25, "level": 1.0, "faces": [4, 5]}
    value |= {"tree": leaf} | changes
    return replace(loop, proofs={"decrease": value})
