"""certify: from a frozen model on a graph to controllers, their proofs and a certificate.

The one way there: the command line, `Reconstructor.certify`, the tables and the figures call it.
`certify_into` keeps everything in a folder."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from graphkeel.certificate import (
    ClassProof,
    build_certificate,
    write_certificate,
)
from graphkeel.certificate.equilibrium import STATES
from graphkeel.control.base import Plant
from graphkeel.core.files import locked, write_text
from graphkeel.core.tensors import save_tensors
from graphkeel.graph import GraphTask
from graphkeel.graph.task import graph_sha256
from graphkeel.lyapunov.closed_loop import controller_source, lyapunov_source, plain_source
from graphkeel.lyapunov.config import LyapunovConfig
from graphkeel.lyapunov.message_passing import graph_proof
from graphkeel.lyapunov.on_graph import enclosed, passing_of
from graphkeel.lyapunov.result import CertifyResult, ClassOutcome, RoundLog, TrainResult, anchor_of
from graphkeel.lyapunov.training import OnRound, Oracle, engine_oracle, train
from graphkeel.models.frozen import FrozenModel
from graphkeel.models.head import extract_head
from graphkeel.verify.problem import CONDITIONS
from graphkeel.verify.result import ConditionReport, Verdict

CERTIFICATE = "certificate.json"
_TRAINING = "training.json"

_log = logging.getLogger(__name__)


def certify(
    frozen: FrozenModel,
    x: Tensor,
    edge_index: Tensor,
    config: LyapunovConfig | None = None,
    *,
    classes: Sequence[int] | None = None,
    verifier: str | Oracle = "auto",
    on_round: OnRound | None = None,
    provenance: dict[str, Any] | None = None,
    anchors: Tensor | None = None,
    constant: bool = False,
    labelled: tuple[Tensor, Tensor] | None = None,
    **model_kwargs: Any,
) -> CertifyResult:
    """Train a controller and a Lyapunov function per class, prove them, and write it all down.

    Args:
        frozen: the model; its weights are not touched.
        x: features of the graph, shape (N, d).
        edge_index: its edges, shape (2, E).
        config: what to train and what to prove; by default `LyapunovConfig()`.
        classes: labels, by default all of them.
        verifier: the name of an engine, or a call that decides a problem.
        on_round: called after every round with its log.
        provenance: what the certificate should say of its making.
        anchors: features to certify as they are, shape (classes, d): each loop then rests where the
            head answers its feature. By default they are solved for.
        constant: give a class that ends without a proof the constant controller f ≡ h.
        labelled: nodes and their classes, int64, shape (L,) each: where the loop with message
            passing contracts, it is run on the graph with controllers at these nodes, and its
            equilibrium is enclosed.
        model_kwargs: passed to the model beside x and edge_index.
    """
    started = time.monotonic()
    head = extract_head(frozen, int(x.shape[1]), **model_kwargs)
    if head.unsupported is not None:
        return CertifyResult(head, None, None, head.unsupported, time.monotonic() - started)
    settings = config or LyapunovConfig()
    as_printed = settings.start_node is not None
    conditions = settings.goals if as_printed else tuple(CONDITIONS)
    oracle = engine_oracle(verifier, conditions) if isinstance(verifier, str) else verifier
    logits = frozen.logits(x, edge_index, **model_kwargs)
    labels = list(range(head.n_out)) if classes is None else list(classes)
    passing = passing_of(frozen, head, x, edge_index, model_kwargs)

    def report(entry: RoundLog) -> None:
        proved = entry.verdicts.count("proved")
        _log.info("round %d: %d of %d open classes proved", entry.round, proved, len(entry.classes))
        if on_round is not None:
            on_round(entry)

    result = train(
        head,
        logits,
        labels,
        settings,
        oracle=oracle,
        regions=not as_printed,
        on_round=report,
        anchors=anchors,
        constant=constant,
        passing=passing,
    )
    remarks = {
        "model_sha256": frozen.weights_hash,
        "head_gap": head.model_gap,
        "seconds": result.seconds,
        "torch": torch.__version__,
        **(provenance or {}),
    }
    data = graph_sha256(x, edge_index)
    proof = graph_proof(passing, [outcome.control for outcome in result.outcomes])
    certificate = certificate_of(head, result, provenance=remarks, data_sha256=data, graph=proof)
    found = CertifyResult(head, certificate, result, "", 0.0, passing=passing)
    if labelled is not None:
        found = enclosed(found, x, edge_index, labelled)
    return replace(found, seconds=time.monotonic() - started)


# ---- from a training result to a certificate


def certificate_of(
    plant: Plant, result: TrainResult, *, provenance: dict[str, Any] | None = None, **rest: Any
) -> dict[str, Any]:
    """The certificate of all classes, as a JSON object; the rest is passed to
    `build_certificate`."""
    config = result.config
    notes = {str(outcome.label): outcome.note for outcome in result.outcomes if outcome.note}
    details = {"config": asdict(config), "stopped": result.stopped, "notes": notes}
    proofs = [_class_proof(outcome, config) for outcome in result.outcomes]
    remarks = {**details, **(provenance or {})}
    return build_certificate(plain_source(plant.layers), proofs, provenance=remarks, **rest)


def _tolerance(outcome: ClassOutcome, delta: float, share: float = 1 / 16) -> float:
    """δ, at most a share of Y's size: a tolerance of Y's own size would say nothing."""
    centre = outcome.problem.equilibrium
    size = max(float(np.abs(centre).max()), float(np.ptp(centre)))
    return min(delta, size * share) if size > 0 else delta


def _class_proof(outcome: ClassOutcome, config: LyapunovConfig) -> ClassProof:
    """One class's weights, question and answers, as a certificate takes them."""
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
        delta=_tolerance(outcome, config.delta),
        margin=config.margin,
    )


def _showable(report: ConditionReport) -> ConditionReport:
    """A proof that was found but not kept (too large, or by an engine without one) cannot be
    re-checked by anyone."""
    if report.verdict is not Verdict.PROVED or report.proof is not None:
        return report
    return replace(
        report, verdict=Verdict.UNKNOWN, reason=f"{report.engine} found a proof but did not keep it"
    )


# ---- a folder: the certificate, the states, the log


def certify_into(
    folder: Path,
    frozen: FrozenModel,
    task: GraphTask,
    config: LyapunovConfig,
    **options: Any,
) -> CertifyResult:
    """Certify with controllers at the training nodes; the states and the log are written first, as
    the certificate counts what the states show."""
    nodes = task.train_mask.nonzero().flatten()
    labelled = (nodes, task.y[nodes])
    result = certify(frozen, task.x, task.edge_index, config, labelled=labelled, **options)
    training = result.training
    if training is None or result.certificate is None:
        return result
    rounds = [asdict(entry) for entry in training.log]
    log = {"config": asdict(training.config), "stopped": training.stopped, "rounds": rounds}
    with locked(folder):
        if result.states is not None:
            save_tensors(folder / STATES, result.states)
        write_text(folder / _TRAINING, json.dumps(log, indent=1) + "\n")
        write_certificate(result.certificate, folder / CERTIFICATE)
    return result
