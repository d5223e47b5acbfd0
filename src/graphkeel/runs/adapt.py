"""A frozen model on another graph: ours at three levels of what is kept of the source."""

from __future__ import annotations

import tempfile
import time
from typing import Any, cast

import torch
from torch import Tensor

from graphkeel.core.errors import ConfigError
from graphkeel.core.statistics import percent
from graphkeel.graph import GraphTask
from graphkeel.graph.task import graph_sha256
from graphkeel.reconstruct.inputs import KeepName
from graphkeel.reconstruct.reconstructor import Reconstructor, load_reconstructor
from graphkeel.runs.adapt_case import Case, ScoredCase, make_case
from graphkeel.runs.method import MethodResult
from graphkeel.runs.methods import reconstructor_of
from graphkeel.runs.run import Outcome, node_columns
from graphkeel.runs.specs import AdaptSpec


def outcome(spec: AdaptSpec, seed: int) -> Outcome:
    """Adapt and score; labels that no method may see are used here, to score, and nowhere else."""
    known = make_case(spec, seed)
    start = time.perf_counter()
    result = spec.adapted(known.case)
    seconds = time.perf_counter() - start
    scores = known.base if result.scores is None else result.scores
    row: dict[str, Any] = {
        "seed": seed,
        "base": _percent(known, known.base),
        "accuracy": _percent(known, scores),
        "balanced_base": _balanced(known, known.base),
        "balanced": _balanced(known, scores),
        "kept": result.scores is None,
        "decision": result.decision,
        "seconds": seconds,
        "data": known.case.target.hash,
        "graph": graph_sha256(known.case.target.x, known.case.target.edge_index),
        "weights": known.case.frozen.weights_hash,
    }
    return Outcome(row, result.features, _nodes(known, scores))


def adapted(spec: AdaptSpec, case: Case) -> MethodResult:
    """`Reconstructor.adapt`, as a user calls it; nothing for `none`."""
    if spec.method == "none":
        return MethodResult()
    rec = reconstructor_of(spec.method, case.frozen.model, case.seed)
    is_trained = rec.model is case.frozen.model
    target = case.target.to_data()
    there = on_target(rec, spec, case)
    decision = there.guard_.to_dict()
    if not is_trained:  # features would mean nothing to the model that was handed over
        return MethodResult(there.scores(target), None, decision)
    if there.guard_.left_alone:
        return MethodResult(None, None, decision)
    scores = case.frozen.logits(there.features_, case.target.edge_index)
    return MethodResult(scores, there.features_, decision)


def on_target(rec: Reconstructor, spec: AdaptSpec, case: Case) -> Reconstructor:
    """The reconstructor of the target, with the labels that are known there."""
    if rec._without and not len(case.nodes):
        raise ConfigError(
            "without the model's evidence only labels can decide", got="no target labels"
        )
    if spec.keep != "model":
        rec = _fitted(spec.method, spec.keep, case)
    nodes = case.nodes if len(case.nodes) else None
    classes = None if nodes is None else case.target.y[nodes]
    return rec.adapt(case.target.to_data(), nodes, classes, keep=cast(KeepName, spec.keep))


_FITTED: dict[tuple[str, str, str, int], Reconstructor] = {}  # of the source last worked on


def _fitted(method: str, keep: str, case: Case) -> Reconstructor:
    """The reconstructor of the source, fitted once for all numbers of target labels."""
    key = (method, case.frozen.weights_hash, case.source.hash, case.seed)
    if key not in _FITTED:
        _FITTED.clear()
        rec = reconstructor_of(method, case.frozen.model, case.seed)
        _FITTED[key] = rec.fit(case.source.without_test_labels().to_data())
    if keep != "summary":
        return _FITTED[key]
    with tempfile.TemporaryDirectory() as folder:
        _FITTED[key].save(folder, keep="summary")
        return load_reconstructor(folder, case.frozen.model)


def _percent(known: ScoredCase, scores: Tensor) -> float:
    return round(percent(scores.argmax(dim=-1)[known.scored] == known.labels[known.scored]), 6)


def _balanced(known: ScoredCase, scores: Tensor) -> float:
    """Accuracy averaged over the classes, in percent."""
    labels = known.labels[known.scored]
    right = (scores.argmax(dim=-1)[known.scored] == labels).float()
    shares = [float(right[labels == label].mean()) for label in labels.unique()]
    return round(100.0 * sum(shares) / len(shares), 6)


def _nodes(known: ScoredCase, scores: Tensor) -> dict[str, Tensor]:
    target: GraphTask = known.case.target
    split = torch.zeros(target.n_nodes, dtype=torch.int8)
    split[known.case.nodes] = 1
    split[known.scored] = 3
    return node_columns(target.edge_index, known.labels, split, known.base, scores)
