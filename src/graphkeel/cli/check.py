"""Re-prove a certificate independently of the engine that found it: exact arithmetic, no torch, no
solver.

  keel check run/certificate.json

Exit 0: accepted, 1: rejected with the reason, 2: not a readable certificate.
"""

from __future__ import annotations

import argparse
import sys
import time
from typing import TYPE_CHECKING

from graphkeel.cli.common import (
    EXIT_BAD_INPUT,
    EXIT_DONE,
    EXIT_REFUTED,
    add_json,
    emit_json,
    path_type,
)
from graphkeel.core.errors import CertificateError

if TYPE_CHECKING:
    from graphkeel.certificate import CheckResult

HELP = "re-prove a certificate, independently of how it was made"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "certificate",
        type=path_type,
        metavar="CERTIFICATE",
        help="certificate.json of keel certify",
    )
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    from graphkeel.certificate import check_certificate

    start = time.perf_counter()
    try:
        result = check_certificate(args.certificate)
    except CertificateError as error:
        if not args.json:
            raise
        emit_json(_payload(args, False, str(error), time.perf_counter() - start))
        return EXIT_BAD_INPUT
    if args.json:
        payload = _payload(args, result.accepted, result.reason, result.seconds)
        emit_json({**payload, "classes": list(result.classes), "together": result.together})
    else:
        sys.stdout.write(report(result))
    return EXIT_DONE if result.accepted else EXIT_REFUTED


def _payload(
    args: argparse.Namespace, accepted: bool, reason: str, seconds: float
) -> dict[str, object]:
    return {
        "command": "check",
        "certificate": str(args.certificate),
        "accepted": accepted,
        "reason": reason,
        "seconds": round(seconds, 6),
    }


def report(result: CheckResult) -> str:
    """The result as text: the verdict, then what is certified of each class."""
    word = "accepted" if result.accepted else "REJECTED"
    lines = [f"{word}: {result.reason} in {result.seconds:.2f} s"]
    for entry in result.classes:
        verdicts = ", ".join(f"{name} {verdict}" for name, verdict in entry["conditions"].items())
        lines += [
            f"class {entry['class']}: {entry['verdict']} ({verdicts})",
            f"  {entry['sentence']}",
        ]
    if result.together:
        lines.append(f"all classes together: {result.together}")
    return "\n".join(lines) + "\n"
