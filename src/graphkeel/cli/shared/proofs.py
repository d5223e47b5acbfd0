"""Networks with a property, loops, and the proofs about them: what `keel verify` and `keel check`
have for these files."""

from __future__ import annotations

import argparse
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from graphkeel.cli.shared.common import (
    EXIT_DONE,
    EXIT_REFUTED,
    EXIT_UNKNOWN,
    emit,
    emit_lines,
    number,
    path_type,
)
from graphkeel.core.errors import ConfigError
from graphkeel.core.files import write_text

if TYPE_CHECKING:
    from graphkeel.certificate import LinkedResult
    from graphkeel.verify.problem import Problem
    from graphkeel.verify.property.decide import Answer
    from graphkeel.verify.result import VerifyReport

_EXIT = {"unsat": EXIT_DONE, "sat": EXIT_REFUTED, "unknown": EXIT_UNKNOWN}
_WORDS = {
    "unsat": "The property holds: no input satisfies its assertions, over real arithmetic.",
    "sat": "The property is violated: this input satisfies its assertions, replayed exactly.",
    "unknown": "Not decided: neither a proof nor a counterexample was found.",
}


def add_verify_arguments(parser: argparse.ArgumentParser) -> None:
    """The flags of `keel verify` about properties, sublevel sets and proofs."""
    words = "a .vnnlib property, where PROBLEM is an .onnx network"
    parser.add_argument("property", type=path_type, nargs="?", metavar="PROPERTY", help=words)
    words = "write the proof of an unsat property, or of a loop's conditions, for keel check"
    parser.add_argument("--proof", type=path_type, metavar="FILE", help=words)
    words = "write unsat, sat with its counterexample, timeout or unknown, as VNN-COMP reads it"
    parser.add_argument("--results", type=path_type, metavar="FILE", help=words)
    level = number(-1e300, 1e300)
    words = "decide on the sublevel set {V ≤ C} (default: the file's own)"
    parser.add_argument("--sublevel", type=level, metavar="C", help=words)
    words = "V has to fall where C1 ≤ V ≤ C only (default: on all of the sublevel set)"
    parser.add_argument("--sublevel-floor", type=level, metavar="C1", help=words)


def add_check_arguments(parser: argparse.ArgumentParser) -> None:
    """The flags of `keel check` for a proof's own files."""
    for name, kind in (("network", "NET.onnx"), ("property", "PROP.vnnlib")):
        words = f"compare a property's proof with this {name} (both are needed)"
        parser.add_argument(f"--{name}", type=path_type, metavar=kind, help=words)
    words = "compare a loop's proof with this .json or .npz problem"
    parser.add_argument("--problem", type=path_type, metavar="LOOP", help=words)


# ---- a property


def run_property(args: argparse.Namespace) -> int:
    from graphkeel.certificate.encoding import write_certificate
    from graphkeel.verify.formats.onnx_reader import read_onnx
    from graphkeel.verify.formats.vnnlib_reader import read_vnnlib
    from graphkeel.verify.property.decide import decide
    from graphkeel.verify.result import Budget

    if args.property is None:
        raise ConfigError("an .onnx network needs a property", fix="Add a .vnnlib file.")
    if args.engine != "auto":
        raise ConfigError("a property is decided by one engine only", fix="Leave out --engine.")
    loops = ("conditions", "sublevel", "sublevel_floor")
    if args.all or any(getattr(args, name) is not None for name in loops):
        raise ConfigError(
            "--conditions, --all and --sublevel are for closed loops", got="a network"
        )
    network, prop = read_onnx(args.problem), read_vnnlib(args.property)
    budget = Budget(args.timeout, clock=args.clock)
    found = decide(network, prop, budget, keep=args.proof is not None)
    stored = False
    if args.proof is not None and found.proof is not None:
        write_certificate(found.proof, args.proof)
        stored = True
    if args.results is not None:
        write_text(args.results, "\n".join(_result_lines(found)) + "\n")
    emit(args, _payload(found, args, stored), lambda: emit_lines(_lines(found, args, stored)))
    return _EXIT[found.verdict]


def _result_lines(found: Answer) -> list[str]:
    """A results file of the competition."""
    if found.verdict == "sat":
        return ["sat", *found.counterexample_text().splitlines()]
    late = found.verdict == "unknown" and found.reason.startswith("time budget")
    return ["timeout" if late else found.verdict]


def _payload(found: Answer, args: argparse.Namespace, stored: bool) -> dict[str, Any]:
    violated = found.verdict == "sat"
    return {
        "command": "verify",
        "problem": str(args.problem),
        "property": str(args.property),
        "verdict": found.verdict,
        "counterexample": list(found.inputs) if violated else None,
        "outputs": list(found.outputs) if violated else None,
        "reason": found.reason,
        "seconds": round(found.seconds, 6),
        "nodes": found.nodes,
        "proof": str(args.proof) if stored else None,
    }


def _lines(found: Answer, args: argparse.Namespace, stored: bool) -> list[str]:
    """The competition's lines first, then ours."""
    lines = [found.verdict, *_result_lines(found)[1:]]
    lines.append(f"{_WORDS[found.verdict]} ({found.seconds:.2f} s, {found.nodes} boxes)")
    if found.reason:
        lines.append(f"  {found.reason}")
    if stored:
        lines.append(f"  The proof is in {args.proof}; keel check re-proves it.")
    elif args.proof is not None:
        lines.append("  No proof was written.")
    return lines


# ---- a loop


def with_sublevel(problem: Problem, args: argparse.Namespace) -> Problem:
    """The problem with the sublevel set of the flags, if they name one."""
    from graphkeel.verify.problem import Sublevel

    level, floor = args.sublevel, args.sublevel_floor
    if level is None and floor is None:
        return problem
    if level is None:
        if problem.sublevel is None:
            raise ConfigError("--sublevel-floor needs a level", fix="Add --sublevel C.")
        level = problem.sublevel.level
    return replace(problem, sublevel=Sublevel(level, floor))


def store_proofs(
    args: argparse.Namespace, problem: Problem, report: VerifyReport
) -> tuple[list[str], str]:
    """Write the proofs of all conditions that were proved: their names, and a sentence."""
    from graphkeel.certificate.encoding import write_certificate
    from graphkeel.verify.property.sublevel import loop_proof

    proofs = {a.condition: a.proof for a in report.conditions if a.proof is not None}
    if not proofs:
        return [], "No proof was written: no condition was proved by an engine that stores one."
    write_certificate(loop_proof(problem, proofs), args.proof)
    which = ", ".join(proofs)
    return list(proofs), f"The proof of {which} is in {args.proof}; keel check re-proves it."


# ---- a proof and its files


def linked_to_files(args: argparse.Namespace, result: LinkedResult) -> LinkedResult:
    """The result of a check, with the proof compared to the files that are named: a network and a
    property, or a loop. What else is named would go unchecked."""
    from graphkeel.certificate.encoding import read_certificate
    from graphkeel.verify.property.proof import FORMAT

    of_property = args.network is not None or args.property is not None
    if of_property and (args.network is None or args.property is None):
        raise ConfigError("--network and --property are checked together", fix="Give both.")
    names = ("model", "weights", "factory", "data", *(["problem"] if of_property else []))
    given = [f"--{name}" for name in names if getattr(args, name) is not None]
    if given:
        raise ConfigError("a proof is compared with its own files only", got=" ".join(given))
    if not result.accepted:
        return result
    content = read_certificate(args.certificate, FORMAT)
    wrong = _property_difference(args, content) if of_property else _loop_difference(args, content)
    if wrong is not None:
        return replace(result, accepted=False, reason=wrong)
    which = "network and property are those of the files"
    same = which if of_property else "the loop is that of the file"
    return replace(result, reason=f"{result.reason}; {same}", model_checked=True)


def _property_difference(args: argparse.Namespace, content: dict[str, Any]) -> str | None:
    from graphkeel.verify.formats.onnx_reader import read_onnx
    from graphkeel.verify.formats.vnnlib_reader import read_vnnlib
    from graphkeel.verify.property.proof import difference

    return difference(content, read_onnx(args.network), read_vnnlib(args.property))


def _loop_difference(args: argparse.Namespace, content: dict[str, Any]) -> str | None:
    from graphkeel.verify.problem_io import read_problem
    from graphkeel.verify.property.sublevel import loop_difference

    return loop_difference(content, read_problem(args.problem))
