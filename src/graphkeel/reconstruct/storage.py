"""Folders of a reconstructor: the whole of it, or as much as `adapt` needs."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from graphkeel.control.anchors import Anchors
from graphkeel.core.tensors import Contents, TensorFolder
from graphkeel.graph.fingerprint import Fingerprint
from graphkeel.graph.labels import Labels
from graphkeel.models.binding import is_plain
from graphkeel.monitor.profile import Profile
from graphkeel.reconstruct.decide import PoolWeights, Resumable
from graphkeel.reconstruct.explain import Source
from graphkeel.reconstruct.guard import GuardDecision
from graphkeel.reconstruct.pool import Judged

if TYPE_CHECKING:
    from graphkeel.reconstruct.reconstructor import Reconstructor

FOLDER = TensorFolder("reconstruction", format=8)
_LABELS = ("label", "judging", "start", "start_judging")  # begin the names of tensors of labels
_ANEW = {"given": "anew"}  # an argument of the model that belongs to a graph
_AT_REST = "equilibrium."  # begins the names of the graph's states at its equilibrium
_RESUMED = "resumable."  # begins the names of what a decision is taken up from
_WALK = "walk."  # among them, of what was spread over the graph
_OTHERS = ("before", "projection", "digests", "served")  # the other arrays
_PROFILE = "profile."  # begins the names of what a later graph is compared with


def contents(rec: Reconstructor, keep: str, notes: dict[str, Any]) -> Contents:
    """Tensors and JSON values of a fitted reconstructor; of a summary no feature, label or edge.

    The model and functions are not stored."""
    left_out = ("model", "callbacks", "inference")
    facts = {
        "parameters": {k: v for k, v in rec.get_params().items() if k not in left_out},
        "n_classes": len(rec.classes_),
        "weights": rec._weight_digests,
        "notes": notes,
    }
    if keep == "summary":
        return {}, {**facts, "n_features": rec.n_features_in_}
    tensors = {
        "features": rec.features_,
        "change": rec.change_,
        "anchors": rec.anchors_.features,
        "held_scores": torch.from_numpy(rec._held[0]),
        "held_classes": torch.from_numpy(rec._held[1]),
        "trained_on": rec._trained_on.nonzero().flatten(),
    }
    labels = (rec.labels_, rec._validation, *rec._start)
    for name, part in zip(_LABELS, labels, strict=True):
        # copies: the format holds no tensor twice
        nodes, classes = part.nodes.clone(), part.classes.clone()
        tensors |= {f"{name}_nodes": nodes, f"{name}_classes": classes}
    if rec.posterior_ is not None:
        tensors["posterior"] = rec.posterior_
    resumed, resumed_facts = _resumable_parts(rec._resumable)
    tensors |= {f"{_RESUMED}{name}": part for name, part in resumed.items()}
    tensors |= {f"{_AT_REST}{name}": part for name, part in (rec.states_ or {}).items()}
    profile, profile_facts = rec._profile().stored()
    tensors |= {f"{_PROFILE}{name}": part for name, part in profile.items()}
    rounds = [{"weights": one.weights, "offsets": one.offsets.tolist()} for one in rec._rounds]
    facts |= {
        "profile": profile_facts,
        "resumable": resumed_facts,
        "guard": rec.guard_.to_dict(),
        "rounds": rounds,
        "evidence": [asdict(source) for source in rec.evidence_],
        "fall": list(rec.fall_),
        "passes": rec._passes,
        "anchors": {
            "strength": rec.anchors_.strength,
            "residuals": list(rec.anchors_.residuals),
            "controller": rec.anchors_.controller,
        },
        "graph": rec._fingerprint.to_dict(),
        "arguments": {k: v if is_plain(v) else _ANEW for k, v in rec._arguments().items()},
        "certificate": rec.certificate_,
    }
    return tensors, facts


def restore(rec: Reconstructor, tensors: dict[str, Tensor], facts: dict[str, Any]) -> None:
    """Fill a new reconstructor with what was stored."""
    rec.notes_ = facts["notes"]
    rec.classes_ = torch.arange(facts["n_classes"])
    rec._weight_digests = dict(facts["weights"])
    if "n_features" in facts:  # a summary
        rec.n_features_in_ = int(facts["n_features"])
        return
    anchors = tensors["anchors"]
    stored = facts["anchors"]
    rec.features_ = tensors["features"]
    if facts["n_classes"] != anchors.shape[0] or rec.features_.shape[1:] != anchors.shape[1:]:
        raise ValueError(f"{facts['n_classes']} classes, anchors {tuple(anchors.shape)}")
    rec.labels_, rec._validation, *start = (
        Labels(tensors[f"{name}_nodes"], tensors[f"{name}_classes"], len(anchors))
        for name in _LABELS
    )
    rec._start = (start[0], start[1])
    rec._trained_on = torch.zeros(len(rec.features_), dtype=torch.bool)
    rec._trained_on[tensors["trained_on"]] = True
    rec._held = (tensors["held_scores"].numpy(), tensors["held_classes"].numpy())
    rec._rounds = tuple(
        PoolWeights(dict(one["weights"]), np.array(one["offsets"])) for one in facts["rounds"]
    )
    rec._decision = None
    rec._resumable = _resumable(_named(tensors, _RESUMED), facts["resumable"])
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
    rec.states_ = _named(tensors, _AT_REST) or None
    rec._fitted_profile = Profile.restored(_named(tensors, _PROFILE), facts["profile"])
    rec.n_features_in_ = int(rec.features_.shape[1])
    rec._fingerprint = Fingerprint(**facts["graph"])
    rec._stored_arguments = dict(facts["arguments"])


def _resumable_parts(resumable: Resumable | None) -> Contents:
    """Tensors and JSON values of what a decision is taken up from."""
    if resumable is None:
        return {}, {}
    walks = {f"{_WALK}{name}": part for name, part in resumable.walks.items()}
    parts = {name: getattr(resumable, name) for name in _OTHERS}
    parts |= walks | vars(resumable.judged)
    tensors = {name: torch.from_numpy(part) for name, part in parts.items()}
    return tensors, {"names": resumable.names, "chosen": resumable.chosen}


def _resumable(tensors: dict[str, Tensor], facts: dict[str, Any]) -> Resumable | None:
    """The inverse of `_resumable_parts`."""
    if not tensors:
        return None
    walks = {name: part.numpy() for name, part in _named(tensors, _WALK).items()}
    parts = {name: part.numpy() for name, part in tensors.items() if not name.startswith(_WALK)}
    own = {name: parts.pop(name) for name in _OTHERS}
    names, chosen = tuple(facts["names"]), int(facts["chosen"])
    return Resumable(walks=walks, names=names, judged=Judged(**parts), chosen=chosen, **own)


def _named(tensors: dict[str, Tensor], start: str) -> dict[str, Tensor]:
    """Those whose names begin so, without that beginning."""
    return {key.removeprefix(start): part for key, part in tensors.items() if key.startswith(start)}
