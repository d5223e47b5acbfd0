"""From a training result to a certificate: the shipped weights as the certificate's own chains of
factors."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any

import numpy as np

from graphkeel.certificate import ClassProof, GraphProof, build_certificate
from graphkeel.control.base import Plant
from graphkeel.lyapunov.closed_loop import controller_source, lyapunov_source, plain_source
from graphkeel.lyapunov.result import ClassOutcome, TrainResult, anchor_of
from graphkeel.verify.result import ConditionReport, Verdict


def certificate_of(
    plant: Plant,
    result: TrainResult,
    *,
    provenance: dict[str, Any] | None = None,
    data_sha256: str | None = None,
    graph: GraphProof | None = None,
) -> dict[str, Any]:
    """The certificate of all classes, as a JSON object; `data_sha256` is the graph's whose logits
    span the domain."""
    delta, margin = result.config.delta, result.config.margin
    proofs = [
        class_proof(outcome, _tolerance(outcome, delta), margin) for outcome in result.outcomes
    ]
    notes = {str(outcome.label): outcome.note for outcome in result.outcomes if outcome.note}
    details = {
        "config": asdict(result.config),
        "stopped": result.stopped,
        "notes": notes,
        **(provenance or {}),
    }
    return build_certificate(
        plain_source(plant.layers),
        proofs,
        provenance=details,
        data_sha256=data_sha256,
        graph=graph,
    )


def _tolerance(outcome: ClassOutcome, delta: float, share: float = 1 / 16) -> float:
    """δ, at most a share of Y's size: a tolerance of Y's own size would say nothing."""
    centre = outcome.problem.equilibrium
    size = max(float(np.abs(centre).max()), float(np.ptp(centre)))
    return min(delta, size * share) if size > 0 else delta


def class_proof(outcome: ClassOutcome, delta: float, margin: float = 0.0) -> ClassProof:
    """One class's weights, question and answers, as a certificate takes them, with the
    representative's tolerance δ and the margin γ of its region."""
    control = outcome.control
    return ClassProof(
        label=outcome.label,
        form=control.form,
        controller=controller_source(control),
        lyapunov=lyapunov_source(outcome.function),
        anchor=anchor_of(control),
        problem=outcome.problem,
        conditions={
            condition.condition: _showable(condition) for condition in outcome.report.conditions
        },
        delta=delta,
        margin=margin,
    )


def _showable(report: ConditionReport) -> ConditionReport:
    """A proof that was found but not kept (too large, or by an engine without one) cannot be
    re-checked by anyone."""
    if report.verdict is not Verdict.PROVED or report.proof is not None:
        return report
    return replace(
        report, verdict=Verdict.UNKNOWN, reason=f"{report.engine} found a proof but did not keep it"
    )
