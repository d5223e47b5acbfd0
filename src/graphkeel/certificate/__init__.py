"""The certificate: what was proved about a closed loop, in a file that anyone can re-check.

    content = build_certificate(head, [ClassProof(...), ...], provenance={"seed": 0})
    write_certificate(content, "certificate.json")
    check_certificate("certificate.json")        # CheckResult(accepted=True, ...)

This package writes; `graphkeel.checker` decides whether what was written is true
(docs/formats.md).
"""

from graphkeel.certificate.build import (
    FORMAT,
    VERSION,
    ClassProof,
    GraphProof,
    build_certificate,
)
from graphkeel.certificate.check import LinkedResult, check_certificate
from graphkeel.certificate.encoding import (
    certificate_bytes,
    read_certificate,
    sealed,
    write_certificate,
)
from graphkeel.certificate.sources import (
    Source,
    chain,
    mlp,
)
from graphkeel.checker import CheckResult

__all__ = [
    "FORMAT",
    "VERSION",
    "CheckResult",
    "ClassProof",
    "GraphProof",
    "LinkedResult",
    "Source",
    "build_certificate",
    "certificate_bytes",
    "chain",
    "check_certificate",
    "mlp",
    "read_certificate",
    "sealed",
    "write_certificate",
]
