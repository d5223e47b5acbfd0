"""Every reader of files, as one function of bytes: `read` writes them where the reader looks, and
reads.

A reader may raise `KeelError` and nothing else. `sample` is a valid file to start from.
"""

from __future__ import annotations

import contextlib
import io
import json
import sqlite3
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.numpy import save as save_arrays

from graphkeel.certificate import (
    ClassProof,
    build_certificate,
    certificate_bytes,
    check_certificate,
    mlp,
    write_certificate,
)
from graphkeel.certificate.sources import anchored_controller, collapsed, collapsed_loop
from graphkeel.core.digests import json_sha256
from graphkeel.core.errors import KeelError
from graphkeel.graph import make_sbm, make_task
from graphkeel.graph.datasets.registry import load_graph
from graphkeel.label import Shown, read_labels
from graphkeel.label.files import as_csv, read_rows
from graphkeel.label.view import Row
from graphkeel.models import build_model, load_model, save_model
from graphkeel.reconstruct.reconstructor import Reconstructor, load_reconstructor
from graphkeel.reconstruct.storage import FOLDER
from graphkeel.report.page import render_page
from graphkeel.report.sources import find_sources
from graphkeel.runs.specs import RunSpec
from graphkeel.store.job import Job, Measurement
from graphkeel.store.store import FILE, Store
from graphkeel.verify import verify
from graphkeel.verify.formats.onnx_reader import read_onnx
from graphkeel.verify.formats.vnnlib_reader import read_vnnlib
from graphkeel.verify.problem import Network, Problem
from graphkeel.verify.problem_io import read_problem, write_problem
from graphkeel.verify.property.decide import decide
from graphkeel.verify.property.network import Block, BlockNetwork
from graphkeel.verify.property.question import Case, Inequality, Property
from graphkeel.verify.result import Budget
from hand_networks import anchored_lyapunov


@dataclass(frozen=True)
class Reader:
    """`read(content, folder)` reads the content as a file in a fresh folder; `sample()` is a valid
    one."""

    read: Callable[[bytes, Path], Any]
    sample: Callable[[], bytes]

    def survives(self, content: bytes) -> bool:
        """True if it was read, False if it was refused; any other exception goes through."""
        with tempfile.TemporaryDirectory() as folder:
            try:
                self.read(content, Path(folder))
            except KeelError:
                return False
            return True


def put(folder: Path, name: str, content: bytes) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


# ---- graphs


def npz(**arrays: Any) -> bytes:
    file = io.BytesIO()
    np.savez_compressed(file, **arrays)
    return file.getvalue()


def graph_sample() -> bytes:
    y = np.arange(60) % 3
    masks = {
        f"{name}_mask": np.arange(60) // 20 == k for k, name in enumerate(("train", "val", "test"))
    }
    edges = np.stack([np.arange(60), (np.arange(60) * 7 + 1) % 60])
    return npz(
        x=np.random.default_rng(0).normal(size=(60, 4)),
        edge_index=edges,
        y=y,
        n_classes=np.array(3),
        **masks,
    )


def read_graph(content: bytes, folder: Path) -> None:
    graph = load_graph.__wrapped__(str(put(folder, "graph.npz", content)))
    for split, features in (("public", "raw"), ("random", "rownorm"), ("random", "pca")):
        try:
            make_task(graph, split=split, features=features, pca=2)
        except KeelError:
            continue


def column_sample() -> bytes:
    file = io.BytesIO()
    np.save(file, np.random.default_rng(0).normal(size=(60, 4)).astype(np.float32))
    return file.getvalue()


def read_graph_folder(content: bytes, folder: Path) -> None:
    """A graph as files of its own, of which the features (or the edges, or the labels) are the
    given one."""
    with np.load(io.BytesIO(graph_sample())) as archive:
        for key in ("x", "edge_index", "y"):
            np.save(folder / f"{key}.npy", archive[key])
    for key in ("x", "edge_index", "y"):
        whole = (folder / f"{key}.npy").read_bytes()
        put(folder, f"{key}.npy", content)
        with contextlib.suppress(KeelError):
            make_task(load_graph.__wrapped__(str(folder)), split="random")
        put(folder, f"{key}.npy", whole)


# ---- lists, labels, settings


def read_settings(content: bytes, folder: Path) -> None:
    """Settings that reach a run from outside as text: a specification's fields, a memory limit."""
    from graphkeel.cli.certify import _labels
    from graphkeel.core.memory import parse_size
    from graphkeel.graph.features import parse_features
    from graphkeel.lyapunov import LyapunovConfig

    text = content.decode("utf-8", errors="replace").replace("\0", "")
    for read in (
        lambda: RunSpec(labels=text),
        lambda: RunSpec(dataset=text).task(0),
        lambda: RunSpec(dataset="sbm", split=text).task(0),
        lambda: RunSpec(dataset="sbm", features=text).task(0),
        lambda: parse_size(text),
        lambda: parse_features(text),
        lambda: _labels(text, 10),
        lambda: LyapunovConfig(form=text),
        lambda: LyapunovConfig(gauge=text, loss=text),
        lambda: build_model(text, 3, 2),
    ):
        try:
            read()
        except KeelError:
            continue


# ---- problems and certificates


@cache
def parts() -> tuple[Any, Any, Any, Problem]:
    """F(y) = Y + (y − Y)/4, V the one-norm."""
    eye, both = np.eye(2), np.concatenate([np.eye(2), -np.eye(2)])
    head = mlp([(eye, np.zeros(2))])
    controller = anchored_controller(both, np.zeros(4), 0.25 * both.T, eye[0], eye[0])
    lyapunov = anchored_lyapunov(both, np.ones(4), eye[0])

    loop, v = Network.of(*collapsed_loop(controller, head)), Network.of(*collapsed(lyapunov))
    box = (-2 * np.ones(2), 3 * np.ones(2), eye[0])
    return (
        head,
        controller,
        lyapunov,
        Problem(loop, v, *box, hole_radius=1e-2, rho=0.9, positivity=0.1),
    )


@cache
def certificate_content(engine: str = "branch") -> dict[str, Any]:
    head, controller, lyapunov, problem = parts()
    report = verify(problem, engine=engine, budget=Budget(seconds=600))
    conditions = {answer.condition: answer for answer in report.conditions}
    proof = ClassProof(
        0, "anchored", controller, lyapunov, np.eye(2)[0], problem, conditions, delta=1e-6
    )
    return build_certificate(
        head, [proof], provenance={"dataset": "<b>", "seed": 0}, data_sha256="ab" * 32
    )


@cache
def certificate_sample() -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        write_certificate(certificate_content(), Path(folder) / "c.json")
        return (Path(folder) / "c.json").read_bytes()


def read_certificate_file(content: bytes, folder: Path) -> None:
    path = put(folder, "certificate.json", content)
    with contextlib.suppress(KeelError):
        check_certificate(path)
    render_page(find_sources([folder]))


def problem_sample(suffix: str) -> Callable[[], bytes]:
    def sample() -> bytes:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / f"p{suffix}"
            write_problem(parts()[3], path)
            return path.read_bytes()

    return sample


# ---- what runs leave behind


def run_sample() -> dict[str, Any]:
    spec = {
        "dataset": "digits",
        "model": "sgc",
        "method": "auto",
        "labels": "train",
        "split": "biased",
    }
    return {"spec": {**spec, "features": "auto", "pca": 20}, "torch": "2", "graphkeel": "0"}


def row_sample() -> dict[str, Any]:
    decision = {"reason": "9 won, 2 lost", "chosen": ["diffuse"]}
    row = {
        "seed": 0,
        "base": 70.0,
        "accuracy": 80.0,
        "kept": False,
        "decision": decision,
        "seconds": 0.5,
    }
    return {**row, "data": "ab" * 32, "weights": "cd" * 32}


def nodes_sample() -> bytes:
    columns = {name: np.arange(12) % 2 for name in ("y", "before", "after", "degree")}
    return save_arrays({**columns, "split": np.full(12, 3, dtype=np.int8)})


def write_run(folder: Path, manifest: str, row: str, nodes: bytes) -> None:
    """A run folder whose store holds these texts, with true checksums: a stranger can compute one
    as well as we."""
    store = Store(folder / FILE)
    job = Job("auto", RunSpec(), 0, data="d", code="c")
    store.keep(job, Measurement("done", 0.5, 1.0, row_sample()))
    store.claim(run_sample())
    sealed = json_sha256([job.key, "done", 0.5, 1.0, None, row])
    connection = sqlite3.connect(store.path)
    with connection:
        connection.execute(
            "UPDATE manifest SET content = ?, sha256 = ?", (manifest, json_sha256(manifest))
        )
        connection.execute("UPDATE measurements SET result = ?, sha256 = ?", (row, sealed))
    connection.close()
    put(folder, "nodes/seed-0000.safetensors", nodes)


def read_run(which: str) -> Callable[[bytes, Path], None]:
    """A run folder of which one part is the given one."""

    def read(content: bytes, folder: Path) -> None:
        parts: dict[str, Any] = {
            "manifest": json.dumps(run_sample()),
            "row": json.dumps(row_sample()),
            "nodes": nodes_sample(),
        }
        parts[which] = content if which == "nodes" else content.decode(errors="replace")
        write_run(folder, **parts)
        render_page(find_sources([folder]))
        Store(folder / FILE).claim(run_sample())

    return read


JOB = Job("row", RunSpec(), 0, data="d", code="c")


def store_sample() -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        store = Store(Path(folder) / FILE)
        store.keep(JOB, Measurement("done", 1.0, 1.0, {"accuracy": 1.0, "base": 0.0}))
        store.claim(run_sample())
        return store.path.read_bytes()


def read_store(content: bytes, folder: Path) -> None:
    store = Store(put(folder, FILE, content))
    store.find(JOB)
    store.find(JOB, any_code=True)
    store.typical_seconds()
    len(store)


# ---- stored tensors


@cache
def reconstruction() -> tuple[dict[str, torch.Tensor], dict[str, Any]]:
    """Tensors and JSON values of a small fit."""
    graph = make_sbm(30, 60, n_classes=2, n_features=3)
    data = make_task(graph, split="random", features="raw").to_data()
    rec = Reconstructor(build_model("sgc", 3, 2).eval()).fit(data)
    with tempfile.TemporaryDirectory() as folder:
        rec.save(folder)
        return FOLDER.load(Path(folder))


def reconstruction_json() -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        FOLDER.save(Path(folder), *reconstruction())
        return (Path(folder) / "reconstruction.json").read_bytes()


def read_reconstruction(content: bytes, folder: Path) -> None:
    """A folder with the given JSON; the tensors beside it are whole."""
    FOLDER.save(folder, *reconstruction())
    put(folder, "reconstruction.json", content)
    repr(load_reconstructor(folder))


def reconstruction_tensor_file() -> bytes:
    from safetensors.torch import save

    return save(reconstruction()[0])


def read_reconstruction_tensors(content: bytes, folder: Path) -> None:
    """A folder with the given tensors, whose checksum the JSON states truly."""
    import hashlib

    sha256 = hashlib.sha256(content).hexdigest()
    put(folder, f"reconstruction-{sha256[:16]}.safetensors", content)
    facts = {"format": FOLDER.format, "sha256": sha256, **reconstruction()[1]}
    put(folder, "reconstruction.json", json.dumps(facts).encode())
    repr(load_reconstructor(folder))


def model_sample() -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        save_model(Path(folder) / "m", build_model("sgc", 3, 2), "sgc", 3, 2)
        return (Path(folder) / "m").read_bytes()


# ---- networks and properties of others


def network_sample() -> bytes:
    """relu(x·W + b), a slice of it, and a constant that is a node."""
    onnx = pytest.importorskip("onnx")
    helper, values = onnx.helper, onnx.numpy_helper
    ends = [
        helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, shape)
        for name, shape in (("x", ["batch", 2]), ("y", ["batch", 2]))
    ]
    top = values.from_array(np.array([2], np.int64), "top")
    nodes = [
        helper.make_node("Gemm", ["x", "w", "b"], ["g"], transB=1, alpha=0.5),
        helper.make_node("LeakyRelu", ["g"], ["r"], alpha=0.25),
        helper.make_node("Constant", [], ["end"], value=top),
        helper.make_node("Slice", ["r", "start", "end", "axis"], ["y"]),
    ]
    constants = [
        values.from_array(np.arange(6, dtype=np.float32).reshape(3, 2), "w"),
        values.from_array(np.ones(3, np.float32), "b"),
        values.from_array(np.array([0], np.int64), "start"),
        values.from_array(np.array([1], np.int64), "axis"),
    ]
    graph = helper.make_graph(nodes, "g", ends[:1], ends[1:], constants)
    imports = [helper.make_opsetid("", 13)]
    raw: bytes = helper.make_model(graph, opset_imports=imports, ir_version=8).SerializeToString()
    return raw


PROPERTY = b"""(declare-const X_0 Real) ; an input
(declare-const Y_0 Real)
(assert (<= X_0 1.0)) (assert (>= X_0 -1e-1))
(assert (or (and (<= (* 2 Y_0) (+ X_0 0.5)) (>= Y_0 0)) (>= (- Y_0 X_0) 3)))
"""


@cache
def proof_content() -> dict[str, Any]:
    """No x of [−1, 1] has relu(x) ≥ 2."""
    network = BlockNetwork(1, (Block(((0, np.eye(1)),), np.zeros(1), relu=True),))
    case = Case.of([(Fraction(-1), Fraction(1))], [Inequality({1: Fraction(1)}, Fraction(-2))], 1)
    answer = decide(network, Property(1, 1, (case,)))
    assert answer.proof is not None
    return answer.proof


def label_studio_sample() -> bytes:
    chosen = {"type": "choices", "value": {"choices": ["2"]}}
    task = {"data": {"node": 1}, "annotations": [{"was_cancelled": False, "result": [chosen]}]}
    return json.dumps([task, {"node": 3, "label": "1"}]).encode()


def read_property(content: bytes, folder: Path) -> None:
    read_vnnlib(put(folder, "p.vnnlib", content))


def read_proof(content: bytes, folder: Path) -> None:
    check_certificate(put(folder, "proof.json", content))


READERS: dict[str, Reader] = {
    "network.onnx": Reader(lambda c, folder: read_onnx(put(folder, "n.onnx", c)), network_sample),
    "property.vnnlib": Reader(read_property, lambda: PROPERTY),
    "property proof": Reader(read_proof, lambda: certificate_bytes(proof_content())),
    "graph": Reader(read_graph, graph_sample),
    "graph folder": Reader(read_graph_folder, column_sample),
    "labels": Reader(
        lambda content, folder: read_labels(put(folder, "l.csv", content)),
        lambda: b"node,label\n1,2\n",
    ),
    "label studio": Reader(
        lambda content, folder: read_labels(put(folder, "l.json", content)), label_studio_sample
    ),
    "answers": Reader(
        lambda content, folder: read_rows(put(folder, "a.csv", content)),
        lambda: as_csv([Row(1, 2, "random", 0, "2 (60 %)", "4=1", "1 of 1")]).encode(),
    ),
    "own columns": Reader(
        lambda content, folder: Shown.read(put(folder, "t.csv", content)).of(1),
        lambda: b"node,title,scan\n1,a title,a.png\n",
    ),
    "settings": Reader(read_settings, lambda: b"sbm:2000,10000"),
    "problem.json": Reader(
        lambda c, folder: read_problem(put(folder, "p.json", c)), problem_sample(".json")
    ),
    "problem.npz": Reader(
        lambda c, folder: read_problem(put(folder, "p.npz", c)), problem_sample(".npz")
    ),
    "certificate": Reader(read_certificate_file, certificate_sample),
    "manifest": Reader(read_run("manifest"), lambda: json.dumps(run_sample()).encode()),
    "row": Reader(read_run("row"), lambda: json.dumps(row_sample()).encode()),
    "nodes": Reader(read_run("nodes"), nodes_sample),
    "store": Reader(read_store, store_sample),
    "reconstruction.json": Reader(read_reconstruction, reconstruction_json),
    "reconstruction.safetensors": Reader(read_reconstruction_tensors, reconstruction_tensor_file),
    "model": Reader(lambda content, folder: load_model(put(folder, "m", content)), model_sample),
}
