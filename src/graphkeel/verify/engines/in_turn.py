"""One budget for several conditions, for engines that decide them one after the other."""

from __future__ import annotations

import time
from collections.abc import Callable

from graphkeel.verify.problem import check_conditions
from graphkeel.verify.result import Budget, ConditionReport, VerifyReport

Decide = Callable[[str, float], ConditionReport]  # condition, seconds


def decide_in_turn(
    conditions: tuple[str, ...], budget: Budget | None, decide: Decide
) -> VerifyReport:
    """Each condition gets an equal share of what is left; decrease, the hardest, comes last and
    gets the rest."""
    check_conditions(conditions)
    seconds, start = (budget or Budget()).seconds, time.perf_counter()
    reports: dict[str, ConditionReport] = {}
    for asked, condition in enumerate(sorted(conditions, key=lambda name: name == "decrease")):
        left = seconds - (time.perf_counter() - start)
        reports[condition] = decide(condition, max(left / (len(conditions) - asked), 0.1))
    return VerifyReport(
        tuple(reports[condition] for condition in conditions), time.perf_counter() - start
    )
