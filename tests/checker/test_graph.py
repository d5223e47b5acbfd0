"""κ of the loop with message passing against plain Fractions."""

from __future__ import annotations

import random
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from typing import Any

import pytest
from bound_queries import network, number
from checker_cases import square
from graph_cases import Layers, graph_entry, plain_kappa
from hand_loops import Hand, stated

from graphkeel.checker.exact import Work, float_above
from graphkeel.checker.graph import derive_graph


def random_graph(rng: random.Random) -> tuple[list[Hand], Layers, list[float]]:
    """Controllers with hidden layers or without, layers with several powers, any gauge."""
    loops = []
    features = rng.randint(1, 3)
    for label in range(rng.choice([1, 2])):
        hidden = [rng.randint(1, 3) for _ in range(rng.choice([0, 1, 2]))]
        forward: Any = network(rng, [2, *hidden, features])
        loops.append(replace(square(label), forward=forward, proofs={}))
    widths = [features, *(rng.randint(1, 3) for _ in range(rng.choice([0, 0, 1, 2]))), 2]
    layers: Layers = []
    for before, after in pairwise(widths):
        powers = rng.sample(range(6), rng.choice([1, 1, 2, 3]))
        layers.append([(p, network(rng, [before, after])[0][0]) for p in powers])
    return loops, layers, [abs(number(rng)) + 2.0**-50 for _ in range(2)]


@pytest.mark.parametrize("block", range(4))
def test_kappa_is_that_of_the_format(block: int) -> None:
    contracting = 0
    for seed in range(40 * block, 40 * block + 40):
        rng = random.Random(seed)
        loops, layers, gauge = random_graph(rng)
        factor = rng.choice([1.0, 2.0**-6])
        layers = [
            [(p, [[factor * w for w in row] for row in rows]) for p, rows in one] for one in layers
        ]
        entries = stated(*loops)["classes"]
        derived = derive_graph(graph_entry(layers, gauge), entries, Work(10**9))
        kappa = plain_kappa(loops, layers, gauge)
        assert derived["kappa"] == float_above(kappa), seed
        assert (derived["contraction"] == "proved") == (float_above(kappa) < 1)
        contracting += kappa < Fraction(1)
    assert contracting > 3
