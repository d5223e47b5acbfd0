"""Proofs about a fitted reconstruction: anchors in use, the graph's equilibrium, what ships."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from graphkeel.control.anchors import Anchors
from graphkeel.models.linear_map import LinearMap
from graphkeel.reconstruct.correction import correct
from graphkeel.reconstruct.steer import SteerSettings, linear_units

if TYPE_CHECKING:
    from graphkeel.lyapunov import CertifyResult
    from graphkeel.reconstruct.reconstructor import Reconstructor


def certified(rec: Reconstructor, settings: dict[str, Any]) -> CertifyResult:
    """Certify the anchors in use, or those that take their place.

    Args:
        settings: fields of `LyapunovConfig`.
    """
    from graphkeel.lyapunov.in_use import certify_in_use, warn_of  # loads the verifiers

    result, anchors = certify_in_use(rec._context, rec.verifier, settings)
    if anchors is not None:
        result = _adopted(rec, result, anchors)
    if hasattr(rec, "features_"):
        result = _on_graph(rec, result)
    rec.certificate_ = result.certificate
    rec.states_ = result.states
    warn_of(result)
    return result


def _on_graph(rec: Reconstructor, result: CertifyResult) -> CertifyResult:
    """The result with the equilibrium on the graph; of steered features with the class of every
    node, by rigorous rounding, and for a linear model the contraction."""
    from graphkeel.lyapunov.on_graph import enclosed, steered

    frozen, x, edges = rec._context.frozen, rec._context.x, rec._context.edge_index
    labels = (rec.labels_.nodes, rec.labels_.classes)
    if len(rec.labels_):  # else nothing is controlled
        result = enclosed(result, x, edges, labels)
    if rec.posterior_ is None or not rec.fall_:
        return result
    shipped = (rec.features_, rec.posterior_.argmax(dim=1))
    linear = LinearMap.of(frozen, edges, len(x))
    units = None if linear is None else linear_units(linear, x, SteerSettings())
    return steered(
        result, frozen, x, edges, *shipped, fall=rec.fall_, passes=rec._passes, linear=units
    )


def _adopted(rec: Reconstructor, result: CertifyResult, anchors: Anchors) -> CertifyResult:
    """Use proved anchors: at once where features do not depend on them, else if labels find them no
    worse."""
    kept = rec._context.anchors()
    rec._context.use_anchors(anchors)
    if rec.method == "auto" or torch.equal(anchors.features, kept.features):
        return result
    before = rec.guard_.accuracy
    found = correct(rec._context, rec._known(), rec._rule())
    now = found.guard.accuracy
    if before is not None and now is not None and now >= before:
        rec._keep(found)
        return result.with_remark("the certificate is about the anchors now in use")
    rec._context.use_anchors(kept)
    return result
