"""A folder of certify: the certificate, the controllers, and the state of an unfinished run."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from graphkeel.certificate import sealed, write_certificate
from graphkeel.certificate.equilibrium import STATES
from graphkeel.core.digests import file_sha256, json_sha256, sha256_of, tensors_sha256
from graphkeel.core.files import locked, write_text
from graphkeel.core.tensor_files import save_tensors
from graphkeel.graph import GraphTask
from graphkeel.lyapunov.certify import certify
from graphkeel.lyapunov.config import LyapunovConfig
from graphkeel.lyapunov.evidence import anchor_of
from graphkeel.lyapunov.records import RoundLog, TrainResult, TrainState
from graphkeel.lyapunov.result import CertifyResult
from graphkeel.models.frozen import FrozenModel

CERTIFICATE = "certificate.json"
_CONTROLLERS = "controllers.safetensors"
_STATE = "training-state.safetensors"  # that an interrupted run resumes from
_TRAINING = "training.json"


def certify_into(
    folder: Path,
    frozen: FrozenModel,
    task: GraphTask,
    config: LyapunovConfig,
    *,
    classes: list[int],
    remarks: dict[str, Any],
    on_round: Callable[[RoundLog], None],
    verifier: str = "auto",
) -> CertifyResult:
    """`certify`, with everything kept in a folder; an interrupted run goes on where it was."""
    subject = frozen.weights_hash + task.hash + verifier
    fingerprint = _fingerprint(config, classes, subject)

    def keep(log: RoundLog, state: TrainState) -> None:
        save_state(folder / _STATE, state, fingerprint)
        on_round(log)

    trained = task.train_mask.nonzero().flatten()
    result = certify(
        frozen,
        task.x,
        task.edge_index,
        config,
        classes=classes,
        verifier=verifier,
        on_round=keep,
        resume=load_state(folder / _STATE, fingerprint),
        provenance=remarks,
        labelled=(trained, task.y[trained]),
    )
    if result.training is None or result.certificate is None:
        return result
    with locked(folder):
        _write(folder, result.training, result.certificate, result.states)
    (folder / _STATE).unlink(missing_ok=True)  # not before the results are on disk
    return result


def _write(
    folder: Path,
    training: TrainResult,
    certificate: dict[str, Any],
    states: dict[str, Tensor] | None,
) -> None:
    """Controllers, states and the log first; then the certificate, which names their checksums."""
    if states is not None:
        save_tensors(folder / STATES, states)
    save_tensors(folder / _CONTROLLERS, _controllers(training), {"form": training.config.form})
    rounds = [entry.as_dict() for entry in training.log]
    log = {"config": training.config.as_dict(), "stopped": training.stopped, "rounds": rounds}
    write_text(folder / _TRAINING, json.dumps(log, indent=1) + "\n")
    checksum = {"controllers_sha256": file_sha256(folder / _CONTROLLERS)}
    certificate["provenance"] |= checksum
    certificate["sha256"] = sealed(certificate)["sha256"]
    write_certificate(certificate, folder / CERTIFICATE)


def _controllers(training: TrainResult) -> dict[str, Tensor]:
    """Anchor, controller and Lyapunov function of every class."""
    tensors = {}
    for outcome in training.outcomes:
        tensors[f"{outcome.label}.anchor"] = torch.from_numpy(anchor_of(outcome.control)).clone()
        for part, weights in (("f", outcome.control), ("V", outcome.function)):
            for name, tensor in weights.tensors().items():
                tensors[f"{outcome.label}.{part}.{name}"] = tensor
    return tensors


# ---- the state of an unfinished run


def _fingerprint(config: LyapunovConfig, classes: list[int], subject: str) -> str:
    settings = {**config.resolved().as_dict(), "seconds": 0.0}
    content = {**settings, "labels": classes, "subject": subject}
    return json_sha256(content)


def save_state(path: Path, state: TrainState, fingerprint: str) -> None:
    """Write the state that a run resumes from."""
    log = json.dumps([entry.as_dict() for entry in state.log])
    metadata = {"fingerprint": fingerprint, "log": log, "sha256": _digest(state.tensors, log)}
    save_tensors(path, state.tensors, metadata)


def load_state(path: Path, fingerprint: str) -> TrainState | None:
    """The state of an interrupted run; None if that was another run, or if the file is damaged."""
    if not path.exists():
        return None
    try:
        with safe_open(path, framework="pt") as file:
            metadata = file.metadata() or {}
            if metadata.get("fingerprint") != fingerprint:
                return None  # of another task or configuration
            tensors = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118
        if metadata["sha256"] != _digest(tensors, metadata["log"]):
            return None
        log = tuple(RoundLog(**entry) for entry in json.loads(metadata["log"]))
        return TrainState(tensors, log)
    except (SafetensorError, OSError, ValueError, TypeError, KeyError, RecursionError):
        return None


def _digest(tensors: dict[str, Tensor], log: str) -> str:
    return sha256_of([f"{tensors_sha256(tensors)} {log}"])
