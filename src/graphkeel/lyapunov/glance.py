"""Invariance and region at a glance: is the whole box, as one leaf of every row, already a proof?

Training aims at bounds that keep F(D) inside D and a class's states its own, so that neither proof
needs a single cut. Whether it does, the certificate's own check says, rigorously and in
milliseconds; no engine has to start, and none to compile."""

from __future__ import annotations

import time
from typing import Any

from graphkeel.certificate.box_proof import invariance_fan, region_fan
from graphkeel.certificate.schema import loop_of
from graphkeel.certificate.whole_box import Fan, upper_bounds
from graphkeel.verify import ConditionReport, Problem, Verdict
from graphkeel.verify.branch.tree import encode
from graphkeel.verify.region import Region, multipliers


def glance(problem: Problem) -> ConditionReport:
    """Invariance proved, with its proof, or unknown."""
    started = time.monotonic()
    return _report("invariance", invariance_fan(loop_of(problem)), problem, {}, started)


def glance_region(region: Region) -> ConditionReport:
    """The region proved to keep its states, with its proof, or unknown."""
    started = time.monotonic()
    weights = multipliers(region)
    fan = region_fan(loop_of(region.problem), region.axis, region.margin, weights)
    return _report("region", fan, region.problem, {"multipliers": encode(weights)}, started)


def _report(
    condition: str, fan: Fan, problem: Problem, more: dict[str, Any], started: float
) -> ConditionReport:
    bounds, slack = upper_bounds(fan, problem.lower, problem.upper)
    holds = bool((bounds <= -slack).all())  # with room for a machine that rounds otherwise
    seconds = time.monotonic() - started
    if not holds:
        reason = f"the bound of a row on the whole box is {bounds.max():.3g}"
        return ConditionReport(condition, Verdict.UNKNOWN, "glance", reason, seconds=seconds)
    proof = {"version": 1, "kind": "box", "condition": condition, **more}
    reason = f"bounded on the whole box, {len(bounds)} rows"
    return ConditionReport(
        condition, Verdict.PROVED, "glance", reason, seconds=seconds, nodes=len(bounds), proof=proof
    )
