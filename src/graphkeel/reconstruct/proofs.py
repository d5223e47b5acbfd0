"""Certificates for the anchors in use, or for others where these cannot be certified."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any

import torch

from graphkeel.control.anchors import Anchors
from graphkeel.core.names import check_name
from graphkeel.lyapunov import CertifyResult, LyapunovConfig, certify
from graphkeel.lyapunov.on_graph import enclosed, steered
from graphkeel.models.linear_map import LinearMap
from graphkeel.reconstruct.context import Context
from graphkeel.reconstruct.steer import SteerSettings, linear_units

if TYPE_CHECKING:
    from graphkeel.reconstruct.reconstructor import Reconstructor

IN_USE = "the certificate is about the anchors in use"
CERTIFIED = "neural"  # who holds anchors that are certified


def certify_context(
    context: Context, verifier: str, settings: dict[str, Any]
) -> tuple[CertifyResult, Anchors | None]:
    """Certify the anchors in use as they are; or others, where the settings ask for a strength or a
    shift, or where the head answers an anchor in use with another class.

    Returns:
        What was proved, and the anchors that it is about, where all of it is.
    """
    kept = context.anchors()
    as_they_are = not {"strength", "shift", "form"} & set(settings)
    for name in settings:
        check_name("a setting of certify", name, [field.name for field in fields(LyapunovConfig)])
    config = LyapunovConfig(**{"strength": context.typical_strength, **settings})
    result = certify(
        context.frozen,
        context.x,
        context.edge_index,
        config,
        verifier=verifier,
        anchors=kept.features if as_they_are else None,
        constant=as_they_are,
        **context.model_kwargs,
    )
    if result.certificate is None:
        return result, None
    features = result.anchors()
    others = (features != kept.features).any(dim=1).nonzero().flatten()
    if not len(others):
        anchors = replace(kept, controller=CERTIFIED)
        return result.with_remark(IN_USE), anchors if result else None
    targets = config.strength * torch.eye(result.head.n_out, dtype=torch.float64)
    residuals = (result.head(features.double()) - targets).norm(dim=1)
    anchors = Anchors(features, config.strength, tuple(residuals.tolist()), CERTIFIED)
    labels = ", ".join(map(str, others.tolist()))
    remark = f"the certificate is about other anchors than those in use for class {labels}"
    return result.with_remark(remark), anchors if result else None


def certify_on_graph(result: CertifyResult, rec: Reconstructor) -> CertifyResult:
    """The result with the equilibrium on the graph and the distance of the features in use from it;
    of steered ones the class of every node, by rigorous rounding, and for a linear model the
    contraction."""
    context, labels = rec._context, rec.labels_
    graph = (context.frozen, context.x, context.edge_index)
    if len(labels):  # else nothing is controlled
        result = enclosed(result, *graph, (labels.nodes, labels.classes), shipped=rec.features_)
    if rec.posterior_ is None or not rec.fall_:
        return result
    wanted = rec.posterior_.argmax(dim=1)
    linear = LinearMap.of(context.frozen, context.edge_index, len(context.x))
    units = None if linear is None else linear_units(linear, context.x, SteerSettings())
    return steered(
        result,
        *graph,
        rec.features_,
        wanted,
        fall=rec.fall_,
        passes=rec._passes,
        linear=units,
    )
