"""Random classes for what is derived of them: shipped networks of several factors, boxes that are
not even, verdicts by lot. Small dyadic numbers, so that ties and zeros are frequent."""

from __future__ import annotations

import random
from itertools import pairwise
from typing import Any

from hand_loops import Json, array

ASKED = ("positivity", "decrease", "invariance", "region")


def small(rng: random.Random, most: int = 8) -> float:
    return rng.randint(-most, most) / rng.choice([4, 8, 8, 16, 3])


def matrix(rng: random.Random, height: int, width: int, size: float = 1.0) -> list[list[float]]:
    def entry() -> float:
        return 0.0 if rng.random() < 0.3 else size * small(rng)

    return [[entry() for _ in range(width)] for _ in range(height)]


def factor(rng: random.Random, weight: list[list[float]] | None, height: int) -> Json:
    bias = None if rng.random() < 0.4 else array([small(rng) for _ in range(height)])
    return {"weight": None if weight is None else array(weight), "bias": bias}


def random_source(rng: random.Random, sizes: list[int], size: float) -> list[list[Json]]:
    """Layers of one to three factors; one of them has the weight that fits."""
    layers = []
    for width, height in pairwise(sizes):
        parts = [factor(rng, matrix(rng, height, width, size), height)]
        if rng.random() < 0.2:
            parts.append(factor(rng, None, height))
        if rng.random() < 0.2:
            parts.insert(0, factor(rng, matrix(rng, width, width), width))
        layers.append(parts)
    return layers


def random_gauge(rng: random.Random, n: int, centre: list[float]) -> list[list[Json]]:
    """Mostly a weighted one-norm around Y, or nearly; else any network."""
    if rng.random() < 0.2:
        hidden = [rng.randint(1, 3) for _ in range(rng.randint(1, 2))]
        return random_source(rng, [n, *hidden, 1], 1.0)
    rows = [[sign * float(i == k) for i in range(n)] for sign in (1.0, -1.0) for k in range(n)]
    bias = [-sum(w * y for w, y in zip(row, centre, strict=True)) for row in rows]
    outer = [rng.randint(1, 8) / 4 for _ in rows]
    if rng.random() < 0.3:
        rows.append([float(k == 0) for k in range(n)])
        bias.append(-centre[0] + rng.choice([0.0, 0.0, -0.0625]))
        outer.append(rng.choice([0.0, 0.5, -0.125]))
    if rng.random() < 0.2:
        bias[rng.randrange(len(bias))] += rng.choice([0.0625, -0.0625])
    start = rng.choice([0.0] * 6 + [0.0625, -0.0625])
    layers = [(rows, bias), ([outer], [start])]
    if rng.random() < 0.25:  # a layer of its own in between
        units = len(rows)
        same = [[float(i == j) for j in range(units)] for i in range(units)]
        if rng.random() < 0.3:
            same[0][-1] = -0.125
        layers.insert(1, (same, [0.0] * units))
    return [[{"weight": array(weight), "bias": array(bias)}] for weight, bias in layers]


def random_loop(rng: random.Random, n: int, centre: list[float]) -> list[list[Json]]:
    """F = Y + something through hidden layers that keep Y, but for a residual now and then."""
    if rng.random() < 0.25:
        hidden = [rng.randint(1, 3) for _ in range(rng.randint(0, 2))]
        return random_source(rng, [n, *hidden, n], 0.5)
    layers: list[Any] = []
    value, width = centre, n
    for _ in range(rng.choice([0, 1, 1, 2])):
        height = rng.randint(1, 4)
        weight = matrix(rng, height, width)
        at_rest = [rng.choice([0.0, 0.25, 0.5, -0.5, 1.0, -1.0, 2.0]) for _ in range(height)]
        products = [sum(w * y for w, y in zip(row, value, strict=True)) for row in weight]
        layers.append((weight, [a - p for a, p in zip(at_rest, products, strict=True)]))
        value, width = [max(a, 0.0) for a in at_rest], height
    weight = matrix(rng, n, width, rng.choice([0.25, 1.0, 2.0]))
    products = [sum(w * y for w, y in zip(row, value, strict=True)) for row in weight]
    shift = rng.choice([0.0, 0.0, 2.0**-10, -(2.0**-8), 2.0**-6])
    bias = [y - p + shift * (k == 0) for k, (y, p) in enumerate(zip(centre, products, strict=True))]
    layers.append((weight, bias))
    return [[{"weight": array(weight), "bias": array(bias)}] for weight, bias in layers]


def random_classes(seed: int) -> Json:
    """A head and one to three classes, with nothing derived yet."""
    rng = random.Random(seed)
    n = rng.choice([1, 2, 2, 3])
    identity = [[float(i == j) for j in range(n)] for i in range(n)]
    head: Any = [[{"weight": array(identity), "bias": None}]]
    if rng.random() < 0.3:  # two layers that change nothing above −16
        up, down = array([16.0] * n), array([-16.0] * n)
        head = [[{"weight": array(identity), "bias": bias}] for bias in (up, down)]
    labels = rng.sample(range(n), rng.randint(1, n))
    even = rng.random() < 0.5
    shared = random_box(rng, n)
    entries = []
    for label in labels:
        entries.append(random_entry(rng, n, label, shared if even else random_box(rng, n)))
    return {"head": head, "classes": entries}


def random_box(rng: random.Random, n: int) -> tuple[list[float], list[float]]:
    """Mostly one around all Y; or one point, or one where a class can never lead, or one so narrow
    that a few digits do not show it."""
    lower = [-rng.choice([0.5, 1.0, 1.0 / 3.0, 2.0]) for _ in range(n)]
    upper = [1.0 + rng.choice([0.5, 1.0, 2.0 / 3.0, 3.0]) for _ in range(n)]
    kind = rng.random()
    axis = rng.randrange(n)
    if kind < 0.08:
        return upper, upper
    if kind < 0.2:
        lower[axis], upper[axis] = rng.choice([(1.5, 2.5), (2.0, 3.0), (4.0, 5.0)])
    elif kind < 0.35:
        lower[axis] = 1.0 / 3.0
        wide = rng.choice([0.01, 2.0**-12, 2.0**-13, 2.0**-30, 2.0**-52])
        upper[axis] = lower[axis] + wide
    return lower, upper


def random_entry(
    rng: random.Random, n: int, label: int, box: tuple[list[float], list[float]]
) -> Json:
    centre = [0.0 if k != label else 1.0 for k in range(n)]
    if rng.random() < 0.4:
        centre = [rng.choice([0.0, -0.25, 1.0 / 3.0]) if k != label else 1.0 for k in range(n)]
    names = {"hole_radius": [0.0, 0.125, 0.125, 0.25, 0.25, 0.5, 4.0]}
    names |= {"rho": [1.0, 0.5, 0.5, 0.75, 0.984375], "positivity": [0.0, 0.5, 0.5, 1.0]}
    names |= {"delta": [0.0, 0.0625, 0.125], "margin": [0.0, 0.0, 0.25, 1.0 / 3.0]}
    problem: Json = {name: rng.choice(values) for name, values in names.items()}
    ends = {"lower": box[0], "upper": box[1], "equilibrium": centre}
    problem |= {name: array(values) for name, values in ends.items()}
    proved = rng.random() < 0.5
    conditions = {
        name: {"verdict": "proved" if proved else rng.choice(["proved", "proved", "unknown"])}
        for name in ASKED
    }
    if rng.random() < 0.1:
        conditions[rng.choice(ASKED)] = {"verdict": "refuted"}
    off = rng.choice([0.0] * 5 + [0.03125, 1.0 / 3.0])
    anchor = [y + off * (k == 0) for k, y in enumerate(centre)]
    return {
        "class": label,
        "form": "paper",
        "controller": random_loop(rng, n, centre),
        "lyapunov": random_gauge(rng, n, centre),
        "anchor": array(anchor),
        "problem": problem,
        "conditions": conditions,
    }
