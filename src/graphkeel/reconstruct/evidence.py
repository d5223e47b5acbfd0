"""Evidence for each class at each node: pure functions of the scene and the labels.

Every piece of evidence is an array of log-probabilities, shape (N, S, C): one layer for each of S
sets of labels that are left out or used together (cross-fitting), all of them computed at once. It
is made of products with Ŝ, sums over members, and functions of a row; so its cost is linear in the
edges, whatever the model is."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphkeel.reconstruct.ridge import RidgeSettings, ridge_probe, soft_ridge
from graphkeel.reconstruct.scene import Scene, log_rows, softmax

Array = NDArray[np.float32]
Evidence = dict[str, Array]


@dataclass(frozen=True)
class EvidenceSettings:
    """Numbers of the evidence; paper/docs/research.md has the study that chose them.

    Attributes:
        steps: of the random walk that labels spread by.
        floor: of what labels must bring to a node, below which they say nothing of it.
        sharpness: of the distance to class means, in units of the mean distance.
        share: of each class's nodes, the surest first, that become pseudo-labels;
        fewest: at least so many, where there are.
        newton: steps in which evidence from the pooled answer is tempered, on
        compared: nodes.
        ridge: those of the probes.
    """

    steps: int = 50
    floor: float = 1e-3
    sharpness: float = 10.0
    share: float = 0.3
    fewest: int = 3
    newton: int = 6
    compared: int = 500
    ridge: RidgeSettings = field(default_factory=RidgeSettings)


@dataclass(frozen=True, eq=False)
class LabelSets:
    """Known labels, and which of them each of S sets may use.

    Attributes:
        nodes: int64, shape (L,).
        classes: int64, shape (L,).
        used: bool, shape (S, L).
        n_classes: C.
    """

    nodes: NDArray[np.int64]
    classes: NDArray[np.int64]
    used: NDArray[np.bool_]
    n_classes: int

    def members(self) -> Array:
        """One-hot labels, zero where a set may not use them, shape (S, L, C)."""
        one_hot = np.eye(self.n_classes, dtype=np.float32)[self.classes]
        return self.used[:, :, None] * one_hot

    def written_on(self, values: Array) -> Array:
        """A copy of values (N, S, C) whose labelled rows say what is known to each set."""
        known = np.swapaxes(self.members(), 0, 1)
        changed = values.copy()
        rows = changed[self.nodes]
        changed[self.nodes] = np.where(self.used.T[:, :, None], known, rows)
        return changed

    def on_graph(self, n_nodes: int) -> Array:
        """The known labels as a function on the graph, zero elsewhere, shape (N, S, C)."""
        return self.written_on(np.zeros((n_nodes, len(self.used), self.n_classes), np.float32))


def first_evidence(scene: Scene, labels: LabelSets, settings: EvidenceSettings) -> Iterator[Any]:
    """Names and evidence from the model, the graph and the labels."""
    n_sets = len(labels.used)
    yield "model", _alike(log_rows(scene.beliefs), n_sets)
    yield "model~", _alike(log_rows(scene.smoothed_beliefs), n_sets)
    if not len(labels.nodes):
        return
    members = labels.members()
    present = np.asarray(members.any(axis=1))
    for name, values in _from_labels(scene, labels, members, settings):
        yield name, _among_labelled(values, present, scene.smoothed_beliefs)


def _from_labels(
    scene: Scene, labels: LabelSets, members: Array, settings: EvidenceSettings
) -> Iterator[Any]:
    near = scene.spread(labels.on_graph(scene.n_nodes), settings.steps)
    yield "labels", log_rows(near + settings.floor)
    yield "labels=", log_rows(same_sizes(near) + settings.floor)
    x = scene.smoothed_directions
    yield "means~", nearest_mean(x, x[labels.nodes], members, settings.sharpness)
    yield from _probes(scene, labels, settings)


def _among_labelled(values: Array, present: NDArray[np.bool_], model: Array) -> Array:
    """Evidence of labels among the classes that have any (S, C); of the others only the model
    knows."""
    partial = ~present.all(axis=1)
    if not partial.any():
        return values
    others = model[:, None, :] * ~present[partial]
    own = np.exp(values[:, partial]) * present[partial]
    left = 1.0 - others.sum(axis=2, keepdims=True)
    known = own / np.maximum(own.sum(axis=2, keepdims=True), 1e-30)
    joined = values.copy()
    joined[:, partial] = log_rows(others + left * known)
    return joined


def second_evidence(
    scene: Scene, labels: LabelSets, posterior: Array, settings: EvidenceSettings
) -> Iterator[Any]:
    """Names and evidence from the pooled answer: as soft members, and as pseudo-labels.

    Each piece is made as sure as it agrees with that answer: features that say little of the
    classes on this graph thereby say little in the next round, too, with no label needed."""
    for name, values in _from_answer(scene, labels, posterior, settings):
        yield name, tempered(values, posterior, settings)


def _from_answer(
    scene: Scene, labels: LabelSets, posterior: Array, settings: EvidenceSettings
) -> Iterator[Any]:
    sharp = posterior**2
    soft = labels.written_on(sharp / sharp.sum(axis=2, keepdims=True))
    own, hops = (_soft_probe(units, labels, soft, settings) for units in scene.relu_units)
    yield "soft own", own
    yield "soft hops~", log_rows(scene.spread(np.exp(hops)))
    x = scene.smoothed_directions
    means = nearest_mean(x, x, np.swapaxes(soft, 0, 1), settings.sharpness)
    yield "soft means~", log_rows(scene.spread(np.exp(means)))
    yield "soft labels", log_rows(scene.spread(soft, settings.steps) + settings.floor)
    surest = scene.spread(pseudo_labels(labels, posterior, settings), settings.steps)
    yield "pseudo-labels=", log_rows(same_sizes(surest) + settings.floor)


def pseudo_labels(labels: LabelSets, posterior: Array, settings: EvidenceSettings) -> Array:
    """One-hot rows at known labels and at the surest nodes of each class, zero elsewhere."""
    guess = posterior.argmax(axis=2)
    sure = posterior.max(axis=2)
    found = np.zeros_like(posterior)
    for s, used in enumerate(labels.used):
        free = np.ones(len(guess), bool)
        free[labels.nodes[used]] = False
        for c in range(labels.n_classes):
            nodes = np.flatnonzero(free & (guess[:, s] == c))
            count = min(len(nodes), max(settings.fewest, int(settings.share * len(nodes))))
            if count:
                top = np.argpartition(-sure[nodes, s], count - 1)[:count]
                found[nodes[top], s, c] = 1.0
    return labels.written_on(found)


def tempered(values: Array, posterior: Array, settings: EvidenceSettings) -> Array:
    """Log-probabilities times the t ≥ 0 with the least cross-entropy to the posterior, rows made to
    sum to one again; t is found by Newton's method on evenly spaced nodes, one for each set."""
    some = slice(None, None, max(1, len(values) // settings.compared))
    e: Any = values[some].astype(np.float64)
    p = posterior[some]
    wanted = (p * e).sum(axis=2)
    t = np.ones(values.shape[1])
    for _ in range(settings.newton):
        q: Any = softmax(t[:, None] * e)
        mean = (q * e).sum(axis=2)
        slope = (mean - wanted).mean(axis=0)
        bend = ((q * e**2).sum(axis=2) - mean**2).mean(axis=0)
        t = np.clip(t - slope / np.maximum(bend, 1e-6), t / 4, 4 * t)
    return log_rows(softmax(t.astype(np.float32)[:, None] * values))


def _alike(values: Array, n_sets: int) -> Array:
    """One array for every set of labels, without a copy."""
    return np.broadcast_to(values[:, None, :], (len(values), n_sets, values.shape[1]))


def same_sizes(near: Array) -> Array:
    """Spread labels (N, S, C), scaled so that all classes have one size."""
    sizes = near.sum(axis=0)
    return near * (sizes.mean(axis=1, keepdims=True) / (sizes + 1e-9))


def _soft_probe(units: Array, labels: LabelSets, soft: Array, settings: EvidenceSettings) -> Array:
    """Regression of the pooled answer on random ReLU features, at labels and some other nodes."""
    sample = settings.ridge.sample
    others = np.random.default_rng(0).permutation(len(units))[:sample]
    nodes = np.union1d(labels.nodes[:sample], others)
    fitted = soft_ridge(units, nodes, soft[nodes], settings.ridge.soft)
    return log_rows(softmax(settings.sharpness * fitted))


def nearest_mean(x: Array, rows: Array, members: Array, sharpness: float) -> Array:
    """Distance to the mean of each class's members; log-probabilities, shape (N, S, C)."""
    mass = members.sum(axis=1) + 1.0  # one more member at the centre of all nodes
    means = np.einsum("slc,lk->sck", members, rows, optimize=True) / mass[:, :, None]
    size = (x**2).sum(axis=1)[:, None, None]
    cross = _affine(x, [-2 * m.T for m in means], [(m**2).sum(axis=1) for m in means])
    distance = size + cross
    scale = np.maximum(distance.mean(axis=(0, 2), keepdims=True), 1e-9)
    return log_rows(softmax(-sharpness * distance / scale))


def _affine(x: Array, slopes: list[Any], offsets: list[Any]) -> Array:
    """x @ slope + offset for each set, in one product, shape (N, S, C)."""
    joined = np.concatenate(slopes, axis=1).astype(np.float32)
    values = x @ joined + np.concatenate(offsets).astype(np.float32)
    return values.reshape(len(x), len(slopes), -1)


def _probes(scene: Scene, labels: LabelSets, settings: EvidenceSettings) -> Iterator[Any]:
    """Ridge regressions: on own features, on neighbours' (then smoothed), and with links."""
    for name, views in scene.views.items():
        found = ridge_probe(views, labels, settings.ridge)
        if name == "hops":
            yield "hops~", log_rows(scene.spread(found))
        else:
            yield name, log_rows(found)
