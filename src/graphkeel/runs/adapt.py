"""A frozen model on another graph."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from graphkeel.core.errors import ConfigError
from graphkeel.reconstruct.guard import balanced
from graphkeel.reconstruct.reconstructor import Reconstructor
from graphkeel.runs.adapt_case import Case, make_case
from graphkeel.runs.method import MethodResult
from graphkeel.runs.methods import reconstructor_of, result_of
from graphkeel.runs.run import SCORED, TRAINED, Outcome, measured
from graphkeel.runs.specs import AdaptSpec


def outcome(spec: AdaptSpec, seed: int) -> Outcome:
    """Adapt and score."""
    known = make_case(spec, seed)
    case = known.case
    split = torch.zeros(case.target.n_nodes, dtype=torch.int8)
    split[case.nodes] = TRAINED
    split[known.scored] = SCORED
    target = (case.frozen, case.target, known.labels)
    found = measured(seed, *target, split, known.base, lambda: spec.adapted(case))
    labels, *predicted = (found.nodes[name][known.scored] for name in ("y", "before", "after"))
    right = ((part == labels).numpy() for part in predicted)
    before, after = (round(balanced(one, labels.numpy()), 6) for one in right)
    row = {**found.row, "balanced_base": before, "balanced": after}
    if case.target.n_classes == len(labels.unique()) == 2:
        answers = {"auc_base": known.base, "auc": found.scores}
        row |= {name: _auc(scores[known.scored], labels) for name, scores in answers.items()}
    return replace(found, row=row)


def adapted(spec: AdaptSpec, case: Case) -> MethodResult:
    """`Reconstructor.adapt`, as a user calls it; nothing for `none`."""
    if spec.method == "none":
        return MethodResult()
    return result_of(on_target(spec, case), case.target.to_data(), case.frozen.model)


def on_target(spec: AdaptSpec, case: Case) -> Reconstructor:
    """The reconstructor of the target, with the labels that are known there."""
    rec = reconstructor_of(spec.method, case.frozen.model, case.seed)
    if not len(case.nodes):
        if rec._without:
            raise ConfigError(
                "without the model's evidence only labels can decide", got="no target labels"
            )
        return rec.adapt(case.target.to_data())
    return rec.adapt(case.target.to_data(), case.nodes, case.target.y[case.nodes])


def _auc(scores: Tensor, labels: Tensor) -> float:
    """Area under the ROC curve of two classes, in percent."""
    from sklearn.metrics import roc_auc_score

    return round(100.0 * float(roc_auc_score(labels, scores[:, 1] - scores[:, 0])), 6)
