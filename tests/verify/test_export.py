"""Exported files: onnxruntime computes the same numbers, Z3 reads the SMT-LIB files and agrees with
the truth."""

from __future__ import annotations

import re
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import numpy as np
import pytest
from known import KNOWN, scaling

from graphkeel.core.errors import ConfigError, StorageError
from graphkeel.verify.formats.export import decimal, export, hole_faces, vnnlib_files
from graphkeel.verify.formats.smtlib import smtlib
from graphkeel.verify.problem import Problem

EXACT = sorted(name for name in KNOWN if name not in ("a little unsure", "halving, L2 hole"))


def run(path: Path, points: np.ndarray) -> np.ndarray:
    runtime = pytest.importorskip("onnxruntime")
    session = runtime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    return np.concatenate([session.run(None, {"y": point[None]})[0] for point in points])


@pytest.mark.parametrize("name", ["halving", "corner", "doubling"])
def test_onnxruntime_computes_the_same(name: str, tmp_path: Path) -> None:
    pytest.importorskip("onnx")
    problem = KNOWN[name][0]
    export(problem, tmp_path, ["onnx"])
    points = np.random.default_rng(0).uniform(problem.lower, problem.upper, size=(50, 2))
    here, image = problem.lyapunov(points), problem.closed_loop(points)
    expected = np.concatenate([here, problem.lyapunov(image) - problem.rho * here, image], axis=1)
    np.testing.assert_allclose(run(tmp_path / "problem.onnx", points), expected, atol=1e-12)
    offset = problem.positivity * (points - problem.equilibrium)
    sides = np.stack([here - offset, here + offset], axis=2).reshape(50, 4)
    np.testing.assert_allclose(run(tmp_path / "positivity.onnx", points), sides, atol=1e-12)


@pytest.mark.parametrize("name", EXACT)
@pytest.mark.parametrize("condition", ["positivity", "decrease", "invariance"])
def test_z3_agrees_on_the_smtlib_file(name: str, condition: str) -> None:
    z3 = pytest.importorskip("z3")
    problem, truth = KNOWN[name]
    solver = z3.Solver()
    solver.set("timeout", 60_000)
    solver.from_string(smtlib(problem, condition))
    assert str(solver.check()) == {"proved": "unsat", "refuted": "sat"}[truth[condition]]


def sat(text: str, problem: Problem) -> bool:
    """A VNN-LIB file, decided by Z3 together with the network it refers to (taken from the SMT-LIB
    export)."""
    z3 = pytest.importorskip("z3")
    network = [
        line
        for line in smtlib(problem, "decrease").splitlines()
        if re.match(r"\(declare|\(assert \(=|.*_p", line)
    ]
    body = [line for line in text.splitlines() if not line.startswith(";")]
    here, after, image = "v1_0", "w1_0", ["f1_0", "f1_1"]
    links = [f"(assert (= X_{i} y{i}))" for i in range(problem.n)]
    if "positivity.onnx" in text:
        for i in range(problem.n):
            links += [
                f"(assert (= Y_{2 * i} (- {here} (* {problem.positivity} y{i}))))",
                f"(assert (= Y_{2 * i + 1} (+ {here} (* {problem.positivity} y{i}))))",
            ]
    else:
        links += [
            f"(assert (= Y_0 {here}))",
            f"(assert (= Y_1 (- {after} (* {problem.rho} {here}))))",
        ]
        links += [f"(assert (= Y_{i + 2} {image[i]}))" for i in range(problem.n)]
    solver = z3.Solver()
    solver.from_string("\n".join([*network, *body, *links]))
    return str(solver.check()) == "sat"


@pytest.mark.parametrize("name", ["halving", "doubling", "corner", "too much positivity"])
def test_vnnlib_files_decide_the_conditions(name: str) -> None:
    problem, truth = KNOWN[name]
    files = vnnlib_files(problem)
    assert (
        len(files) == 9
    )  # four faces for positivity and decrease each, and the box for invariance
    for condition, verdict in truth.items():
        answers = [sat(text, problem) for file, text in files if file.startswith(condition)]
        assert any(answers) == (verdict == "refuted"), condition


def test_the_faces_cover_everything_outside_the_hole() -> None:
    problem = scaling(0.5, hole_radius=0.1, equilibrium=np.array([0.3, -0.2]), hole_norm="2")
    points = np.random.default_rng(0).uniform(problem.lower, problem.upper, size=(5000, 2))
    covered = np.zeros(len(points), dtype=bool)
    for _, _, low, high in hole_faces(problem):
        covered |= ((points >= low) & (points <= high)).all(axis=1)
    assert covered[~problem.in_hole(points)].all()
    assert not covered.all()


def test_decimals_are_exact() -> None:
    for value in (0.1, -1.0, 1e-20, 123456.789, 2.0**-1074):
        assert Decimal(decimal(value)) == Decimal(value)


def test_unknown_formats_and_unwritable_folders(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="formats"):
        export(scaling(0.5), tmp_path, ["pdf"])
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError, match="written"):
        export(scaling(0.5), tmp_path / "file", ["smt2"])


def test_a_name_adds_no_line_to_a_file() -> None:
    """The name comes from a problem's file; in a comment of its own line it could be a command."""
    for end in ("\n", "\r", "\u2028"):
        problem = replace(scaling(0.5), name=f"x{end}(assert false)")
        texts = [smtlib(problem, "decrease"), *(text for _, text in vnnlib_files(problem))]
        for text in texts:
            lines = text.splitlines()
            assert all("false" not in line or line.startswith("; ") for line in lines)


def test_rounded_weights_are_named_in_the_files() -> None:
    assert "rounded" in smtlib(KNOWN["a little unsure"][0], "decrease")
    assert "rounded" not in smtlib(scaling(0.5), "decrease")
    assert "L2 hole" in smtlib(scaling(0.5, hole_norm="2"), "decrease")
