"""What `keel certify` keeps on disk: the certificate, the controllers, and the state of an unfinished run."""

from __future__ import annotations

import argparse
import hashlib
import json
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file

from graphkeel.certificate import write_certificate
from graphkeel.data import GraphTask
from graphkeel.head import Head
from graphkeel.lyapunov import (
    LyapunovConfig,
    RoundLog,
    TrainResult,
    TrainState,
    anchor_of,
    certificate_of,
)


def fingerprint(config: LyapunovConfig, labels: list[int], subject: str) -> str:
    told = {**config.resolved().as_dict(), "seconds": 0.0, "labels": labels, "subject": subject}
    return hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()


def save_state(path: Path, state: TrainState, fingerprint: str) -> None:
    log = json.dumps([entry.as_dict() for entry in state.log])
    part = path.with_suffix(".part")  # never leave half a file behind
    save_file({k: v.contiguous() for k, v in state.tensors.items()}, part, {"fingerprint": fingerprint, "log": log})
    part.replace(path)


def load_state(path: Path, fingerprint: str) -> TrainState | None:
    if not path.exists():
        return None
    try:
        with safe_open(path, framework="pt") as file:
            told = file.metadata() or {}
            if told.get("fingerprint") != fingerprint:
                return None  # of another task or configuration
            tensors = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118
        return TrainState(tensors, tuple(RoundLog(**entry) for entry in json.loads(told["log"])))
    except (SafetensorError, OSError, ValueError, TypeError, KeyError):
        return None


def write_results(
    head: Head, result: TrainResult, task: GraphTask, weights: str, args: argparse.Namespace, out: Path
) -> dict[str, Any]:
    """certificate.json, controllers.safetensors and training.json; returns the certificate."""
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
    }
    certificate = certificate_of(head, result, provenance=provenance, data_sha256=task.hash)
    write_certificate(certificate, out / "certificate.json")
    tensors = {}
    for outcome in result.outcomes:
        tensors[f"{outcome.label}.anchor"] = torch.from_numpy(anchor_of(outcome.control)).clone()
        for part, weights_of in (("f", outcome.control), ("V", outcome.function)):
            tensors |= {f"{outcome.label}.{part}.{name}": t for name, t in weights_of.tensors().items()}
    save_file({k: v.contiguous() for k, v in tensors.items()}, out / "controllers.safetensors", {"form": args.form})
    log = {"config": result.config.as_dict(), "stopped": result.stopped, "rounds": [e.as_dict() for e in result.log]}
    (out / "training.json").write_text(json.dumps(log, indent=1) + "\n", encoding="utf-8")
    return certificate
