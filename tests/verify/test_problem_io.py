"""Problem files: every bit survives, and every malformed file is one clear error."""

from __future__ import annotations

import json
import os
import re
import warnings
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphkeel.core.errors import ProblemError
from graphkeel.verify import problem_io
from graphkeel.verify.problem import Affine, Network, Problem
from graphkeel.verify.problem_io import read_problem, to_dict, write_problem
from graphkeel.verify.settings import FileLimits

DOCS = Path(__file__).parents[2] / "docs" / "formats.md"


def random_problem(seed: int, *, errors: bool) -> Problem:
    rng = np.random.default_rng(seed)

    def layer(out: int, inp: int) -> Affine:
        weight, bias = rng.normal(size=(out, inp)), rng.normal(size=out)
        return Affine(weight, bias, abs(weight) * 1e-16, None) if errors else Affine(weight, bias)

    return Problem(
        Network((layer(5, 2), layer(2, 5))),
        Network((layer(4, 2), layer(1, 4))),
        lower=-1 - rng.random(2),
        upper=1 + rng.random(2),
        equilibrium=rng.normal(size=2) / 10,
        hole_radius=0.1,
        hole_norm="2",
        rho=0.9,
        positivity=0.01,
        name=f"random {seed}",
    )


def same(a: Problem, b: Problem) -> bool:
    return json.dumps(to_dict(a)) == json.dumps(to_dict(b))


@settings(max_examples=20, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    errors=st.booleans(),
    kind=st.sampled_from(["bits", "readable", "npz"]),
)
def test_every_bit_survives(tmp_path_factory: Any, seed: int, errors: bool, kind: str) -> None:
    problem = random_problem(seed, errors=errors)
    path = tmp_path_factory.mktemp("io") / ("p.npz" if kind == "npz" else "p.json")
    write_problem(problem, path, readable=kind == "readable")
    assert same(read_problem(path), problem)


def read_content(folder: Path, content: dict[str, Any]) -> Problem:
    path = folder / "problem.json"
    path.write_text(json.dumps(content), encoding="utf-8")
    return read_problem(path)


def test_the_documented_example_is_a_problem(tmp_path: Path) -> None:
    text = re.search(r"```json\n(.*?)```", DOCS.read_text(encoding="utf-8"), re.DOTALL)
    assert text
    problem = read_content(tmp_path, json.loads(text[1]))
    np.testing.assert_array_equal(problem.closed_loop(np.array([0.0, 1.0])), [0.5, 0.5])
    np.testing.assert_array_equal(problem.lyapunov(np.array([0.0, 1.0])), [2.0])


BAD: list[tuple[str, dict[str, Any] | str]] = [
    ("unknown keys", {"hole-radius": 1}),
    ("format", {"format": "something"}),
    ("version", {"version": 2}),
    ("rho must lie", {"rho": 1.5}),
    ("rho must be a number", {"rho": "1"}),
    ("rho must be a number", {"rho": True}),
    ("finite", {"positivity": 10**400}),
    ("hole_norm", {"hole_norm": "1"}),
    ("lower must be an array", {"lower": "ab"}),
    ("must be a number", {"lower": [[1, 2], 3]}),
    ("must be a number", {"lower": [None, 2]}),
    ("one length", {"F": [{"weight": [[1, 2], [1]], "bias": [0, 0]}]}),
    ("empty along axis", {"lower": [5, 5]}),
    ("list of at most", {"F": {}}),
    ("list of at most", {"V": [{"weight": [[1]], "bias": [0]}] * 40}),
    ("needs weight and bias", {"F": [{"weight": [[1, 2]]}]}),
    ("needs weight and bias", {"F": [7]}),
    ("at least one layer", {"F": []}),
    ("not base64", {"lower": {"dtype": "<f8", "shape": [2], "base64": "!"}}),
    ("another size", {"lower": {"dtype": "<f8", "shape": [2], "base64": "AAAA"}}),
    ("shape of whole numbers", {"lower": {"dtype": "<f8", "shape": [-2], "base64": ""}}),
    ("must be {", {"lower": {"dtype": "|O", "shape": [2], "base64": ""}}),
]


@pytest.mark.parametrize(("message", "change"), BAD)
def test_a_malformed_object_says_what_is_wrong(
    message: str, change: dict[str, Any], tmp_path: Path
) -> None:
    content = {**to_dict(random_problem(0, errors=False), readable=True), **change}
    with pytest.raises(ProblemError, match=re.escape(message)):
        read_content(tmp_path, content)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[1]",
        '"x"',
        "\x00\xff",
        "[" * 100_000,
        '{"F": NaN}',
        '{"F": [], "F": []}',
        '{"rho": 1e999}',
    ],
)
def test_a_file_that_is_no_problem(tmp_path: Path, text: str) -> None:
    path = tmp_path / "p.json"
    path.write_text(text, encoding="latin-1")
    with pytest.raises(ProblemError):
        read_problem(path)


@pytest.mark.parametrize("key", ["F", "V", "lower", "upper", "equilibrium"])
def test_a_missing_key_is_named(key: str, tmp_path: Path) -> None:
    content = to_dict(random_problem(0, errors=False))
    del content[key]
    with pytest.raises(ProblemError, match=f"needs the key '{key}'"):
        read_content(tmp_path, content)


def test_npz_without_a_pickle_or_a_bomb(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pickled, garbage, odd = tmp_path / "a.npz", tmp_path / "b.npz", tmp_path / "c.npz"
    np.savez(pickled, lower=np.array([object()], dtype=object))
    garbage.write_bytes(b"PK\x03\x04 nothing")
    np.savez(odd, F_weight_9=np.eye(2), F_bias_9=np.zeros(2), V_weight_0=np.eye(2))
    for path in (pickled, garbage, odd):
        with pytest.raises(ProblemError):
            read_problem(path)
    monkeypatch.setattr(problem_io, "LIMITS", FileLimits(problem_bytes=2**20))
    with zipfile.ZipFile(tmp_path / "bomb.npz", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("lower.npy", bytes(2**22))
    with pytest.raises(ProblemError, match="unpack"):
        read_problem(tmp_path / "bomb.npz")


def test_truncated_files_are_errors(tmp_path: Path) -> None:
    for suffix in ("json", "npz"):
        path = tmp_path / f"p.{suffix}"
        write_problem(random_problem(1, errors=True), path)
        whole = path.read_bytes()
        for cut in range(0, len(whole) - 2, max(1, len(whole) // 25)):
            path.write_bytes(whole[:cut])
            with pytest.raises(ProblemError):
                read_problem(path)


def test_missing_huge_and_misnamed_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ProblemError, match="cannot be read"):
        read_problem(tmp_path / "none.json")
    path = tmp_path / "p.txt"
    path.write_text("x" * 100)
    with pytest.raises(ProblemError, match=r"ends in"):
        read_problem(path)
    path = tmp_path / "p.json"
    path.write_text("x" * 100)
    monkeypatch.setattr(problem_io, "LIMITS", FileLimits(problem_bytes=10))
    with pytest.raises(ProblemError, match="MiB"):
        read_problem(path)


@pytest.mark.parametrize("suffix", ["json", "npz"])
def test_what_is_no_regular_file_is_refused_unread(suffix: str, tmp_path: Path) -> None:
    """A pipe would be waited for, and a device read without an end."""
    pipe, endless, folder = (tmp_path / f"{name}.{suffix}" for name in ("a", "b", "c"))
    os.mkfifo(pipe)
    endless.symlink_to("/dev/zero")
    folder.mkdir()
    for path in (pipe, endless, folder):
        with pytest.raises(ProblemError, match="regular file"):
            read_problem(path)


def test_an_array_has_one_name_and_stands_once(tmp_path: Path) -> None:
    path = tmp_path / "p.npz"
    write_problem(random_problem(1, errors=False), path)
    with zipfile.ZipFile(path) as archive:
        arrays = {name: archive.read(name) for name in archive.namelist()}
    for name in ("F_weight_00.npy", "F_weight_\u0660.npy"):  # the second: a zero, in Arabic
        renamed = {name if k == "F_weight_0.npy" else k: raw for k, raw in arrays.items()}
        with zipfile.ZipFile(path, "w") as archive:
            for key, raw in renamed.items():
                archive.writestr(key, raw)
        with pytest.raises(ProblemError, match="unknown array"):
            read_problem(path)
    with zipfile.ZipFile(path, "w") as archive:
        for key, raw in [*arrays.items(), ("lower.npy", arrays["lower.npy"])]:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # zipfile warns of the second one
                archive.writestr(key, raw)
    with pytest.raises(ProblemError, match="stands twice"):
        read_problem(path)
