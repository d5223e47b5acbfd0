"""The verifier as training calls it: thin calls of the portfolio in graphkeel.verify."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from graphkeel.verify import (
    CONDITIONS,
    Budget,
    ConditionReport,
    Problem,
    Verdict,
    VerifyReport,
    load_engine,
    verify,
)
from graphkeel.verify.portfolio import AutoVerifier


class Ask(Protocol):
    """The verifier as training sees it; `complete=False` asks for quick counterexamples and cheap
    proofs."""

    def __call__(self, problem: Problem, *, seconds: float, complete: bool) -> VerifyReport: ...


class AskRegion(Protocol):
    """The verifier of decision regions, for a problem that has one."""

    def __call__(self, problem: Problem, *, seconds: float, complete: bool) -> ConditionReport: ...


def ask_portfolio(problem: Problem, *, seconds: float, complete: bool) -> VerifyReport:
    """Closed forms first, then a search for violations and, if `complete`, branch and bound to the
    end.

    Args:
        problem: the question.
        seconds: for all of it.
        complete: whether to search to the end.
    """
    return AutoVerifier(complete).solve(problem, Budget(seconds=seconds))


def ask_engine(name: str, conditions: Sequence[str] = tuple(CONDITIONS)) -> Ask:
    """One engine alone as the verifier for training; `auto` is the portfolio.

    Args:
        name: of the engine.
        conditions: what it is asked; the others are reported as not asked. Where there are any, one
            counterexample to any condition is enough, as in the paper's set 𝒞.
    """
    everything = len(conditions) == len(CONDITIONS)
    if name == "auto" and everything:
        return ask_portfolio
    load_engine(name)  # an unknown name, or a package that is not there, is said at once
    left_out = [condition for condition in CONDITIONS if condition not in conditions]

    def ask(problem: Problem, *, seconds: float, complete: bool) -> VerifyReport:  # noqa: ARG001
        budget = Budget(seconds=seconds, first_refutation=not everything)
        report = verify(problem, name, budget, conditions)
        others = [
            ConditionReport(condition, Verdict.UNKNOWN, name, "not asked") for condition in left_out
        ]
        return VerifyReport((*report.conditions, *others), report.seconds)

    return ask


def ask_region(problem: Problem, *, seconds: float, complete: bool) -> ConditionReport:
    """Whether a class keeps its states: one bound for the whole box, then violations, then branch
    and bound."""
    return AutoVerifier(complete).solve(problem, Budget(seconds=seconds), ("region",))["region"]
