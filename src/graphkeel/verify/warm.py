"""Compiled kernels, loaded before a question is asked: compiling them takes half a minute once."""

from __future__ import annotations

import time


def load_kernels() -> float:
    """Load the kernels of every engine, compiled if they are not in the cache; the seconds."""
    from graphkeel.verify.branch.engine import warm_up as warm_rows
    from graphkeel.verify.property.search import warm_up as warm_cases

    start = time.monotonic()
    warm_rows()
    warm_cases()
    return time.monotonic() - start
