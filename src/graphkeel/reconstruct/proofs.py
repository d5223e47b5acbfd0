"""Anchors from neural controllers that have been proved stable, with their certificate."""

from __future__ import annotations

from typing import Any

import torch

from graphkeel.lyapunov import CertifyResult, LyapunovConfig, certify
from graphkeel.reconstruct.anchors import Anchors
from graphkeel.reconstruct.context import Context


def certify_context(
    context: Context, verifier: str, settings: dict[str, Any]
) -> tuple[CertifyResult, Anchors | None]:
    """Algorithm 1 on the model's head, and the anchors f(Y) of the shipped controllers; no anchors
    where the head is no ReLU network, so that nothing can be proved.

    Args:
        context: the model on its graph.
        verifier: name of the engine, or `auto`.
        settings: fields of `LyapunovConfig`.
    """
    config = LyapunovConfig(**settings)
    result = certify(
        context.frozen,
        context.x,
        context.edge_index,
        config,
        verifier=verifier,
        **context.model_kwargs,
    )
    if result.certificate is None:
        return result, None
    features = result.anchors()
    targets = config.strength * torch.eye(result.head.n_out, dtype=torch.float64)
    residuals = (result.head(features.double()) - targets).norm(dim=1)
    return result, Anchors(features, config.strength, tuple(residuals.tolist()), "neural")
