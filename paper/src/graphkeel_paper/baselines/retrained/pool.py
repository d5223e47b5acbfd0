"""A plain pool: discriminant analysis, logistic regression and label spreading, twenty candidates,
averaged by our rule. The model is not asked at all.

It shows how much of our gain a few lines of scikit-learn give: candidates that are not measurably
worse than the best one (within one standard error of the paired difference) are averaged."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from torch import Tensor

from graphkeel.graph import GraphTask
from graphkeel.graph.labels import known_labels
from graphkeel.graph.propagate.propagator import Propagator
from graphkeel.runs.method import Given, MethodResult
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
