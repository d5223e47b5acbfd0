"""Contents of each command's folder: finished parts, whether all are whole, and the result."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from pathlib import Path
from typing import Any

from safetensors.torch import load_file

import graphkeel
from graphkeel.certificate import check_certificate
from graphkeel.core.digests import tensors_sha256
from graphkeel.store.store import FILE, read_run

Finished = dict[str, Any]  # what is finished -> its content, to the bit


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def check_whole(out: Path) -> None:
    """No file under its own name is half a file, whatever has happened to the process that wrote
    it."""
    for path in out.rglob("*"):
        if path.name.startswith(".") or path.is_dir():
            continue
        if path.suffix == ".safetensors":
            load_file(path)
        elif path.suffix == ".json":
            json.loads(path.read_text())
        elif path.suffix in (".txt", ".md", ".tex", ".csv"):
            assert path.read_text().endswith("\n")


class Run:
    """Rows, features and predictions of each seed."""

    def __init__(self, seeds: int = 4, method: str = "diffuse") -> None:
        self.arguments = ("run", "--method", method, "--seeds", str(seeds), "--json")

    def finished(self, out: Path) -> Finished:
        stored = stored_rows(out)
        for row in stored.values():  # a row is written last, so what belongs to it is there
            seed = json.loads(row["result"])["seed"]
            assert (out / "nodes" / f"seed-{seed:04d}.safetensors").exists()
        return stored

    def result(self, out: Path) -> Any:
        _, rows = read_run(out) or ({}, [])
        tensors = {
            str(path.relative_to(out)): sha256(path) for path in sorted(out.rglob("*.safetensors"))
        }
        return [{**row, "seconds": 0} for row in rows], tensors


def stored_rows(out: Path) -> Finished:
    """Rows of the store of a folder, by key; none before there is one."""
    if not (out / FILE).exists():
        return {}
    connection = sqlite3.connect(out / FILE)
    connection.row_factory = sqlite3.Row
    try:
        assert tuple(connection.execute("PRAGMA integrity_check").fetchone()) == ("ok",)
        tables = "SELECT name FROM sqlite_master WHERE name = 'measurements'"
        if not connection.execute(tables).fetchall():
            return {}
        rows = connection.execute("SELECT * FROM measurements").fetchall()
        return {row["key"]: dict(row) for row in rows}
    finally:
        connection.close()


class Certify:
    """The model, then the certificate."""

    def __init__(self, *options: str) -> None:
        self.arguments = ("certify", *options, "--json")

    def finished(self, out: Path) -> Finished:
        found: Finished = {
            path.name: tensors_sha256(load_file(path)) for path in out.glob("model.safetensors")
        }
        if (out / "certificate.json").exists():
            checked = check_certificate(out / "certificate.json")
            assert checked.accepted, checked.reason
            content = json.loads((out / "certificate.json").read_text())
            found["proved"] = [entry["verdict"] for entry in content["classes"]]
        return found

    def result(self, out: Path) -> Any:
        content = json.loads((out / "certificate.json").read_text())
        rounds = len(json.loads((out / "training.json").read_text())["rounds"])
        return (
            self.finished(out),
            [(entry["verdict"], entry["controller"]) for entry in content["classes"]],
            rounds,
        )


class Feedback:
    """The reconstruction after the last finished batch, with the steps that led there."""

    def __init__(self, labels: int = 60, batches: int = 3) -> None:
        self.arguments = (
            "feedback",
            "--simulate",
            str(labels),
            "--batches",
            str(batches),
            "--json",
        )

    def finished(self, out: Path) -> Finished:
        if not (out / "reconstruction.json").exists():
            return {}
        rec = graphkeel.load(out)
        assert (
            len(rec.labels_.nodes) == rec.notes_["steps"][-1]["known"]
        )  # features and steps are of one moment
        return {f"step {number}": step for number, step in enumerate(rec.notes_["steps"])}

    def result(self, out: Path) -> Any:
        rec = graphkeel.load(out)
        tensors = [
            path.name for path in out.iterdir()
        ]  # tensors carry their checksum in their name
        return [{**step, "seconds": 0} for step in rec.notes_["steps"]], sorted(tensors), rec.guard_


Kept = Run | Certify | Feedback
