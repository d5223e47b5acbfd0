"""`method="replace"` and `method="diffuse"`: class anchors at labelled nodes, as the paper has it,
and spread over the graph. What held-back labels prefer of a few settings is taken."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from graphkeel.graph.labels import Labels
from graphkeel.graph.propagate.diffusion import diffuse
from graphkeel.graph.propagate.propagator import Propagator
from graphkeel.reconstruct.context import Context
from graphkeel.reconstruct.decide import Known


def replace(x: Tensor, labels: Labels, anchors: Tensor, only: int | None = None) -> Tensor:
    """r(h*, X): a copy of x whose labelled rows are anchors.

    Args:
        x: features, shape (N, d).
        labels: which nodes are replaced, and by which anchor.
        anchors: h*_c, shape (n_classes, d).
        only: replace this class alone, as the paper does; all classes when None.
    """
    nodes = labels.nodes
    classes = labels.classes
    if only is not None:
        nodes = nodes[classes == only]
        classes = classes[classes == only]
    replaced = x.clone()
    replaced[nodes] = anchors[classes].to(x.dtype)
    return replaced


@dataclass(frozen=True)
class Setting:
    """Anchors of strength m (None: typical), diffused with weight alpha (None: not at all)."""

    strength: float | None = None
    alpha: float | None = None

    def __str__(self) -> str:
        strength = "typical" if self.strength is None else f"{self.strength:g}"
        name = "replace(" if self.alpha is None else f"diffuse(alpha={self.alpha:g}, "
        return f"{name}m={strength})"


def settings_of(method: str) -> tuple[Setting, ...]:
    """The settings that a method tries."""
    if method == "replace":
        return tuple(Setting(strength) for strength in (1.0, 5.0, 20.0, None))
    alphas = (0.5, 0.8, 0.9, 0.95)
    return tuple(Setting(strength, alpha) for alpha in alphas for strength in (5.0, None))


@dataclass(frozen=True, eq=False)
class Tried:
    """The setting taken, its features, and its scores at labels that it was made without."""

    setting: Setting
    features: Tensor
    held: NDArray[np.float32]


def best_setting(context: Context, known: Known, method: str, folds: int, seed: int) -> Tried:
    """The setting that is right at most judging labels; of several, the one that changes least."""
    sets, judged_by = known.sets(folds, seed)
    served = [_labels(sets.nodes[used], sets.classes[used], known) for used in sets.used]
    judges = known.nodes[known.judging]
    classes = known.classes[known.judging]
    untouched = context.logits.argmax(dim=1)
    best: tuple[int, int] | None = None
    taken = None
    for setting in settings_of(method):
        answers = [context.logits_for(features_of(context, part, setting)) for part in served]
        held = np.stack([answer.numpy() for answer in answers], axis=1)[judges, judged_by]
        right = int((held.argmax(axis=1) == classes).sum())
        changed = sum(int((answer.argmax(dim=1) != untouched).sum()) for answer in answers)
        if best is None or (right, -changed) > best:
            best = (right, -changed)
            taken = (setting, held)
    assert taken is not None
    setting, held = taken
    return Tried(setting, features_of(context, served[-1], setting), held)


def features_of(context: Context, labels: Labels, setting: Setting) -> Tensor:
    """The features of a setting."""
    written = replace(context.x, labels, context.anchors(setting.strength).features)
    if setting.alpha is None:
        return written
    return diffuse(written, Propagator.of_matrix(context.scene.matrix), setting.alpha).features


def _labels(nodes: NDArray[np.int64], classes: NDArray[np.int64], known: Known) -> Labels:
    return Labels(torch.from_numpy(nodes), torch.from_numpy(classes), known.n_classes)
