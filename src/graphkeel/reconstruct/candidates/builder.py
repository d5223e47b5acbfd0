"""The candidates: every way of rewriting the features that the guard may choose from, and their
making."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from graphkeel.core.errors import ConfigError
from graphkeel.reconstruct.candidates.diffuse import Diffusion, diffuse
from graphkeel.reconstruct.candidates.prototype import SIZED, Posteriors, Prototype
from graphkeel.reconstruct.candidates.replace import replace
from graphkeel.reconstruct.context import Context
from graphkeel.reconstruct.labels import Labels


@dataclass(frozen=True)
class Replace:
    """Anchors of strength m (None: typical) at the labelled nodes of one class, or of all."""

    strength: float | None = None
    only: int | None = None

    @property
    def name(self) -> str:
        where = "all" if self.only is None else f"class {self.only}"
        return f"replace({where}, m={_show(self.strength)})"


@dataclass(frozen=True)
class Diffuse:
    """The same for all classes, then diffused with weight alpha."""

    alpha: float = 0.9
    strength: float | None = None

    @property
    def name(self) -> str:
        return f"diffuse(alpha={self.alpha:g}, m={_show(self.strength)})"


Candidate = Replace | Diffuse | Prototype


def _show(strength: float | None) -> str:
    return "typical" if strength is None else f"{strength:g}"


REPLACE = tuple(Replace(strength) for strength in (1.0, 5.0, 20.0, None))
DIFFUSE = tuple(
    Diffuse(alpha, strength) for alpha in (0.5, 0.8, 0.9, 0.95) for strength in (5.0, None)
)
# Found by the ablation in docs/research.md; a larger grid is not better, it only makes the choice
# noisier.
PROTOTYPE: tuple[Prototype, ...] = (
    *(Prototype(kind, with_labels=True) for kind in ("model", "cosine", "discriminant")),
    Prototype("discriminant"),
    *(
        Prototype(kind, with_labels=True, refine="cosine", smooth=True)
        for kind in ("smoothed-cosine", "discriminant", "smoothed-discriminant")
    ),
    Prototype("smoothed-cosine", with_labels=True, refine="discriminant"),
    Prototype("labels"),
    Prototype("balanced-labels"),
    *(
        Prototype(start, refine=kind, smooth=True)
        for start in ("labels", "balanced-labels")
        for kind in ("cosine", "discriminant", "smoothed-discriminant")
    ),
)
# What needs no label: the model's own probabilities, alone and as memberships of classes on this
# graph, and the classes of the graph it was trained on.
TRANSFER: tuple[Prototype, ...] = (
    Prototype("model", smooth=True),
    Prototype("model", refine="smoothed-discriminant", smooth=True),
    Prototype("model", refine=SIZED, smooth=True),
    Prototype("source", smooth=True),
)
WITHOUT_SOURCE = TRANSFER[:3]
# With labels of the graph that is asked about, each of them counting for many nodes: their mean
# needs no choosing, and is what the labels' own favourites have to beat.
LABEL_WEIGHT = 20.0


def joined(transfer: Sequence[Prototype]) -> tuple[Prototype, ...]:
    """Transfer candidates with labels.

    Args:
        transfer: the same without.
    """
    weighted = (dataclasses.replace(one, label_weight=LABEL_WEIGHT) for one in transfer)
    return (*weighted, Prototype("model", with_labels=True, smooth=True))


# Where features are many, the other candidates see them through few directions; these see all.
PROBES: tuple[Prototype, ...] = (
    Prototype("probe", with_labels=True),
    Prototype("probe", smooth=True),
    Prototype("probe", with_labels=True, smooth=True),
)
AUTO: tuple[Candidate, ...] = (Replace(), Diffuse(0.9), *PROTOTYPE)

GRIDS: dict[str, tuple[Candidate, ...]] = {
    "replace": REPLACE,
    "diffuse": DIFFUSE,
    "prototype": PROTOTYPE,
    "auto": AUTO,
}


def grid(name: str) -> tuple[Candidate, ...]:
    """The candidates of a method.

    Args:
        name: one of `GRIDS`.
    """
    if name not in GRIDS:
        raise ConfigError(f"the method must be one of {', '.join(GRIDS)}", got=repr(name))
    return GRIDS[name]


class Builder:
    """Makes the features of candidates for one set of labels.

    Args:
        context: the model on its graph.
        labels: the labels to use.
    """

    def __init__(self, context: Context, labels: Labels) -> None:
        self.context = context
        self.labels = labels
        self.posteriors = Posteriors(context, labels)

    def features(self, members: Sequence[Candidate]) -> Tensor:
        """New features for every node; several prototypes are averaged, which averages their
        posteriors.

        Args:
            members: the candidates; several are averaged, none means the untouched features.
        """
        if not members:
            return self.context.x
        posterior = self.posterior(members)
        if posterior is not None:
            return self.context.blend(posterior)
        (one,) = members
        if isinstance(one, Diffuse):
            return self.diffusion(one).features
        assert isinstance(one, Replace)
        return self._replaced(one.strength, one.only)

    def posterior(self, members: Sequence[Candidate]) -> Tensor | None:
        """The mean class probabilities of prototypes, shape (N, n_classes); None for others.

        Args:
            members: the candidates.
        """
        found = [self.posteriors(one) for one in members if isinstance(one, Prototype)]
        return torch.stack(found).mean(dim=0) if found else None

    def scores(self, members: Sequence[Candidate]) -> Tensor:
        """The logits that the frozen model then gives every node, shape (N, n_classes).

        Args:
            members: the candidates; several are averaged, none means the untouched features.
        """
        return self.context.logits_for(self.features(members)) if members else self.context.logits

    def predict(self, members: Sequence[Candidate]) -> Tensor:
        """The class that the frozen model then gives every node.

        Args:
            members: the candidates; several are averaged, none means the untouched features.
        """
        return self.scores(members).argmax(dim=1)

    def diffusion(self, candidate: Diffuse) -> Diffusion:
        """The diffusion with its Lyapunov values.

        Args:
            candidate: which diffusion.
        """
        return diffuse(self._replaced(candidate.strength), self.context.propagator, candidate.alpha)

    def _replaced(self, strength: float | None, only: int | None = None) -> Tensor:
        return replace(self.context.x, self.labels, self.context.anchors(strength).features, only)
