"""FRGNN (arXiv 2308.09259): an MLP learns to undo the frozen model, and undoes a class's one-hot
into a feature.

The model's outputs on all nodes, paired with those nodes' input features, train an MLP g: output ->
feature. The class representative embedding is g(e_c); it replaces the features of the labelled
nodes of class c, and the frozen model is asked again. No code was published; depth, width, loss and
epochs are those that make ‖C(g(e_c)) − e_c‖ small."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from graphkeel.graph import GraphTask
from graphkeel.graph.labels import Labels
from graphkeel.models import train_model
from graphkeel.models.frozen import FrozenModel
from graphkeel.models.head import extract_head
from graphkeel.reconstruct.correction import replace
from graphkeel.runs.method import CheckedMethod, Given, MethodResult
from graphkeel_paper.baselines.rival import drawn_class
from graphkeel_paper.baselines.training import as_split, seeded, trained, unit_scale


@dataclass(frozen=True)
class FRGNN(CheckedMethod):
    """Replace labelled nodes by g(e_c)."""

    needs_labels = True
    name: str = "frgnn"
    base: Literal["given", "gcn"] = "given"  # "gcn" first trains and freezes one (FRGNN_GCN)
    classes: Literal["one", "all"] = "one"  # of the paper's starred rows; FRGNN itself: all
    hidden: int = 64  # units of g
    rate: float = 0.01
    epochs: int = 500

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
        embeddings = self.representatives(frozen, task, seed)
        labels = Labels(labelled, task.y[labelled], task.n_classes)
        only = drawn_class(task, labelled, seed) if self.classes == "one" else None
        features = replace(task.x, labels, embeddings, only)
        scores = frozen.logits(features, task.edge_index)
        distance = _distance(frozen, task, embeddings)
        residual = float(distance.max() if only is None else distance[only])
        # Features in the units of a model trained here would mean nothing to the model that was
        # handed over.
        rewritten = features if self.base == "given" else None
        return MethodResult(scores, rewritten, {"class": only, "residual": residual})

    def representatives(self, frozen: FrozenModel, task: GraphTask, seed: int) -> Tensor:
        """g(e_c) of every class, shape (n_classes, d); g learns from probabilities of all nodes,
        which takes no label."""
        outputs = frozen.logits(task.x, task.edge_index).softmax(dim=-1)
        with seeded(seed):
            inverse = nn.Sequential(
                nn.Linear(task.n_classes, self.hidden),
                nn.ReLU(),
                nn.Linear(self.hidden, task.n_features),
            )
        trained(inverse, lambda: F.mse_loss(inverse(outputs), task.x), self.epochs, rate=self.rate)
        with torch.no_grad():
            return inverse(torch.eye(task.n_classes))


def _distance(frozen: FrozenModel, task: GraphTask, embeddings: Tensor) -> Tensor:
    """‖C(h) − e_c‖ of each class's embedding: the paper's Definition 1, on logits."""
    with torch.no_grad():
        reached = extract_head(frozen, task.n_features)(embeddings.double())
    return (reached - torch.eye(task.n_classes, dtype=reached.dtype)).norm(dim=1)
