"""A run folder: a manifest that says what is being run, and one file per finished seed.

Each file is written aside and renamed, and carries a checksum, so a killed run leaves whole rows or
none."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from graphkeel.core.errors import ConfigError
from graphkeel.core.files import create, write_text

MANIFEST = "manifest.json"


def write_json(path: Path, payload: dict[str, Any]) -> None:
    """Readers see the old file or the new one, never half of one, and know by its checksum that it
    is whole."""
    write_text(path, _sealed(payload))


def _sealed(payload: dict[str, Any]) -> str:
    body = json.dumps(payload, indent=2, sort_keys=True, allow_nan=False)
    return json.dumps(
        {"sha256": hashlib.sha256(body.encode()).hexdigest(), "body": json.loads(body)}, indent=2
    )


def read_json(path: Path) -> dict[str, Any] | None:
    """The payload written by `write_json`; None if the file is missing or not whole."""
    try:
        sealed = json.loads(path.read_text())
        body = json.dumps(sealed["body"], indent=2, sort_keys=True, allow_nan=False)
        whole = hashlib.sha256(body.encode()).hexdigest() == sealed["sha256"]
        return sealed["body"] if whole and isinstance(sealed["body"], dict) else None
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None


class RunFolder:
    """Where a run keeps its rows; `folder=None` keeps nothing."""

    def __init__(self, folder: Path | None, manifest: dict[str, Any]) -> None:
        self.folder = folder
        if folder is not None:
            self._claim(folder, manifest)

    def _claim(self, folder: Path, manifest: dict[str, Any]) -> None:
        """Continue a run with the same manifest; refuse to mix two different ones in a folder."""
        path = folder / MANIFEST
        if not path.exists() and create(path, _sealed(manifest).encode()):
            return
        known = read_json(path)
        # What the numbers depend on must agree; versions and dates may differ, and more seeds may
        # be asked for.
        if known is None or known.get("spec") != manifest["spec"]:
            raise ConfigError(
                f"{folder} holds another run",
                got="a damaged manifest"
                if known is None
                else _difference(known.get("spec", {}), manifest["spec"]),
                fix="Choose another --out, or delete the folder.",
            )

    def row(self, seed: int) -> dict[str, Any] | None:
        """The stored row of a seed, or None if it has to be computed."""
        return None if self.folder is None else read_json(self._path(seed))

    def keep(self, seed: int, row: dict[str, Any]) -> None:
        if self.folder is not None:
            write_json(self._path(seed), row)

    def array_path(self, seed: int) -> Path | None:
        """Where the rewritten features of a seed go."""
        return (
            None
            if self.folder is None
            else self.folder / "features" / f"seed-{seed:04d}.safetensors"
        )

    def nodes_path(self, seed: int) -> Path | None:
        """Where the predictions of a seed go, before and after, node by node."""
        return (
            None if self.folder is None else self.folder / "nodes" / f"seed-{seed:04d}.safetensors"
        )

    def _path(self, seed: int) -> Path:
        return Path(self.folder or ".") / "rows" / f"seed-{seed:04d}.json"


def _difference(old: dict[str, Any], new: dict[str, Any]) -> str:
    keys = sorted(key for key in {*old, *new} if old.get(key) != new.get(key))
    return ", ".join(f"{key}: {old.get(key)!r} there, {new.get(key)!r} now" for key in keys)
