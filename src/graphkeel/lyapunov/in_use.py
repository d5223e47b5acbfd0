"""Certificates for the anchors in use, or for others where these cannot be certified."""

from __future__ import annotations

import logging
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any

from graphkeel.control.anchors import Anchors
from graphkeel.core.names import check_name
from graphkeel.lyapunov.certify import certify
from graphkeel.lyapunov.config import LyapunovConfig
from graphkeel.lyapunov.result import CertifyResult

if TYPE_CHECKING:
    from graphkeel.reconstruct.context import Context

_log = logging.getLogger(__name__)

IN_USE = "the certificate is about the anchors in use"
CERTIFIED = "neural"  # who holds anchors that are certified


def certify_in_use(
    graph: Context, verifier: str, settings: dict[str, Any]
) -> tuple[CertifyResult, Anchors | None]:
    """Certify the anchors in use as they are; or others, where the settings ask for a strength or a
    shift, or where the head answers an anchor in use with another class. With the anchors that
    it is about, where all of it is proved."""
    kept = graph.anchors()
    as_they_are = not {"strength", "shift", "form"} & set(settings)
    for name in settings:
        check_name("a setting of certify", name, [field.name for field in fields(LyapunovConfig)])
    config = LyapunovConfig(**{"strength": graph.typical_strength, **settings})
    result = certify(
        graph.frozen,
        graph.x,
        graph.edge_index,
        config,
        verifier=verifier,
        anchors=kept.features if as_they_are else None,
        constant=as_they_are,
        **graph.model_kwargs,
    )
    if result.certificate is None:
        return result, None
    features = result.anchors()
    others = (features != kept.features).any(dim=1).nonzero().flatten()
    if not len(others):
        anchors = replace(kept, controller=CERTIFIED)
        return result.with_remark(IN_USE), anchors if result else None
    anchors = Anchors.at(result.head, features, config.strength, CERTIFIED)
    labels = ", ".join(map(str, others.tolist()))
    remark = f"the certificate is about other anchors than those in use for class {labels}"
    return result.with_remark(remark), anchors if result else None


def warn_of(result: CertifyResult) -> None:
    """Whatever keeps a certificate from being all that was asked for, in words."""
    if result.certificate is None:
        _log.warning("nothing is proved: %s", result.reason)
    for label, reason in result.reasons.items():
        _log.warning("class %d is not proved: %s", label, reason)
    if "other anchors" in result.remark:
        _log.warning("%s", result.remark)
