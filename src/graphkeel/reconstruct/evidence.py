"""Evidence for each class at each node: pure functions of the scene and the labels.

Every piece of evidence is log-probabilities, shape (N, S, C): one layer for each of S sets of
labels that are left out or used together (cross-fitting). It is made of products with Ŝ, for all
sets at once, sums over members, and functions of a row, computed where they are asked for: so its
cost is linear in the edges, whatever the model is, and only what was spread is kept."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator
from dataclasses import dataclass, field
from functools import cache, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphkeel.graph.label_sets import LabelSets
from graphkeel.graph.propagate.rowwise import Nodes, fold, largest, mean_row, rowwise
from graphkeel.graph.propagate.view import Layers, Products, Repeated, View
from graphkeel.graph.ridge import RidgeSettings, ridge_probe, soft_ridge
from graphkeel.graph.rows import log_rows, log_softmax, softmax
from graphkeel.reconstruct.scene import Scene

Array = NDArray[np.float32]
Evidence = dict[str, Layers]


@dataclass(frozen=True)
class EvidenceSettings:
    """Numbers of the evidence; paper/docs/research.md has the study that chose them.

    Attributes:
        steps: of the random walk that labels spread by.
        floor: of what labels must bring to a node, below which they say nothing of it.
        sharpness: of the distance to class means, in units of the mean distance.
        share: of each class's nodes, the surest first, that become pseudo-labels;
        at_least: so many, where there are.
        newton: steps in which evidence from the pooled answer is tempered, on
        compared: nodes.
        ridge: those of the probes.
    """

    steps: int = 50
    floor: float = 3e-4
    sharpness: float = 5.0
    share: float = 0.5
    at_least: int = 3
    newton: int = 6
    compared: int = 500
    ridge: RidgeSettings = field(default_factory=RidgeSettings)


def first_evidence(
    scene: Scene,
    labels: LabelSets,
    settings: EvidenceSettings,
    without: Container[str] = (),
) -> Iterator[tuple[str, Layers]]:
    """Names and evidence from the model, the graph and the labels; what is left out costs
    nothing."""
    n_sets = len(labels.used)
    if "model" not in without:
        own = rowwise(lambda part: log_rows(softmax(part)), scene.logits)
        yield "model", Layers(Repeated(own, n_sets))
    if "model~" not in without:
        yield "model~", Layers(Repeated(rowwise(log_rows, scene.smoothed_beliefs), n_sets))
    if not len(labels.nodes):
        return
    members = labels.members()
    present = np.asarray(members.any(axis=1))
    for name, make in _from_labels(scene, labels, members, settings):
        if name not in without:
            yield name, _among_labelled(make(), present, scene)


def _from_labels(
    scene: Scene, labels: LabelSets, members: Array, settings: EvidenceSettings
) -> Iterator[tuple[str, Callable[[], Layers]]]:
    """Names, and functions that compute the evidence."""
    ids = Nodes(scene.n_nodes)
    steps = settings.steps
    near = cache(lambda: scene.walked("labels", steps, labels.known_at, ids, scene.logits))
    yield "labels", lambda: _floored(near(), settings.floor)
    yield "labels=", lambda: same_sizes(near(), settings.floor)
    x = scene.smoothed_directions
    means = partial(nearest_mean, x, x[labels.nodes], np.swapaxes(members, 0, 1))
    yield "means~", lambda: means(settings.sharpness)
    for name, views in scene.views.items():
        probe = partial(ridge_probe, views, labels, settings.ridge)
        if name == "hops":
            yield "hops~", partial(_smoothed, scene, "hops~", np.asarray, probe)
        else:
            yield name, partial(_logs, probe)


def _logs(probabilities: Callable[[], Any]) -> Layers:
    return Layers(probabilities(), lambda p, *_: log_rows(p))


def _smoothed(
    scene: Scene, name: str, function: Callable[[Array], Array], values: Callable[[], Layers]
) -> Layers:
    """Logarithms of probabilities, a function of values, that are smoothed over the graph."""
    return _logs(lambda: scene.walked(name, None, function, values()))


def _among_labelled(values: Layers, present: NDArray[np.bool_], scene: Scene) -> Layers:
    """Evidence of labels among the classes that have any (S, C); of the others only the model
    knows."""
    if present.all():
        return values
    model = scene.smoothed_beliefs

    def joined(found: Array, nodes: Any, sets: slice) -> Array:
        partial = ~present[sets].all(axis=1)
        some = present[sets][partial]
        others = model[nodes][:, None, :] * ~some
        own = np.exp(found[:, partial]) * some
        left = 1.0 - others.sum(axis=2, keepdims=True)
        known = own / np.maximum(own.sum(axis=2, keepdims=True), 1e-30)
        found = found.copy()
        found[:, partial] = log_rows(others + left * known)
        return found

    return Layers(values, joined)


def second_evidence(
    scene: Scene,
    labels: LabelSets,
    posterior: Array,
    settings: EvidenceSettings,
    without: Container[str] = (),
) -> Iterator[tuple[str, Layers]]:
    """Names and evidence from the pooled answer: as soft members, and as pseudo-labels.

    Each piece is made as sure as it agrees with that answer: features that say little of the
    classes on this graph thereby say little in the next round, too, with no label needed."""
    for name, make in _from_answer(scene, labels, posterior, settings):
        if name not in without:
            yield name, tempered(make(), posterior, settings)


def _from_answer(
    scene: Scene, labels: LabelSets, posterior: Array, settings: EvidenceSettings
) -> Iterator[tuple[str, Callable[[], Layers]]]:
    """Names, and functions that compute the evidence."""
    soft = rowwise(labels.soft, posterior, Nodes(scene.n_nodes))
    own, hops = scene.relu_units
    yield "soft own", lambda: _soft_probe(own, labels, soft, settings)
    name = "soft hops~"
    make = partial(_smoothed, scene, name, np.exp)
    yield name, lambda: make(lambda: _soft_probe(hops, labels, soft, settings))
    x = scene.smoothed_directions
    name = "soft means~"
    make = partial(_smoothed, scene, name, np.exp)
    yield name, lambda: make(lambda: nearest_mean(x, x, soft, settings.sharpness))
    soft = np.zeros(0, np.float32)  # nothing below needs it
    walked = partial(scene.walked, "pseudo-labels", settings.steps)
    surest = partial(pseudo_labels, labels, posterior, settings)
    yield "pseudo-labels=", lambda: same_sizes(walked(*surest()), settings.floor)


def _floored(near: Array, floor: float) -> Layers:
    return Layers(near, lambda z, *_: log_rows(z + floor))


def pseudo_labels(
    labels: LabelSets, posterior: Array, settings: EvidenceSettings
) -> tuple[Callable[..., Array], Array, Array, Nodes]:
    """One-hot rows at known labels and at the surest nodes of each class, zero elsewhere: a
    function, and the arrays that it takes rows of."""
    ids = Nodes(len(posterior))
    classes = rowwise(labels.unlabelled, posterior, ids)
    sure = rowwise(lambda part: part.max(axis=2), posterior)

    def wanted(sizes: NDArray[np.int64]) -> NDArray[np.int64]:
        share = (settings.share * sizes).astype(np.int64)
        return np.minimum(sizes, np.maximum(settings.at_least, share))

    least, last = largest(sure, classes, labels.n_classes, wanted)
    return partial(labels.with_surest, least, last), sure, classes, ids


def tempered(values: Any, posterior: Array, settings: EvidenceSettings) -> Layers:
    """Log-probabilities times the t ≥ 0 with the least cross-entropy to the posterior, rows made to
    sum to one again; t is found by Newton's method on evenly spaced nodes, one for each set."""
    some = slice(None, None, max(1, len(posterior) // settings.compared))
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
    factor = t.astype(np.float32)[:, None]
    return Layers(values, lambda z, _, sets: log_softmax(factor[sets] * z))


def same_sizes(near: Array, floor: float) -> Layers:
    """Spread labels (N, S, C), scaled so that all classes have one size; log-probabilities."""
    sizes = fold(lambda part: part.sum(axis=0, dtype=np.float64), near).astype(np.float32)
    scale = sizes.mean(axis=1, keepdims=True) / (sizes + 1e-9)
    return Layers(near, lambda z, _, sets: log_rows(z * scale[sets] + floor))


def _soft_probe(units: Any, labels: LabelSets, soft: Array, settings: EvidenceSettings) -> Layers:
    """Regression of the pooled answer on random ReLU features, at labels and some other nodes."""
    sample = settings.ridge.sample
    others = np.random.default_rng(0).permutation(len(soft))[:sample]
    nodes = np.union1d(labels.nodes[:sample], others)
    fitted = soft_ridge(units, nodes, soft[nodes], settings.ridge.soft)
    return Layers(fitted, lambda z, *_: log_softmax(settings.sharpness * z))


def nearest_mean(x: Array, rows: Array, members: Array, sharpness: float) -> Layers:
    """Distance to the mean of each class's members (n, S, C); log-probabilities, (N, S, C)."""
    mass = fold(lambda part: part.sum(axis=0), members) + 1.0  # one more at the centre of all nodes
    sums = fold(lambda part, some: part.reshape(len(part), -1).T @ some, members, rows)
    means = sums.reshape(*mass.shape, -1) / mass[:, :, None]
    offsets = (means**2).sum(axis=2)
    cross = Products([View(x)], [np.moveaxis(-2 * means, 2, 0)], offsets)
    # of the mean distance, the mean over nodes is known without a look at each
    size = fold(lambda part: float((part**2).sum(dtype=np.float64)), x) / len(x)
    centre = mean_row(x)
    scale = size + (offsets - 2 * means @ centre).mean(axis=1)
    sharp = (sharpness / np.maximum(scale, 1e-9)).astype(np.float32)[:, None]

    def logs(values: Array, nodes: Any, sets: slice) -> Array:
        distance = (x[nodes] ** 2).sum(axis=1)[:, None, None] + values
        return log_softmax(-sharp[sets] * distance)

    return Layers(cross, logs)
