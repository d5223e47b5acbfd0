"""Checking a certificate, by itself or against the model and the graph it speaks of.

By itself a certificate is about the weights that it carries. `link` ties it to real things: the
head is taken out of the model again and compared bit by bit, the graph's hash is compared, the
domain D has to hold the model's own logits on that graph, and where something is said of message
passing, its own answers there have to be those of the layers that it was recognised as.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from graphkeel.certificate.encoding import certificate_bytes, decode_array, read_certificate
from graphkeel.certificate.equilibrium import STATES
from graphkeel.certificate.steering import STEERING
from graphkeel.checker import CheckResult, Unreadable, check_bytes, check_file
from graphkeel.core.errors import CertificateError

if TYPE_CHECKING:
    from torch import Tensor, nn

    from graphkeel.certificate.graph_link import Link
    from graphkeel.models.frozen import FrozenModel
    from graphkeel.models.head import Head


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

    def linked(self, found: Link, *, with_data: bool) -> LinkedResult:
        """The result once the link to a model, and maybe to a graph, was checked.

        Args:
            found: what `link` returned.
            with_data: whether a graph was part of it.
        """
        result = replace(self, model_checked=True, data_checked=with_data)
        if found.difference is None:
            return replace(result, on_graph=found.on_graph)
        refused = replace(result, accepted=False, reason=found.difference)
        return replace(refused, classes=(), together="", graph="", steering="")


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
        plain = _checked(certificate)
    except Unreadable as error:
        raise CertificateError("the certificate cannot be read", got=str(error)) from None
    result = LinkedResult(**{name: getattr(plain, name) for name in plain.__dataclass_fields__})
    if model is None or not result.accepted:
        return result
    content = certificate if isinstance(certificate, Mapping) else read_certificate(certificate)
    if not isinstance(certificate, Mapping):
        states = Path(certificate).with_name(STATES) if states is None else states
        steering = Path(certificate).with_name(STEERING) if steering is None else steering
    stored = Path(states) if isinstance(states, str) else states
    shipped = Path(steering) if isinstance(steering, str) else steering
    found = link(content, model, data, stored, shipped)
    return result.linked(found, with_data=data is not None)


def _checked(certificate: str | Path | Mapping[str, Any]) -> CheckResult:
    if isinstance(certificate, Mapping):
        return _check_object(certificate)
    return check_file(str(certificate))


def _check_object(content: Mapping[str, Any]) -> CheckResult:
    raw = certificate_bytes(content)
    stated = f'"sha256": "{content.get("sha256")}"'.encode("ascii", "replace")
    if stated not in raw[:100]:
        reason = "the SHA-256 in the certificate is not that of its content"
        return CheckResult(False, reason, 0.0)
    return check_bytes(raw)


def link(
    content: Mapping[str, Any],
    model: nn.Module,
    data: Any | None,
    states: Path | Mapping[str, Any] | None = None,
    steering: Path | Mapping[str, Any] | None = None,
) -> Link:
    """How the model, or the graph, differs from what a certificate speaks of, and what was
    shown."""
    from graphkeel.certificate.graph_link import Link
    from graphkeel.graph.task import graph_sha256
    from graphkeel.models.frozen import FrozenModel
    from graphkeel.models.head import extract_head

    stored = content["head"]
    plain = all(len(layer) == 1 and None not in layer[0].values() for layer in stored)
    if not plain:
        return Link("the certificate's head is no plain chain of layers, as a model's is")
    head = extract_head(model, int(stored[0][0]["weight"]["shape"][1]))
    difference = _head_difference(stored, head)
    if difference is not None:
        return Link(difference)
    n_classes = int(content["classes"][0]["problem"]["lower"]["shape"][0])
    frozen = FrozenModel(model, n_classes=n_classes)
    if data is None:
        return _passing_link(content, frozen, None, None, states, steering)
    own = graph_sha256(data.x, data.edge_index)
    if content.get("data") != own:
        return Link(_other_graph(content.get("data"), own))
    scores = frozen(data.x, data.edge_index)
    difference = _domain_difference(content, frozen.as_logits(scores))
    if difference is not None:
        return Link(difference)
    return _passing_link(content, frozen, data, scores, states, steering)


def _passing_link(
    content: Mapping[str, Any],
    frozen: FrozenModel,
    data: Any | None,
    scores: Tensor | None,
    states: Path | Mapping[str, Any] | None,
    steering: Path | Mapping[str, Any] | None,
) -> Link:
    """The parts about message passing and steering; the model is recognised once for both."""
    from graphkeel.certificate.graph_link import Link, graph_link
    from graphkeel.certificate.steering_link import steering_link
    from graphkeel.models.aggregation import recognise

    passes = (content.get("graph") or {}).get("contraction") == "proved"
    if not passes and "steering" not in content:
        return Link()
    width = int(content["head"][0][0]["weight"]["shape"][1])
    found = recognise(frozen.module, width)
    passing = graph_link(content, found, frozen, data, scores, states) if passes else Link()
    if passing.difference is not None or "steering" not in content:
        return passing
    shipped = steering_link(content, found, frozen, data, scores, steering)
    return Link(shipped.difference, (*passing.on_graph, *shipped.on_graph))


def _head_difference(stored: list[list[dict[str, Any]]], head: Head) -> str | None:
    if head.unsupported is not None:
        return f"the model's head cannot be taken out: {head.unsupported}"
    if len(stored) != len(head.layers):
        return f"the model's head has {len(head.layers)} layers, the certificate's {len(stored)}"
    for k, (factors, layer) in enumerate(zip(stored, head.layers, strict=True)):
        for name, tensor in zip(("weight", "bias"), layer, strict=True):
            there = decode_array(factors[0][name])
            here = tensor.detach().double().cpu().numpy()
            if there.shape != here.shape:
                return (
                    f"the model's head has the {name} shape {here.shape} in layer {k},"
                    f" the certificate's {there.shape}"
                )
            if not np.array_equal(there, here):
                gap = float(np.abs(there - here).max())
                count = int((there != here).sum())
                return (
                    f"the certificate is about another model: {count} of {here.size} numbers of its"
                    f" head's {name} in layer {k} differ, by up to {gap:.3g}"
                )
    return None


def _other_graph(stored: Any, own: str) -> str:
    if stored is None:
        return "the certificate names no graph, so it cannot be tied to one"
    other = str(stored)[:12]
    return f"the certificate is about another graph: its hash is {other!a}, not {own[:12]!r}"


def _domain_difference(content: Mapping[str, Any], logits: Tensor) -> str | None:
    states = logits.double().cpu().numpy()
    for entry in content["classes"]:
        lower = decode_array(entry["problem"]["lower"])
        upper = decode_array(entry["problem"]["upper"])
        inside = ((states >= lower) & (states <= upper)).all(axis=1)  # NaN is not
        outside = len(states) - int(inside.sum())
        if outside:
            return f"class {entry['class']}: the logits of {outside} nodes lie outside the domain D"
    return None
