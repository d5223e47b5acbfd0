"""Random rows, boxes and choices, with the bound that section 2 of the proof format gives them: as
the checker's own objects on one side, as plain Fractions on the other."""

from __future__ import annotations

import random
from fractions import Fraction
from itertools import pairwise
from typing import Any

from plain_bound import Leaf, PlainRow, dot, upper_bound

Json = dict[str, Any]


def number(rng: random.Random) -> float:
    kind = rng.random()
    if kind < 0.2:
        return float(rng.choice([0, 1, -1, 0.5, -0.25, 2]))
    if kind < 0.25:
        return rng.uniform(-1, 1) * 2.0 ** rng.randint(-60, 60)
    return round(rng.uniform(-2, 2), rng.choice([1, 2, 17]))


def network(rng: random.Random, sizes: list[int]) -> list[Any]:
    return [
        ([[number(rng) for _ in range(a)] for _ in range(b)], [number(rng) for _ in range(b)])
        for a, b in pairwise(sizes)
    ]


def random_query(seed: int) -> Json:
    """A row of a random problem over a random box, and what a leaf may choose there."""
    rng = random.Random(seed)
    n = rng.choice([1, 1, 2, 2, 3])
    hidden = [rng.randint(1, 3) for _ in range(rng.choice([0, 1, 1, 2]))]
    inner = [rng.randint(1, 3) for _ in range(rng.choice([0, 1, 1, 1, 2]))]
    ends = [sorted((number(rng), number(rng))) for _ in range(n)]
    condition = rng.choice(["decrease", "decrease", "positivity", "invariance", "region"])
    condition = "invariance" if condition == "region" and n == 1 else condition
    c = rng.choice([0.0, 0.5])
    label = rng.randrange(n)
    rows = {"decrease": 1, "positivity": 2 * n if c else 1, "invariance": 2 * n, "region": n - 1}
    query: Json = {
        "condition": condition,
        "row": rng.randrange(rows[condition]),
        "forward": network(rng, [n, *hidden, n]),
        "lyapunov": network(rng, [n, *inner, 1]),
        "lower": [low for low, _ in ends],
        "upper": [high for _, high in ends],
        "equilibrium": [number(rng) for _ in range(n)],
        "numbers": [0.125, rng.choice([1.0, 0.75, 0.3]), c, 0.0, rng.choice([0.0, 0.25])],
        "label": label,
        "pulls": [
            [0.0 if j == label else abs(number(rng)) for j in range(n)] for _ in range(n - 1)
        ],
        "slopes": [],
        "signs": [],
        "weights": [1],
        "thetas": [],
    }
    add_choices(rng, query)
    return query


def add_choices(rng: random.Random, query: Json) -> None:
    row = plain_row(query)
    if rng.random() < 0.5:
        widths = [len(chain[0][1]) for chain in row.chains]
        query["slopes"] = [rng.choice([0, 255, rng.randrange(256)]) for _ in range(sum(widths))]
    units = len(query["lyapunov"][0][1])
    if query["condition"] == "decrease" and len(query["lyapunov"]) == 2 and rng.random() < 0.5:
        fits = [weight >= 0 for weight in query["lyapunov"][1][0][0]]
        query["thetas"] = [
            [abs(number(rng)) for _ in range(units)] if fit and rng.random() < 0.7 else None
            for fit in fits
        ]
        query["thetas"] = query["thetas"] if any(query["thetas"]) else []
    if rng.random() < 0.6:
        last = len(row.chains[0]) - 1 if row.chains else 0
        coupled = {(0, last, k) for k, theta in enumerate(query["thetas"]) if theta}
        places = [place for place in all_units(row) if place not in coupled]
        chosen = rng.sample(places, rng.randint(0, min(3, len(places))))
        query["signs"] = [[stacked(row, place), rng.random() < 0.5] for place in chosen]
        query["weights"] = [rng.randint(1, 5), *(rng.randint(0, 4) for _ in chosen)]


def all_units(row: PlainRow) -> list[tuple[int, int, int]]:
    return [
        (number, k, unit)
        for number, chain in enumerate(row.chains)
        for k, (_, bias) in enumerate(chain)
        for unit in range(len(bias))
    ]


def stacked(row: PlainRow, place: tuple[int, int, int]) -> list[int]:
    """(stage, unit) of a unit: chains are aligned at their ends, the first one in front."""
    number, k, unit = place
    depth = max(map(len, row.chains))
    stage = k + depth - len(row.chains[number])
    if number == 1:
        other = stage - depth + len(row.chains[0])
        unit += len(row.chains[0][other][1]) if other >= 0 else 0
    return [stage, unit]


def exact_layers(layers: list[Any]) -> list[Any]:
    return [
        ([[Fraction(x) for x in row] for row in w], [Fraction(x) for x in b]) for w, b in layers
    ]


def floor_60(value: float) -> Fraction:
    return Fraction(Fraction(value) * 2**60 // 1, 2**60)


def plain_row(query: Json) -> PlainRow:
    """The row of the table in section 1."""
    f, v = exact_layers(query["forward"]), exact_layers(query["lyapunov"])
    n = len(query["lower"])
    zero = [Fraction(0)] * n
    _, rho, c, _, gamma = map(Fraction, query["numbers"])
    condition, index = query["condition"], query["row"]
    if condition == "decrease":
        (weight, bias), (inner, offset) = f[-1], v[0]
        seam = (
            [
                [dot(row, [line[i] for line in weight]) for i in range(len(weight[0]))]
                for row in inner
            ],
            [dot(row, bias) + b for row, b in zip(inner, offset, strict=True)],
        )
        after = [*f[:-1], seam, *v[1:]]
        parts = [(after, 0, Fraction(1)), (v, 0, -rho)]
        form, constant = zero, Fraction(0)
    elif condition == "positivity":
        parts = [(v, 0, Fraction(-1))]
        form, constant = list(zero), Fraction(0)
        if c:
            axis, sign = index // 2, 1 - 2 * (index % 2)
            form[axis] = sign * c
            constant = -sign * c * Fraction(query["equilibrium"][axis])
    elif condition == "invariance":
        axis, sign = index // 2, 1 - 2 * (index % 2)
        parts = [(f, axis, Fraction(sign))]
        end = query["upper" if sign > 0 else "lower"][axis]
        form, constant = zero, -sign * Fraction(end)
    else:
        own = query["label"]
        rival = [k for k in range(n) if k != own][index]
        pull = [floor_60(x) for x in query["pulls"][index]]
        *hidden, (weight, bias) = f
        lead = [a - b for a, b in zip(weight[rival], weight[own], strict=True)]
        parts = [([*hidden, ([lead], [bias[rival] - bias[own]])], 0, Fraction(1))]
        form = [-p for p in pull]
        form[own] = sum(pull, Fraction(0))
        constant = gamma * (1 - sum(pull))
    chains, finals = [], []
    for (*hidden, (weight, bias)), output, factor in parts:
        constant += factor * bias[output]
        final = [factor * x for x in weight[output]]
        if hidden:
            chains.append(hidden)
            finals.append(final)
        else:
            form = [a + b for a, b in zip(form, final, strict=True)]
    return PlainRow(chains, finals, form, constant)


def leaf_of(query: Json, row: PlainRow) -> Leaf:
    places = {tuple(stacked(row, place)): place for place in all_units(row)}
    slopes, start = [], 0
    for chain in row.chains:
        slopes.append(query["slopes"][start : start + len(chain[0][1])])
        start += len(chain[0][1])
    return Leaf(
        slopes if query["slopes"] else None,
        {places[tuple(place)]: sign for place, sign in query["signs"]},
        query["weights"],
        {k: [floor_60(t) for t in theta] for k, theta in enumerate(query["thetas"]) if theta},
    )


def plain_answer(query: Json) -> Fraction:
    row = plain_row(query)
    low = [Fraction(x) for x in query["lower"]]
    high = [Fraction(x) for x in query["upper"]]
    return upper_bound(row, low, high, leaf_of(query, row))
