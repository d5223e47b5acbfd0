"""What of a reconstructor is stored, and how it comes back: the whole of it, or a summary."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from graphkeel.graph.fingerprint import Fingerprint
from graphkeel.reconstruct.anchors import Anchors
from graphkeel.reconstruct.decide import PoolWeights
from graphkeel.reconstruct.explain import Source
from graphkeel.reconstruct.guard import GuardDecision
from graphkeel.reconstruct.labels import Labels
from graphkeel.reconstruct.summary import SourceSummary

if TYPE_CHECKING:
    from graphkeel.reconstruct.reconstructor import Reconstructor

_START = ("start", "start_judging")  # begin the names of the labels that `fit` saw
_AT_REST = "equilibrium."  # begins the names of the graph's states at its equilibrium

Contents = tuple[dict[str, Tensor], dict[str, Any]]


def whole_contents(rec: Reconstructor, notes: dict[str, Any]) -> Contents:
    """Tensors and JSON values of a fitted reconstructor."""
    held, judged = rec._held
    tensors = {
        "features": rec.features_,
        "change": rec.change_,
        "anchors": rec.anchors_.features,
        "held_scores": held,
        "held_classes": judged,
        "trained_on": rec._trained_on.nonzero().flatten(),
        "label_nodes": rec.labels_.nodes,
        "label_classes": rec.labels_.classes,
        "judging_nodes": rec._validation.nodes,
        "judging_classes": rec._validation.classes,
    }
    for name, part in zip(_START, rec._start, strict=True):
        # copies: the format holds no tensor twice
        nodes, classes = part.nodes.clone(), part.classes.clone()
        tensors |= {f"{name}_nodes": nodes, f"{name}_classes": classes}
    if rec.posterior_ is not None:
        tensors["posterior"] = rec.posterior_
    tensors |= {f"{_AT_REST}{name}": part for name, part in (rec.states_ or {}).items()}
    facts = {
        "parameters": _parameters(rec),
        "guard": rec.guard_.to_dict(),
        "rounds": [
            {"weights": one.weights, "offsets": one.offsets.tolist()} for one in rec._rounds
        ],
        "evidence": [asdict(source) for source in rec.evidence_],
        "fall": list(rec.fall_),
        "passes": rec._passes,
        "correction": rec._correction,
        "anchors": {
            "strength": rec.anchors_.strength,
            "residuals": list(rec.anchors_.residuals),
            "controller": rec.anchors_.controller,
        },
        "n_classes": len(rec.classes_),
        "graph": None if rec._fingerprint is None else rec._fingerprint.to_dict(),
        "weights": rec._weight_digests,
        "certificate": rec.certificate_,
        "notes": notes,
    }
    return tensors, facts


def summary_contents(rec: Reconstructor, notes: dict[str, Any]) -> Contents:
    """The same of what may leave the house: class statistics, no feature, label or edge."""
    summary = rec._summary()
    facts = {
        "parameters": _parameters(rec),
        "n_features": rec.n_features_in_,
        "n_classes": len(rec.classes_),
        "source": None if summary is None else summary.facts(),
        "weights": rec._weight_digests,
        "notes": notes,
    }
    return {}, facts


def restored(
    rec: Reconstructor, tensors: dict[str, Tensor], facts: dict[str, Any]
) -> Reconstructor:
    """Fill a new reconstructor with what was stored."""
    rec.notes_ = facts["notes"]
    rec.classes_ = torch.arange(facts["n_classes"])
    rec._weight_digests = dict(facts.get("weights") or {})
    if "source" in facts:
        stored = facts["source"]
        rec.summary_ = None if stored is None else SourceSummary(**stored)
        rec.n_features_in_ = int(facts["n_features"])
        return rec
    _restore_whole(rec, tensors, facts)
    return rec


def _restore_whole(rec: Reconstructor, tensors: dict[str, Tensor], facts: dict[str, Any]) -> None:
    anchors = tensors["anchors"]
    stored = facts["anchors"]
    rec.features_ = tensors["features"]
    if facts["n_classes"] != anchors.shape[0] or rec.features_.shape[1:] != anchors.shape[1:]:
        raise ValueError(f"{facts['n_classes']} classes, anchors {tuple(anchors.shape)}")
    n_classes = anchors.shape[0]
    rec.labels_ = Labels(tensors["label_nodes"], tensors["label_classes"], n_classes)
    rec._validation = Labels(tensors["judging_nodes"], tensors["judging_classes"], n_classes)
    served, judged = (
        Labels(tensors[f"{name}_nodes"], tensors[f"{name}_classes"], n_classes) for name in _START
    )
    rec._start = (served, judged)
    rec._correction = float(facts["correction"])
    rec._trained_on = torch.zeros(len(rec.features_), dtype=torch.bool)
    rec._trained_on[tensors["trained_on"]] = True
    rec._held = (tensors["held_scores"], tensors["held_classes"])
    rec._rounds = tuple(
        PoolWeights(dict(one["weights"]), np.array(one["offsets"])) for one in facts["rounds"]
    )
    rec._decision = None
    rec.posterior_ = tensors.get("posterior")
    rec.evidence_ = tuple(Source(**one) for one in facts["evidence"])
    rec.fall_ = tuple(facts["fall"])
    rec._passes = int(facts["passes"])
    rec.change_ = tensors["change"]
    rec._stored_anchors = Anchors(
        anchors, stored["strength"], tuple(stored["residuals"]), stored["controller"]
    )
    rec.guard_ = GuardDecision.from_dict(facts["guard"])
    rec.certificate_ = facts["certificate"]
    stored_states = {key: tensors[key] for key in tensors if key.startswith(_AT_REST)}
    states = {key.removeprefix(_AT_REST): part for key, part in stored_states.items()}
    rec.states_ = states or None
    rec.n_features_in_ = int(rec.features_.shape[1])
    graph = facts.get("graph")
    rec._fingerprint = None if graph is None else Fingerprint(**graph)


def _parameters(rec: Reconstructor) -> dict[str, Any]:
    """What can be stored of the constructor's arguments: not the model, and no function."""
    left_out = ("model", "callbacks")
    return {name: value for name, value in rec.get_params().items() if name not in left_out}
