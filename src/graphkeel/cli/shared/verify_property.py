"""`keel verify NET.onnx PROP.vnnlib` and `keel check PROOF --network … --property …`."""

from __future__ import annotations

import argparse
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from graphkeel.cli.shared.common import (
    EXIT_DONE,
    EXIT_REFUTED,
    EXIT_UNKNOWN,
    emit_json,
    emit_lines,
    path_type,
)
from graphkeel.core.errors import ConfigError

if TYPE_CHECKING:
    from graphkeel.certificate import LinkedResult
    from graphkeel.verify.property.decide import Answer

_EXIT = {"unsat": EXIT_DONE, "sat": EXIT_REFUTED, "unknown": EXIT_UNKNOWN}
_WORDS = {
    "unsat": "The property holds: no input satisfies its assertions, over real arithmetic.",
    "sat": "The property is violated: this input satisfies its assertions, replayed exactly.",
    "unknown": "Not decided: neither a proof nor a counterexample was found.",
}


def add_verify_arguments(parser: argparse.ArgumentParser) -> None:
    """The flags of the two-file form of `keel verify`."""
    parser.add_argument(
        "property",
        type=path_type,
        nargs="?",
        metavar="PROPERTY",
        help="a .vnnlib property, where PROBLEM is an .onnx network",
    )
    parser.add_argument(
        "--proof",
        type=path_type,
        metavar="FILE",
        help="write the proof of an unsat property, or of a loop's sublevel set, for keel check",
    )


def add_check_arguments(parser: argparse.ArgumentParser) -> None:
    """The flags of `keel check` for a property's proof."""
    for name, kind in (("network", "NET.onnx"), ("property", "PROP.vnnlib")):
        parser.add_argument(
            f"--{name}",
            type=path_type,
            metavar=kind,
            help=f"compare a property's proof with this {name} (both are needed)",
        )


def run_verify(args: argparse.Namespace) -> int:
    """Decide a property; returns the exit code."""
    from graphkeel.verify.formats.onnx_reader import read_onnx
    from graphkeel.verify.formats.vnnlib_reader import read_vnnlib
    from graphkeel.verify.property.decide import decide
    from graphkeel.verify.result import Budget

    if args.property is None:
        raise ConfigError("an .onnx network needs a property", fix="Add a .vnnlib file.")
    if args.engine != "auto" or args.cross_check:
        raise ConfigError("a property is decided by one engine only", fix="Leave out --engine.")
    loops = ("conditions", "sublevel", "sublevel_floor")
    if args.all or any(getattr(args, name) is not None for name in loops):
        raise ConfigError(
            "--conditions, --all and --sublevel are for closed loops", got="a network"
        )
    network, prop = read_onnx(args.problem), read_vnnlib(args.property)
    budget = Budget(args.timeout, clock=args.clock)
    answer = decide(network, prop, budget, keep=args.proof is not None)
    stored = _store(answer, args)
    if args.json:
        emit_json(_payload(answer, args, stored))
    else:
        emit_lines(_lines(answer, args, stored))
    return _EXIT[answer.verdict]


def _store(answer: Answer, args: argparse.Namespace) -> bool:
    """Write the proof if it is asked for and there is one."""
    if args.proof is None or answer.proof is None:
        return False
    from graphkeel.certificate.encoding import write_certificate

    write_certificate(answer.proof, args.proof)
    return True


def _payload(answer: Answer, args: argparse.Namespace, stored: bool) -> dict[str, Any]:
    found = answer.verdict == "sat"
    return {
        "command": "verify",
        "problem": str(args.problem),
        "property": str(args.property),
        "verdict": answer.verdict,
        "counterexample": list(answer.inputs) if found else None,
        "outputs": list(answer.outputs) if found else None,
        "reason": answer.reason,
        "seconds": round(answer.seconds, 6),
        "nodes": answer.nodes,
        "proof": str(args.proof) if stored else None,
    }


def _lines(answer: Answer, args: argparse.Namespace, stored: bool) -> list[str]:
    """The competition's lines first, then ours."""
    lines = [answer.verdict]
    if answer.verdict == "sat":
        lines += answer.counterexample_text().splitlines()
    spent = f"({answer.seconds:.2f} s, {answer.nodes} boxes)"
    lines.append(f"{_WORDS[answer.verdict]} {spent}")
    if answer.reason:
        lines.append(f"  {answer.reason}")
    if stored:
        lines.append(f"  The proof is in {args.proof}; keel check re-proves it.")
    elif args.proof is not None:
        lines.append("  No proof was written.")
    return lines


def refuse_others(args: argparse.Namespace, *others: str) -> None:
    """A proof is compared with its own files; what else is named would go unchecked."""
    names = ("model", "weights", "factory", "data", *others)
    given = [f"--{name}" for name in names if getattr(args, name) is not None]
    if given:
        raise ConfigError("a proof is compared with its own files only", got=" ".join(given))


def link_proof(args: argparse.Namespace, result: LinkedResult) -> LinkedResult:
    """The result of a check, with the proof compared to its files."""
    from graphkeel.certificate.encoding import read_certificate
    from graphkeel.verify.formats.onnx_reader import read_onnx
    from graphkeel.verify.formats.vnnlib_reader import read_vnnlib
    from graphkeel.verify.property.proof import FORMAT, difference

    if args.network is None or args.property is None:
        raise ConfigError("--network and --property are checked together", fix="Give both.")
    refuse_others(args, "problem")
    if not result.accepted:
        return result
    content = read_certificate(args.certificate, FORMAT)
    wrong = difference(content, read_onnx(args.network), read_vnnlib(args.property))
    if wrong is not None:
        return replace(result, accepted=False, reason=wrong)
    reason = f"{result.reason}; network and property are those of the files"
    return replace(result, reason=reason, model_checked=True)
