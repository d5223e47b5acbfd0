"""Write a closed loop as ONNX, VNN-LIB and SMT-LIB 2 files, so that other tools can be asked the
same question.

  keel export problem.json --out files/
  keel export run/certificate.json --out files/ --format smt2

From a certificate every class is exported, into a folder of its own. In all files `unsat` means
proved."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from graphkeel.cli.common import EXIT_DONE, add_json, emit_json, emit_lines, path_type
from graphkeel.core.errors import ConfigError

if TYPE_CHECKING:
    from graphkeel.verify.problem import Problem

HELP = "write a problem or a certificate as ONNX, VNN-LIB and SMT-LIB files"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "source",
        type=path_type,
        metavar="PROBLEM_OR_CERTIFICATE",
        help="a .json or .npz problem, or a certificate",
    )
    parser.add_argument(
        "--out",
        type=path_type,
        required=True,
        metavar="DIR",
        help="write the files into this folder",
    )
    parser.add_argument(
        "--format",
        default="onnx,vnnlib,smt2",
        metavar="LIST",
        help="of onnx, vnnlib, smt2 (default all three)",
    )
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    from graphkeel.verify.formats.export import export

    formats = [part.strip() for part in args.format.split(",") if part.strip()]
    written = [
        path
        for folder, problem in _problems(args.source, args.out)
        for path in export(problem, folder, formats)
    ]
    if args.json:
        emit_json({"command": "export", "files": [str(path) for path in written]})
    else:
        emit_lines(str(path) for path in written)
    return EXIT_DONE


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
    from graphkeel.verify.problem_io import from_dict

    try:
        content = read_certificate(source)
    except CertificateError:
        return None  # the problem reader says what is wrong with the file
    if content.get("format") != FORMAT:
        return None
    try:
        return [
            (int(entry["class"]), from_dict(entry["problem"], name=f"class {int(entry['class'])}"))
            for entry in content["classes"]
        ]
    except (KeyError, TypeError, ValueError) as error:
        raise ConfigError("the certificate has no readable classes", got=str(error)) from error
