"""Is the proof of a network's property true? Exact integers on top of `graphkeel.checker`.

    python -m graphkeel.property_checker proof.json

Needs the folder of the checker beside it, and the standard library; nothing of the search.
"""

from graphkeel.property_checker.check import check_bytes, check_file

__all__ = ["check_bytes", "check_file"]
