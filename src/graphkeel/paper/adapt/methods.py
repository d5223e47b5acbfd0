"""The methods that take a model to another graph: ours at three levels of what is kept of the
source, the rivals, and retraining."""

from __future__ import annotations

import tempfile
import time
from typing import Any

import torch
from torch import Tensor

from graphkeel.core.errors import ConfigError
from graphkeel.graph import GraphTask
from graphkeel.graph.task import graph_sha256
from graphkeel.paper.adapt.case import Case, ScoredCase, make_case
from graphkeel.paper.adapt.spec import AdaptSpec
from graphkeel.paper.baselines.ours import OURS, reconstructor_of
from graphkeel.paper.baselines.registry import get_baseline
from graphkeel.paper.baselines.rival import Candidate, Judged, Rival
from graphkeel.paper.tables.fingerprint import code_fingerprint, version_of
from graphkeel.paper.tables.job import sha256_of
from graphkeel.paper.tables.run import Outcome, node_columns
from graphkeel.reconstruct.method import MethodResult
from graphkeel.reconstruct.reconstructor import Reconstructor, load_reconstructor

# Rows that learn from the source's labels as well: they see source and target as one graph.
ON_UNION = ("retrain", "pool")
TARGET_ONLY = "target-only"  # the same architecture, trained on the target's labels alone
_CODE = (
    "graphkeel.paper.adapt.case",
    "graphkeel.paper.adapt.methods",
    "graphkeel.graph.datasets.registry",
    "graphkeel.models.zoo",
)
_OURS = "graphkeel.paper.baselines.ours"


def method_version(spec: AdaptSpec) -> str:
    """SHA-256 of all code that a job of this specification runs."""
    if spec.method == "none":
        return code_fingerprint(_CODE)
    if spec.method in OURS:
        return code_fingerprint((*_CODE, _OURS))
    return version_of(get_baseline(_baseline(spec.method)), _CODE)


def outcome(spec: AdaptSpec, seed: int) -> Outcome:
    """Adapt and score; labels that no method may see are used here, to score, and nowhere else."""
    known = make_case(spec, seed)
    start = time.perf_counter()
    result = adapted(spec, known.case)
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
    """Scores of the target's nodes; None where the model is left alone."""
    if spec.method == "none":
        return MethodResult()
    if spec.method in OURS:
        return _ours(spec, case)
    baseline = get_baseline(_baseline(spec.method))
    with_source = getattr(baseline, "with_source", None)
    if callable(with_source):
        baseline = with_source(case.source)
    nobody = case.nodes[:0]
    if isinstance(baseline, Rival) and not baseline.uses_labels:
        return _label_free(baseline, case)
    if spec.method not in ON_UNION:
        return baseline.fit_predict(case.frozen, case.target, case.nodes, nobody, case.seed)
    task, mine = case.union()
    labelled = torch.cat([task.train_mask.nonzero().flatten(), mine[case.nodes]])
    result = baseline.fit_predict(case.frozen, task, labelled, nobody, case.seed)
    scores = None if result.scores is None else result.scores[mine]
    return MethodResult(scores, None, result.decision)


_MADE: dict[str, list[Candidate]] = {}  # of the rival, source and target last worked on


def _label_free(rival: Rival, case: Case) -> MethodResult:
    """Labels only choose among its candidates, which are made once for all numbers of them."""
    known = [rival.name, case.frozen.weights_hash, case.source.hash, case.seed]
    key = sha256_of([*known, graph_sha256(case.target.x, case.target.edge_index)])
    if key not in _MADE:
        _MADE.clear()
        _MADE[key] = list(rival.candidates(case.frozen, case.target, case.nodes[:0], case.seed))
    return rival.choose([Judged.on(one, case.target, case.nodes) for one in _MADE[key]])


def _baseline(method: str) -> str:
    return "retrain" if method == TARGET_ONLY else method


def _ours(spec: AdaptSpec, case: Case) -> MethodResult:
    """`Reconstructor.adapt`, as a user calls it."""
    rec = reconstructor_of(spec.method, case.frozen.model, case.seed)
    is_trained = rec.model is case.frozen.model
    if rec._without and not len(case.nodes):
        raise ConfigError(
            "without the model's evidence only labels can decide", got="no target labels"
        )
    if spec.keep != "model":
        rec = _fitted(spec.method, spec.keep, case)
    nodes = case.nodes if len(case.nodes) else None
    classes = None if nodes is None else case.target.y[nodes]
    target = case.target.to_data()
    there = rec.adapt(target, nodes, classes, keep=spec.keep)
    decision = there.guard_.to_dict()
    if not is_trained:  # features would mean nothing to the model that was handed over
        return MethodResult(there.scores(target), None, decision)
    if there.guard_.left_alone:
        return MethodResult(None, None, decision)
    scores = case.frozen.logits(there.features_, case.target.edge_index)
    return MethodResult(scores, there.features_, decision)


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
    right = scores.argmax(dim=-1)[known.scored] == known.labels[known.scored]
    return round(100.0 * float(right.float().mean()), 6)


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
