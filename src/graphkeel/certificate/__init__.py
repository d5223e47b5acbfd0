"""The certificate: what was proved about a closed loop, in a file that anyone can re-check
(docs/certificate.md).

    content = build_certificate(head, [ClassProof(...), ...], provenance={"seed": 0},
    data_sha256="…") write_certificate(content, "certificate.json")
    check_certificate("certificate.json")        # CheckResult(accepted=True, ...)

Needs the standard library and numpy only; neither torch, nor a solver, nor the engine that found
the proofs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from graphkeel.certificate.build import (
    ClassProof,
    anchored_controller,
    anchored_lyapunov,
    build_certificate,
    chain,
    collapsed,
    collapsed_loop,
    mlp,
    write_certificate,
)
from graphkeel.certificate.checker import CheckResult, check_certificate, check_content
from graphkeel.certificate.encoding import read_text
from graphkeel.certificate.schema import FORMAT, VERSION, Factor, Layer, Source

__all__ = [
    "FORMAT",
    "VERSION",
    "CheckResult",
    "ClassProof",
    "Factor",
    "Layer",
    "Source",
    "anchored_controller",
    "anchored_lyapunov",
    "build_certificate",
    "chain",
    "check_certificate",
    "check_content",
    "collapsed",
    "collapsed_loop",
    "mlp",
    "read_certificate",
    "write_certificate",
]


def read_certificate(path: str | Path) -> dict[str, Any]:
    """The JSON object of a certificate file, unchecked."""
    return read_text(path)[0]
