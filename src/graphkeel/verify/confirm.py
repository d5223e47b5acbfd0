"""Replaying a candidate counterexample in exact rationals, for engines whose own answer is only
nearly right."""

from __future__ import annotations

import numpy as np

from graphkeel.verify.exact import violates
from graphkeel.verify.problem import Array, Problem


def nearest_confirmed(problem: Problem, condition: str, point: Array) -> Array | None:
    """The point clipped to the box, or the same moved out of the hole by the last bits; None if
    none violates."""
    clipped = np.clip(np.asarray(point, dtype=np.float64), problem.lower, problem.upper)
    for factor in (0.0, 1e-15, 1e-12, 1e-9, 1e-7):
        moved = np.clip(
            clipped + factor * (clipped - problem.equilibrium), problem.lower, problem.upper
        )
        if violates(problem, condition, moved):
            return moved
    return None
