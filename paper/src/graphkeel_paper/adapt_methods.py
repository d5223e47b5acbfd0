"""The rivals that take a model to another graph, and retraining, beside ours."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from graphkeel.core.digests import json_sha256
from graphkeel.graph import UNLABELLED, GraphTask
from graphkeel.graph.task import graph_sha256
from graphkeel.runs import adapt
from graphkeel.runs.adapt_case import Case
from graphkeel.runs.method import Given, MethodResult
from graphkeel.runs.methods import OURS
from graphkeel_paper.baselines.registry import get_baseline
from graphkeel_paper.baselines.rival import Candidate, Judged, Rival
from graphkeel_paper.specs import AdaptSpec

# Rows that learn from the source's labels as well: they see source and target as one graph.
_ON_UNION = ("retrain", "pool")
_POSTERIOR = "posterior-alone"  # what `auto` decides, before it steers
_TARGET_ONLY = "target-only"  # the same architecture, trained on the target's labels alone


def check_method(name: str) -> None:
    """That there is such a method."""
    if name not in ("none", _POSTERIOR, *OURS):
        get_baseline(_baseline(name))


def adapted(spec: AdaptSpec, case: Case) -> MethodResult:
    """Scores of the target's nodes; None where the model is left alone."""
    if spec.method == "none" or spec.method in OURS:
        return adapt.adapted(spec, case)
    if spec.method == _POSTERIOR:
        return _posterior_alone(replace(spec, method="auto"), case)
    baseline = get_baseline(_baseline(spec.method))
    with_source = getattr(baseline, "with_source", None)
    if callable(with_source):
        baseline = with_source(case.source)
    nobody = case.nodes[:0]
    if isinstance(baseline, Rival) and not baseline.uses_labels:
        return _label_free(baseline, case)
    if spec.method not in _ON_UNION:
        return baseline.fit_predict(case.frozen, case.target, case.nodes, nobody, case.seed)
    task, mine = union(case)
    labelled = torch.cat([task.train_mask.nonzero().flatten(), mine[case.nodes]])
    result = baseline.fit_predict(case.frozen, task, labelled, nobody, case.seed)
    scores = None if result.scores is None else result.scores[mine]
    return MethodResult(scores, None, result.decision)


def _posterior_alone(spec: AdaptSpec, case: Case) -> MethodResult:
    there = adapt.on_target(spec, case)
    return MethodResult(there.posterior_, None, there.guard_.to_dict())


def union(case: Case) -> tuple[GraphTask, Tensor]:
    """Source and target as one graph of two parts, and the ids of the target's nodes in it.

    The source's training nodes are its training set."""
    source, target = case.source, case.target
    shift = source.n_nodes
    nobody = torch.zeros(shift + target.n_nodes, dtype=torch.bool)
    train = nobody.clone()
    train[:shift] = source.train_mask
    known = torch.where(
        source.train_mask | source.val_mask, source.y, torch.full_like(source.y, UNLABELLED)
    )
    task = GraphTask(
        x=torch.cat([source.x, target.x]),
        edge_index=torch.cat([source.edge_index, target.edge_index + shift], dim=1),
        y=torch.cat([known, target.y]),
        train_mask=train,
        val_mask=nobody,
        test_mask=nobody,
        n_classes=source.n_classes,
    )
    return task, torch.arange(shift, shift + target.n_nodes)


_MADE: dict[str, list[Candidate]] = {}  # of the rival, source and target last worked on


def _label_free(rival: Rival, case: Case) -> MethodResult:
    """Labels only choose among its candidates, which are made once for all numbers of them."""
    known = [rival.name, case.frozen.weights_hash, case.source.hash, case.seed]
    key = json_sha256([*known, graph_sha256(case.target.x, case.target.edge_index)])
    if key not in _MADE:
        _MADE.clear()
        nobody = case.nodes[:0]
        given = Given(case.frozen, case.target, nobody, nobody, case.seed)
        _MADE[key] = list(rival.candidates(given))
    return rival.choose([Judged.on(one, case.target, case.nodes) for one in _MADE[key]])


def _baseline(method: str) -> str:
    return "retrain" if method == _TARGET_ONLY else method
