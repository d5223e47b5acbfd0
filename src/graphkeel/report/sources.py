"""What a folder holds for a report: a run, a certificate, figures, tables. Files only; no model is
loaded."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load_file

from graphkeel.certificate import FORMAT, CheckResult, check_certificate, read_certificate
from graphkeel.core.errors import CertificateError, ConfigError
from graphkeel.paper.tables.store import MANIFEST, read_json

Nodes = dict[str, NDArray[Any]]

_NODE_COLUMNS = {"y", "split", "before", "after", "degree"}


@dataclass(frozen=True, eq=False)
class RunFiles:
    """A folder of `keel run --out`: what was run, a row a seed, and predictions node by node."""

    folder: Path
    manifest: dict[str, Any]
    rows: list[dict[str, Any]]
    nodes: dict[int, Nodes]

    @property
    def spec(self) -> dict[str, Any]:
        return self.manifest["spec"]


@dataclass(frozen=True, eq=False)
class Sources:
    """Everything found in the folders given."""

    run: RunFiles | None = None
    certificate: dict[str, Any] | None = None
    checked: CheckResult | None = None  # what the independent checker says of it, asked now
    figures: list[Path] = field(default_factory=list)
    tables: list[dict[str, Any]] = field(default_factory=list)


def find_sources(folders: Sequence[Path]) -> Sources:
    """Read each folder; the first run and the first certificate found count."""
    for folder in folders:
        if not folder.is_dir():
            raise ConfigError(
                "there is no such folder", got=str(folder), fix="Give a folder written with --out."
            )
    runs = [found for folder in folders if (found := _run(folder)) is not None]
    certificates = [
        folder / "certificate.json" for folder in folders if (folder / "certificate.json").is_file()
    ]
    sources = Sources(
        run=runs[0] if runs else None,
        certificate=_certificate(certificates[0]) if certificates else None,
        checked=check_certificate(certificates[0]) if certificates else None,
        figures=[path for folder in folders for path in sorted(folder.glob("figure-*.svg"))],
        tables=[_table(path) for folder in folders for path in sorted(folder.glob("table-*.json"))],
    )
    if not (sources.run or sources.certificate or sources.figures or sources.tables):
        raise ConfigError(
            "nothing to report on: no run, certificate, figure or table was found",
            got=", ".join(map(str, folders)),
            fix="Write some with keel run --out, keel certify --out, keel figure --out or keel table --out.",
        )
    return sources


def _run(folder: Path) -> RunFiles | None:
    manifest = read_json(folder / MANIFEST)
    if manifest is None or not isinstance(manifest.get("spec"), dict):
        return None
    found = [read_json(path) for path in sorted((folder / "rows").glob("seed-*.json"))]
    rows = [row for row in found if row is not None and _is_row(row)]
    if not rows:
        return None
    nodes = {
        row["seed"]: _nodes(folder / "nodes" / f"seed-{row['seed']:04d}.safetensors")
        for row in rows
    }
    return RunFiles(
        folder, manifest, rows, {seed: found for seed, found in nodes.items() if found is not None}
    )


def _is_row(row: dict[str, Any]) -> bool:
    """Whether a row has its numbers; a seed is also part of a file's name."""
    scores = [row.get("base"), row.get("accuracy")]
    return (
        type(row.get("seed")) is int
        and 0 <= row["seed"] < 2**63
        and all(type(s) in (int, float) for s in scores)
    )


def _nodes(path: Path) -> Nodes | None:
    """Predictions of one seed; None where the file is missing or not whole."""
    try:
        found = load_file(path)
    except (OSError, SafetensorError, ValueError):
        return None
    same_length = len({len(np.atleast_1d(column)) for column in found.values()}) == 1
    return found if set(found) >= _NODE_COLUMNS and same_length else None


def _certificate(path: Path) -> dict[str, Any]:
    content = read_certificate(path)
    if content.get("format") != FORMAT:
        raise CertificateError(f"{path} is not a certificate", got=repr(content.get("format")))
    return content


def _table(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise ConfigError(f"{path} cannot be read", got=str(error)[:200]) from error
    if not isinstance(content, dict) or not isinstance(content.get("rows"), list):
        raise ConfigError(f"{path} is not a table written by keel table", got="no rows")
    return content
