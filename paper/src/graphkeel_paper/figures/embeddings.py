"""Figures 3 and 4: t-SNE of the embeddings a model classifies: untouched, after the paper's two
methods (one class each: FRGNN, the neural controller), and beside them after `auto`.

t-SNE shows shapes, not sizes, so each panel carries a number measured in the embedding space
itself: how far test nodes are from training nodes (CMD), and how well classes hold together
(silhouette); where the number says the opposite of what the paper's caption does, the panel says
so. All panels start from the same layout, the two leading principal components of the
untouched embedding."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from graphkeel.runs.run import label_budget, prepare
from graphkeel_paper.baselines.frozen.embeddings import classified_embedding
from graphkeel_paper.baselines.registry import find_method
from graphkeel_paper.baselines.retrained.srgnn import central_moment_discrepancy
from graphkeel_paper.figures import (
    CLASSES,
    INK,
    SOFT,
    TEST,
    TRAIN,
    Drawn,
    canvas,
    heading,
    hide_axes,
    save,
)
from graphkeel_paper.specs import RunSpec

Array = NDArray[np.float64]

METHODS: dict[str, tuple[str, dict[str, Any]] | None] = {
    "untouched": None,
    "FRGNN, one class": ("frgnn", {}),
    "neural controller, one class": ("controller", {"controller": "neural"}),
    "auto (ours)": ("auto", {}),
}


@dataclass(frozen=True)
class SceneSettings:
    """Limits of a scene."""

    same_shift: float = 0.01  # a change of CMD, as a share of the untouched one, that is none
    same_silhouette: float = 0.01  # a change of the silhouette that is none
    nodes: int = 2000  # shown at most; t-SNE's time grows with them
    start_spread: float = 1e-4  # of t-SNE's first layout


SETTINGS = SceneSettings()


@dataclass(frozen=True, eq=False)
class Panel:
    """One method: embeddings and layout of the nodes shown, and its accuracy on all test nodes."""

    title: str
    embedding: Array
    layout: Array
    accuracy: float


@dataclass(frozen=True, eq=False)
class Scene:
    panels: list[Panel]
    train: NDArray[np.bool_]
    labels: NDArray[np.int64]
    name: str


def _make_scene(spec: RunSpec, seed: int) -> Scene:
    """Embeddings of training and test nodes under each method, laid out from the same start."""
    prepared = prepare(spec, seed)
    task = prepared.task
    shown = _shown(task.train_mask.numpy(), task.test_mask.numpy(), seed)
    start: Array | None = None
    panels = []
    for title, method in METHODS.items():
        features = task.x if method is None else _rewritten(*method, spec, seed, prepared)
        found = classified_embedding(prepared.frozen, replace(task, x=features))
        right = found.logits.argmax(dim=-1)[task.test_mask] == task.y[task.test_mask]
        embedding = _standardised(found.nodes.numpy()[shown].astype(np.float64))
        start = _start(embedding) if start is None else start
        layout = _layout(embedding, start, seed)
        panels.append(Panel(title, embedding, layout, 100.0 * float(right.float().mean())))
    return Scene(panels, task.train_mask.numpy()[shown], task.y.numpy()[shown], task.name)


def _rewritten(name: str, options: dict[str, Any], spec: RunSpec, seed: int, prepared: Any) -> Any:
    labelled, validation = label_budget(prepared.task, spec.labels, seed)
    task = prepared.task.without_test_labels()
    method = find_method(name, options)
    features = method.fit_predict(prepared.frozen, task, labelled, validation, seed).features
    return prepared.task.x if features is None else features


def _shown(train: NDArray[np.bool_], test: NDArray[np.bool_], seed: int) -> NDArray[np.int64]:
    rest = np.flatnonzero(test)
    room = max(SETTINGS.nodes - int(train.sum()), 100)
    if len(rest) > room:
        rest = np.sort(np.random.default_rng(seed).choice(rest, room, replace=False))
    return np.concatenate([np.flatnonzero(train), rest])


def _standardised(rows: Array) -> Array:
    """Centred, and scaled by one number: anchors of different strength must not look like
    distance."""
    centred = rows - rows.mean(axis=0)
    return centred / max(float(centred.std()), 1e-12)


def _start(embedding: Array) -> Array:
    _, _, directions = np.linalg.svd(embedding, full_matrices=False)
    flat = embedding @ directions[:2].T
    return SETTINGS.start_spread * flat / flat.std(axis=0)


def _layout(embedding: Array, start: Array, seed: int) -> Array:
    from sklearn.manifold import TSNE

    perplexity = min(30.0, (len(embedding) - 1) / 3)
    return TSNE(init=start, perplexity=perplexity, random_state=seed).fit_transform(
        embedding.astype(np.float32)
    )


# ---- figure 3


def draw_shift(spec: RunSpec, seed: int, out: Path) -> Drawn:
    """Training against test nodes."""
    scene = _make_scene(spec, seed)
    numbers = {panel.title: shift_numbers(panel, scene) for panel in scene.panels}
    untouched, *others = numbers.values()
    for found in others:
        same = SETTINGS.same_shift * untouched["cmd"]
        found["reads"] = reading(untouched["cmd"] - found["cmd"], same, "nearer")

    def paint(place: Any, panel: Panel) -> str:
        edge = {"edgecolors": "#ffffff", "linewidths": 0.4}
        test, train = panel.layout[~scene.train], panel.layout[scene.train]
        _dots(place, test, (TEST, "o"), "test nodes", size=7, alpha=0.55)
        _dots(place, train, (TRAIN, "^"), "training nodes", size=18, alpha=0.95, **edge)
        return f"train–test CMD {numbers[panel.title]['cmd']:.3f}"

    question = "are test nodes where the training nodes are?"
    return _drawn(3, question, scene, numbers, paint, 2, out)


def shift_numbers(panel: Panel, scene: Scene) -> dict[str, Any]:
    """Central moment discrepancy between training and test nodes in the embedding space, its
    columns scaled to their ranges; smaller is nearer."""
    spread = np.maximum(np.ptp(panel.embedding, axis=0), 1e-12)
    scaled = torch.from_numpy(panel.embedding / spread)
    train = torch.from_numpy(scene.train)
    cmd = central_moment_discrepancy(scaled[train], scaled[~train])
    return {"cmd": float(cmd), "accuracy": panel.accuracy}


# ---- figure 4


def draw_classes(spec: RunSpec, seed: int, out: Path) -> Drawn:
    """The nodes of figure 3 by class."""
    scene = _make_scene(spec, seed)
    numbers = {panel.title: class_numbers(panel, scene) for panel in scene.panels}
    untouched, *others = numbers.values()
    for found in others:
        gained = found["silhouette"] - untouched["silhouette"]
        found["reads"] = reading(gained, SETTINGS.same_silhouette, "tighter")
    classes = np.unique(scene.labels)

    def paint(place: Any, panel: Panel) -> str:
        for label in classes:
            look = CLASSES[int(label) % len(CLASSES)]
            nodes = panel.layout[scene.labels == label]
            _dots(place, nodes, look, f"class {label}", size=11, alpha=0.8)
        return f"silhouette {numbers[panel.title]['silhouette']:+.3f}"

    question = "do classes hold together?"
    return _drawn(4, question, scene, numbers, paint, min(10, len(classes)), out)


def class_numbers(panel: Panel, scene: Scene) -> dict[str, Any]:
    """Silhouette of the true classes in the embedding space, of all nodes shown and class by
    class."""
    from sklearn.metrics import silhouette_samples

    values = silhouette_samples(panel.embedding, scene.labels)
    by_class = {str(c): float(values[scene.labels == c].mean()) for c in np.unique(scene.labels)}
    return {"silhouette": float(values.mean()), "by_class": by_class, "accuracy": panel.accuracy}


# ---- shared


def _drawn(
    number: int,
    question: str,
    scene: Scene,
    numbers: dict[str, dict[str, Any]],
    paint: Callable[[Any, Panel], str],
    columns: int,
    out: Path,
) -> Drawn:
    """A panel a method; `paint` draws one and says what was measured there."""
    with canvas(len(scene.panels)) as (figure, axes):
        for place, panel in zip(axes, scene.panels, strict=True):
            measured = paint(place, panel)
            _titled(place, panel, measured, numbers[panel.title].get("reads", ""))
        _legend(figure, axes[0], columns)
        heading(figure, f"{scene.name}: {question}")
        files = save(figure, out, f"figure-{number}")
    return Drawn(files, {"figure": number, "dataset": scene.name, "panels": numbers})


def reading(better: float, same: float, wanted: str) -> str:
    """Whether a number agrees with the paper's caption."""
    if abs(better) <= same:
        return "no change beside the untouched model"
    if better > 0:
        return f"{wanted} than the untouched model"
    return f"NOT {wanted} than the untouched model: it points the other way"


def _dots(
    axes: Any, points: Array, look: tuple[str, str], label: str, *, size: float, **options: Any
) -> None:
    colour, marker = look
    line = {"linewidths": 0, "rasterized": True, **options}
    axes.scatter(*points.T, s=size, c=colour, marker=marker, label=label, **line)


def _titled(axes: Any, panel: Panel, text: str, said: str) -> None:
    hide_axes(axes)
    axes.set_title(f"{panel.title}\n\n", color=INK)
    words = f"{text} · accuracy {panel.accuracy:.1f} %\n{said}"
    axes.text(0, 1.02, words, transform=axes.transAxes, fontsize=8.5, color=SOFT)


def _legend(figure: Any, axes: Any, columns: int) -> None:
    handles, labels = axes.get_legend_handles_labels()
    legend = figure.legend(
        handles, labels, loc="outside lower center", ncols=columns, markerscale=1.8, fontsize=9
    )
    for handle in legend.legend_handles:
        handle.set_alpha(1)
