"""Proofs of properties by lot, each at its threshold: networks with skips, affine blocks, repeated
sources and ReLUs behind ReLUs, cut boxes, stored slopes. The constants are lowered until the proof
just holds; one step less, and it does not show its claim."""

from __future__ import annotations

import random
from functools import cache

from checker_cases import ACCEPTED, case
from hand_loops import Json, sealed_bytes
from property_cases import SHOW, asked, block, leaves, proof

from graphkeel import checker

COUNT = 30
STEP = 2.0**-16
HIGHEST = 1 << 24  # steps; no bound of these networks is larger


def entry(rng: random.Random) -> float:
    return rng.choice([0.0, 0.0, 1.0, -1.0, 0.5, -0.5, 0.75, -1.5])


def rows(rng: random.Random, height: int, width: int) -> list[list[float]]:
    return [[entry(rng) for _ in range(width)] for _ in range(height)]


def random_blocks(rng: random.Random, n: int) -> tuple[list[Json], list[int], list[bool]]:
    """Blocks, the widths of all values, and which of them are ReLUs."""
    widths, blocks, kinds = [n], [], []
    count = rng.randint(1, 5)
    for number in range(count):
        height, last = rng.randint(1, 2), number == count - 1
        sources = [number, *rng.sample(range(number + 1), rng.randint(0, min(2, number + 1)))]
        terms = [(source, rows(rng, height, widths[source])) for source in sources]
        relu = rng.random() < (0.3 if last else 0.7)
        blocks.append(block([entry(rng) for _ in range(height)], *terms, relu=relu))
        widths.append(height)
        kinds += [relu] * height
    return blocks, widths, kinds


def random_tree(rng: random.Random, n: int, relus: int, count: int) -> Json:
    """Cuts at different places, at most one an axis and level."""
    axis, cut = rng.choice([([], ()), ([0], (0.25,)), ([n - 1], (-0.125,))])
    nodes = [*axis, *[rng.choice([-2, -3]) for _ in range(len(axis) + 1)]]
    if len(axis) == 1 and rng.random() < 0.5:
        nodes, cut = [axis[0], 0, *nodes[1:], -2], (*cut, -0.5)
    stored = nodes.count(-3)
    slopes = [
        [rng.choice([0, 255, rng.randrange(256)]) for _ in range(relus)] for _ in range(stored)
    ]
    inner = [[rng.randint(0, 3) for _ in range(count)] for node in nodes if node < 0]
    weights = [line if any(line) else [1] * count for line in inner]
    return leaves(nodes, weights, cut, tuple(slopes), relus)


def random_proof(seed: int, steps: int) -> Json:
    """The proof of a seed, its constants lowered by so many steps."""
    rng = random.Random(seed)
    n, count = rng.choice([1, 2]), rng.choice([1, 1, 2, 3])
    blocks, widths, kinds = random_blocks(rng, n)
    tree = random_tree(rng, n, sum(kinds), count)
    weight = rows(rng, count, n + widths[-1])
    constant = [entry(rng) - steps * STEP for _ in range(count)]
    ends = ([-1.0] * n, [rng.choice([0.75, 1.0]) for _ in range(n)])
    return proof(n, blocks, asked(ends, weight, constant, tree))


@cache
def threshold(seed: int) -> int:
    """The fewest steps with which a proof is accepted."""
    low, high = -HIGHEST, HIGHEST
    while high - low > 1:
        middle = (low + high) // 2
        shown = checker.check_bytes(sealed_bytes(random_proof(seed, middle))).accepted
        low, high = (low, middle) if shown else (middle, high)
    return high


for number in range(COUNT):
    case(
        f"property by lot {number}, just",
        ACCEPTED,
        lambda number=number: random_proof(number, threshold(number)),
    )
    case(
        f"property by lot {number}, one step less",
        SHOW,
        lambda number=number: random_proof(number, threshold(number) - 1),
    )
