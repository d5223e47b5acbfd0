"""The sources of a report in a folder: a run, a certificate, figures. Files only; no model is
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
from graphkeel.store.store import read_run

Nodes = dict[str, NDArray[Any]]


@dataclass(frozen=True)
class PageSettings:
    """How much one page holds."""

    # rows of nodes, over all seeds; beyond it the last seeds' nodes are left out, and of one graph
    # those that did not change
    nodes: int = 120_000
    named: int = 50  # uncertain nodes that are listed


PAGE = PageSettings()
_NODE_COLUMNS = {"y", "split", "before", "after", "degree"}


@dataclass(frozen=True, eq=False)
class RunFiles:
    """A folder of `keel run --out` or `keel adapt --out`: what was run, a row a seed, and
    predictions node by node."""

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
    own: dict[str, Any] | None = None  # what a reconstructor tells of itself
    certificate: dict[str, Any] | None = None
    checked: CheckResult | None = None  # what the independent checker says of it, asked now
    figures: list[Path] = field(default_factory=list)
    names: tuple[str, ...] = ()  # of the classes; empty: their numbers


def find_sources(
    folders: Sequence[Path], own: dict[str, Any] | None = None, names: Sequence[str] = ()
) -> Sources:
    """Read each folder; the first run and the first certificate found count. What a reconstruction
    tells of itself, `own`, counts where there is no run."""
    for folder in folders:
        if not folder.is_dir():
            raise ConfigError(
                "there is no such folder", got=str(folder), fix="Give a folder written with --out."
            )
    runs = [run for run in map(_run, folders) if run is not None]
    paths = [folder / "certificate.json" for folder in folders]
    certificates = [path for path in paths if path.is_file()]
    sources = Sources(
        run=runs[0] if runs else None,
        own=None if runs else own,
        names=tuple(names),
        certificate=_certificate(certificates[0]) if certificates else None,
        checked=check_certificate(certificates[0]) if certificates else None,
        figures=_files(folders, "figure-*.svg"),
    )
    found = (sources.run, sources.own, sources.certificate, sources.figures)
    if not any(found):
        raise ConfigError(
            "nothing to report on: no run, reconstruction, certificate or figure was found",
            got=", ".join(map(str, folders)),
            fix="Write some with --out of keel run, feedback or certify, or of keel-paper.",
        )
    return sources


def _files(folders: Sequence[Path], pattern: str) -> list[Path]:
    """Regular files: a pipe of that name would be waited for."""
    found = [path for folder in folders for path in sorted(folder.glob(pattern))]
    return [path for path in found if path.is_file()]


def _run(folder: Path) -> RunFiles | None:
    found = read_run(folder)
    if found is None:
        return None
    manifest, results = found
    rows = [row for row in results if _is_row(row)]
    if not rows:
        return None
    nodes = {}
    for row in rows:
        seed = row["seed"]
        columns = read_nodes(folder, seed)
        if columns is not None:
            nodes[seed] = columns
    return RunFiles(folder, manifest, rows, nodes)


def _is_row(row: dict[str, Any]) -> bool:
    """Whether a row has its numbers; a seed is also part of a file's name."""
    seed = row.get("seed")
    scores = [row.get("base"), row.get("accuracy")]
    if type(seed) is not int or not 0 <= seed < 2**63:
        return False
    return all(type(score) in (int, float) for score in scores)


def read_nodes(folder: Path, seed: int) -> Nodes | None:
    """Predictions of one seed in a folder; None where the file is missing or not whole."""
    path = folder / "nodes" / f"seed-{seed:04d}.safetensors"
    try:
        found = load_file(path)
    except (OSError, SafetensorError, ValueError):
        return None
    same_length = len({len(np.atleast_1d(column)) for column in found.values()}) == 1
    return found if set(found) >= _NODE_COLUMNS and same_length else None


def _certificate(path: Path) -> dict[str, Any]:
    try:
        return read_certificate(path)
    except CertificateError:
        pass  # shown as rejected, with what it says
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise ConfigError(f"{path} cannot be read", got=str(error)[:200]) from error
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise CertificateError(f"{path} is not a certificate", got=str(content)[:80])
    return content
