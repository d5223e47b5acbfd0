"""The check of a file: a certificate, or a proof about a network or a loop."""

import time
from dataclasses import dataclass
from typing import Any

from .certificate import check_certificate
from .exact import Work
from .limits import MAX_PRODUCTS
from .properties import check_proof
from .reading import Rejected, Unreadable, parse, read_bytes

_CHECKS = {"graphkeel-certificate": check_certificate, "graphkeel-proof": check_proof}


@dataclass(frozen=True)
class CheckResult:
    """The result of a check; `reason` is a sentence in both cases."""

    accepted: bool
    reason: str
    seconds: float
    leaves: int = 0
    classes: tuple[dict[str, Any], ...] = ()
    together: str = ""
    graph: str = ""  # what holds of message passing, where the certificate speaks of it
    steering: str = ""  # what holds and what is stated of the features that ship, likewise


def check_file(path: str) -> CheckResult:
    """Check a file; raises Unreadable for what is neither a certificate nor a proof.

    Args:
        path: of the file.
    """
    return check_bytes(read_bytes(path))


def check_bytes(raw: bytes) -> CheckResult:
    """Check the bytes of a file, within limits; a sentence for any failure.

    Args:
        raw: all of them.
    """
    started = time.perf_counter()
    found: dict[str, Any] = {"accepted": True}
    try:
        content = parse(raw)
        found |= _CHECKS[content["format"]](content, Work(MAX_PRODUCTS))
    except Rejected as rejection:
        found = {"accepted": False, "reason": str(rejection)}
    except (ArithmeticError, TypeError, ValueError, LookupError, RecursionError) as error:
        # The readers name what is wrong; this is for what they did not foresee.
        raise Unreadable(f"the file is malformed: {ascii(str(error))[:200]}") from None
    except MemoryError:
        raise Unreadable("the file does not fit into memory") from None
    return CheckResult(seconds=time.perf_counter() - started, **found)
