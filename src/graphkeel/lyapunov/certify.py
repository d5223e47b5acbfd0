"""certify: from a frozen model on a graph to controllers, their proofs and a certificate.

The one way there: the command line, `Reconstructor.certify`, the tables and the figures call it.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from graphkeel.graph.task import graph_sha256
from graphkeel.lyapunov.ask import Ask, ask_engine
from graphkeel.lyapunov.config import LyapunovConfig
from graphkeel.lyapunov.evidence import anchor_of, certificate_of
from graphkeel.lyapunov.records import ClassOutcome, RoundLog, TrainResult, TrainState
from graphkeel.lyapunov.train import OnRound, train
from graphkeel.models.frozen import FrozenModel
from graphkeel.models.head import Head, extract_head


@dataclass(frozen=True, eq=False)
class CertifyResult:
    """What was trained and proved; false unless every class is proved.

    Attributes:
        head: the plant C that was taken out of the model.
        certificate: the JSON object, or None where the head cannot be proved anything about.
        training: controllers, answers and log of Algorithm 1, or None likewise.
        reason: why there is no certificate, or an empty text.
        seconds: for everything but the model's own training.
    """

    head: Head
    certificate: dict[str, Any] | None
    training: TrainResult | None
    reason: str
    seconds: float

    def __bool__(self) -> bool:
        return bool(self.verdicts) and set(self.verdicts.values()) == {"proved"}

    @property
    def verdicts(self) -> dict[int, str]:
        """The verdict of each class: proved, refuted or unknown."""
        entries = self.certificate["classes"] if self.certificate else []
        return {entry["class"]: entry["verdict"] for entry in entries}

    @property
    def outcomes(self) -> tuple[ClassOutcome, ...]:
        """Controller, V, question and answers of each class."""
        return self.training.outcomes if self.training else ()

    @property
    def log(self) -> tuple[RoundLog, ...]:
        """One entry a round of Algorithm 1."""
        return self.training.log if self.training else ()

    def anchors(self) -> Tensor:
        """h* of every class, float32, shape (classes, d)."""
        return torch.stack(
            [torch.from_numpy(anchor_of(outcome.control)).float() for outcome in self.outcomes]
        )


def certify(
    frozen: FrozenModel,
    x: Tensor,
    edge_index: Tensor,
    config: LyapunovConfig | None = None,
    *,
    classes: Sequence[int] | None = None,
    verifier: str | Ask = "auto",
    on_round: OnRound | None = None,
    resume: TrainState | None = None,
    provenance: dict[str, Any] | None = None,
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
        on_round: called after every round with its log and a resumable state.
        resume: the state that an interrupted run handed to `on_round`.
        provenance: what the certificate should say of its making.
        model_kwargs: passed to the model beside x and edge_index.
    """
    started = time.monotonic()
    head = extract_head(frozen, int(x.shape[1]), **model_kwargs)
    if head.unsupported is not None:
        return CertifyResult(head, None, None, head.unsupported, time.monotonic() - started)
    ask = ask_engine(verifier) if isinstance(verifier, str) else verifier
    logits = frozen.logits(x, edge_index, **model_kwargs)
    result = train(head, logits, classes, config, ask=ask, on_round=on_round, resume=resume)
    remarks = {
        "model_sha256": frozen.weights_hash,
        "head_gap": head.model_gap,
        "seconds": result.seconds,
        "torch": torch.__version__,
        **(provenance or {}),
    }
    data = graph_sha256(x, edge_index)
    certificate = certificate_of(head, result, provenance=remarks, data_sha256=data)
    return CertifyResult(head, certificate, result, "", time.monotonic() - started)
