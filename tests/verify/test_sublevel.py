"""Sublevel sets: verdicts worked out on paper and by Z3; proofs, and their forgers."""

from __future__ import annotations

import copy
import itertools
import json
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from known import corner, scaling, with_errors
from loops import random_loop

from graphkeel.certificate.encoding import certificate_bytes
from graphkeel.checker import Unreadable, check_bytes
from graphkeel.checker.exact import Work
from graphkeel.checker.problem import Loop
from graphkeel.checker.properties import _read_loop
from graphkeel.cli.main import main
from graphkeel.core.errors import ProblemError
from graphkeel.core.optional import is_installed
from graphkeel.verify import Budget, Network, Problem, Verdict, read_problem, verify, write_problem
from graphkeel.verify.problem import FALLS, STAYS, SUBLEVEL, Sublevel
from graphkeel.verify.proof import encode
from graphkeel.verify.property.sublevel import (
    loop_difference,
    loop_entry,
    loop_proof,
    sublevel_property,
)
from graphkeel.verify.rational import violates

BUDGET = Budget(seconds=600.0)


def on(problem: Problem, level: float, floor: float | None = None) -> Problem:
    return replace(problem, sublevel=Sublevel(level, floor))


def drift(**changes: Any) -> Problem:
    """F(y) = y/2 + 1/4 and V(y) = |y| on [−4, 4]: V(F(y)) ≤ 3/4·V(y) for y ≤ −1/5 and y ≥ 1."""
    problem = Problem(
        Network.of(([[0.5]], [0.25])),
        Network.of(([[1.0], [-1.0]], [0.0, 0.0]), ([[1.0, 1.0]], [0.0])),
        lower=np.full(1, -4.0),
        upper=np.full(1, 4.0),
        equilibrium=np.zeros(1),
        rho=0.75,
    )
    return replace(problem, **changes)


# `corner` halves, but for a kick of 8·relu(s − 7/4) on y₁, s = y₁ + y₂. V falls to 3/4 of itself
# while s ≤ 56/31 = 1.806…; F stays in the box while s ≤ 29/16 = 1.8125, and V(F) ≤ c while
# c ≤ 28/15 = 1.867: between the last two the set is left through the box alone.
TRUTH: list[tuple[str, Problem, str, str]] = [
    ("halving", on(scaling(0.5), 1.0), STAYS, "proved"),
    ("halving", on(scaling(0.5), 1.0), FALLS, "proved"),
    ("all of the box", on(scaling(0.5), 5.0), STAYS, "proved"),
    ("turning round", on(scaling(-0.5), 0.5), STAYS, "proved"),
    ("doubling", on(scaling(2.0), 0.5), STAYS, "refuted"),
    ("doubling", on(scaling(2.0), 0.5), FALLS, "refuted"),
    ("an empty set", on(scaling(2.0), -0.125), STAYS, "proved"),
    ("an empty set", on(scaling(2.0), -0.125), FALLS, "proved"),
    ("all in the hole", on(scaling(2.0), 0.125), FALLS, "refuted"),  # its corner is on the hole
    ("strictly in the hole", on(scaling(2.0), 0.12), FALLS, "proved"),
    ("a hole wider than the box", on(scaling(2.0, hole_radius=2.0), 1.0), FALLS, "proved"),
    ("before the kick", on(corner(), 1.75), STAYS, "proved"),
    ("before the kick", on(corner(), 1.75), FALLS, "proved"),
    ("a small kick", on(corner(), 1.8), FALLS, "proved"),
    ("a larger kick", on(corner(), 1.8125), FALLS, "refuted"),
    ("a kick within the box", on(corner(), 1.8), STAYS, "proved"),
    ("a kick out of the box", on(corner(), 1.84), STAYS, "refuted"),
    ("drift, all", on(drift(), 3.0), STAYS, "proved"),
    ("drift, far", on(drift(), 3.0, 1.0625), FALLS, "proved"),
    ("drift, near", on(drift(), 3.0, 0.9), FALLS, "refuted"),
    ("drift, nearest", on(drift(), 3.0), FALLS, "refuted"),
    ("drift, a band", on(drift(rho=1.0), 3.0, 0.75), FALLS, "proved"),
    ("drift, from its fixed point", on(drift(rho=1.0), 3.0, 0.5), FALLS, "refuted"),
    ("drift, a round hole", on(drift(hole_radius=1.0625, hole_norm="2"), 3.0), FALLS, "proved"),
]
NAMES = [f"{name}: {condition}" for name, _, condition, _ in TRUTH]


def decided(problem: Problem, condition: str) -> Any:
    report = verify(problem, "auto", BUDGET, (condition,))[condition]
    if report.verdict is Verdict.REFUTED:
        assert violates(problem, condition, report.counterexample)
    return report


@pytest.mark.parametrize(("name", "problem", "condition", "truth"), TRUTH, ids=NAMES)
def test_verdicts_are_those_worked_out_by_hand(
    name: str, problem: Problem, condition: str, truth: str
) -> None:
    report = decided(problem, condition)
    assert report.verdict.value == truth, report.reason
    if report.verdict is Verdict.PROVED and name == "a hole wider than the box":
        assert report.proof is None and "vacuous" in report.reason
    elif report.verdict is Verdict.PROVED:
        content = loop_proof(problem, {condition: report.proof})
        result = check_bytes(certificate_bytes(content))
        assert result.accepted and condition in result.reason, result.reason


@pytest.mark.skipif(not is_installed("z3"), reason="z3 is not installed")
@pytest.mark.parametrize(("name", "problem", "condition", "truth"), TRUTH, ids=NAMES)
def test_z3_says_the_same(name: str, problem: Problem, condition: str, truth: str) -> None:
    report = verify(problem, "smt", BUDGET, (condition,))[condition]
    assert report.verdict.value == truth


def test_a_tie_is_no_violation() -> None:
    """F(y) = y keeps V where it is: the set is invariant, with equality everywhere."""
    report = verify(on(scaling(1.0), 0.5), "auto", Budget(seconds=1.0), (STAYS,))[STAYS]
    assert report.verdict is not Verdict.REFUTED
    falls = decided(on(scaling(1.0, rho=1.0), 0.5), FALLS)
    assert falls.verdict is Verdict.REFUTED  # strictly, V does not fall


@pytest.mark.skipif(not is_installed("z3"), reason="z3 is not installed")
def test_random_loops_against_z3() -> None:
    found = []
    for seed in range(12):
        problem = random_loop(seed)
        values = problem.lyapunov(np.random.default_rng(seed).uniform(-1.0, 1.0, (200, 2)))
        low, high = np.quantile(values, [0.2, 0.6])
        problem = on(problem, float(high), float(low) if seed % 2 else None)
        for condition in SUBLEVEL:
            ours = verify(problem, "auto", Budget(seconds=2.0), (condition,))[condition]
            theirs = verify(problem, "smt", Budget(seconds=2.0), (condition,))[condition]
            pair = {ours.verdict, theirs.verdict}
            assert pair != {Verdict.PROVED, Verdict.REFUTED}, (seed, condition)
            if ours.verdict is Verdict.PROVED:
                content = loop_proof(problem, {condition: ours.proof or {}})
                assert check_bytes(certificate_bytes(content)).accepted
            found.append(ours.verdict)
    assert found.count(Verdict.PROVED) > 3 and found.count(Verdict.REFUTED) > 3


def test_rounded_layers_are_left_open() -> None:
    problem = with_errors(on(scaling(0.5), 1.0), 1e-6)
    report = verify(problem, "auto", BUDGET, (STAYS,))[STAYS]
    assert report.verdict is Verdict.UNKNOWN and "error bounds" in report.reason


@pytest.mark.parametrize("engine", ["contraction", "falsify"])
def test_engines_for_boxes_say_that_they_cannot(engine: str) -> None:
    report = verify(on(scaling(0.5), 1.0), engine, BUDGET, (STAYS,))[STAYS]
    assert report.verdict is Verdict.UNKNOWN and "sublevel" in report.reason


def test_all_conditions_of_one_problem_together() -> None:
    """Box invariance is refuted, that of the sublevel set is proved; a refutation ends the rest."""
    names = ("positivity", "decrease", "invariance", *SUBLEVEL)
    problem = on(corner(), 1.75)
    report = verify(problem, "auto", BUDGET, names)
    assert [answer.condition for answer in report.conditions] == list(names)
    assert [answer.verdict.value for answer in report.conditions] == [
        "proved",
        "refuted",
        "refuted",
        "proved",
        "proved",
    ]
    stopping = replace(BUDGET, first_refutation=True)
    first = verify(on(scaling(2.0), 0.5), "auto", stopping, tuple(SUBLEVEL))
    assert "not asked" in first[FALLS].reason


# ---- the box without the hole


@pytest.mark.parametrize("seed", range(40))
def test_slabs_are_the_box_without_the_hole(seed: int) -> None:
    """Each state outside the open hole lies in a slab, none inside it does, and no two slabs share
    more than their faces; the checker's are the same."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 4))
    grid = [Fraction(k, 4) for k in range(-8, 9)]  # every face of box and hole is on it
    ends = np.sort(rng.integers(-8, 9, (2, n)), axis=0) / 4
    centre, radius = rng.integers(-8, 9, n) / 4, float(rng.integers(1, 8)) / 4
    halving, sums = Network.of((np.eye(n) / 2, np.zeros(n))), Network.of((np.ones((1, n)), [0.0]))
    problem = on(Problem(halving, sums, *ends, centre, hole_radius=radius), 1.0)
    slabs = [case.ends for case in sublevel_property(problem, FALLS).cases]
    for state in itertools.product(grid, repeat=n):
        in_box = all(a <= y <= b for y, a, b in zip(state, *ends, strict=True))
        far = max(abs(y - Fraction(c)) for y, c in zip(state, centre, strict=True)) >= radius
        held = [inside(state, slab) for slab in slabs]
        assert any(held) == (in_box and far)
        middles = [y + Fraction(1, 8) for y in state]
        assert sum(inside(middles, slab) for slab in slabs) <= 1
    loop = _read_loop(loop_entry(problem), Work(10**9))
    parts = [part for part, _ in Loop(loop, Work(10**9)).cases(FALLS)]
    assert parts == [[a for a, _ in slab] + [b for _, b in slab] for slab in slabs]


def inside(state: Sequence[Fraction], slab: Any) -> bool:
    return all(a <= y <= b for y, (a, b) in zip(state, slab, strict=True))


# ---- the problem file


@pytest.mark.parametrize("name", ["loop.json", "loop.npz"])
@pytest.mark.parametrize("floor", [None, 0.25])
def test_files_keep_the_sublevel_set(name: str, floor: float | None, tmp_path: Path) -> None:
    write_problem(on(corner(), 1.75, floor), tmp_path / name)
    assert read_problem(tmp_path / name).sublevel == Sublevel(1.75, floor)


@pytest.mark.parametrize(
    "sublevel", [Sublevel(np.nan), Sublevel(np.inf), Sublevel(1.0, 2.0), Sublevel(1.0, np.nan)]
)
def test_levels_that_make_no_sense_are_refused(sublevel: Sublevel) -> None:
    with pytest.raises(ProblemError):
        replace(corner(), sublevel=sublevel)


def test_a_floor_needs_a_level_and_a_condition_a_set(tmp_path: Path) -> None:
    file = tmp_path / "loop.json"
    write_problem(on(corner(), 1.75, 0.25), file)
    content = json.loads(file.read_text())
    del content["sublevel"]
    file.write_text(json.dumps(content))
    with pytest.raises(ProblemError, match="needs a sublevel"):
        read_problem(file)
    with pytest.raises(ProblemError, match="sublevel"):
        verify(corner(), "auto", BUDGET, (STAYS,))


# ---- forgers


@pytest.fixture(scope="module")
def true_proof() -> Any:
    problem = on(corner(), 1.75, 0.125)
    report = verify(problem, "auto", BUDGET, tuple(SUBLEVEL))
    assert report.verdict is Verdict.PROVED
    return loop_proof(problem, {c.condition: c.proof or {} for c in report.conditions})


def refused(content: Any) -> str:
    """Why a proof is refused; a proof that is accepted fails the test."""
    try:
        result = check_bytes(certificate_bytes(content))
    except Unreadable as error:
        return f"unreadable: {error}"
    assert not result.accepted
    return result.reason


def forged(proof: Any, **loop: Any) -> Any:
    content = copy.deepcopy(proof)
    content["loop"] |= loop
    return content


def layers(network: Network) -> list[dict[str, Any]]:
    return [{"weight": encode(a.weight), "bias": encode(a.bias)} for a in network.layers]


def test_what_the_forgers_start_from_is_accepted(true_proof: Any) -> None:
    result = check_bytes(certificate_bytes(true_proof))
    assert result.accepted and "{V ≤ 1.75}" in result.reason
    assert "{0.125 ≤ V ≤ 1.75}" in result.reason


@pytest.mark.parametrize(
    "change",
    [
        {"level": 1.8125},  # raised: no longer true of the decrease
        {"level": 1.84},
        {"level": 100.0},
        {"level": 0.125, "floor": 1.75},  # swapped
        {"rho": 0.25},
        {"inner_radius": 0.0625},  # the roots end at the hole that was shown
        {"inner_radius": 0.0},
        {"inner_radius": -1.0},
        {"hole_radius": -1.0},
        {"equilibrium": encode(np.array([0.5, 0.0]))},
        {"upper": encode(np.array([2.0, 1.0]))},
        {"lower": encode(np.array([-1.0, -1.5]))},
        {"upper": encode(np.array([0.25, 1.0]))},  # F leaves a smaller box
        {"F": layers(scaling(2.0).closed_loop)},
        {"F": layers(scaling(0.5).lyapunov)},
        {"V": layers(drift().lyapunov)},
        {"V": layers(scaling(0.5).closed_loop)},
        {"V": layers(scaling(0.5).lyapunov)[1:]},
        {"V": layers(Network.of((np.eye(2), np.zeros(2)), ([[1.0, 1.0]], [0.0])))},
    ],
)
def test_a_proof_of_another_loop_is_refused(true_proof: Any, change: dict[str, Any]) -> None:
    assert refused(forged(true_proof, **change))


def test_a_case_left_out_is_refused(true_proof: Any) -> None:
    """Without the cases that F leaves the box, a set that is not invariant would pass: at 1.84 only
    these are false."""
    problem = on(corner(), 1.84)
    shown = on(replace(corner(), lower=np.full(2, -9.0), upper=np.full(2, 9.0)), 1.84)
    report = decided(shown, STAYS)
    assert report.verdict is Verdict.PROVED  # in a larger box, which it does not leave
    assert refused(forged(loop_proof(shown, {STAYS: report.proof}), **loop_box(problem)))
    for name in SUBLEVEL:
        for place in range(len(true_proof["conditions"][name])):
            content = copy.deepcopy(true_proof)
            del content["conditions"][name][place]
            assert "needs a list" in refused(content)


def loop_box(problem: Problem) -> dict[str, Any]:
    return {"lower": encode(problem.lower), "upper": encode(problem.upper)}


def test_cases_exchanged_are_refused(true_proof: Any) -> None:
    content = copy.deepcopy(true_proof)
    stays, falls = (content["conditions"][name] for name in SUBLEVEL)
    content["conditions"] = {FALLS: stays[:4], STAYS: [*falls, falls[0]]}
    assert refused(content)
    content = copy.deepcopy(true_proof)
    stays = content["conditions"][STAYS]
    stays[0], stays[1] = stays[1], stays[0]
    assert refused(content)
    content = copy.deepcopy(true_proof)
    content["conditions"][FALLS].reverse()
    assert "leaves out" in refused(content)


def test_a_smaller_root_is_refused(true_proof: Any) -> None:
    content = copy.deepcopy(true_proof)
    content["conditions"][STAYS][0]["upper"] = encode(np.array([1.0, 0.875]))
    assert "leaves out" in refused(content)


def test_no_condition_or_an_unknown_one_is_unreadable(true_proof: Any) -> None:
    for conditions in ({}, {"decrease": []}, [], {STAYS: {}}):
        assert refused({**true_proof, "conditions": conditions})


def test_the_loop_of_a_file_is_compared(true_proof: Any) -> None:
    assert loop_difference(true_proof, on(corner(), 1.75, 0.125)) is None
    assert loop_difference(true_proof, corner()) is None  # the file leaves the level open
    assert "level" in str(loop_difference(true_proof, on(corner(), 1.5, 0.125)))
    assert "floor" in str(loop_difference(true_proof, on(corner(), 1.75)))
    assert "F differ" in str(loop_difference(true_proof, on(scaling(0.5), 1.75, 0.125)))
    assert "network" in str(loop_difference({"network": {}}, corner()))


# ---- the commands


def test_verify_and_check(tmp_path: Path, capsys: Any) -> None:
    loop, proof = str(tmp_path / "corner.npz"), str(tmp_path / "proof.json")
    write_problem(corner(), loop)
    arguments = ["verify", loop, "--sublevel", "1.75", "--conditions", ",".join(SUBLEVEL)]
    assert main([*arguments, "--proof", proof]) == 0
    said = " ".join(capsys.readouterr().out.split())  # wherever a line of 80 columns is broken
    assert "keel check re-proves it" in said
    assert main(["check", proof]) == 0
    assert main(["check", proof, "--problem", loop]) == 0
    assert "the loop is that of the file" in " ".join(capsys.readouterr().out.split())
    write_problem(scaling(0.5), loop)
    assert main(["check", proof, "--problem", loop]) == 1
    assert "another loop" in capsys.readouterr().out


def test_the_command_refutes_and_refuses(tmp_path: Path, capsys: Any) -> None:
    loop = str(tmp_path / "corner.npz")
    write_problem(corner(), loop)
    assert main(["verify", loop, "--sublevel", "1.84", "--conditions", STAYS, "--json"]) == 1
    payload = json.loads(capsys.readouterr().out)
    assert payload["conditions"][0]["condition"] == STAYS and payload["counterexample"]
    assert main(["verify", loop, "--conditions", STAYS]) == 2
    assert main(["verify", loop, "--sublevel-floor", "1"]) == 2
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 2 and all(line.startswith("keel verify: ") for line in lines)
    with pytest.raises(SystemExit) as stop:
        main(["verify", loop, "--sublevel", "nan"])
    assert stop.value.code == 2
    assert "must be a number" in capsys.readouterr().err
