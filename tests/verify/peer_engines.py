"""Other people's solvers as a second opinion: the adapters of the bench, and our own `smt`."""

from __future__ import annotations

import sys
from pathlib import Path

from graphkeel.verify import Verifier, load_engine

FOLDER = Path(__file__).parents[2] / "benchmarks"


def peer(name: str) -> Verifier:
    """`milp` (HiGHS) or `smt` (Z3)."""
    if name == "smt":
        return load_engine(name)
    if str(FOLDER) not in sys.path:
        sys.path.append(str(FOLDER))
    from peers.highs import HighsPeer

    return HighsPeer()
