"""FRGNN (arXiv 2308.09259): an MLP learns to undo the frozen model, and undoes a class's one-hot
into a feature.

The model's outputs on all nodes, paired with those nodes' input features, train an MLP g: output ->
feature. The class representative embedding is g(e_c); it replaces the features of the labelled
nodes of class c, and the frozen model is asked again. No code was published; depth, width, loss and
epochs are those that make ‖C(g(e_c)) − e_c‖ small."""

from __future__ import annotations

import dataclasses
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

import torch
from torch import Tensor, nn

from graphkeel.graph import GraphTask
from graphkeel.graph.labels import Labels
from graphkeel.models import train_model
from graphkeel.models.frozen import FrozenModel
from graphkeel.models.head import extract_head
from graphkeel.reconstruct.correction import replace
from graphkeel.runs.method import CheckedMethod, Given, MethodResult
from graphkeel_paper.baselines.rival import drawn_class
from graphkeel_paper.baselines.training import as_split, descend, seeded, unit_scale


@dataclass(frozen=True)
class FrgnnConfig:
    """How g is trained, and what it replaces."""

    outputs: Literal["softmax", "logits"] = "softmax"  # what g is fed
    pairs: Literal["all", "labelled"] = "all"  # which nodes it learns from; neither needs a label
    hidden: int = 64
    lr: float = 0.01
    epochs: int = 500


@dataclass(frozen=True)
class FRGNN(CheckedMethod):
    """Replace labelled nodes by g(e_c)."""

    needs_labels = True
    name: str = "frgnn"
    base: Literal["given", "gcn"] = "given"  # "gcn" first trains and freezes one (FRGNN_GCN)
    classes: Literal["one", "all"] = "one"  # of the paper's starred rows; FRGNN itself: all
    config: FrgnnConfig = field(default_factory=FrgnnConfig)

    @property
    def retrains(self) -> bool:  # type: ignore[override]
        return self.base != "given"

    def _fit_predict(self, given: Given) -> MethodResult:
        frozen, task, labelled, seed = given.frozen, given.task, given.labelled, given.seed
        if self.base == "gcn":
            task = as_split(
                dataclasses.replace(task, x=unit_scale(task.x)), labelled, given.validation
            )
            frozen = FrozenModel(train_model("gcn", task, seed=seed), n_classes=task.n_classes)
        embeddings = representatives(frozen, task, labelled, self.config, seed)
        labels = Labels(labelled, task.y[labelled], task.n_classes)
        only = drawn_class(task, labelled, seed) if self.classes == "one" else None
        features = replace(task.x, labels, embeddings, only)
        scores = frozen.logits(features, task.edge_index)
        decision = {
            "class": only,
            "classes": self.classes,
            **asdict(self.config),
            **_distance(frozen, task, embeddings, only),
        }
        # Features in the units of a model trained here would mean nothing to the model that was
        # handed over.
        return MethodResult(scores, features if self.base == "given" else None, decision)


def representatives(
    frozen: FrozenModel, task: GraphTask, labelled: Tensor, config: FrgnnConfig, seed: int
) -> Tensor:
    """g(e_c) of every class, shape (n_classes, d)."""
    outputs = frozen.logits(task.x, task.edge_index)
    if config.outputs == "softmax":
        outputs = outputs.softmax(dim=-1)
    nodes = labelled if config.pairs == "labelled" else torch.arange(task.n_nodes)
    inverse = _train_inverse(outputs[nodes], task.x[nodes], config, seed)
    with torch.no_grad():
        return inverse(torch.eye(task.n_classes))


def _train_inverse(outputs: Tensor, features: Tensor, config: FrgnnConfig, seed: int) -> nn.Module:
    with seeded(seed):
        inverse = nn.Sequential(
            nn.Linear(outputs.shape[1], config.hidden),
            nn.ReLU(),
            nn.Linear(config.hidden, features.shape[1]),
        )
    optimiser = torch.optim.Adam(inverse.parameters(), lr=config.lr)
    for _ in range(config.epochs):
        descend(optimiser, nn.functional.mse_loss(inverse(outputs), features))
    return inverse


def _distance(
    frozen: FrozenModel, task: GraphTask, embeddings: Tensor, only: int | None
) -> dict[str, Any]:
    """How far the embeddings are from the paper's Definition 1, on the scale of logits and of
    probabilities."""
    plant = extract_head(frozen, task.n_features)
    with torch.no_grad():
        reached = plant(embeddings.double())
    wanted = torch.eye(task.n_classes, dtype=reached.dtype)
    rows = slice(None) if only is None else slice(only, only + 1)
    error, soft_error = (reached - wanted)[rows], (reached.softmax(dim=-1) - wanted)[rows]
    return {
        "logit_error": float(error.norm(dim=1).max()),
        "softmax_error": float(soft_error.norm(dim=1).max()),
        "norm": float(embeddings[rows].norm(dim=1).max()),
    }
