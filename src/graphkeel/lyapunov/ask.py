"""The default verifier for training: each engine is asked about what the cheaper ones left open."""

from __future__ import annotations

from typing import Protocol

from graphkeel.lyapunov.glance import glance, glance_region
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
from graphkeel.verify.region import Region


class Ask(Protocol):
    """The verifier as training sees it; `complete=False` asks for quick counterexamples and cheap
    proofs."""

    def __call__(self, problem: Problem, *, seconds: float, complete: bool) -> VerifyReport: ...


class AskRegion(Protocol):
    """The same about a class's decision region; `complete=False` asks for what costs next to
    nothing."""

    def __call__(self, region: Region, *, seconds: float, complete: bool) -> ConditionReport: ...


def ask_portfolio(problem: Problem, *, seconds: float, complete: bool) -> VerifyReport:
    """Closed forms first, then a search for violations and, if `complete`, branch and bound to the
    end."""
    answers = {report.condition: report for report in verify(problem, "contraction").conditions}
    answers["invariance"] = glance(problem)
    undecided = _undecided(answers)
    if undecided:
        engine = "auto" if complete else "falsify"
        report = verify(problem, engine, Budget(seconds=seconds), undecided)
        answers |= {answer.condition: answer for answer in report.conditions}
    reports = tuple(answers[condition] for condition in CONDITIONS)
    return VerifyReport(reports, sum(report.seconds for report in reports))


def ask_engine(name: str) -> Ask:
    """One engine alone as the verifier for training; `auto` is the portfolio."""
    if name == "auto":
        return ask_portfolio
    load_engine(name)  # an unknown name, or a package that is not there, is said at once

    def ask(problem: Problem, *, seconds: float, complete: bool) -> VerifyReport:
        return verify(problem, name, Budget(seconds=seconds))

    return ask


def ask_region(region: Region, *, seconds: float, complete: bool) -> ConditionReport:
    """Whether a class keeps its states: one bound for the whole box, then violations, then branch
    and bound."""
    report = glance_region(region)
    if report.verdict is Verdict.PROVED:
        return report
    from graphkeel.verify.region_search import decide_region, find_violation  # compiles its kernels

    if complete:
        return decide_region(region, Budget(seconds=seconds))
    point = find_violation(region)
    if point is None:
        return report
    return ConditionReport(
        "region", Verdict.REFUTED, "falsify", counterexample=point, seconds=report.seconds
    )


def _undecided(answers: dict[str, ConditionReport]) -> tuple[str, ...]:
    return tuple(c for c in CONDITIONS if answers[c].verdict is Verdict.UNKNOWN)
