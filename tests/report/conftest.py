"""A small run, written as `keel run` writes it, and one certificate, built as `keel certify` builds
it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file

from graphkeel.certificate import ClassProof, build_certificate, mlp, write_certificate
from graphkeel.certificate.sources import anchored_controller, collapsed, collapsed_loop
from graphkeel.runs.specs import RunSpec
from graphkeel.store.job import Job, Measurement
from graphkeel.store.store import FILE, Store
from hand_networks import anchored_lyapunov

DATA = "ab" * 32


def _write_run(
    folder: Path, *, dataset: str = "cora", method: str = "auto", reason: str = "9 won, 2 lost"
) -> Path:
    """Two seeds of ten test nodes; class 0: 2 of 5 right before and 4 after, class 1: 5 of 5, then
    4."""
    spec = {
        "dataset": dataset,
        "model": "sgc",
        "method": method,
        "labels": "train",
        "split": "biased",
    }
    store = Store(folder / FILE)
    full_spec = {**spec, "features": "auto", "pca": 20}
    published = {"sgc": [64.36, 2.90], "neural": [67.22, 2.27]} if dataset == "cora" else {}
    versions = {"graphkeel": "0.1.0", "torch": "2"}
    store.claim({"spec": full_spec, "published": published, **versions})
    for seed in (0, 1):
        decision = {"reason": reason, "chosen": ["diffuse"]}
        row = {
            "seed": seed,
            "base": 70.0 + seed,
            "accuracy": 80.0 + 2 * seed,
            "kept": False,
            "decision": decision,
        }
        result = {**row, "seconds": 0.5, "graph": DATA, "weights": "cd" * 32}
        job = Job("auto", RunSpec(), seed, data=DATA, code="c")
        store.keep(job, Measurement("done", 0.5, 1.0, result))
        columns = {
            "y": np.array([0, 1] + [0] * 5 + [1] * 5),
            "split": np.array([1, 2] + [3] * 10, dtype=np.int8),
            "before": np.array([0, 1] + [0, 0, 1, 1, 1] + [1] * 5),
            "after": np.array([0, 1] + [0, 0, 0, 0, 1] + [0] + [1] * 4),
            "degree": np.arange(12),
        }
        (folder / "nodes").mkdir(parents=True, exist_ok=True)
        save_file(columns, folder / "nodes" / f"seed-{seed:04d}.safetensors")
    return folder


@pytest.fixture
def write_run() -> Callable[..., Path]:
    return _write_run


@pytest.fixture
def run_folder(tmp_path: Path) -> Path:
    return _write_run(tmp_path / "run")


@pytest.fixture(scope="session")
def certificate_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """F(y) = Y + (y − Y)/4 through a ReLU controller, V the one-norm: proved by contraction, for
    two classes."""
    from graphkeel.verify import CONDITIONS, verify
    from graphkeel.verify.problem import Network, Problem, Region
    from graphkeel.verify.result import Budget

    folder = tmp_path_factory.mktemp("certificate")
    eye, both = np.eye(2), np.concatenate([np.eye(2), -np.eye(2)])
    head = mlp([(eye, np.zeros(2))])
    proofs = []
    for label in (0, 1):
        y = eye[label]
        controller = anchored_controller(both, np.zeros(4), 0.25 * both.T, y, y)
        lyapunov = anchored_lyapunov(both, np.ones(4), y)

        loop, v = Network.of(*collapsed_loop(controller, head)), Network.of(*collapsed(lyapunov))
        problem = Problem(
            loop,
            v,
            -2 * np.ones(2),
            3 * np.ones(2),
            y,
            hole_radius=1e-3,
            rho=0.9,
            positivity=0.1,
            region=Region(label),
        )
        report = verify(problem, "auto", Budget(seconds=600), (*CONDITIONS, "region"))
        conditions = {c.condition: c for c in report.conditions}
        proofs.append(
            ClassProof(label, "anchored", controller, lyapunov, y, problem, conditions, delta=1e-6)
        )
    content = build_certificate(
        head, proofs, provenance={"dataset": "cora", "seed": 0}, data_sha256=DATA
    )
    write_certificate(content, folder / "certificate.json")
    return folder
