"""The candidates: every way of rewriting the features that the guard may choose from, and their
making."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass

from torch import Tensor

from graphkeel.core.errors import ConfigError
from graphkeel.reconstruct.candidates.diffuse import Diffusion, diffuse
from graphkeel.reconstruct.candidates.prototype import SIZED, Posteriors, Prototype
from graphkeel.reconstruct.candidates.replace import replace
from graphkeel.reconstruct.candidates.steer import steer
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


@dataclass(frozen=True)
class Steered:
    """A prototype's posterior, held against message passing by feedback."""

    recipe: Prototype

    @property
    def name(self) -> str:
        return f"steered({self.recipe.name})"


Candidate = Replace | Diffuse | Prototype | Steered


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
# What labels say of the nodes near them; so many labels need no help from class means.
NEARBY = (Prototype("model", with_labels=True, smooth=True), Prototype("corrected", smooth=True))
MANY_LABELS = 300


def joined(transfer: Sequence[Prototype]) -> tuple[Prototype, ...]:
    """Transfer candidates with labels.

    Args:
        transfer: the same without.
    """
    weighted = (dataclasses.replace(one, label_weight=LABEL_WEIGHT) for one in transfer)
    return (*weighted, *NEARBY)


def presumed(transfer: Sequence[Prototype], n_labels: int) -> tuple[Prototype, ...]:
    """Whose mean is taken before any label judges.

    Args:
        transfer: the candidates that need no label.
        n_labels: how many labels there are.
    """
    if n_labels >= MANY_LABELS:
        return NEARBY
    return joined(transfer) if n_labels else tuple(transfer)


# Learned from labels. Where features are many, the other candidates see them through few
# directions; these see all. Where they are few, labels like those of a biased training set teach
# too little: on Photo these candidates then cost more than a point.
PROBES: tuple[Candidate, ...] = (
    Prototype("probe"),
    Prototype("probe", smooth=True),
    Prototype("plain-probe", smooth=True),
    Steered(Prototype("probe")),
)
# Where neighbours differ in class: evidence that does not lean on their being alike, and features
# that message passing cannot blur.
HETEROPHILOUS: tuple[Candidate, ...] = (Prototype("probe"), Steered(Prototype("probe")))
# A second round: every recipe from the nodes that the leaders' mean is surest of.
TAUGHT_SHARES = (0.1, 0.3)


def taught(leaders: Sequence[Candidate], candidates: Sequence[Candidate]) -> list[Candidate]:
    """The candidates of the second round; none where the leaders are no prototypes.

    Args:
        leaders: of the first round.
        candidates: of the first round.
    """
    teachers = tuple(_prototypes(leaders))
    return [
        dataclasses.replace(one, confident=share, teachers=teachers)
        for share in TAUGHT_SHARES
        for one in _prototypes(candidates)
        if teachers
    ]


def sized(leaders: Sequence[Candidate], candidates: Sequence[Candidate]) -> list[Candidate]:
    """The prototypes once more, each giving the classes as many nodes as the leaders' mean does.

    Args:
        leaders: of the rounds before.
        candidates: of the rounds before.
    """
    models = tuple(_prototypes(leaders))
    return [
        dataclasses.replace(one, sized_as=models)
        for one in _prototypes(candidates)
        if models and not one.shares
    ]


def with_class_shares(candidates: Sequence[Candidate]) -> list[Candidate]:
    """The prototypes among them once more, each rescaled to the class shares.

    Args:
        candidates: of any kind.
    """
    return [dataclasses.replace(one, shares=True) for one in _prototypes(candidates)]


def _prototypes(candidates: Sequence[Candidate]) -> list[Prototype]:
    return [one for one in candidates if isinstance(one, Prototype)]


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
        class_shares: for prototypes with `shares`, shape (n_classes,).
    """

    def __init__(
        self, context: Context, labels: Labels, class_shares: Tensor | None = None
    ) -> None:
        self.context = context
        self.labels = labels
        self.posteriors = Posteriors(context, labels, class_shares)

    def features(self, members: Sequence[Candidate]) -> Tensor:
        """New features for every node; several prototypes are averaged, which averages their
        posteriors; so are several that are steered.

        Args:
            members: the candidates; several are averaged, none means the untouched features.
        """
        if not members:
            return self.context.x
        first = members[0]
        if isinstance(first, Steered):
            recipes = [one.recipe for one in members if isinstance(one, Steered)]
            return steer(self.context, self.posteriors.mean(recipes))
        posterior = self.posterior(members)
        if posterior is not None:
            return self.context.blend(posterior)
        if isinstance(first, Diffuse):
            return self.diffusion(first).features
        assert isinstance(first, Replace)
        return self._replaced(first.strength, first.only)

    def posterior(self, members: Sequence[Candidate]) -> Tensor | None:
        """The mean class probabilities of prototypes, shape (N, n_classes); None for others.

        Args:
            members: the candidates.
        """
        recipes = [one for one in members if isinstance(one, Prototype)]
        return self.posteriors.mean(recipes) if recipes else None

    def scores(self, members: Sequence[Candidate]) -> Tensor:
        """The logits that the frozen model then gives every node, shape (N, n_classes).

        Args:
            members: the candidates; several are averaged, none means the untouched features.
        """
        if not members:
            return self.context.logits
        posterior = self.posterior(members)
        if posterior is not None:
            return self.context.logits_of_blend(posterior)
        return self.context.logits_for(self.features(members))

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
