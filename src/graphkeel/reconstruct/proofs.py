"""Anchors from neural controllers that have been proved stable, with their certificate."""

from __future__ import annotations

from typing import Any

import torch

from graphkeel.lyapunov import LyapunovConfig, anchor_of, ask_engine, certificate_of, train
from graphkeel.models.head import Head
from graphkeel.reconstruct.anchors import Anchors
from graphkeel.reconstruct.context import Context


def proved_anchors(
    context: Context, verifier: str, settings: dict[str, Any]
) -> tuple[dict[str, Any], Anchors] | None:
    """Algorithm 1 on the model's head; None if the head is no ReLU network, so that nothing can be
    proved.

    The anchors are f(Y) of the shipped controllers, whatever the verdicts: those are in the
    certificate.

    Args:
        context: the model on its graph.
        verifier: name of the engine, or `auto`.
        settings: fields of `LyapunovConfig`.
    """
    ask = ask_engine(verifier)
    head = context.plant
    if not isinstance(head, Head) or head.unsupported is not None:
        return None
    config = LyapunovConfig(**settings)
    result = train(head, context.logits, None, config, ask=ask)
    certificate = certificate_of(
        head, result, provenance={"model_sha256": context.frozen.weights_hash}
    )
    features = torch.stack(
        [torch.from_numpy(anchor_of(outcome.control)).float() for outcome in result.outcomes]
    )
    targets = config.strength * torch.eye(head.n_out, dtype=torch.float64)
    residuals = (head(features.double()) - targets).norm(dim=1)
    return certificate, Anchors(features, config.strength, tuple(residuals.tolist()), "neural")
