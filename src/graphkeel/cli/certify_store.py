"""What `keel certify` keeps on disk: the certificate, the controllers, and the state of an
unfinished run."""

from __future__ import annotations

import argparse
import hashlib
import json
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from graphkeel.certificate import write_certificate
from graphkeel.core.files import locked, write_text
from graphkeel.core.tensor_files import file_sha256, save_tensors, tensors_sha256
from graphkeel.graph import GraphTask
from graphkeel.graph.task import graph_sha256
from graphkeel.lyapunov import (
    LyapunovConfig,
    RoundLog,
    TrainResult,
    TrainState,
    anchor_of,
    certificate_of,
)
from graphkeel.models.head import Head

CONTROLLERS = "controllers.safetensors"


def fingerprint(config: LyapunovConfig, labels: list[int], subject: str) -> str:
    told = {**config.resolved().as_dict(), "seconds": 0.0, "labels": labels, "subject": subject}
    return hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()


def save_state(path: Path, state: TrainState, fingerprint: str) -> None:
    log = json.dumps([entry.as_dict() for entry in state.log])
    told = {"fingerprint": fingerprint, "log": log, "sha256": _digest(state.tensors, log)}
    save_tensors(path, state.tensors, told)


def load_state(path: Path, fingerprint: str) -> TrainState | None:
    """What an interrupted run left; None if that was another run, or if the file is damaged."""
    if not path.exists():
        return None
    try:
        with safe_open(path, framework="pt") as file:
            told = file.metadata() or {}
            if told.get("fingerprint") != fingerprint:
                return None  # of another task or configuration
            tensors = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118
        if told["sha256"] != _digest(tensors, told["log"]):
            return None
        return TrainState(tensors, tuple(RoundLog(**entry) for entry in json.loads(told["log"])))
    except (SafetensorError, OSError, ValueError, TypeError, KeyError, RecursionError):
        return None


def _digest(tensors: dict[str, Tensor], log: str) -> str:
    return hashlib.sha256(f"{tensors_sha256(tensors)} {log}".encode()).hexdigest()


def write_results(
    head: Head,
    result: TrainResult,
    task: GraphTask,
    weights: str,
    args: argparse.Namespace,
    out: Path,
) -> dict[str, Any]:
    """controllers.safetensors and training.json, then certificate.json, which names the
    controllers' checksum."""
    with locked(out):
        return _write_results(head, result, task, weights, args, out)


def _write_results(
    head: Head,
    result: TrainResult,
    task: GraphTask,
    weights: str,
    args: argparse.Namespace,
    out: Path,
) -> dict[str, Any]:
    save_tensors(out / CONTROLLERS, _controllers(result), {"form": args.form})
    log = {
        "config": result.config.as_dict(),
        "stopped": result.stopped,
        "rounds": [e.as_dict() for e in result.log],
    }
    write_text(out / "training.json", json.dumps(log, indent=1) + "\n")
    provenance = {
        "dataset": args.dataset,
        "split": args.split,
        "features": args.features,
        "model": args.model,
        "model_sha256": weights,
        "head_gap": head.model_gap,
        "seed": args.seed,
        "seconds": result.seconds,
        "torch": torch.__version__,
        "controllers_sha256": file_sha256(out / CONTROLLERS),
    }
    data = graph_sha256(task.x, task.edge_index)
    certificate = certificate_of(head, result, provenance=provenance, data_sha256=data)
    write_certificate(certificate, out / "certificate.json")
    return certificate


def _controllers(result: TrainResult) -> dict[str, Tensor]:
    """Anchor, controller and Lyapunov function of every class."""
    tensors = {}
    for outcome in result.outcomes:
        tensors[f"{outcome.label}.anchor"] = torch.from_numpy(anchor_of(outcome.control)).clone()
        for part, weights_of in (("f", outcome.control), ("V", outcome.function)):
            tensors |= {
                f"{outcome.label}.{part}.{name}": t for name, t in weights_of.tensors().items()
            }
    return tensors
