"""Ridge regression on labelled nodes for several sets of labels at once.

One decomposition serves all sets: what a fit without some labels predicts at them is known in
closed form from the fit with all, and a fit to labels among which these are replaced by such
predictions is the fit without them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from graphkeel.graph.label_sets import LabelSets
from graphkeel.graph.propagate.view import Layers, Products, View
from graphkeel.graph.rows import log_softmax, softmax

Doubles = NDArray[np.float64]


@dataclass(frozen=True)
class RidgeSettings:
    """Attributes:
    strengths: of the ridge, in units of the mean squared length of a row; leaving each label out
        says which.
    sharpness: factors of the fitted memberships before the softmax; likewise.
    most: labels that are used.
    soft: strength where the pooled answer takes the place of labels, at
    sample: nodes. Photo, all labels, splits 20 to 23: 91.2 with 500 of them, 91.5 with 1,500, 91.6
        with 5,000 and with all.
    """

    strengths: tuple[float, ...] = (0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0)
    sharpness: tuple[float, ...] = (2.5, 5.0, 10.0, 20.0, 40.0)
    most: int = 1500
    soft: float = 0.1
    sample: int = 5000


def ridge_probe(views: list[View], labels: LabelSets, settings: RidgeSettings) -> Layers:
    """Class probabilities of every node for each set of labels, shape (N, S, C)."""
    labels = _at_most(settings.most, labels)
    width = sum(view.width for view in views)
    views, rows = map(list, zip(*(view.reached(labels.nodes) for view in views), strict=True))
    values, vectors = _decomposed(rows, width)
    scale = values.sum() / len(labels.nodes) + 1e-30
    one_hot = np.eye(labels.n_classes)[labels.classes]
    strength, sharp = _chosen(values, vectors, one_hot, scale, settings)
    ridge = strength * scale
    duals = []
    centres = []
    for used in labels.used:
        centre = (one_hot[used].sum(axis=0) + 1.0 / labels.n_classes) / (used.sum() + 1.0)
        target = _without(values, vectors, one_hot - centre, ridge, ~used)
        duals.append(vectors @ ((vectors.T @ target) / (values + ridge)[:, None]))
        centres.append(centre)
    joined = np.concatenate(duals, axis=1).astype(np.float32)
    shape = (len(duals), labels.n_classes)
    weights = [np.asarray(part.T @ joined).reshape(part.shape[1], *shape) for part in rows]
    fitted = Products(views, weights, np.stack(centres).astype(np.float32))
    return Layers(fitted, lambda z, *_: softmax(sharp * z))


def _at_most(most: int, labels: LabelSets) -> LabelSets:
    """Some of the labels, at random, where there are too many to decompose."""
    if len(labels.nodes) <= most:
        return labels
    kept = np.sort(np.random.default_rng(0).permutation(len(labels.nodes))[:most])
    nodes, classes = labels.nodes[kept], labels.classes[kept]
    return replace(labels, nodes=nodes, classes=classes, used=labels.used[:, kept])


def _decomposed(rows: list[Any], width: int) -> tuple[Doubles, Doubles]:
    """Eigenvalues (r,) and eigenvectors (L, r) of the summed Gram matrices."""
    n_labels = rows[0].shape[0]
    if width < n_labels:
        joined = np.concatenate([_dense(part) for part in rows], axis=1)
        vectors, lengths, _ = np.linalg.svd(joined, full_matrices=False)
        return lengths**2, vectors
    gram = sum(_dense(part @ part.T) for part in rows)
    values, vectors = np.linalg.eigh(gram)
    return np.maximum(values, 0.0), vectors


def _dense(part: Any) -> Doubles:
    return np.asarray(part.todense() if sparse.issparse(part) else part, dtype=np.float64)


def _chosen(
    values: Doubles, vectors: Doubles, one_hot: Doubles, scale: float, settings: RidgeSettings
) -> tuple[float, float]:
    """Strength and sharpness with the best log-likelihood, each label left out."""
    target = one_hot - one_hot.mean(axis=0)
    turned = vectors.T @ target
    best = (-np.inf, 0.0, 0.0)
    for strength in settings.strengths:
        keep = values / (values + strength * scale)
        own = np.minimum((vectors**2) @ keep, 1 - 1e-9)[:, None]
        left_out = target - (target - vectors @ (keep[:, None] * turned)) / (1 - own)
        for sharp in settings.sharpness:
            logs = log_softmax(sharp * (left_out + one_hot.mean(axis=0)))
            best = max(best, (float((one_hot * logs).sum()), strength, sharp))
    return best[1], best[2]


def _without(
    values: Doubles, vectors: Doubles, target: Doubles, ridge: float, left_out: NDArray[np.bool_]
) -> Doubles:
    """The targets, replaced where left out by what the fit without them predicts there."""
    if not left_out.any():
        return target
    target = np.where(left_out[:, None], 0.0, target)  # not even rounding knows them
    keep = values / (values + ridge)
    some = vectors[left_out]
    fitted = (some * keep) @ (vectors.T @ target)
    hat = (some * keep) @ some.T
    residual = np.linalg.solve(np.eye(len(hat)) - hat, target[left_out] - fitted)
    replaced = target.copy()
    replaced[left_out] -= residual
    return replaced


def soft_ridge(features: Any, nodes: Any, members: Any, strength: float) -> Layers:
    """Regression of soft memberships on features, said of every node.

    Args:
        features: of all nodes, shape (N, d).
        nodes: that are fitted, shape (n,).
        members: their memberships in each set of labels, shape (n, S, C).
    """
    rows = features[nodes]
    target = members.reshape(len(nodes), -1)
    centre = target.mean(axis=0)
    gram = (rows.T @ rows).astype(np.float64)
    gram[np.diag_indices_from(gram)] += strength * np.trace(gram) / len(nodes) + 1e-12
    slopes = np.linalg.solve(gram, rows.T @ (target - centre))
    weights = slopes.astype(np.float32).reshape(-1, *members.shape[1:])
    offsets = centre.astype(np.float32).reshape(members.shape[1:])
    return Layers(Products([View(features)], [weights], offsets))
