"""The default verifier for training: each engine is asked about what the cheaper ones left open."""

from __future__ import annotations

from graphkeel.verify import CONDITIONS, Budget, ConditionReport, Problem, Verdict, VerifyReport, verify

GLANCE = 512  # boxes: what training made easy (invariance, mostly) is over by then


def ask_portfolio(problem: Problem, *, seconds: float, complete: bool) -> VerifyReport:
    """A closed form, a glance by branch and bound, a search for violations; if `complete`, then the whole tree."""
    budget = Budget(seconds=seconds)
    steps = [("contraction", budget), ("branch", Budget(seconds=seconds, nodes=GLANCE)), ("falsify", budget)]
    if complete:
        steps.append(("branch", budget))
    answers: dict[str, ConditionReport] = {}
    total = 0.0
    for engine, allowance in steps:
        undecided = tuple(c for c in CONDITIONS if c not in answers or answers[c].verdict is Verdict.UNKNOWN)
        if undecided:
            report = verify(problem, engine, allowance, undecided)
            answers |= {answer.condition: answer for answer in report.conditions}
            total += report.seconds
    return VerifyReport(tuple(answers[condition] for condition in CONDITIONS), total)
