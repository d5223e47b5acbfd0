"""Write a closed loop as ONNX, VNN-LIB and SMT-LIB 2 files, so that other tools can be asked the
same question.

  keel export problem.json --out files/
  keel export run/certificate.json --out files/ --format smt2

From a certificate every class is exported, into a folder of its own. In all files `unsat` means
proved."""

from __future__ import annotations

import argparse
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from graphkeel.cli.shared.common import add_options, emit, emit_lines, path_type
from graphkeel.core.errors import ConfigError

if TYPE_CHECKING:
    from graphkeel.verify.problem import Problem

HELP = "write a problem or a certificate as ONNX, VNN-LIB and SMT-LIB files"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    source = "PROBLEM_OR_CERTIFICATE"
    words = "a .json or .npz problem, or a certificate"
    parser.add_argument("source", type=path_type, metavar=source, help=words)
    words = "write the files into this folder"
    parser.add_argument("--out", type=path_type, required=True, metavar="DIR", help=words)
    formats = "onnx,vnnlib,smt2"
    words = "of onnx, vnnlib, smt2 (default all three)"
    parser.add_argument("--format", default=formats, metavar="LIST", help=words)
    add_options(parser, "--json")


def run(args: argparse.Namespace) -> int:
    from graphkeel.verify.formats.export import export

    formats = [part.strip() for part in args.format.split(",") if part.strip()]
    written = [
        path
        for folder, problem in _problems(args.source, args.out)
        for path in export(problem, folder, formats)
    ]
    payload = {"command": "export", "files": [str(path) for path in written]}
    return emit(args, payload, lambda: emit_lines(_summary(written, args.out)))


def _summary(written: list[Path], out: Path) -> list[str]:
    """How many files of which kind, where, and what to do with them."""
    kinds = Counter(path.suffix.removeprefix(".") for path in written)
    folders = sorted({path.parent.name for path in written if path.parent != out})
    counted = ", ".join(f"{count} {kind}" for kind, count in sorted(kinds.items()))
    where = f" (a folder a class: {', '.join(folders)})" if folders else ""
    return [f"{len(written)} files in {out}: {counted}{where}", "In all, unsat means proved."]


def _problems(source: Path, out: Path) -> list[tuple[Path, Problem]]:
    """(folder, problem) of a problem file, or of every class of a certificate."""
    from graphkeel.verify.problem_io import read_problem

    classes = _certificate_classes(source) if source.suffix == ".json" else None
    if classes is None:
        return [(out, read_problem(source))]
    return [(out / f"class_{label}", problem) for label, problem in classes]


def _certificate_classes(source: Path) -> list[tuple[int, Problem]] | None:
    """The problems of a certificate (not checked here; `keel check` does that), or None for another
    file."""
    from graphkeel.certificate import FORMAT, read_certificate
    from graphkeel.core.errors import CertificateError

    try:
        content = read_certificate(source)
    except CertificateError:
        return None  # the problem reader says what is wrong with the file
    if content.get("format") != FORMAT:
        return None
    try:
        return [(int(entry["class"]), _problem(content, entry)) for entry in content["classes"]]
    except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
        raise ConfigError("the certificate has no readable classes", got=str(error)) from error


def _problem(content: dict[str, Any], entry: dict[str, Any]) -> Problem:
    """A class's closed loop: controller and head multiplied out exactly, then rounded once."""
    from graphkeel.certificate.encoding import decode_array
    from graphkeel.certificate.sources import collapsed, collapsed_loop, source_from_json
    from graphkeel.verify.problem import Network, Problem

    controller = source_from_json(entry["controller"])
    stated = entry["problem"]
    return Problem(
        Network.of(*collapsed_loop(controller, source_from_json(content["head"]))),
        Network.of(*collapsed(source_from_json(entry["lyapunov"]))),
        lower=decode_array(stated["lower"]),
        upper=decode_array(stated["upper"]),
        equilibrium=decode_array(stated["equilibrium"]),
        hole_radius=float(stated["hole_radius"]),
        rho=float(stated["rho"]),
        positivity=float(stated["positivity"]),
        name=f"class {int(entry['class'])}",
    )
