"""The trusted base: is a certificate or a proof true? Standard library, exact integers.

    python -m graphkeel.checker FILE

This folder needs nothing of the rest of graphkeel and can be copied to any machine with Python
3.11. It shares no code with the engines that find proofs; docs/formats.md has every rule.
"""

from .check import CheckResult, check_bytes, check_file
from .reading import Rejected, Unreadable

__all__ = ["CheckResult", "Rejected", "Unreadable", "check_bytes", "check_file"]
