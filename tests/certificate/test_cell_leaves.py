"""Leaves proved by their activation cells: hand-made cases, proofs of the engine, and every way of
spoiling them."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest

from graphkeel.certificate.cells import check_cells, exact_row
from graphkeel.certificate.checker import _check_proof
from graphkeel.certificate.schema import Loop, loop_of
from graphkeel.certificate.trees import Refused
from graphkeel.core.errors import CertificateError
from graphkeel.testing.loops import touching, turning
from graphkeel.verify import Affine, Budget, Network, Problem, Verdict, verify

ONE = np.ones(1)


# on [−1, 1] both units change their sign at 1/3; F − 1 = −relu(3y − 1)/4 − relu(1 − 3y)/4
NOTHING_USED = ["split", ["+", "1"], ["bound", "0"], ["-", "1"], ["bound", "0"]]


def by_hand(steps: Any, loop: Loop | None = None, margin: float = 0.0) -> None:
    loop = loop or loop_of(touching())
    check_cells(exact_row(loop, "invariance", "upper 0"), -ONE, ONE, steps, margin, "leaf")


def test_cells_by_hand() -> None:
    """Left of the kink −(1 − 3y)/4 is bounded by 1/4 of the constraint 1 − 3y ≥ 0, right of it
    likewise."""
    by_hand(["split", ["+", "1"], ["bound", "1/4"], ["-", "1"], ["bound", "1/4"]])


SPOILED: dict[str, list[Any]] = {
    "no multiplier where one is needed": NOTHING_USED,
    "a multiplier that is too small": [
        "split",
        ["+", "1"],
        ["bound", "1/5"],
        ["-", "1"],
        ["bound", "1/4"],
    ],
    "a multiplier that is too large": [
        "split",
        ["+", "1"],
        ["bound", "1/4"],
        ["-", "1"],
        ["bound", "1/3"],
    ],
    "a flipped sign of a unit": [
        "split",
        ["-", "1"],
        ["bound", "1/4"],
        ["-", "1"],
        ["bound", "1/4"],
    ],
    "a sign without its reason": [
        "split",
        ["+", "0"],
        ["bound", "1/4"],
        ["-", "1"],
        ["bound", "1/4"],
    ],
    "a negative multiplier": ["split", ["+", "1"], ["bound", "-1/4"], ["-", "1"], ["bound", "1/4"]],
    "a signed multiplier": ["split", ["+", "1"], ["bound", "+1/4"], ["-", "1"], ["bound", "1/4"]],
    "a decimal": ["split", ["+", "1"], ["bound", "0.25"], ["-", "1"], ["bound", "1/4"]],
    "a float": ["split", ["+", "1"], ["bound", 0.25], ["-", "1"], ["bound", "1/4"]],
    "division by zero": ["split", ["+", "1"], ["bound", "1/0"], ["-", "1"], ["bound", "1/4"]],
    "one side only": ["split", ["+", "1"], ["bound", "1/4"]],
    "one sign for the whole box": [["+"], ["-"], ["bound"]],
    "finished at once": [["bound"]],
    "finished before the last unit": ["split", ["bound", "1/4"], ["-", "1"], ["bound", "1/4"]],
    "too many multipliers": [
        "split",
        ["+", "1"],
        ["bound", "1/4", "0"],
        ["-", "1"],
        ["bound", "1/4"],
    ],
    "too few multipliers": ["split", ["+", "1"], ["bound"], ["-", "1"], ["bound", "1/4"]],
    "a step too many": [
        "split",
        ["+", "1"],
        ["bound", "1/4"],
        ["-", "1"],
        ["bound", "1/4"],
        "split",
    ],
    "a split where nothing is open": ["split", "split", "split", ["bound", "1/4", "0", "0"]],
    "an unknown step": ["split", ["?", "1"], ["bound", "1/4"], ["-", "1"], ["bound", "1/4"]],
    "no step": [],
}


@pytest.mark.parametrize("name", sorted(SPOILED))
def test_spoiled_cells_are_refused(name: str) -> None:
    with pytest.raises(Refused):
        by_hand(SPOILED[name])


@pytest.mark.parametrize("steps", [None, "split", {"split": 1}, ["split"] * 100_001])
def test_what_is_no_list_of_steps_is_refused(steps: Any) -> None:
    with pytest.raises((CertificateError, Refused)):
        by_hand(steps)


def test_the_same_cells_do_not_prove_what_is_not_so() -> None:
    good = ["split", ["+", "1"], ["bound", "1/4"], ["-", "1"], ["bound", "1/4"]]
    higher = loop_of(touching(np.nextafter(1.0, 2.0)))
    with pytest.raises(Refused, match="bound of a cell"):
        by_hand(good, higher)
    with pytest.raises(Refused, match="bound of a cell"):
        by_hand(good, margin=2.0**-60)


def test_weight_errors_count() -> None:
    """The kink touches zero: with any uncertainty in a layer it may lie above."""
    problem = touching()
    first, last = problem.closed_loop.layers
    good = ["split", ["+", "1"], ["bound", "1/4"], ["-", "1"], ["bound", "1/4"]]
    for layers in (
        (Affine(first.weight, first.bias, np.full((2, 1), 1e-12)), last),
        (Affine(first.weight, first.bias, None, np.full(2, 1e-12)), last),
        (first, Affine(last.weight, last.bias, np.full((1, 2), 1e-12))),
        (first, Affine(last.weight, last.bias, None, np.full(1, 1e-12))),
    ):
        loop = loop_of(Problem(Network(layers), problem.lyapunov, -ONE, ONE, np.zeros(1), 0.25))
        with pytest.raises(Refused):
            by_hand(good, loop)


def test_small_errors_are_covered_where_there_is_room() -> None:
    problem = touching(0.75)
    first, last = problem.closed_loop.layers
    layers = (Affine(first.weight, first.bias, np.full((2, 1), 1e-3), np.full(2, 1e-3)), last)
    loop = loop_of(Problem(Network(layers), problem.lyapunov, -ONE, ONE, np.zeros(1), 0.25))
    # the units' kinks may differ now, so both signs of both have to be looked at
    left = ["split", ["bound", "0", "0"], ["bound", "0", "1/4"]]
    right = ["split", ["bound", "1/4", "0"], ["bound", "0", "0"]]
    by_hand(["split", *left, *right], loop)
    with pytest.raises(Refused, match="sign"):
        by_hand(["split", ["+", "1"], ["bound", "1/4"], ["-", "1"], ["bound", "1/4"]], loop)


# ---- what the engine writes
# ---------------------------------------------------------------------------------


def proved(problem: Problem, condition: str) -> dict[str, Any]:
    report = verify(problem, "branch", Budget(seconds=20.0), (condition,))[condition]
    assert report.verdict is Verdict.PROVED and report.proof is not None
    return report.proof


def cells_in(proof: dict[str, Any]) -> int:
    return sum(len(tree.get("cells", [])) for tree in proof["trees"])


CASES = {
    "touching": (touching(), "invariance"),
    "without hole": (turning(), "decrease"),
    "distance without hole": (turning(), "positivity"),
}


@pytest.mark.parametrize("name", sorted(CASES))
def test_the_checker_accepts_the_engines_cells(name: str) -> None:
    problem, condition = CASES[name]
    proof = proved(problem, condition)
    assert cells_in(proof) > 0
    assert _check_proof(loop_of(problem), condition, proof) > 0


@pytest.mark.parametrize("name", ["touching", "without hole"])
def test_every_corruption_of_the_engines_cells_is_refused_or_harmless(name: str) -> None:
    """Any change of a step either is refused or leaves a proof of the same true statement; most are
    refused."""
    problem, condition = CASES[name]
    proof, loop = proved(problem, condition), loop_of(problem)
    refused = tried = 0
    rng = np.random.default_rng(0)
    for _ in range(60):
        broken = copy.deepcopy(proof)
        leaves = [leaf for tree in broken["trees"] for leaf in tree.get("cells", [])]
        leaf = leaves[rng.integers(len(leaves))]
        place = int(rng.integers(len(leaf)))
        if not spoil(leaf, place, rng):
            continue
        tried += 1
        try:
            _check_proof(loop, condition, broken)
        except (Refused, CertificateError):
            refused += 1
    assert tried > 20 and refused > 0.6 * tried


def spoil(leaf: list[Any], place: int, rng: np.random.Generator) -> bool:
    """Change one step of a cell leaf: drop it, turn its sign, or change one of its multipliers."""
    step, way = leaf[place], rng.integers(3)
    if way == 0:
        del leaf[place]
    elif step == "split":
        leaf[place] = ["bound"]
    elif way == 1 and step[0] != "bound":
        leaf[place] = ["-" if step[0] == "+" else "+", *step[1:]]
    elif any(text != "0" for text in step[1:]):
        which = next(i for i, text in enumerate(step) if i and text != "0")
        leaf[place] = [*step[:which], "0", *step[which + 1 :]]
    else:
        return False
    return True


def test_cells_of_another_box_or_problem_are_refused() -> None:
    proof = proved(turning(), "decrease")
    with pytest.raises(Refused):
        _check_proof(loop_of(turning(rho=0.5)), "decrease", proof)
    moved = copy.deepcopy(proof)
    moved["trees"][0]["cells"].append(["bound"])
    with pytest.raises(Refused, match="fit together"):
        _check_proof(loop_of(turning()), "decrease", moved)
    del moved["trees"][0]["cells"]
    with pytest.raises(Refused, match="fit together"):
        _check_proof(loop_of(turning()), "decrease", moved)
