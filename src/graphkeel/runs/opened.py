"""The folder of a run, opened again: its graph, its model, the reconstruction of one seed, and the
graph as it is later."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
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
from graphkeel.runs.adapt import on_target
from graphkeel.runs.adapt_case import make_case
from graphkeel.runs.feedback import fitted
from graphkeel.runs.run import prepare
from graphkeel.store.store import read_run


def opened(folder: Path, specs: Any, seed: int | None = None) -> tuple[Reconstructor, Data, int]:
    """The reconstructor of a seed, None for the first, on its graph, both made as the run made
    them, and the seed; `specs` is a module with `RunSpec` and `AdaptSpec`."""
    found = read_run(folder)
    if found is None:
        return _fed_back(folder, specs)
    manifest, rows = found
    first = next((row for row in rows if seed in (None, row.get("seed"))), None)
    if first is None:
        raise ConfigError(f"{folder} holds no finished seed of that number", got=seed)
    number = int(first["seed"])
    spec = _spec(folder, specs, manifest["spec"])
    method = "auto" if spec.method == "none" else spec.method
    spec = replace(spec, method=method)
    if isinstance(spec, specs.AdaptSpec):
        case = make_case(spec, number).case
        rec = on_target(spec, case)
        data, same = case.target.to_data(), case.target.hash
    else:
        same = spec.data_hash(number)
        rec, data = fitted(spec, number)
    if same != first.get("data"):
        raise DataError(f"the graph is not the one of the run in {folder}", fix="Run it again.")
    return rec, data, number


def _fed_back(folder: Path, specs: Any) -> tuple[Reconstructor, Data, int]:
    """Of `keel feedback --out`, whose notes say what was run."""
    spec, seed = _noted(folder)
    prepared = prepare(_spec(folder, specs, spec), seed)
    data = prepared.task.to_data()
    return load_reconstructor(folder, prepared.frozen.model).attach(data), data, seed


def features_of(folder: Path, specs: Any) -> str:
    """How the features of a run were prepared, for a graph that is to have the same ones."""
    found = read_run(folder)
    spec = _spec(folder, specs, _noted(folder)[0] if found is None else found[0]["spec"])
    is_fitted = isinstance(spec, specs.AdaptSpec) and spec.features == "auto"
    return "pca" if is_fitted else str(spec.features)


def _noted(folder: Path) -> tuple[Any, int]:
    """Specification and seed in the notes of a reconstruction."""
    try:
        notes = load_reconstructor(folder).notes_
        return notes["spec"], int(notes["seed"])
    except DataError:
        what, fix = "there is no run in this folder", ""
    except (KeyError, TypeError, ValueError):
        what = "the folder does not say which model it is for"
        fix = "; keel monitor also takes the model, with --weights and --factory"
    raise ConfigError(
        what,
        got=str(folder),
        fix=f"Write one: keel run --out DIR, or keel feedback --out DIR{fix}.",
    )


def _spec(folder: Path, specs: Any, stored: Any) -> Any:
    kind = specs.AdaptSpec if "source" in stored else specs.RunSpec
    try:
        return kind(**stored)
    except TypeError as error:
        raise DataError(
            f"{folder} was written by another version or program", got=str(error)[:200]
        ) from error


def with_own_model(folder: Path, options: dict[str, Any]) -> Reconstructor:
    """The reconstruction in a folder, with a model of the user's own."""
    if read_run(folder) is not None:
        raise ConfigError(
            "this run says itself which model it is for",
            got=str(folder),
            fix="Leave out --weights and --factory.",
        )
    stored = load_reconstructor(folder)
    sizes = (stored.n_features_in_, len(stored.classes_))
    model = own_model(str(options["weights"]), str(options["factory"]), *sizes)
    return load_reconstructor(folder, model)


def report_facts(folders: Sequence[Path]) -> dict[str, Any] | None:
    """The facts of the first reconstruction in these folders, for the report."""
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
            "columns": read_nodes(folder, int(notes.get("seed", 0))),
            "steps": notes.get("steps", []),
            "suggested": notes.get("suggested", []),
            "folder": str(folder),
        }
    return None


def later_graph(name: str, features: str) -> Data:
    """A graph without labels, its features prepared as those of the run."""
    graph = load_graph(name, labels=False)
    kind = graph.auto_features if features == "auto" else features
    if kind.startswith("pca"):
        raise ConfigError(
            "components of another graph are other features",
            got=f"--features {kind}",
            fix="Store features in the file that the same fitted PCA has made.",
        )
    x = torch.from_numpy(prepare_features(graph, kind))
    return Data(x=x, edge_index=torch.from_numpy(graph.edge_index))
