"""A stored reconstruction with its model, and its graph as it is later."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch_geometric.data import Data

from graphkeel.core.errors import ConfigError, DataError
from graphkeel.graph import load_graph
from graphkeel.graph.datasets.registry import prepare_features
from graphkeel.models.zoo import own_model
from graphkeel.reconstruct.reconstructor import Reconstructor, load_reconstructor
from graphkeel.report.fit_facts import stored_facts
from graphkeel.report.sources import read_nodes


def with_own_model(folder: Path, options: dict[str, Any]) -> Reconstructor:
    """The reconstruction in a folder, with a model of the user's own."""
    stored = load_reconstructor(folder)
    sizes = (stored.n_features_in_, len(stored.classes_))
    model = own_model(str(options["weights"]), str(options["factory"]), *sizes)
    return load_reconstructor(folder, model)


def told_by(folders: Sequence[Path]) -> dict[str, Any] | None:
    """What the first reconstruction in these folders tells of itself, for the report."""
    for folder in folders:
        try:
            rec = load_reconstructor(folder)
        except DataError:
            continue
        if not hasattr(rec, "features_"):
            continue  # a summary
        notes = rec.notes_
        spec = notes.get("spec") or {}
        return {
            **stored_facts(rec),
            "model": f"{spec.get('model', 'a model')} on {spec.get('dataset', folder.name)}",
            "weights": "",
            "suggested": [],
            "columns": read_nodes(folder, int(notes.get("seed", 0))),
            "steps": notes.get("steps", []),
            "folder": str(folder),
        }
    return None


def later_graph(name: str, features: str) -> Data:
    """A graph without labels, its features prepared as those of the run."""
    graph = load_graph(name)
    kind = graph.auto_features if features == "auto" else features
    if kind.startswith("pca"):
        raise ConfigError(
            "components of another graph are other features",
            got=f"--features {kind}",
            fix="Store features in the file that the same fitted PCA has made.",
        )
    x = torch.from_numpy(prepare_features(graph, kind))
    return Data(x=x, edge_index=torch.from_numpy(graph.edge_index))
