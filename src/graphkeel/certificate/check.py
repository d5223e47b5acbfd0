"""Checking a certificate, by itself or against the model and the graph it speaks of.

By itself a certificate is about the weights that it carries; `link` ties it to real things."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from graphkeel.certificate.agreement import Differs
from graphkeel.certificate.encoding import certificate_bytes, read_certificate
from graphkeel.certificate.equilibrium import STATES
from graphkeel.certificate.link import link
from graphkeel.certificate.steering import STEERING
from graphkeel.checker import CheckResult, Unreadable, check_bytes, check_file
from graphkeel.core.errors import CertificateError

if TYPE_CHECKING:
    from torch import nn


@dataclass(frozen=True)
class LinkedResult(CheckResult):
    """The result of a check, and which links to a model and a graph were part of it.

    Attributes:
        model_checked: the head was compared with the given model's.
        data_checked: hash, domain, and the model's answers on the given graph were compared.
        on_graph: what was shown to hold of the given graph's nodes, in words.
    """

    model_checked: bool = False
    data_checked: bool = False
    on_graph: tuple[str, ...] = ()


def check_certificate(
    certificate: str | Path | Mapping[str, Any],
    *,
    model: nn.Module | None = None,
    data: Any | None = None,
    states: str | Path | Mapping[str, Any] | None = None,
    steering: str | Path | Mapping[str, Any] | None = None,
) -> LinkedResult:
    """Re-prove a certificate. A file that is no certificate raises `CertificateError`.

    Args:
        certificate: a file, or the JSON object of one (`Reconstructor.certificate_`).
        model: the model that the certificate is said to be about.
        data: the graph, with `x` (N, d) and `edge_index` (2, E); needs `model`.
        states: of the graph at its equilibrium: a file, by default the one beside the certificate,
            or tensors (`Reconstructor.states_`).
        steering: the features that ship and the decided classes: a file, by default the one beside
            the certificate, or tensors `features` and `wanted`.
    """
    if data is not None and model is None:
        raise CertificateError("the graph can be checked together with its model only", got="data")
    try:
        if isinstance(certificate, Mapping):
            plain = _check_object(certificate)
        else:
            plain = check_file(str(certificate))
    except Unreadable as error:
        raise CertificateError("the certificate cannot be read", got=str(error)) from None
    result = LinkedResult(**{name: getattr(plain, name) for name in plain.__dataclass_fields__})
    if model is None or not result.accepted:
        return result
    return linked(result, certificate, model, data, states, steering)


def linked(
    result: LinkedResult,
    certificate: str | Path | Mapping[str, Any],
    model: nn.Module,
    data: Any | None,
    states: str | Path | Mapping[str, Any] | None = None,
    steering: str | Path | Mapping[str, Any] | None = None,
) -> LinkedResult:
    """The result of an accepted certificate, once it was tied to a model, and maybe to a graph."""
    content = certificate if isinstance(certificate, Mapping) else read_certificate(certificate)
    if not isinstance(certificate, Mapping):
        states = Path(certificate).with_name(STATES) if states is None else states
        steering = Path(certificate).with_name(STEERING) if steering is None else steering
    stored, shipped = (Path(one) if isinstance(one, str) else one for one in (states, steering))
    result = replace(result, model_checked=True, data_checked=data is not None)
    try:
        return replace(result, on_graph=link(content, model, data, stored, shipped))
    except Differs as difference:
        refused = replace(result, accepted=False, reason=str(difference))
        return replace(refused, classes=(), together="", graph="", steering="")


def _check_object(content: Mapping[str, Any]) -> CheckResult:
    raw = certificate_bytes(content)
    stated = f'"sha256": "{content.get("sha256")}"'.encode("ascii", "replace")
    if stated not in raw[:100]:
        reason = "the SHA-256 in the certificate is not that of its content"
        return CheckResult(False, reason, 0.0)
    return check_bytes(raw)
