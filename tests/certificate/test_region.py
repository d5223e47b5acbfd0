"""The region condition: proved, refuted and unknown as such, never accepted when false, and what
follows from it."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from loops import (
    Answer,
    Shipped,
    answers,
    certificate,
    class_proof,
    pack,
    prove_region,
    region_proof,
    shipped,
)
from test_checker import FALSE_CLAIMS, change, resealed

from graphkeel.certificate import build_certificate, check_content
from graphkeel.certificate.box_proof import region_fan
from graphkeel.certificate.region_proof import check_region
from graphkeel.certificate.rows import region_rows
from graphkeel.certificate.schema import Layer, Loop, loop_of
from graphkeel.certificate.trees import Refused
from graphkeel.certificate.whole_box import upper_bounds


def linear_loop(matrix: Any, offset: Any, half: float = 1.0) -> Loop:
    """F(y) = A·y + b through units that stay active, on [−half, half]ⁿ."""
    weight = np.asarray(matrix, dtype=float)
    n = weight.shape[0]
    lift = half + 1.0
    first = Layer(np.eye(n), np.full(n, lift), np.zeros((n, n)), np.zeros(n))
    last = Layer(
        weight, np.asarray(offset, float) - lift * weight.sum(axis=1), np.zeros((n, n)), np.zeros(n)
    )
    ones = np.full(n, half)
    return Loop((first, last), (first, last), -ones, ones, np.zeros(n), 0.1, "inf", 0.9, 0.1)


def test_a_hand_computed_region() -> None:
    # F_1 − F_0 = (y_1 − y_0)/2 − 1/4 ≤ −1/4 where y_0 ≥ y_1: the multiplier 1/2 cancels the slopes
    # exactly
    loop = linear_loop(np.eye(2) / 2, [0.25, 0.0])
    assert check_region(loop, 0, 0.0, region_proof(np.array([[0.0, 0.5]]))) == 1
    # without it the bound over the whole box is 1 − 1/4
    with pytest.raises(Refused, match=r"0\.75"):
        check_region(loop, 0, 0.0, region_proof(np.zeros((1, 2))))
    # a state that leads by γ is followed by one that leads by 1/4 + γ/2, which is at least γ up to
    # γ = 1/2
    check_region(loop, 0, 0.46875, region_proof(np.array([[0.0, 0.5]])))
    with pytest.raises(Refused):
        check_region(loop, 0, 0.53125, region_proof(np.array([[0.0, 0.5]])))


def test_a_tie_is_no_lead() -> None:
    """F(y) = y keeps every region, but a tie stays a tie, and the choice may then change: not
    proved at γ = 0."""
    loop = linear_loop(np.eye(2), [0.0, 0.0])
    with pytest.raises(Refused):
        check_region(loop, 0, 0.0, region_proof(np.array([[0.0, 1.0]])))


@pytest.mark.parametrize(
    ("multipliers", "reason"),
    [
        (np.array([[0.0, -0.5]]), "negative"),
        (np.array([[0.5, 0.5]]), "class itself"),
        (np.array([[0.0, 1e200]]), "too large"),
        (np.zeros((2, 2)), "1 × 2"),
        (np.zeros((1, 3)), "1 × 2"),
    ],
)
def test_multipliers_that_prove_nothing(multipliers: np.ndarray, reason: str) -> None:
    loop = linear_loop(np.eye(2) / 2, [0.25, 0.0])
    with pytest.raises(Refused, match=reason):
        check_region(loop, 0, 0.25, region_proof(multipliers))


def random_loop(rng: np.random.Generator, n: int, sizes: list[int]) -> Loop:
    layers, width = [], n
    for size in [*sizes, n]:
        error = 1e-3 * rng.random((size, width)) * (rng.random() < 0.5)
        weight, bias = rng.normal(size=(size, width)) / np.sqrt(width), rng.normal(size=size)
        layers.append(Layer(weight, bias, error, 1e-3 * rng.random(size)))
        width = size
    middle, half = rng.normal(size=n), rng.uniform(0.1, 2.0, n)
    return Loop(
        tuple(layers), tuple(layers), middle - half, middle + half, middle, 0.1, "inf", 0.9, 0.1
    )


def run(layers: tuple[Layer, ...], points: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """F at points, for one random network within the error bounds."""
    for k, layer in enumerate(layers):
        weight = layer.weight + layer.weight_error * rng.choice([-1.0, 1.0], layer.weight.shape)
        points = (
            points @ weight.T
            + layer.bias
            + layer.bias_error * rng.choice([-1.0, 1.0], layer.bias.shape)
        )
        points = np.maximum(points, 0.0) if k + 1 < len(layers) else points
    return points


@given(
    st.integers(0, 10**6),
    st.integers(2, 4),
    st.lists(st.integers(1, 6), max_size=3),
    st.sampled_from([0.0, 0.3]),
)
@settings(max_examples=150, deadline=None)
def test_bounds_hold_at_sampled_states_of_the_region(
    seed: int, n: int, sizes: list[int], margin: float
) -> None:
    """No bound on the whole box is exceeded by any state of the region, whatever the multipliers
    and the errors."""
    rng = np.random.default_rng(seed)
    loop, axis = random_loop(rng, n, sizes), int(rng.integers(n))
    multipliers = rng.exponential(size=(n - 1, n)) * (rng.random((n - 1, n)) < 0.6)
    multipliers[:, axis] = 0.0
    bounds, _ = upper_bounds(region_fan(loop, axis, margin, multipliers), loop.lower, loop.upper)
    points = rng.uniform(loop.lower, loop.upper, (400, n))
    others = np.delete(np.arange(n), axis)
    leading = points[(points[:, [axis]] - points[:, others] >= margin).all(axis=1)]
    after = run(loop.closed_loop, leading, rng)
    gained = after[:, others] - after[:, [axis]] + margin
    assert (gained <= bounds + 1e-12).all()


@given(st.integers(0, 10**6), st.integers(2, 4), st.lists(st.integers(1, 5), max_size=3))
@settings(max_examples=60, deadline=None)
def test_one_box_and_a_tree_of_one_leaf_agree(seed: int, n: int, sizes: list[int]) -> None:
    """The same rows by two implementations of the same relaxation: bounds differ by roundings
    only."""
    from graphkeel.certificate.bounds import RowBound

    rng = np.random.default_rng(seed)
    loop, axis = random_loop(rng, n, sizes), int(rng.integers(n))
    multipliers = rng.random((n - 1, n))
    multipliers[:, axis] = 0.0
    fast, _ = upper_bounds(region_fan(loop, axis, 0.2, multipliers), loop.lower, loop.upper)
    rows = region_rows(loop, axis, 0.2, multipliers)
    slow = [
        RowBound(row, loop.lower, loop.upper).upper(loop.lower[None], loop.upper[None])[0][0]
        for row in rows
    ]
    assert np.allclose(fast, slow, rtol=1e-9, atol=1e-9)


# ---- in a certificate


@pytest.fixture(scope="module")
def one_tree(good: dict[str, Any], ship: Shipped) -> dict[str, Any]:
    """The good certificate with the region proved by a tree of two leaves."""
    loop = loop_of(ship.loop)
    proof = prove_region(loop)
    assert proof is not None
    tree = {
        "row": "class 1",
        "lower": loop.lower.tolist(),
        "upper": loop.upper.tolist(),
        "axis": pack(np.array([0, -2, -2]), "<i1"),
        "cut": pack(np.array([1.0]), "<f8"),
        "slopes": pack(np.zeros((0, 6)), "|u1"),
        "lenses": pack(np.zeros((0, 0, 0)), "<f8"),
    }
    content = copy.deepcopy(good)
    content["classes"][0]["conditions"]["region"]["proof"] = {
        **proof,
        "kind": "branch",
        "trees": [tree],
    }
    return resealed(content)


def test_a_region_proved_by_a_tree(one_tree: dict[str, Any]) -> None:
    assert check_content(one_tree)[0]["conditions"]["region"] == "proved"


def in_tree(key: str, value: Any) -> Callable[[dict[str, Any]], None]:
    return change(f"conditions.region.proof.trees.0.{key}", value)


FALSE_TREES = {
    "smaller root": (in_tree("lower", [0.5, -0.5]), "root box"),
    "hole leaf": (in_tree("axis", pack(np.array([0, -1, -2]), "<i1")), "kind"),
    "other row": (in_tree("row", "class 0"), "order"),
    "cut outside": (in_tree("cut", pack(np.array([9.0]), "<f8")), "cut lies outside"),
    "no tree": (change("conditions.region.proof.trees", []), "trees"),
    "other multipliers": (
        change("conditions.region.proof.multipliers", pack(np.array([[0.0, 9.0]]), "<f8")),
        "not proved",
    ),
}


@pytest.mark.parametrize("name", sorted(FALSE_TREES))
def test_false_trees_are_refused(one_tree: dict[str, Any], name: str) -> None:
    apply, reason = FALSE_TREES[name]
    content = copy.deepcopy(one_tree)
    apply(content["classes"][0])
    with pytest.raises(Refused, match=reason):
        check_content(resealed(content))


FALSE_REGIONS = {
    "a larger margin": (change("conditions.region.margin", 0.99), "region"),
    "a negative margin": (change("conditions.region.margin", -0.5), "negative"),
    "another class": (change("class", 1), "region|class itself"),
    "a class that is no coordinate": (change("class", 7), "no coordinate"),
    "wrong multipliers": (
        change("conditions.region.proof", region_proof(np.array([[0.0, 9.0]]))),
        "not proved",
    ),
    "a proof of invariance": (
        change("conditions.region.proof.condition", "invariance"),
        "its proof is one of",
    ),
    "no proof": (change("conditions.region.proof", None), "without what shows it"),
    "not switched": (change("conclusion.switched", False), "conclusion"),
}


@pytest.mark.parametrize("name", sorted(FALSE_REGIONS))
def test_a_false_region_with_fresh_hashes_is_refused(good: dict[str, Any], name: str) -> None:
    assert name not in FALSE_CLAIMS
    apply, reason = FALSE_REGIONS[name]
    content = copy.deepcopy(good)
    apply(content["classes"][0])
    with pytest.raises(Refused, match=reason):
        check_content(resealed(content))


def test_what_is_said_of_all_classes_is_derived_again(good: dict[str, Any]) -> None:
    assert (
        good["together"]["verdict"] == "proved" and not good["together"]["everywhere"]
    )  # one class of two
    for key, value in (
        ("everywhere", True),
        ("radius", 0.0),
        ("sentence", "All is well."),
        ("verdict", "refuted"),
    ):
        content = copy.deepcopy(good)
        content["together"][key] = value
        with pytest.raises(Refused, match="together"):
            check_content(resealed(content))


def test_a_counterexample_is_replayed() -> None:
    """A loop that sends every state to (0, 1): class 0 loses all of its states."""
    ship = shipped(speed=-0.6)  # reflects: the state (2, 0) of class 0 goes to about (0.4, 0)
    loop = loop_of(ship.loop)
    lost = np.array([2.0, -1.0])
    known = answers(loop)
    content = certificate(ship, {**known, "region": Answer("refuted", counterexample=lost)})
    summary = check_content(content)[0]
    assert summary["conditions"]["region"] == summary["verdict"] == "refuted"
    assert content["together"]["verdict"] == "refuted"
    for point, reason in (
        (loop.upper + 1, "outside the domain"),
        (np.array([0.25, 0.5]), "outside the class's region"),
        (loop.equilibrium, "satisfies the condition"),
    ):
        wrong = certificate(ship, {**known, "region": Answer("refuted", counterexample=point)})
        with pytest.raises(Refused, match=reason):
            check_content(wrong)


def test_an_unknown_region_takes_nothing_from_the_loop(
    ship: Shipped, proofs: dict[str, Answer]
) -> None:
    content = certificate(ship, {**proofs, "region": Answer("unknown", reason="time")})
    summary = check_content(content)[0]
    entry = content["classes"][0]
    assert summary["verdict"] == "unknown" and entry["conclusion"]["kind"] == "asymptotic"
    assert not entry["conclusion"]["switched"] and content["together"]["verdict"] == "unknown"


def test_a_region_without_invariance_is_no_promise(
    ship: Shipped, proofs: dict[str, Answer]
) -> None:
    content = certificate(ship, {**proofs, "invariance": Answer("unknown", reason="time")})
    assert check_content(content)[0]["conditions"]["region"] == "proved"
    assert not content["classes"][0]["conclusion"]["switched"]


def both_classes() -> tuple[Shipped, Shipped, dict[str, Any]]:
    """Two classes on one box: the second is the first with its coordinates exchanged."""
    first = shipped(seed=1)
    head, f, v = first.head, first.controller, first.lyapunov
    swap = np.array([[0.0, 1.0], [1.0, 0.0]])
    from dataclasses import replace

    from graphkeel.certificate import chain, collapsed, collapsed_loop

    weight, bias = head[0][0].weight, head[0][0].bias
    inverse = np.linalg.pinv(weight)
    low, high = np.full(2, -1.0), np.full(2, 2.0)
    # the second controller sees the exchanged state and answers with a feature whose logits are
    # exchanged
    exchange = inverse @ swap @ weight
    moved = inverse @ (swap @ bias - bias)
    g = (
        chain((swap, None), *((p.weight, p.bias) for p in f[0])),
        chain(*((p.weight, p.bias) for p in f[1]), (exchange, moved)),
    )
    w = (chain((swap, None), *((p.weight, p.bias) for p in v[0])), v[1])
    anchor = exchange @ first.anchor + moved
    loop = replace(first.loop, lower=low, upper=high)
    second_loop = replace(
        loop,
        closed_loop=type(loop.closed_loop)(collapsed_loop(g, head)),
        lyapunov=type(loop.lyapunov)(collapsed(w)),
        equilibrium=np.array([0.0, 1.0]),
    )
    one, two = replace(first, loop=loop), Shipped(head, g, w, anchor, second_loop)
    known = [answers(loop_of(one.loop)), {**answers(loop_of(two.loop))}]
    other = prove_region(loop_of(two.loop), axis=1)
    known[1]["region"] = Answer("proved", other) if other else Answer("unknown")
    content = build_certificate(
        head, [class_proof(one, known[0], 0), class_proof(two, known[1], 1)]
    )
    return one, two, content


def test_all_classes_together_and_the_switched_loop_does_what_is_promised() -> None:
    one, two, content = both_classes()
    check_content(content)
    together = content["together"]
    assert together["verdict"] == "proved" and together["everywhere"], together
    rng = np.random.default_rng(0)
    points = rng.uniform(-1.0, 2.0, (300, 2))
    start = points.argmax(axis=1)
    loops = [loop_of(ship.loop) for ship in (one, two)]
    for _ in range(200):
        chosen = points.argmax(axis=1)
        assert (chosen == start).all()
        images = [run(loop.closed_loop, points, rng) for loop in loops]
        points = np.where(chosen[:, None] == 0, images[0], images[1])
    assert np.abs(points - np.eye(2)[start]).max() <= together["radius"] + 1e-9


def test_one_class_short_of_all_is_said_so() -> None:
    one, two, content = both_classes()
    entry = content["classes"][1]["conditions"]["region"]
    entry.update(verdict="unknown", proof=None)
    with pytest.raises(Refused):
        check_content(resealed(content))
    known = answers(loop_of(one.loop))
    lost = {**answers(loop_of(two.loop)), "region": Answer("unknown")}
    partial = build_certificate(one.head, [class_proof(one, known, 0), class_proof(two, lost, 1)])
    check_content(partial)
    assert (
        partial["together"]["verdict"] == "unknown" and "class 1" in partial["together"]["sentence"]
    )
