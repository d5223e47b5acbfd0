"""The default verifier for training: graphkeel's portfolio of engines, without knowing which they are."""

from __future__ import annotations

from graphkeel.verify.problem import Problem
from graphkeel.verify.result import Budget, VerifyReport


def ask_portfolio(problem: Problem, *, seconds: float, complete: bool) -> VerifyReport:
    """Ask all engines in the order of their cost; without `complete`, only those that answer at once."""
    from graphkeel.verify import verify

    return verify(problem, engine="auto" if complete else "quick", budget=Budget(seconds=seconds))
