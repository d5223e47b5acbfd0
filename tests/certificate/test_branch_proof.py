"""Trees: lenses, malformed arrays, and proofs of the real engine, which shares no code with the
checker."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest
from loops import pack, prove, shipped

from graphkeel.certificate.bounds import RowBound
from graphkeel.certificate.branch_proof import check_branch
from graphkeel.certificate.checker import _check_proof
from graphkeel.certificate.exact_bounds import exact_upper
from graphkeel.certificate.rows import rows_of
from graphkeel.certificate.schema import Layer, Loop, loop_of
from graphkeel.certificate.trees import Refused, Tree
from graphkeel.core.errors import CertificateError
from graphkeel.verify.problem import Affine, Network, Problem
from graphkeel.verify.result import Budget, Verdict


@pytest.fixture(scope="module")
def loop() -> Loop:
    return loop_of(shipped(seed=1).loop)


@pytest.fixture(scope="module")
def proof(loop: Loop) -> dict[str, Any]:
    found = prove(loop, "decrease")
    assert found is not None
    return found


def test_a_real_tree_is_accepted(loop: Loop, proof: dict[str, Any]) -> None:
    assert check_branch(loop, "decrease", proof) == (proof["trees"][0]["axis"]["shape"][0] + 1) // 2


CHANGES: dict[str, tuple[dict[str, Any], type[Exception], str]] = {
    "no leaf at the end": ({"axis": pack(np.array([0, -2]), "<i1")}, Refused, "complete|fit"),
    "a second tree": (
        {"axis": pack(np.array([-2, -2]), "<i1"), "cut": pack(np.zeros(0), "<f8")},
        Refused,
        "ends",
    ),
    "no node": (
        {"axis": pack(np.zeros(0), "<i1"), "cut": pack(np.zeros(0), "<f8")},
        Refused,
        "complete",
    ),
    "axis out of range": ({"axis": pack(np.array([7, -2, -2]), "<i1")}, Refused, "axis"),
    "an unknown kind of leaf": ({"axis": pack(np.array([-5]), "<i1")}, Refused, "axis"),
    "a cell leaf without its cells": (
        {"axis": pack(np.array([-4]), "<i1"), "cut": pack(np.zeros(0), "<f8")},
        Refused,
        "cell",
    ),
    "too few cuts": ({"cut": pack(np.zeros(1), "<f8")}, Refused, "fit together"),
    "another dtype": ({"cut": pack(np.zeros(1), "<f4")}, CertificateError, "packed"),
    "not packed": ({"cut": [1, 2]}, CertificateError, "packed"),
    "nan cut": ({"cut": pack(np.array([np.nan]), "<f8")}, CertificateError, "finite"),
    "short box": ({"lower": [0.0]}, CertificateError, "list of 2"),
    "box of text": ({"lower": ["a", "b"]}, CertificateError, "list of 2"),
    "another row": ({"row": "positivity"}, Refused, "order"),
    "negative lens": ({"lenses": pack(-np.ones((1, 4, 4)), "<f8")}, Refused, "lenses"),
    "lens of another size": ({"lenses": pack(np.ones((1, 3, 3)), "<f8")}, Refused, "lenses"),
    "an extra key": ({"note": "trust me"}, CertificateError, "keys"),
}


@pytest.mark.parametrize("name", sorted(CHANGES))
def test_malformed_trees(loop: Loop, proof: dict[str, Any], name: str) -> None:
    change, error, message = CHANGES[name]
    broken = copy.deepcopy(proof)
    broken["trees"][0].update(change)
    with pytest.raises(error, match=message):
        check_branch(loop, "decrease", broken)


def test_leaves_cover_the_root(proof: dict[str, Any], loop: Loop) -> None:
    row = rows_of(loop, "decrease")[0]
    tree = Tree.from_json(proof["trees"][0], loop.n, row.first_width, row.lens_width, "tree")
    batches = list(tree.leaves("tree"))
    volume = sum(float(np.prod(b.upper - b.lower, axis=1).sum()) for b in batches)
    assert volume == pytest.approx(float(np.prod(loop.upper - loop.lower)))
    points = np.random.default_rng(0).uniform(loop.lower, loop.upper, size=(500, loop.n))
    inside = [
        ((points[:, None] >= b.lower) & (points[:, None] <= b.upper)).all(axis=2).any(axis=1)
        for b in batches
    ]
    assert np.any(inside, axis=0).all()


def test_a_lens_compares_unit_with_unit() -> None:
    """F(y) = y/2 and V the one-norm: with θ = 1/2 what is left of V∘F is zero, so one box bounds
    V(F) − 3V/4 by 0."""
    both, zeros = np.concatenate([np.eye(2), -np.eye(2)]), np.zeros

    def layer(weight: np.ndarray) -> Layer:
        return Layer(weight, zeros(weight.shape[0]), zeros(weight.shape), zeros(weight.shape[0]))

    forward, gauge = (layer(0.5 * np.eye(2)),), (layer(both), layer(np.ones((1, 4))))
    loop = Loop(forward, gauge, -np.ones(2), np.ones(2), zeros(2), 0.0, "inf", 0.75, 0.0)
    row = rows_of(loop, "decrease")[0]
    bound = RowBound(row, loop.lower, loop.upper)
    assert exact_upper(row, loop.lower, loop.upper, None, 0.5 * np.eye(4)) == 0
    assert (
        bound.upper(loop.lower[None], loop.upper[None], None, 0.5 * np.eye(4)[None])[0][0] < 1e-12
    )
    assert bound.upper(loop.lower[None], loop.upper[None])[0][0] > 0.5


def test_a_lens_on_a_negative_unit_is_refused(loop: Loop) -> None:
    from dataclasses import replace

    first, last = loop.lyapunov
    turned = replace(loop, lyapunov=(first, replace(last, weight=-last.weight)))
    row = rows_of(turned, "decrease")[0]
    width = row.first_width + row.lens_width
    numbers = np.zeros((1, width))
    numbers[0, -1] = 1
    tree = {
        "row": "decrease",
        "lower": loop.lower.tolist(),
        "upper": loop.upper.tolist(),
        "axis": pack(np.array([-3]), "<i1"),
        "cut": pack(np.zeros(0), "<f8"),
        "slopes": pack(numbers, "|u1"),
        "lenses": pack(np.eye(row.lens_width)[None], "<f8"),
    }
    with pytest.raises(Refused, match="negative"):
        check_branch(turned, "decrease", {"trees": [tree]})
    tree["slopes"] = pack(2 * numbers, "|u1")
    with pytest.raises(Refused, match="does not exist"):
        check_branch(turned, "decrease", {"trees": [tree]})


# ---- proofs of the engine
# -----------------------------------------------------------------------------------


def as_problem(question: Any) -> Problem:
    def network(layers: Any) -> Network:
        return Network(
            tuple(Affine(a.weight, a.bias, a.weight_error, a.bias_error) for a in layers.layers)
        )

    keys = ("lower", "upper", "equilibrium", "hole_radius", "hole_norm", "rho", "positivity")
    networks = (network(question.closed_loop), network(question.lyapunov))
    return Problem(*networks, **{key: getattr(question, key) for key in keys})


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"n": 3, "hidden": 10},
        {"n": 4, "hidden": 12, "bend": 0.0, "hole_radius": 1e-4},
        {"affine_head": False},
        {"hole_norm": "2"},
        {"rho": 1.0, "positivity": 0.0},
        {"n": 5, "hidden": 14, "speed": 0.5},
    ],
    ids=str,
)
def test_the_engine_and_the_checker_agree(options: dict[str, Any]) -> None:
    branch = pytest.importorskip("graphkeel.verify.branch")
    problem = as_problem(shipped(**options).loop)
    report = branch.BranchVerifier().solve(problem, Budget(seconds=30))
    proved = [answer for answer in report.conditions if answer.verdict is Verdict.PROVED]
    assert proved
    for answer in proved:
        assert _check_proof(loop_of(problem), answer.condition, answer.proof) > 0
