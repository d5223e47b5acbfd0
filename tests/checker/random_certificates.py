"""Certificates at random that are accepted, for the sentences that are derived from them.

Loops are made so that what is proved of D need not hold next to it: beyond a face of D a steep unit
may throw states far away. Every class has a box, a hole, a margin and a factor of its own."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from typing import Any

from forgeries import rescaled
from graph_cases import Layers, passing, plain_kappa
from hand_loops import Hand, Json, array, branch, certificate, contraction, stated, tree

from graphkeel.checker import Rejected
from graphkeel.checker import certificate as checker
from graphkeel.checker.contraction import check_contraction
from graphkeel.checker.exact import Work
from graphkeel.checker.networks import read_source
from graphkeel.checker.trees import check_branch

Floats = list[float]
Kink = tuple[int, int, float, float]  # axis, sign, place, weight


@dataclass
class Shape:
    """F_i(y) = Y_i + s_i + φ_i(z_i) + a small part of another axis, z = y − Y; φ is linear, or two
    rays from 0, but for kinks."""

    form: str
    centre: Floats
    down: Floats
    up: Floats
    shift: Floats
    cross: float
    kinks: list[Kink]

    def forward(self, reach: float) -> Any:
        n = len(self.centre)
        if self.form == "affine":
            rows = [[self.up[i] if i == j else 0.0 for j in range(n)] for i in range(n)]
            if n > 1:
                rows[0][1] = self.cross
            still = [sum(w * y for w, y in zip(row, self.centre, strict=True)) for row in rows]
            pairs = zip(self.centre, self.shift, still, strict=True)
            return [(rows, [y + s - moved for y, s, moved in pairs])]
        far = 8 * reach
        units = [(i, sign, -place, weight) for i, sign, place, weight in self.kinks]
        start = [y + s for y, s in zip(self.centre, self.shift, strict=True)]
        for i in range(n):
            if self.form == "shifted":  # always on around Y: affine there
                units.append((i, 1, far, self.up[i]))
                start[i] -= self.up[i] * far
            else:
                units += [(i, 1, 0.0, self.up[i]), (i, -1, 0.0, -self.down[i])]
        first = [[float(sign) * (i == j) for j in range(n)] for i, sign, _, _ in units]
        bias = [offset - sign * self.centre[i] for i, sign, offset, _ in units]
        last = [[weight if i == j else 0.0 for i, _, _, weight in units] for j in range(n)]
        return [(first, bias), (last, start)]

    def cuts(self, radius: float) -> list[Floats]:
        """Places between which F and V are affine along each axis; around the hole where F(Y) is
        not Y."""
        found = []
        for i, y in enumerate(self.centre):
            places = {y, *(y + k[1] * k[2] for k in self.kinks if k[0] == i)}
            if any(self.shift) or self.cross:
                places |= {y - radius / 2, y + radius / 2}
                places |= {y - self.shift[i] / a for a in (self.down[i], self.up[i]) if a}
            found.append(sorted(places))
        return found


def random_shape(
    rng: random.Random, centre: Floats, rooms: list[Floats], radius: float, sound: bool
) -> Shape:
    """Slopes between zero and seven eighths, seldom below zero."""
    n = len(centre)
    form = rng.choice(["affine", "shifted", "conic"])
    if sound:
        slope = [rng.choice([2, 4, 4, 6, 7]) / 8] * n
        other = [rng.choice([1.0, 0.5]) * a for a in slope] if form == "conic" else slope
        shift = [rng.choice([0, 0, 1, -1]) * radius * (1 - slope[0]) / 8] + [0.0] * (n - 1)
        return Shape(form, centre, other, slope, shift, 0.0, random_kinks(rng, form, rooms))
    signs = (1, 1, 1, 1, -1) if rng.random() < 0.2 else (1,)
    up = [rng.choice(signs) * rng.choice([0, 2, 2, 4, 5, 6, 7]) / 8 for _ in centre]
    down = [rng.choice(signs) * rng.choice([0, 2, 4, 6]) / 8 for _ in centre]
    shift = [0.0] * n
    if rng.random() < 0.5:
        shift[rng.randrange(n)] = rng.choice([-1, 1]) * radius / rng.choice([8, 32, 64])
    cross = rng.choice([0.0, 0.0, 0.0, 1 / 16])
    kinks = random_kinks(rng, form, rooms)
    return Shape(form, centre, up if form == "shifted" else down, up, shift, cross, kinks)


def random_kinks(rng: random.Random, form: str, rooms: list[Floats]) -> list[Kink]:
    """Steep units that are off on D, some of them on its faces."""
    kinks = []
    for axis, sides in enumerate(rooms):
        for sign, room in zip((1, -1), sides, strict=True):
            if form != "affine" and room > 0 and rng.random() < 0.6:
                steep = rng.choice([-64.0, -4.0, 2.0, 16.0])
                kinks.append((axis, sign, room * rng.choice([1.0, 1.0, 2.0]), steep))
    return kinks


@dataclass
class Plan:
    """Numbers that the classes of a certificate share; `box`: the ends of D along every axis;
    `sound`: everything is meant to be proved."""

    strength: float
    sound: bool
    box: tuple[float, float] | None
    margins: list[float]


def random_rooms(rng: random.Random, n: int, unit: float) -> list[Floats]:
    """How far D goes from Y, up and down along each axis."""
    if rng.random() < 0.04:
        return [[0.0, 0.0] for _ in range(n)]
    sizes = [0.5, 1.0, 1.0, 1.25, 2.0] + [0.0] * (rng.random() < 0.2)
    rooms = [[unit * rng.choice(sizes) for _ in range(2)] for _ in range(n)]
    if rng.random() < 0.04:
        rooms[0] = [-unit / 8, unit]  # Y lies outside
    return rooms


def random_loop(rng: random.Random, n: int, label: int, plan: Plan) -> Hand:
    """A loop with whatever of its conditions is proved."""
    centre = [plan.strength * (k == label) for k in range(n)]
    unit = plan.strength * rng.choice([2.0**-6, 0.25, 1.0, 1.0, 4.0])
    rooms = random_rooms(rng, n, unit)
    if plan.box is not None:
        rooms = [[plan.box[1] - y, y - plan.box[0]] for y in centre]
    reach = max(max(map(abs, sides)) for sides in rooms) or unit
    least = min(max(min(sides), 0.0) for sides in rooms) or reach / 4
    radius = rng.choice([least / 8, least / 2, least, 0.0, reach / 3, 2 * reach])
    radius = least / rng.choice([2, 4]) if plan.sound else radius
    shape = random_shape(rng, centre, rooms, radius, plan.sound)
    outer = [rng.choice([1.0, 1.0, 1.0, 2.0, 0.5]) for _ in range(2 * n)]
    steepest = max(map(abs, [*shape.up, *shape.down]))
    middle = (steepest + 1) / 2
    shares = [1.0, 0.5] if plan.sound else [1.0, 1.0, 0.5, 0.0]
    loop = shaped_loop(
        shape,
        rooms,
        outer,
        hole_radius=radius,
        rho=middle if plan.sound else rng.choice([steepest or 0.5, middle, 15 / 16, 1.0]),
        positivity=min(outer) * rng.choice(shares),
        delta=plan.strength * rng.choice([0.0, 1 / 16, 1 / 77]),
        margin=plan.strength * rng.choice(plan.margins),
        label=label,
    )
    left_out = 0.05 if plan.sound else 0.02
    return replace(loop, proofs=proofs(rng, loop, shape, left_out))


def shaped_loop(shape: Shape, rooms: list[Floats], outer: Floats, **question: Any) -> Hand:
    """V = Σ outer·(up, then down, along each axis)."""
    centre = shape.centre
    n = len(centre)
    inner = [[sign * float(i == j) for j in range(n)] for i in range(n) for sign in (1, -1)]
    bias = [-sign * y for y in centre for sign in (1, -1)]
    return Hand(
        shape.forward(max(max(map(abs, sides)) for sides in rooms) or max(centre)),
        [(inner, bias), ([outer], [0.0])],
        [y - sides[1] for y, sides in zip(centre, rooms, strict=True)],
        [y + sides[0] for y, sides in zip(centre, rooms, strict=True)],
        centre,
        anchor=centre,
        **question,
    )


# ---- proofs: a grid of boxes on which everything is affine


def grid(row: str, low: Floats, high: Floats, cuts: list[Floats], hole: Any = None) -> Json:
    """`hole`: Y and r, where boxes inside of it may be left out."""
    axes: list[int] = []
    places: Floats = []

    def build(low: Floats, high: Floats) -> None:
        for i, found in enumerate(cuts):
            inside = [place for place in found if low[i] < place < high[i]]
            if inside:
                place = inside[len(inside) // 2]
                axes.append(i)
                places.append(place)
                build(low, [*high[:i], place, *high[i + 1 :]])
                build([*low[:i], place, *low[i + 1 :]], high)
                return
        covered = hole is not None and all(
            y - hole[1] < a and b < y + hole[1] for a, b, y in zip(low, high, hole[0], strict=True)
        )
        axes.append(-1 if covered else -2)

    build(low, high)
    return tree(row, low, high, axes, tuple(places))


def proofs(rng: random.Random, loop: Hand, shape: Shape, left_out: float = -1.0) -> dict[str, Json]:
    """Those that the checker takes."""
    low, high, centre, n = loop.lower, loop.upper, loop.equilibrium, loop.n
    cuts, hole = shape.cuts(loop.hole_radius), (centre, loop.hole_radius)
    plain = replace(shape, shift=[0.0] * n, cross=0.0).cuts(0.0)
    sides = [(i, sign) for i in range(n) for sign in (1, -1)]
    rows = [f"{side} {i}" for i in range(n) for side in ("upper", "lower")]
    positive = [sided(loop, i, sign, plain) for i, sign in sides]
    if loop.positivity == 0:
        around = [
            [*c, y - hole[1] / 2, y + hole[1] / 2] for c, y in zip(plain, centre, strict=True)
        ]
        positive = [grid("positivity", low, high, [sorted(set(c)) for c in around], hole)]
    rivals = [k for k in range(n) if k != loop.label]
    widest = max(b - a for a, b in zip(low, high, strict=True))
    pull = 2.0 if loop.margin > 64 * widest else max(shape.up)
    pulls = array([[pull * (j == k) for j in range(n)] for k in rivals], [n - 1, n])
    trees = [grid(f"class {k}", low, high, plain) for k in rivals]
    wanted = {
        "decrease": branch("decrease", grid("decrease", low, high, cuts, hole)),
        "positivity": branch("positivity", *positive),
        "invariance": branch("invariance", *[grid(row, low, high, plain) for row in rows]),
        "region": branch("region", *trees, multipliers=pulls),
    }
    found = {}
    for name, value in wanted.items():
        tried = [contraction(name)] if name in ("decrease", "positivity") else []
        for one in [value, *tried] if rng.random() < 0.5 else [*tried, value]:
            if name not in found and rng.random() > left_out and is_proof(loop, name, one):
                found[name] = one
    return found


def sided(loop: Hand, axis: int, sign: int, cuts: list[Floats]) -> Json:
    """c·|y_i − Y_i| ≤ V(y) on one side of the hole."""
    row = f"{'+' if sign > 0 else '-'}{axis}"
    start = loop.equilibrium[axis] + sign * loop.hole_radius
    low, high = list(loop.lower), list(loop.upper)
    if sign * start > sign * (high if sign > 0 else low)[axis]:
        return {"row": row, "empty": True}
    if sign > 0:
        low[axis] = max(low[axis], start)
    else:
        high[axis] = min(high[axis], start)
    return grid(row, low, high, cuts)


def is_proof(loop: Hand, condition: str, value: Json) -> bool:
    content = stated(loop)
    head = read_source(content["head"], "head")
    problem = checker.class_problem(head, content["classes"][0], "a class", Work(10**12))
    check = check_contraction if value["kind"] == "contraction" else check_branch
    try:
        check(problem, condition, value, Work(10**9))
    except Rejected:
        return False
    return True


# ---- whole certificates


def random_loops(rng: random.Random) -> list[Hand]:
    """One or several classes; numbers of any size."""
    n = rng.choice([1, 2, 2, 2, 2, 2, 3])
    strength = rng.choice([1.0, 1.0, 2.0, 0.7])
    labels = rng.sample(range(n), rng.randint(1, n)) if rng.random() < 0.3 else list(range(n))
    box = (-strength * rng.choice([0.5, 1.0]), strength * rng.choice([1.0, 2.0, 3.0]))
    margins = rng.choice([[0.0], [0.0], [1 / 7], [0.0, 1 / 4], [1 / 4, 1 / 2, 2.0**12]])
    shared = box if rng.random() < 0.3 else None
    plan = Plan(strength, rng.random() < 0.7, shared, margins)
    loops = [random_loop(rng, n, label, plan) for label in labels]
    exponent = rng.choice([0, 0, 0, rng.randint(-360, 360)])
    return [rescaled(loop, 2.0**exponent) for loop in loops]


def random_certificate(seed: int) -> Json:
    """Sometimes with message passing."""
    rng = random.Random(seed)
    return certified(rng, random_loops(rng))


def certified(rng: random.Random, loops: list[Hand]) -> Json:
    if loops[0].n == 2 and rng.random() < 0.1:
        layers = random_layers(rng)
        gauge = [rng.choice([1.0, 2.0]) for _ in range(2)]
        if plain_kappa(loops, layers, gauge) < 1 - 2.0**-40:
            return passing(layers, gauge, tuple(loops))
    return certificate(*loops)


def random_layers(rng: random.Random) -> Layers:
    def weight() -> list[Floats]:
        return [[rng.randrange(-4, 5) / 8 for _ in range(2)] for _ in range(2)]

    return [[(p, weight()) for p in range(rng.choice([1, 2]))] for _ in range(rng.choice([1, 2]))]
