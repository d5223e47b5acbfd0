"""A problem for other tools: ONNX with VNN-LIB, and SMT-LIB 2.

In all files `unsat` means that no state of the file's region violates the condition, and a
condition is proved when all of its files are unsat. The exported weights are the stored floats;
where a problem has weight errors, the files say so."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from graphkeel.core.errors import ConfigError
from graphkeel.core.files import write_bytes
from graphkeel.verify.formats.onnx_export import loop_model, positivity_model
from graphkeel.verify.formats.smtlib import smtlib
from graphkeel.verify.formats.vnnlib import vnnlib_files
from graphkeel.verify.problem import CONDITIONS, Problem

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
