"""Retraining: the same architecture on the same labels, from scratch or from the given weights.

What a team does that may retrain. Weight decay (from scratch) or learning rate (from the given
weights) are chosen by the labels, as every rival's settings are."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from torch import Tensor, nn

from graphkeel.graph import GraphTask
from graphkeel.graph.labels import known_labels
from graphkeel.graph.propagate.propagator import Propagator
from graphkeel.models import RECIPES, TrainingConfig
from graphkeel.models.networks import SGC
from graphkeel.models.zoo import train
from graphkeel.runs.method import Given, MethodResult
from graphkeel_paper.baselines.retrained.copies import fresh_copy, module_of, scores_of
from graphkeel_paper.baselines.rival import (
    Candidate,
    Judged,
    Rival,
    as_beliefs,
    average,
    clamped,
    left_alone,
    scored,
)
from graphkeel_paper.baselines.training import as_split, seeded


@dataclass(frozen=True)
class Retrain(Rival):
    """The given model's architecture, trained from scratch on all labels.

    A weight decay of None is the architecture's own."""

    name = "retrain"
    retrains = True
    weight_decays: tuple[float | None, ...] = (None, 5e-4, 5e-3)

    def candidates(self, given: Given) -> Iterator[Candidate]:
        if not len(given.labelled):
            yield left_alone("there is no label to train on")
            return
        recipe = _recipe_of(module_of(given.frozen))
        for decay in self.weight_decays:
            config = recipe if decay is None else replace(recipe, weight_decay=decay)
            model = fresh_copy(module_of(given.frozen), given.seed)
            setting = {"weight_decay": config.weight_decay}
            yield scored(setting, _trained(model, given, given.labelled, config))


@dataclass(frozen=True)
class FineTune(Rival):
    """The given model, trained on from its weights on the labels it has not seen."""

    name = "finetune"
    retrains = True
    rates: tuple[float, ...] = (0.01, 0.1, 0.001)
    epochs: int = 100

    def candidates(self, given: Given) -> Iterator[Candidate]:
        unseen = given.labelled[~given.task.train_mask[given.labelled]]
        if not len(unseen):
            yield left_alone("there is no label to train on")
            return
        recipe = _recipe_of(module_of(given.frozen))
        for rate in self.rates:
            config = replace(recipe, lr=rate, epochs=self.epochs, patience=None)
            model = copy.deepcopy(module_of(given.frozen)).requires_grad_(True)
            yield scored({"lr": rate}, _trained(model, given, unseen, config))


def _recipe_of(model: nn.Module) -> TrainingConfig:
    """How a network is trained: as its kind is in the zoo, else as a GCN."""
    kinds = {recipe.build: recipe.training for recipe in RECIPES.values()}
    return kinds.get(type(model), RECIPES["gcn"].training)


def _trained(model: nn.Module, given: Given, labelled: Tensor, config: TrainingConfig) -> Tensor:
    task, nobody = given.task, labelled[:0]
    with seeded(given.seed):
        trained = train(model, as_split(task, labelled, nobody), config)
    with torch.no_grad():
        if isinstance(trained, SGC):
            return scores_of(trained, task.x, task.edge_index)
        return trained(task.x, task.edge_index)


# ---- A plain pool: discriminant analysis, logistic regression and label spreading, twenty
# candidates, averaged by our rule. The model is not asked at all.
#
# It shows how much of our gain a few lines of scikit-learn give: candidates that are not
# measurably worse than the best one (within one standard error of the paired difference) are
# averaged.


@dataclass(frozen=True)
class Pool(Rival):
    """Classifiers on smoothed features, and label spreading."""

    name = "pool"
    retrains = True
    hops: tuple[int, ...] = (2, 1)
    teleports: tuple[float, ...] = (0.1, 0.05, 0.2)
    alphas: tuple[float, ...] = (0.9, 0.5, 0.8, 0.95, 0.99)  # of label spreading
    strengths: tuple[float, ...] = (1.0, 10.0)  # of logistic regression, scikit-learn's C

    def candidates(self, given: Given) -> Iterator[Candidate]:
        task, labelled = given.task, given.labelled
        classes = task.y[labelled]
        if len(classes.unique()) < 2:
            yield left_alone("labels of fewer than two classes")
            return
        propagator = Propagator(task.edge_index, task.n_nodes)
        for name, features in self._smoothed(task.x, propagator):
            for kind, classifier in self._classifiers(few=len(classes) <= len(classes.unique())):
                setting = {"features": name, "classifier": kind}
                yield scored(setting, _fitted(classifier, features, labelled, classes, task))
        nothing = torch.zeros(task.n_nodes, task.n_classes)
        known = clamped(nothing, known_labels(task, labelled))
        for alpha in self.alphas:
            spread = propagator.smooth(known, 1.0 - alpha)
            yield scored({"spreading": alpha}, as_beliefs(spread))

    def choose(self, judged: Sequence[Judged]) -> MethodResult:
        return average(judged)

    def _smoothed(self, x: Tensor, propagator: Propagator) -> Iterator[tuple[str, np.ndarray]]:
        for hops in self.hops:
            features = x
            for _ in range(hops):
                features = propagator(features)
            yield f"{hops} hops", features.numpy()
        for teleport in self.teleports:
            yield f"teleport {teleport}", propagator.smooth(x, teleport).numpy()

    def _classifiers(self, few: bool) -> Iterator[tuple[str, Any]]:
        """A discriminant needs more labels than there are classes among them."""
        if not few:
            yield "lda", LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto")
        for strength in self.strengths:
            regression = LogisticRegression(C=strength, max_iter=200)
            yield f"logistic {strength:g}", make_pipeline(StandardScaler(), regression)


def _fitted(
    classifier: Any, features: np.ndarray, labelled: Tensor, classes: Tensor, task: GraphTask
) -> Tensor:
    """Class probabilities of every node; a class without a label has none."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("ignore", RuntimeWarning)  # one node of a class has no covariance
        classifier.fit(features[labelled.numpy()], classes.numpy())
        found = classifier.predict_proba(features)
    beliefs = torch.zeros(task.n_nodes, task.n_classes)
    beliefs[:, torch.from_numpy(classifier.classes_)] = torch.from_numpy(found).float()
    return beliefs.nan_to_num(0.0)
