"""The flags and files of a loop: `keel verify LOOP --sublevel C --proof FILE` and `keel check PROOF
--problem LOOP`."""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from graphkeel.cli.shared.common import number, path_type
from graphkeel.cli.shared.verify_property import refuse_others
from graphkeel.core.errors import ConfigError

if TYPE_CHECKING:
    from graphkeel.certificate import LinkedResult
    from graphkeel.verify.problem import Problem
    from graphkeel.verify.result import VerifyReport


def add_sublevel_arguments(parser: argparse.ArgumentParser) -> None:
    """The flags of `keel verify`."""
    parser.add_argument(
        "--sublevel",
        type=number(-1e300, 1e300),
        metavar="C",
        help="ask about the sublevel set {V ≤ C} (default: the file's own)",
    )
    parser.add_argument(
        "--sublevel-floor",
        type=number(-1e300, 1e300),
        metavar="C1",
        help="V has to fall where C1 ≤ V ≤ C only (default: on all of the sublevel set)",
    )


def add_check_problem(parser: argparse.ArgumentParser) -> None:
    """The flag of `keel check`."""
    parser.add_argument(
        "--problem",
        type=path_type,
        metavar="LOOP",
        help="compare a loop's proof with this .json or .npz problem",
    )


def with_sublevel(problem: Problem, args: argparse.Namespace) -> Problem:
    """The problem with the sublevel set of the flags, if they name one."""
    from graphkeel.verify.problem import Sublevel

    level, floor = args.sublevel, args.sublevel_floor
    if level is None and floor is None:
        return problem
    own = problem.sublevel
    if level is None:
        if own is None:
            raise ConfigError("--sublevel-floor needs a level", fix="Add --sublevel C.")
        level = own.level
    return replace(problem, sublevel=Sublevel(level, floor))


def store_proof(problem: Problem, report: VerifyReport, path: Path | None) -> list[str]:
    """Write the proofs of all conditions that were proved; their names."""
    proofs = {a.condition: a.proof for a in report.conditions if a.proof is not None}
    if path is None or not proofs:
        return []
    from graphkeel.certificate.encoding import write_certificate
    from graphkeel.verify.property.sublevel import loop_proof

    write_certificate(loop_proof(problem, proofs), path)
    return list(proofs)


def proof_lines(path: Path | None, shown: list[str]) -> list[str]:
    """The line about the file of a proof."""
    if path is None:
        return []
    if not shown:
        return ["  No proof was written: no condition was proved by an engine that stores one."]
    return [f"  The proof of {', '.join(shown)} is in {path}; keel check re-proves it."]


def link_problem(args: argparse.Namespace, result: LinkedResult) -> LinkedResult:
    """The result of a check, with the proof's loop compared to that of a file."""
    from graphkeel.certificate.encoding import read_certificate
    from graphkeel.verify.problem_io import read_problem
    from graphkeel.verify.property.proof import FORMAT
    from graphkeel.verify.property.sublevel import loop_difference

    refuse_others(args)
    if not result.accepted:
        return result
    content = read_certificate(args.certificate, FORMAT)
    wrong = loop_difference(content, read_problem(args.problem))
    if wrong is not None:
        return replace(result, accepted=False, reason=wrong)
    reason = f"{result.reason}; the loop is that of the file"
    return replace(result, reason=reason, model_checked=True)
