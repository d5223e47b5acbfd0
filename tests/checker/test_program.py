"""The checker as a program: on a bare Python, with any file, and how long it is."""

from __future__ import annotations

import ast
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from checker_cases import square
from hand_loops import Hand, array, branch, certificate, line, plane, rederived, sealed_bytes, tree
from property_cases import ramp
from run_cases import outcome

from graphkeel import checker
from graphkeel.checker.__main__ import as_lines, class_lines
from tally import TALLY

PACKAGE = Path(checker.__file__).parent
MOST_LINES = 2_930  # of the whole package, with comments and blank lines


def program(
    *arguments: str | bytes, cwd: Path, bare: bool = True, **environment: str
) -> subprocess.CompletedProcess[bytes]:
    """The folder alone, copied to `cwd`, on a Python that sees no installed package."""
    if bare and not (cwd / "checker").exists():
        shutil.copytree(PACKAGE, cwd / "checker", ignore=shutil.ignore_patterns("__pycache__"))
    code = "import runpy, sys; sys.path.insert(0, '.'); runpy.run_module('checker', alter_sys=True)"
    command = [sys.executable, "-I", "-S", "-c", code.replace("'checker'", "'checker'")]
    command = [sys.executable, "-S", "-m", "checker"] if bare else command
    names = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}
    return subprocess.run(
        [*command, *arguments],
        cwd=cwd,
        env={**names, **environment},
        capture_output=True,
        check=False,
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    where = tmp_path_factory.mktemp("program")
    (where / "good.json").write_bytes(sealed_bytes(certificate(plane())))
    false = certificate(
        line(proofs={"decrease": branch("decrease", tree("decrease", [0.0], [2.0], [-2]))})
    )
    (where / "false.json").write_bytes(sealed_bytes(false))
    (where / "none.json").write_bytes(b"{")
    return where


def test_a_copied_folder_and_a_bare_python_are_enough(folder: Path) -> None:
    done = program("good.json", cwd=folder)
    text = done.stdout.decode()
    assert done.returncode == 0 and not done.stderr
    assert text.startswith("accepted: all that is stated of 1 class(es) holds; 45 leaves re-proved")
    for number in ("Y = (1, 0)", "D = [0, 2] × [-1, 1]", "radius 0.125 around Y", "δ is 0"):
        assert number in text
    assert text.rstrip().endswith(
        "The link to a model and a graph was not checked: the file was taken by itself."
    )


def test_it_runs_where_everything_else_is_blocked(folder: Path) -> None:
    """`python -m graphkeel.checker` loads the standard library and the package, nothing more."""
    code = (
        "import sys, runpy\n"
        "class Blocker:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        top = name.split('.')[0]\n"
        "        if top not in sys.stdlib_module_names and top != 'graphkeel':\n"
        "            raise ImportError(name + ' is blocked')\n"
        "sys.meta_path.insert(0, Blocker())\n"
        "sys.argv = ['checker', 'good.json', '--json']\n"
        "try:\n"
        "    runpy.run_module('graphkeel.checker', run_name='__main__', alter_sys=True)\n"
        "finally:\n"
        "    own = [m for m in sys.modules if m.startswith('graphkeel.') and '.checker' not in m]\n"
        "    sys.stderr.write(repr(own))\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(PACKAGE.parents[1])}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=folder, env=environment, capture_output=True, check=False
    )
    assert done.returncode == 0 and done.stderr == b"[]", done.stderr
    assert json.loads(done.stdout)["accepted"] is True


def test_proofs_of_properties_are_read_by_the_same_program(folder: Path) -> None:
    (folder / "proof.json").write_bytes(sealed_bytes(ramp(2.0)()))
    (folder / "wrong.json").write_bytes(sealed_bytes(ramp(0.5)()))
    for name, code, words in (
        ("proof.json", 0, b"accepted: no input satisfies any of 1 case(s); 1 leaves re-proved"),
        ("wrong.json", 1, b"does not show"),
    ):
        done = program(name, cwd=folder)
        assert done.returncode == code and not done.stderr, done.stderr
        assert words in done.stdout


@pytest.mark.parametrize(
    ("name", "code", "words"),
    [
        ("good.json", 0, "all that is stated"),
        ("false.json", 1, "does not show"),
        ("none.json", 2, "not one whole JSON"),
        ("missing.json", 2, "cannot be read"),
        (".", 2, "regular file"),
        ("/dev/zero", 2, "regular file"),
        ("a\x1b[31m\nb", 2, "cannot be read"),
        ("", 2, "regular file"),
    ],
)
def test_exit_codes_and_one_object(folder: Path, name: str, code: int, words: str) -> None:
    done = program(name, "--json", cwd=folder)
    content = json.loads(done.stdout)
    assert done.returncode == code and not done.stderr
    assert content["accepted"] is (code == 0) and words in content["reason"]
    plain = program(name, cwd=folder)
    assert plain.returncode == code and not plain.stderr and b"\x1b" not in plain.stdout
    assert plain.stdout.decode().startswith("accepted: " if code == 0 else "REJECTED: ")


# ---- what is printed of several classes is true of each


def printed(*loops: Hand) -> list[str]:
    result = checker.check_bytes(sealed_bytes(certificate(*loops)))
    assert result.accepted, result.reason
    lines = as_lines(result)
    assert lines[1:-2] == class_lines(result.classes)  # what keel check prints
    return lines


def test_classes_of_which_the_same_is_said_are_named_together() -> None:
    lines = printed(square(0), square(1))
    assert lines[1].startswith("classes 0, 1: proved (")
    assert lines[2:4] == ["  Class 0: Y = (1, 0)", "  Class 1: Y = (0, 1)"]
    assert lines[4].startswith("  For each of them: D = [-1, 2] × [-1, 2]; the hole")
    assert lines[5].startswith("  Every trajectory") and lines[6].startswith("All classes")


def test_classes_with_different_boxes_are_not_grouped() -> None:
    lines = printed(square(0), square(1, top=4.0))
    assert [text[:7] for text in lines if text.startswith("class")] == ["class 0", "class 1"]
    assert "  Y = (0, 1); D = [-1, 4] × [-1, 4];" in "\n".join(lines)


def test_a_group_has_the_weakest_numbers() -> None:
    """Steps differ with ρ, distances with the anchor: the larger ones hold of both."""
    moved = {"delta": 0.0625, "anchor": [0.0, 1.0625], "rho": 0.9375}
    lines = printed(square(0, delta=0.0625), square(1, **moved))
    alone = ["\n".join(printed(one)) for one in (square(0, delta=0.0625), square(1, **moved))]
    assert "at most 0.0626" in lines[4] and "at most 0.0626" in alone[1]
    assert "at most 0." in alone[0]
    few, many = (int(text.split(" steps")[0].split()[-1]) for text in alone)
    assert few < many and f"within {many} steps" in lines[5]


def test_without_a_file_json_is_printed_too(folder: Path) -> None:
    for arguments in (["--json"], ["--json", "good.json", "good.json"], ["--json", "--help"]):
        done = program(*arguments, cwd=folder)
        assert done.returncode == 2 and json.loads(done.stdout)["accepted"] is False


def test_a_terminal_that_knows_ascii_only(folder: Path) -> None:
    done = program("good.json", cwd=folder, PYTHONIOENCODING="ascii")
    assert done.returncode == 0 and not done.stderr and b"\\u03b4 is 0" in done.stdout


def test_names_that_no_file_can_have() -> None:
    for name in ("a\0b", "x" * 5_000, "\udcff"):
        with pytest.raises(checker.Unreadable, match="cannot be read"):
            checker.check_file(name)


def test_a_pipe_is_refused_unread(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(checker.Unreadable, match="regular file"):
        checker.check_file(str(tmp_path / "pipe"))


def test_a_file_that_is_too_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    raw = sealed_bytes(certificate(line()))
    (tmp_path / "long.json").write_bytes(raw)
    monkeypatch.setattr(checker.reading, "MAX_BYTES", len(raw))
    assert checker.check_file(str(tmp_path / "long.json")).accepted
    monkeypatch.setattr(checker.reading, "MAX_BYTES", len(raw) - 1)
    with pytest.raises(checker.Unreadable, match="at most"):
        checker.check_file(str(tmp_path / "long.json"))


# ---- work and memory are limited before they are spent


def test_work_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    raw = sealed_bytes(certificate(plane()))
    monkeypatch.setattr(checker.check, "MAX_PRODUCTS", 1_000)
    assert "more arithmetic than the limit" in outcome(checker, raw)


def wide(n: int) -> dict[str, Any]:
    """A rank-one loop of n coordinates: a short file whose product is n × n."""
    content = certificate(line())
    entry = content["classes"][0]
    column, row = array([[1.0]] * n), array([[1.0] * n])
    entry["controller"] = [
        [{"weight": row, "bias": None}, {"weight": column, "bias": None}],
        [{"weight": row, "bias": None}, {"weight": column, "bias": None}],
    ]
    content["head"] = [[{"weight": None, "bias": array([0.0] * n)}]]
    return content


def test_products_that_do_not_fit_into_memory_are_not_formed() -> None:
    assert "more memory than the limit" in outcome(checker, sealed_bytes(wide(70_000)))


def test_stacked_networks_that_do_not_fit_are_not_formed() -> None:
    """A V whose second layer is a product of a column and a row: 2,100 × 2,100 weights."""
    content = certificate(line())
    column, row = array([[1.0]] * 2_100), array([[1.0] * 2_100])
    first, last = {"weight": column, "bias": None}, {"weight": row, "bias": None}
    content["classes"][0]["lyapunov"] = [[first], [last, first], [last]]
    content = rederived_or_same(content)
    assert "too large" in outcome(checker, sealed_bytes(content))


def rederived_or_same(content: dict[str, Any]) -> dict[str, Any]:
    try:
        return rederived(content)
    except checker.Rejected:
        return content


def test_a_comb_and_a_full_tree_of_useless_cuts_are_refused_at_once() -> None:
    """The small files that once cost minutes: 50,000 cuts at one place, 2^17 on the box's face."""
    comb = tree("decrease", [0.0], [2.0], [0, -2] * 50_000 + [-2], (1.0,) * 50_000)
    full = tree("decrease", [0.0], [2.0], [0] * 2**17 + [-2] * (2**17 + 1), (2.0,) * 2**17)
    for useless in (comb, full):
        loop: Hand = line(proofs={"decrease": branch("decrease", useless)})
        found = outcome(checker, sealed_bytes(certificate(loop)))
        assert "a cut does not lie inside its box" in found or "does not show" in found


# ---- what it imports, and how long it is


def imported(file: Path) -> list[str]:
    """The dotted names that a module imports, but for its own package's modules."""
    names: list[str] = []
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level <= 1, file
            names += [] if node.level == 1 else [node.module or ""]
    return names


def test_it_imports_the_standard_library_and_itself() -> None:
    for file in PACKAGE.glob("*.py"):
        assert all(name.split(".")[0] in sys.stdlib_module_names for name in imported(file)), file


def test_no_float_is_computed_with() -> None:
    """`/` stands between Fractions and paths; floats are read, compared with limits, and shown."""
    for file in PACKAGE.glob("*.py"):
        text = file.read_text()
        assert "import numpy" not in text and "math.sqrt" not in text and "math.fsum" not in text


def test_it_is_short() -> None:
    counts = {
        file.name: len(file.read_text().splitlines()) for file in sorted(PACKAGE.glob("*.py"))
    }
    for name, count in counts.items():
        TALLY["lines of the checker", name] = count
    assert sum(counts.values()) <= MOST_LINES
