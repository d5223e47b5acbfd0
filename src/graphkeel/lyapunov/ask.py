"""The default verifier for training: each engine is asked about what the cheaper ones left open."""

from __future__ import annotations

from graphkeel.lyapunov.glance import glance
from graphkeel.verify import CONDITIONS, Budget, ConditionReport, Problem, Verdict, VerifyReport, verify


def ask_portfolio(problem: Problem, *, seconds: float, complete: bool) -> VerifyReport:
    """Closed forms first, then a search for violations and, if `complete`, branch and bound to the end."""
    answers = {report.condition: report for report in verify(problem, "contraction").conditions}
    answers["invariance"] = glance(problem)
    undecided = _undecided(answers)
    if undecided:
        engine = "auto" if complete else "falsify"
        report = verify(problem, engine, Budget(seconds=seconds), undecided)
        answers |= {answer.condition: answer for answer in report.conditions}
    reports = tuple(answers[condition] for condition in CONDITIONS)
    return VerifyReport(reports, sum(report.seconds for report in reports))


def _undecided(answers: dict[str, ConditionReport]) -> tuple[str, ...]:
    return tuple(c for c in CONDITIONS if answers[c].verdict is Verdict.UNKNOWN)
