"""A problem for other tools: ONNX with VNN-LIB, one file per face of the hole, and SMT-LIB 2.

In all files `unsat` means that no state of the file's region violates the condition, and a
condition is proved when all of its files are unsat. The exported weights are the stored floats;
where a problem has weight errors, the files say so."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from decimal import Decimal
from pathlib import Path

from graphkeel.core.errors import ConfigError
from graphkeel.core.files import write_bytes
from graphkeel.core.text import printable
from graphkeel.verify.conditions import half_box
from graphkeel.verify.formats.onnx_export import loop_model, positivity_model
from graphkeel.verify.formats.smtlib import POLARITY, smtlib
from graphkeel.verify.problem import CONDITIONS, Array, Problem

_LOOP = "; network: problem.onnx, X = y, Y_0 = V(y), Y_1 = V(F(y)) - rho V(y), Y_2 ... = F(y)"
_SIDES = (
    "; network: positivity.onnx, X = y, Y_2i = V(y) - c (y_i - Y_i), "
    "Y_(2i+1) = V(y) + c (y_i - Y_i)"
)
_TOUCH = (
    "; VNN-LIB compares without strictness, so a state that just touches the bound counts as a "
    "violation here."
)


def vnnlib_files(problem: Problem) -> list[tuple[str, str]]:
    """(name, text): positivity and decrease once per face of the hole, invariance once for the
    whole box."""
    files = []
    for axis, sign, low, high in hole_faces(problem):
        name = f"y{axis}_{'above' if sign > 0 else 'below'}"
        text = _text(problem, "decrease", _LOOP, low, high, "(>= Y_1 0.0)")
        files.append((f"decrease_{name}.vnnlib", text))
        network, violation = _LOOP, "(<= Y_0 0.0)"
        if problem.positivity > 0:
            network, violation = _SIDES, f"(<= Y_{2 * axis + (sign < 0)} 0.0)"
        text = _text(problem, "positivity", network, low, high, violation)
        files.append((f"positivity_{name}.vnnlib", text))
    leaving = _text(problem, "invariance", _LOOP, problem.lower, problem.upper, _leaves(problem))
    return [*files, ("invariance.vnnlib", leaving)]


def hole_faces(problem: Problem) -> Iterator[tuple[int, int, Array, Array]]:
    """(axis, sign, lower, upper) of boxes that together are D without the hole (L2: without the box
    in the ball)."""
    for axis in range(problem.n):
        for sign in (1, -1):
            lower, upper = half_box(problem, axis, sign)
            if lower[axis] <= upper[axis]:
                yield axis, sign, lower, upper


def _leaves(problem: Problem) -> str:
    ends = enumerate(zip(problem.lower, problem.upper, strict=True))
    parts = [
        f"(and (>= Y_{i + 2} {decimal(hi)})) (and (<= Y_{i + 2} {decimal(lo)}))"
        for i, (lo, hi) in ends
    ]
    return f"(or {' '.join(parts)})"


def _text(
    problem: Problem, condition: str, network: str, low: Array, high: Array, violation: str
) -> str:
    outputs = 2 * problem.n if network is _SIDES else problem.n + 2
    lines = [
        f"; graphkeel: {condition} of {printable(problem.name)}",
        network,
        POLARITY,
        _TOUCH,
        *_error_comment(problem),
        *(f"(declare-const X_{i} Real)" for i in range(problem.n)),
        *(f"(declare-const Y_{i} Real)" for i in range(outputs)),
    ]
    for i in range(problem.n):
        lines += [
            f"(assert (>= X_{i} {decimal(low[i])}))",
            f"(assert (<= X_{i} {decimal(high[i])}))",
        ]
    return "\n".join([*lines, f"(assert {violation})"]) + "\n"


def decimal(value: float) -> str:
    """The exact decimal expansion: nothing is lost before the reader itself rounds."""
    text = format(Decimal(float(value)), "f")
    return text if "." in text else f"{text}.0"


def _error_comment(problem: Problem) -> list[str]:
    """A line that says so where the weights are rounded."""
    if problem.exact:
        return []
    return [
        "; the weights are rounded: this file is about the stored floats, "
        "the problem about all within its errors"
    ]


FORMATS = ("onnx", "vnnlib", "smt2")


def export(problem: Problem, folder: str | Path, formats: Sequence[str] = FORMATS) -> list[Path]:
    """Write the files into `folder`; returns their paths."""
    unknown = sorted(set(formats) - set(FORMATS))
    if unknown or not formats:
        raise ConfigError(f"the formats are {', '.join(FORMATS)}", got=", ".join(unknown) or "none")
    contents: list[tuple[str, bytes]] = []
    if "onnx" in formats:
        contents += _onnx_files(problem)
    if "vnnlib" in formats:
        contents += [(name, text.encode()) for name, text in vnnlib_files(problem)]
    if "smt2" in formats:
        contents += [
            (f"{condition}.smt2", smtlib(problem, condition).encode()) for condition in CONDITIONS
        ]
    return _written(Path(folder), contents)


def _onnx_files(problem: Problem) -> list[tuple[str, bytes]]:
    files = [("problem.onnx", loop_model(problem).SerializeToString())]
    if problem.positivity > 0:
        files.append(("positivity.onnx", positivity_model(problem).SerializeToString()))
    return files


def _written(folder: Path, contents: list[tuple[str, bytes]]) -> list[Path]:
    for name, raw in contents:
        write_bytes(folder / name, raw)
    return [folder / name for name, _ in contents]
