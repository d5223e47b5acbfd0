"""A reconstruction in a folder: tensors as safetensors, everything else as JSON, nothing pickled.

The two files belong together, so the JSON file is the one that counts: it holds the checksum of its
tensors, which is also in their file's name. A save that is killed at any moment leaves the old pair
or the new one. What is stored is the whole of a reconstructor, or a summary of its graph."""

from __future__ import annotations

import json
import re
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor

from graphkeel.control.anchors import Anchors
from graphkeel.core.digests import file_sha256
from graphkeel.core.errors import DataError
from graphkeel.core.files import cannot_write, locked, write_text
from graphkeel.core.tensor_files import save_tensors
from graphkeel.graph.fingerprint import Fingerprint
from graphkeel.graph.labels import Labels
from graphkeel.monitor import Profile
from graphkeel.reconstruct.decide import PoolWeights
from graphkeel.reconstruct.explain import Source
from graphkeel.reconstruct.guard import GuardDecision
from graphkeel.reconstruct.summary import SourceSummary

if TYPE_CHECKING:
    from graphkeel.reconstruct.reconstructor import Reconstructor

FACTS = "reconstruction.json"
FORMAT = 5
_LABELS = ("label", "judging", "start", "start_judging")  # begin the names of tensors of labels
_AT_REST = "equilibrium."  # begins the names of the graph's states at its equilibrium
_PROFILE = "profile."  # begins the names of what a later graph is compared with

Contents = tuple[dict[str, Tensor], dict[str, Any]]


def save_folder(folder: Path, tensors: dict[str, Tensor], facts: dict[str, Any]) -> None:
    """Store both; whatever was in the folder before stays valid until the last moment."""
    with locked(folder):
        part = folder / "reconstruction.part"
        save_tensors(part, tensors)
        sha256 = file_sha256(part)
        try:
            part.replace(folder / _tensors(sha256))
            write_text(
                folder / FACTS,
                json.dumps({"format": FORMAT, "sha256": sha256, **facts}, indent=1) + "\n",
            )
            _forget_all_but(folder, sha256)
        except OSError as error:
            raise cannot_write(folder, error) from error


def load_folder(folder: Path) -> Contents:
    """Tensors and JSON values that `save_folder` stored."""
    try:
        if not (folder / FACTS).is_file():
            raise ValueError(f"no {FACTS}")
        with locked(folder):
            facts = json.loads((folder / FACTS).read_text(encoding="utf-8"))
            known = facts["format"] == FORMAT
            tensors = _checked_tensors(folder, facts["sha256"]) if known else {}
    except (OSError, SafetensorError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise DataError(
            f"{folder} holds no stored reconstruction",
            got=str(error)[:200],
            fix="Write it with save().",
        ) from error
    if not known:
        raise DataError(
            f"{folder} was written by another version",
            got=repr(facts["format"])[:80],
            fix="Fit and save again.",
        )
    return tensors, {key: value for key, value in facts.items() if key not in ("format", "sha256")}


def _tensors(sha256: str) -> str:
    return f"reconstruction-{sha256[:16]}.safetensors"


def _checked_tensors(folder: Path, sha256: object) -> dict[str, Tensor]:
    if not isinstance(sha256, str) or re.fullmatch("[0-9a-f]{64}", sha256) is None:
        raise ValueError("no checksum of the tensors")
    path = folder / _tensors(sha256)
    if file_sha256(path) != sha256:
        raise ValueError(f"{path.name} is damaged: its SHA-256 is another")
    return load_file(path)


def _forget_all_but(folder: Path, sha256: str) -> None:
    """Tensors that no JSON file names any more."""
    for path in folder.glob("reconstruction-*.safetensors"):
        if path.name != _tensors(sha256):
            path.unlink(missing_ok=True)


# ---- what is stored of a reconstructor


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
    }
    labels = (rec.labels_, rec._validation, *rec._start)
    for name, part in zip(_LABELS, labels, strict=True):
        # copies: the format holds no tensor twice
        nodes, classes = part.nodes.clone(), part.classes.clone()
        tensors |= {f"{name}_nodes": nodes, f"{name}_classes": classes}
    if rec.posterior_ is not None:
        tensors["posterior"] = rec.posterior_
    tensors |= {f"{_AT_REST}{name}": part for name, part in (rec.states_ or {}).items()}
    profile, profile_facts = rec._profile().stored()
    tensors |= {f"{_PROFILE}{name}": part for name, part in profile.items()}
    facts = {
        "profile": profile_facts,
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
    """Tensors, none, and JSON values of a summary: no feature, label or edge."""
    summary = rec._summary()
    return {}, {
        "parameters": _parameters(rec),
        "n_features": rec.n_features_in_,
        "n_classes": len(rec.classes_),
        "source": None if summary is None else asdict(summary),
        "weights": rec._weight_digests,
        "notes": notes,
    }


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
    rec.labels_, rec._validation, *start = (
        Labels(tensors[f"{name}_nodes"], tensors[f"{name}_classes"], n_classes) for name in _LABELS
    )
    rec._start = (start[0], start[1])
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
    rec.states_ = _named(tensors, _AT_REST) or None
    rec._fitted_profile = Profile.restored(_named(tensors, _PROFILE), facts["profile"])
    rec.n_features_in_ = int(rec.features_.shape[1])
    graph = facts.get("graph")
    rec._fingerprint = None if graph is None else Fingerprint(**graph)


def _named(tensors: dict[str, Tensor], start: str) -> dict[str, Tensor]:
    """Those whose names begin so, without that beginning."""
    return {key.removeprefix(start): part for key, part in tensors.items() if key.startswith(start)}


def _parameters(rec: Reconstructor) -> dict[str, Any]:
    """The constructor's arguments without the model and functions, which are not stored."""
    left_out = ("model", "callbacks")
    return {name: value for name, value in rec.get_params().items() if name not in left_out}
