"""Counts on a graph against the truth in fractions, with numbers of any size.

Loops of a few nodes, drawn from a seeded generator: weights from the least float to the largest,
units that cancel exactly, labels. Their equilibrium is computed in exact rationals; a count
may be refused, and may be below the truth, but never above it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from small_models import exact_answer, fractions

from graphkeel.certificate.encoding import encode_array
from graphkeel.certificate.equilibrium import with_equilibrium
from graphkeel.certificate.graph_check import Enclosure, GraphStates, _steepness
from graphkeel.core.errors import CertificateError
from tally import TALLY

SIZE, WIDTH, HIDDEN, N = 4, 3, 6, 2
SIGNS = np.array([1.0, 1.0, -1.0, -1.0])


@dataclass
class Loop:
    """The parts of an enclosure, with one constant controller a class."""

    certificate: dict[str, Any]
    layers: list[Any]
    graph: GraphStates
    exact: list[dict[str, np.ndarray]]

    def features(self, key: str) -> np.ndarray:
        """h_c at nodes with the label c, exactly: the controller's value, or the anchor."""
        x = fractions(self.graph.x)
        for node, label in zip(self.graph.nodes, self.graph.labels, strict=True):
            x[node] = fractions(self.exact[label][key])
        return x

    def answer(self, x: np.ndarray) -> np.ndarray:
        """The model's, exactly."""
        return exact_answer(self.layers, x, *self.graph.edges)


def drawn(generator: np.random.Generator) -> Loop:
    """Exponents within a narrow or a wide band; half of the last weights cancel the other half."""
    centre = float(generator.choice([0, 0, 150, 330, -330, 500]))
    band = float(generator.choice([2, 40, 500]))

    def numbers(*shape: int) -> np.ndarray:
        exponents = np.clip(generator.normal(centre, band, shape), -1074, 1023)
        signs = generator.choice([-1.0, 0.0, 1.0], shape)
        return signs * np.exp2(np.floor(exponents)) * generator.choice([1.0, 1.5], shape)

    first = numbers(HIDDEN, WIDTH)
    last = numbers(N, HIDDEN)
    half = HIDDEN // 2
    if generator.random() < 0.7:
        first[half:] = first[:half]
        last[:, half:] = -last[:, :half]
    exact = [{"value": numbers(WIDTH), "anchor": numbers(WIDTH)} for _ in range(N)]
    x = numbers(SIZE, WIDTH)
    last[:, 0] += generator.normal(size=N)
    if generator.random() < 0.5:
        _near_the_largest(generator, first, last, exact)
        x = generator.normal(size=(SIZE, WIDTH)) * [1, 1, 0]
    layers = [[(1, first, np.zeros(HIDDEN))], [(0, last, generator.normal(size=N))]]
    if generator.random() < 0.5:
        layers[1].append((1, numbers(N, HIDDEN), np.zeros(N)))
    certificate = {
        "graph": {"operator": "mean", "kappa": 0.0, "gauge": encode_array(np.ones(N))},
        "classes": [
            {
                "class": c,
                "controller": constant(one["value"]),
                "anchor": encode_array(one["anchor"]),
            }
            for c, one in enumerate(exact)
        ],
    }
    return Loop(certificate, layers, states_of(generator, x), exact)


def _near_the_largest(
    generator: np.random.Generator, first: np.ndarray, last: np.ndarray, exact: list[Any]
) -> None:
    """Two pairs of units that cancel; with the anchors, and not at the equilibrium, the sum of two
    is about as large as floats go."""
    first[:4] = [0, 0, 2.0**224]
    last[:, :4] = 0.0
    first[4:] = generator.normal(size=(HIDDEN - 4, WIDTH)) * [1, 1, 0]
    last[:, 4:] = generator.normal(size=(N, HIDDEN - 4))
    last[int(generator.integers(N)), :4] = np.exp2(generator.uniform(399, 400)) * SIGNS
    for one in exact:
        one["value"] = np.array([*generator.normal(size=WIDTH - 1), 0.0])
        one["anchor"] = np.array([*generator.normal(size=WIDTH - 1), 2.0**400])


def constant(value: np.ndarray) -> list[list[dict[str, Any]]]:
    weight = encode_array(np.zeros((len(value), N)))
    return [[{"weight": weight, "bias": encode_array(value)}]]


def states_of(generator: np.random.Generator, x: np.ndarray) -> GraphStates:
    edges = generator.integers(SIZE, size=(2, 6))
    nodes = np.arange(0, SIZE, generator.integers(1, 3))
    return GraphStates(x, edges, np.zeros((SIZE, N)), nodes, nodes // 2 % N)


def settled(loop: Loop) -> Loop:
    """With states at the exact equilibrium, rounded; as good as a finder can be."""
    exact = loop.answer(loop.features("value"))
    largest = Fraction(np.finfo(np.float64).max)
    clipped = [[float(max(-largest, min(largest, one))) for one in row] for row in exact]
    return replace(loop, graph=replace(loop.graph, states=np.array(clipped)))


def leader(row: np.ndarray) -> int:
    """The class of a row of exact numbers; -1 where two share the lead."""
    best = max(row)
    return int(np.argmax(row == best)) if (row == best).sum() == 1 else -1


def counted(loop: Loop) -> dict[str, int] | None:
    """The statement, or None where it is refused."""
    try:
        with np.errstate(all="ignore"):
            stated = with_equilibrium(loop.certificate, loop.layers, loop.graph)
    except CertificateError as error:
        assert "range of floats" in str(error)
        return None
    facts = stated["graph"]["equilibrium"]
    names = ("certain", "labelled_certain")
    return {name: facts[name] for name in names} | {"kept": facts["written"]["kept"]}


def true_counts(loop: Loop) -> dict[str, int]:
    there = [leader(row) for row in loop.answer(loop.features("value"))]
    written = [leader(row) for row in loop.answer(loop.features("anchor"))]
    graph = loop.graph
    return {
        "certain": sum(one >= 0 for one in there),
        "labelled_certain": sum(
            there[v] == c for v, c in zip(graph.nodes, graph.labels, strict=True)
        ),
        "kept": sum(a == b >= 0 for a, b in zip(there, written, strict=True)),
    }


def compare_counts(seed: int, count: int) -> None:
    generator = np.random.default_rng(seed)
    said = 0
    for number in range(count):
        loop = settled(drawn(generator))
        found = counted(loop)
        TALLY["loops of any size", "refused" if found is None else "counted"] += 1
        if found is None:
            continue
        true = true_counts(loop)
        said += found["kept"] > 0
        for name, value in found.items():
            assert value <= true[name], f"{number}: {name} {value}, the truth is {true[name]}"
    assert said > count // 20  # the counts say something


def test_no_count_is_above_the_truth() -> None:
    compare_counts(0, 400)


@pytest.mark.slow
def test_no_count_of_twenty_thousand_is_above_the_truth() -> None:
    compare_counts(1, 20_000)


# ---- attacks by hand


def overflowing() -> Loop:
    """Two pairs of hidden units cancel exactly with the anchor's 2^400, but each product is above
    the largest float. In rationals the anchor leads to class 0 and the equilibrium to class 1."""
    large = 2.0**400
    first = np.array([[0, 0, 2.0**224]] * 4 + [[1, 0, 0], [0, 1, 0]])
    last = np.array([[0, 0, 0, 0, 1, 0], [large, large, -large, -large, 0, 1]])
    layers = [[(0, first, np.zeros(6))], [(0, last, np.zeros(2))]]
    exact = [{"value": np.array([0.0, 1.0, 0.0]), "anchor": np.array([2.0, 1.0, large])}] * N
    classes = [
        {"class": c, "controller": constant(one["value"]), "anchor": encode_array(one["anchor"])}
        for c, one in enumerate(exact)
    ]
    passing = {"operator": "mean", "kappa": 0.0, "gauge": encode_array(np.ones(N))}
    x, nodes = np.zeros((SIZE, WIDTH)), np.arange(SIZE)
    edges = np.array([[0, 1], [1, 0]])
    graph = GraphStates(x, edges, np.zeros((SIZE, N)), nodes, nodes * 0 + 1)
    certificate = {"graph": passing, "classes": classes}
    return settled(Loop(certificate, layers, graph, exact))


def test_an_overflow_keeps_no_class() -> None:
    loop = overflowing()
    assert true_counts(loop) == {"certain": SIZE, "labelled_certain": SIZE, "kept": 0}
    assert counted(loop) is None


def test_an_infinite_lead_is_no_lead() -> None:
    """States as far apart as floats go: their difference is above the largest of them."""
    loop = settled(drawn(np.random.default_rng(3)))
    states = np.tile([1.7e308, -1.7e308], (SIZE, 1))
    far = replace(loop.graph, states=states)
    with pytest.raises(CertificateError), np.errstate(all="ignore"):
        Enclosure(loop.certificate, loop.layers, far).certain_nodes(1.0)


@pytest.mark.parametrize("residual", [np.inf, np.nan, 1e308])
def test_a_residual_beyond_floats_decides_nothing(residual: float) -> None:
    loop = settled(drawn(np.random.default_rng(3)))
    loop.certificate["graph"]["kappa"] = 1 - 2.0**-53
    enclosure = Enclosure(loop.certificate, loop.layers, loop.graph)
    with pytest.raises(CertificateError), np.errstate(all="ignore"):
        enclosure.certain_nodes(residual)


def test_factors_that_underflow_before_they_grow_are_not_flat() -> None:
    """1e-200·1e-200·1e200·1e200 is one; in floats it is zero."""
    factors = [
        {"weight": encode_array(np.eye(N) * size), "bias": None}
        for size in (1e-200, 1e-200, 1e200, 1e200)
    ]
    with np.errstate(all="ignore"):
        try:
            assert _steepness([factors], np.ones(N)) >= 1.0
        except CertificateError:
            return


@pytest.mark.parametrize("kappa", [1.0, -0.1, np.nan])
def test_no_factor_no_enclosure(kappa: float) -> None:
    loop = settled(drawn(np.random.default_rng(3)))
    loop.certificate["graph"]["kappa"] = kappa
    with pytest.raises(CertificateError):
        Enclosure(loop.certificate, loop.layers, loop.graph)


@pytest.mark.parametrize(
    "x", [np.full((SIZE, WIDTH), 2**53 + 1), np.zeros((SIZE, WIDTH), complex), np.zeros(SIZE)]
)
def test_features_that_are_no_floats_are_refused(x: np.ndarray) -> None:
    loop = settled(drawn(np.random.default_rng(3)))
    with pytest.raises(CertificateError):
        Enclosure(loop.certificate, loop.layers, replace(loop.graph, x=x))
