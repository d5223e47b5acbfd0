"""The hole and the sentence: hand-made loops of every kind, and simulation of what the sentence
promises."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from loops import Answer, Shipped, answers, certificate, pack, shipped

from graphkeel.certificate import check_content
from graphkeel.certificate.bounds import RowBound
from graphkeel.certificate.branch_proof import check_homogeneous
from graphkeel.certificate.collapse import exact_layers
from graphkeel.certificate.conclusion import _shown, largest_on_box, steps_into_hole
from graphkeel.certificate.contraction_proof import check_contraction, contraction_factor, gauge_of
from graphkeel.certificate.dyadic import Dyadic
from graphkeel.certificate.hole import local_shape
from graphkeel.certificate.residual import homogeneity_defect
from graphkeel.certificate.rows import rows_of
from graphkeel.certificate.schema import Layer, Loop, loop_of
from graphkeel.certificate.trees import Refused


def conclusion(ship: Shipped, **overrides: Answer) -> tuple[dict[str, Any], dict[str, Any]]:
    content = certificate(ship, {**answers(loop_of(ship.loop)), **overrides})
    check_content(content)
    entry = content["classes"][0]
    return entry["conditions"]["hole"], entry["conclusion"]


def simulate(ship: Shipped, steps: int, starts: int = 200) -> np.ndarray:
    """The sup distance to Y of float trajectories from random states of D."""
    loop = loop_of(ship.loop)
    points = np.random.default_rng(0).uniform(loop.lower, loop.upper, size=(starts, loop.n))
    for _ in range(steps):
        for k, layer in enumerate(loop.closed_loop):
            points = points @ layer.weight.T + layer.bias
            points = np.maximum(points, 0) if k + 1 < len(loop.closed_loop) else points
    return np.abs(points - loop.equilibrium).max(axis=1)


def test_an_affine_piece_gives_one_fixed_point_next_to_the_equilibrium() -> None:
    ship = shipped(seed=1)
    hole, sentence = conclusion(ship)
    assert hole["kind"] == "residual" and hole["fixed_point"]
    assert (
        sentence["kind"] == "asymptotic"
        and sentence["region"] == "D"
        and 0 < sentence["radius"] < 1e-10
    )
    assert simulate(ship, 200).max() < 1e-10
    assert simulate(ship, sentence["steps"]).max() < ship.loop.hole_radius


def test_a_homogeneous_loop_ends_within_the_residual() -> None:
    hole, sentence = conclusion(shipped(bend=0.0))
    assert hole["kind"] == "residual" and not hole["fixed_point"]
    assert sentence["kind"] == "practical" and sentence["radius"] < 1e-10


def test_a_bent_head_leaves_a_trapping_hole() -> None:
    ship = shipped(affine_head=False)
    hole, sentence = conclusion(ship)
    assert hole["kind"] == "trapping"
    assert sentence["kind"] == "practical" and sentence["radius"] == ship.loop.hole_radius
    assert simulate(ship, sentence["steps"]).max() <= ship.loop.hole_radius


def test_without_invariance_a_sublevel_set_is_left() -> None:
    ship = shipped(seed=1)
    _, sentence = conclusion(ship, invariance=Answer("unknown", reason="time"))
    assert sentence["region"] == "sublevel" and 0 < sentence["level"] <= ship.loop.positivity


def test_without_decrease_nothing_follows() -> None:
    hole, sentence = conclusion(shipped(seed=1), decrease=Answer("unknown", reason="time"))
    assert sentence["kind"] == "nothing" and "decrease" in sentence["sentence"]
    assert hole["kind"] in ("trapping", "open")


def test_an_open_hole_is_said_so() -> None:
    """Outside the hole all is well, but at Y the loop jumps: y -> −y/2 + a kick near Y that leaves
    the hole."""
    eye, both = np.eye(1), np.array([[1.0], [-1.0]])
    zeros = np.zeros
    layer = [
        Layer(w, b, zeros(w.shape), zeros(b.shape))
        for w, b in (
            (
                np.array([[1.0], [-1.0], [1.0], [1.0], [1.0]]),
                np.array([0.0, 0.0, 0.05, 0.0, -0.05]),
            ),
            (
                np.array([[0.25, -0.25, 8.0, -16.0, 8.0]]),
                zeros(1),
            ),  # 0.25·y + a tent of height 0.4 at 0
            (both, zeros(2)),
            (np.ones((1, 2)), zeros(1)),
        )
    ]
    loop = Loop(
        (layer[0], layer[1]),
        (layer[2], layer[3]),
        -eye[0],
        eye[0],
        zeros(1),
        0.125,
        "inf",
        0.5,
        0.5,
    )
    from graphkeel.certificate.conclusion import conclude
    from graphkeel.certificate.hole import analyse_hole

    exact = [
        tuple((Dyadic.of(a.weight), Dyadic.of(a.bias)) for a in layers)
        for layers in (loop.closed_loop, loop.lyapunov)
    ]
    proved = frozenset(("positivity", "decrease", "invariance"))
    hole = analyse_hole(loop, exact[0], exact[1], proved)
    assert hole.kind == "open" and hole.verdict == "unknown"
    sentence = conclude(loop, exact[1], hole, proved)
    assert sentence.kind == "recurrent" and "not proved" in sentence.sentence


@pytest.mark.parametrize(
    ("bias", "radius", "shape"), [(1.0, 1.0, "affine"), (1.0, 1.01, None), (0.0, 9.0, "conic")]
)
def test_the_piece_around_the_equilibrium(bias: float, radius: float, shape: str | None) -> None:
    """relu(y + bias) at y = 0: affine as long as |y| <= bias, conic for bias 0."""
    one = Dyadic.of(np.eye(1))
    network = ((one, Dyadic.of([bias])), (one, Dyadic.of([0.0])))
    assert local_shape(network, Dyadic.of([0.0]), Dyadic.of([radius])) == shape


def test_steps_are_enough_and_not_many_more() -> None:
    ship = shipped(seed=1)
    loop = loop_of(ship.loop)
    gauge = exact_layers(ship.lyapunov, "V")
    steps = steps_into_hole(loop, gauge)
    assert steps is not None
    top = float(largest_on_box(gauge, Dyadic.of(loop.lower), Dyadic.of(loop.upper)))
    floor = loop.positivity * loop.hole_radius
    assert top * loop.rho**steps < floor < top * loop.rho ** (steps - 1.01)
    assert 3 < top < 8  # interval arithmetic counts both halves of each |y_i − Y_i|


def test_numbers_in_sentences_are_rounded_up() -> None:
    assert (
        _shown(0.1234) == "0.124"
        and float(_shown(7.8207e-14)) >= 7.8207e-14
        and _shown(0.125) == "0.125"
    )


# ---- contraction
# ------------------------------------------------------------------------------------------


def l1_loop(factor: float, **changes: Any) -> Loop:
    both, zeros = np.concatenate([np.eye(2), -np.eye(2)]), np.zeros

    def layer(weight: np.ndarray) -> Layer:
        return Layer(weight, zeros(weight.shape[0]), zeros(weight.shape), zeros(weight.shape[0]))

    fields = {
        "lower": -np.ones(2),
        "upper": np.ones(2),
        "equilibrium": zeros(2),
        "hole_radius": 0.1,
        "hole_norm": "inf",
        "rho": 0.9,
        "positivity": 0.5,
        **changes,
    }
    return Loop(
        (layer(both), layer(factor * both.T)), (layer(both), layer(np.ones((1, 4)))), **fields
    )


def test_the_contraction_factor_by_hand() -> None:
    """Each axis is carried by two units of slope 0.25 each, so κ = 0.5 (the bound lets both be
    active)."""
    loop = l1_loop(0.25)
    gauge = gauge_of(loop)
    assert (
        gauge.up.fractions() == gauge.down.fractions() == [1, 1]
        and gauge.error == 0
        and gauge.floor == 1
    )
    assert contraction_factor(loop, gauge) == Fraction(1, 2)
    check_contraction(loop, "decrease")
    check_contraction(loop, "positivity")


@pytest.mark.parametrize(
    ("condition", "loop"),
    [
        ("decrease", l1_loop(0.5)),
        ("decrease", l1_loop(0.25, rho=0.5)),
        ("positivity", l1_loop(0.25, positivity=1.5)),
        ("invariance", l1_loop(0.25)),
        ("decrease", l1_loop(0.25, equilibrium=np.full(2, 0.25))),
    ],
)
def test_contraction_claims_that_do_not_hold(condition: str, loop: Loop) -> None:
    with pytest.raises(Refused):
        check_contraction(loop, condition)


def test_a_contraction_needs_an_axis_aligned_gauge() -> None:
    with pytest.raises(Refused, match="one entry"):
        gauge_of(loop_of(shipped().loop))


# ---- homogeneous
# ------------------------------------------------------------------------------------------


def faces_proof(loop: Loop, condition: str, margin: float) -> dict[str, Any]:
    """Faces split until the bound is below −margin."""
    faces = []
    for row in rows_of(loop, condition):
        for axis in range(loop.n):
            for side, end in (("lower", loop.lower), ("upper", loop.upper)):
                lower, upper = loop.lower.copy(), loop.upper.copy()
                lower[axis] = upper[axis] = end[axis]
                axes, cuts = split(RowBound(row, lower, upper), lower, upper, margin)
                faces.append(
                    {
                        "row": row.name,
                        "side": side,
                        "lower": lower.tolist(),
                        "upper": upper.tolist(),
                        "axis": pack(np.array(axes), "<i1"),
                        "cut": pack(np.array(cuts), "<f8"),
                        "slopes": pack(np.zeros((0, row.first_width + row.lens_width)), "|u1"),
                        "lenses": pack(np.zeros((0, 0, 0)), "<f8"),
                    }
                )
    return {
        "version": 1,
        "kind": "homogeneous",
        "condition": condition,
        "margin": margin,
        "faces": faces,
    }


def split(
    bound: RowBound, lower: np.ndarray, upper: np.ndarray, margin: float
) -> tuple[list[int], list[float]]:
    if bound.upper(lower[None], upper[None])[0][0] < -2 * margin:
        return [-2], []
    axis = int(np.argmax(upper - lower))
    if upper[axis] - lower[axis] < 1e-3:
        return [-2], []
    middle = (lower[axis] + upper[axis]) / 2
    left, right = upper.copy(), lower.copy()
    left[axis] = right[axis] = middle
    a, c = split(bound, lower, left, margin)
    b, d = split(bound, right, upper, margin)
    return [axis, *a, *b], [middle, *c, *d]


@pytest.mark.parametrize("condition", ["decrease", "positivity"])
def test_a_homogeneous_proof(condition: str) -> None:
    loop = loop_of(shipped(bend=0.0, hole_radius=1e-6).loop)
    assert 0 <= homogeneity_defect(loop, condition) < Fraction(1, 10**12)
    assert check_homogeneous(loop, condition, faces_proof(loop, condition, 0.01)) > 4


def test_homogeneous_proofs_that_do_not_carry() -> None:
    bent, straight = (
        loop_of(shipped(hole_radius=1e-6).loop),
        loop_of(shipped(bend=0.0, hole_radius=1e-6).loop),
    )
    good = faces_proof(straight, "decrease", 0.01)
    with pytest.raises(Refused, match="residual"):
        check_homogeneous(bent, "decrease", faces_proof(bent, "decrease", 0.01))
    with pytest.raises(Refused, match="residual"):
        check_homogeneous(straight, "decrease", {**good, "margin": 0.0})
    with pytest.raises(Refused, match="not proved"):
        check_homogeneous(straight, "decrease", {**good, "margin": 0.5})
    with pytest.raises(Refused, match="faces"):
        check_homogeneous(straight, "decrease", {**good, "faces": good["faces"][:-1]})
    with pytest.raises(Refused, match="cannot show"):
        check_homogeneous(straight, "invariance", good)
