"""`prototype`: every node's feature becomes a blend of class anchors, Σ_c p_v(c)·h*_c.

The frozen head answers an anchor with its class, so the model's output on the blend is the
(propagated) posterior p. What p should be is the whole question. A `Prototype` composes it of steps
that `docs/research.md` compares: evidence, joined with where labels are in the graph, refined once
on all nodes, smoothed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from graphkeel.core.errors import ConfigError
from graphkeel.reconstruct.candidates.evidence import (
    balanced,
    both,
    corrected_evidence,
    cosine_evidence,
    discriminant_evidence,
    gaussian_evidence,
    label_evidence,
    sized_discriminant_evidence,
    with_shares,
)
from graphkeel.reconstruct.candidates.ridge import ridge_evidence, stacked_evidence
from graphkeel.reconstruct.context import Context
from graphkeel.reconstruct.labels import Labels

NEAR = (0.1, 20)  # teleport and steps of label evidence to join with another source
FAR = (0.02, 50)  # of label evidence that stands alone, so it has to reach further

SIZED = "smoothed-sized-discriminant"
MEASURES = ("cosine", "smoothed-cosine", "discriminant", "smoothed-discriminant", SIZED)
LEARNED = ("probe", "plain-probe")
EVIDENCE = ("model", "corrected", "source", *LEARNED, *MEASURES, "labels", "balanced-labels")
MOST_KEPT = 1 << 21  # numbers in a posterior up to which it is kept for the next average
MOST_CLAIMED = 1000  # nodes that may stand for the classes without a label

Measure = Callable[[Tensor, Tensor, Tensor], Tensor]


@dataclass(frozen=True)
class Prototype:
    """A recipe for p.

    Attributes:
        evidence: where p starts: `model` (its own probabilities); `corrected` (these without the
            errors that labels show, there and nearby); `source` (the classes of the
            graph it was trained on, joined with its own probabilities); `cosine` or `discriminant`
            (nearest class mean, LDA; `smoothed-…` on features mixed with the neighbourhood's;
            `…sized…` with classes as likely as they are large); `probe` (ridge regressions on
            several views of all features, stacked; `plain-probe`: one, on features as they are);
            `labels`, `balanced-labels` (labels spread).
        with_labels: join with the labels spread over the graph.
        refine: with p as memberships, class means of *all* nodes give p anew, by one of the feature
            evidences.
        smooth: diffuse p over the graph at the end.
        label_weight: how many nodes a labelled one counts for, where p is refined and smoothed.
        confident: a round of self-training: this share of each class, the nodes surest of it, count
            as labelled, and p is made anew.
        teachers: whose mean says how sure a node is; the recipe itself where there are none.
        shares: rescale p at the end, so that the classes hold the shares the builder was given.
        sized_as: rescale p at the end, so that the classes hold as many nodes as these give them.
    """

    evidence: str
    with_labels: bool = False
    refine: str | None = None
    smooth: bool = False
    confident: float | None = None
    label_weight: float = 1.0
    teachers: tuple[Prototype, ...] = ()
    shares: bool = False
    sized_as: tuple[Prototype, ...] = ()

    def __post_init__(self) -> None:
        if self.evidence not in EVIDENCE:
            raise ConfigError(
                f"the evidence must be one of {', '.join(EVIDENCE)}", got=repr(self.evidence)
            )
        if self.refine is not None and self.refine not in MEASURES:
            raise ConfigError(
                f"refine must be None or one of {', '.join(MEASURES)}", got=repr(self.refine)
            )
        if self.confident is not None and not 0.0 < self.confident <= 1.0:
            raise ConfigError("confident must be None or lie in (0, 1]", got=self.confident)

    @property
    def name(self) -> str:
        parts = [self.evidence + ("+labels" if self.with_labels else "")]
        parts += [self.refine] if self.refine else []
        parts += ["smooth"] if self.smooth else []
        taught = "taught" if self.teachers else "again"
        parts += [f"{taught}({self.confident:g})"] if self.confident else []
        parts += [f"labels×{self.label_weight:g}"] if self.label_weight != 1.0 else []
        parts += ["shares"] if self.shares else []
        parts += ["sized"] if self.sized_as else []
        return ">".join(parts)


class Posteriors:
    """The posteriors of prototypes for one set of labels.

    Reads the context and the labels; keeps what two recipes share. A class without a label keeps
    the model's own evidence: its nodes are those the model gives to it.

    Args:
        context: the model on its graph.
        labels: the labels to use.
        class_shares: of the classes, for recipes that ask for them, shape (n_classes,).
    """

    def __init__(
        self, context: Context, labels: Labels, class_shares: Tensor | None = None
    ) -> None:
        self.context = context
        self.labels = labels
        self.class_shares = class_shares
        self._known: dict[str, Tensor] = {}
        self._made: dict[Prototype, Tensor] = {}
        self._pupils: dict[tuple[tuple[Prototype, ...], float], Posteriors] = {}
        self._sizes: dict[tuple[Prototype, ...], Tensor] = {}

    def __call__(self, prototype: Prototype) -> Tensor:
        """p of every node, rows summing to one: shape (N, n_classes)."""
        if prototype not in self._made:
            made = self._make(prototype)
            if made.numel() > MOST_KEPT:
                return made
            self._made[prototype] = made
        return self._made[prototype]

    def _make(self, prototype: Prototype) -> Tensor:
        if prototype.sized_as:
            posterior = self(replace(prototype, sized_as=()))
            return with_shares(posterior, self._shares_of(prototype.sized_as))
        if prototype.shares:
            posterior = self(replace(prototype, shares=False))
            shares = self.class_shares
            return posterior if shares is None else with_shares(posterior, shares)
        if prototype.confident is not None:
            once = replace(prototype, confident=None, teachers=())
            return self._pupil(prototype.teachers or (once,), prototype.confident)(once)
        weight = prototype.label_weight
        start = self._start(prototype.evidence, prototype.with_labels)
        posterior = self.labels.clamp(start, weight)
        if prototype.refine is not None:
            posterior = self.labels.clamp(self._refined(prototype.refine, posterior), weight)
        if prototype.smooth:
            posterior = self.context.propagator.smooth(posterior)
        return posterior / posterior.sum(dim=1, keepdim=True).clamp_min(1e-12)

    def mean(self, prototypes: Sequence[Prototype]) -> Tensor:
        """The mean of their posteriors, shape (N, n_classes). What was learned from all features
        and what was not weigh the same, however many recipes there are of each.

        Args:
            prototypes: at least one.
        """
        learned = [self(one) for one in prototypes if one.evidence in LEARNED]
        others = [self(one) for one in prototypes if one.evidence not in LEARNED]
        kinds = [torch.stack(kind).mean(dim=0) for kind in (learned, others) if kind]
        return torch.stack(kinds).mean(dim=0)

    def _shares_of(self, prototypes: tuple[Prototype, ...]) -> Tensor:
        """The share of nodes that their mean gives each class; one node more, so that none is
        ruled out."""
        if prototypes not in self._sizes:
            given = self.mean(prototypes).argmax(dim=1)
            counts = torch.bincount(given, minlength=self.labels.n_classes) + 1.0
            self._sizes[prototypes] = counts / counts.sum()
        return self._sizes[prototypes]

    def _pupil(self, teachers: tuple[Prototype, ...], share: float) -> Posteriors:
        """The same for the labels and the nodes that the teachers' mean is surest of."""
        if (teachers, share) not in self._pupils:
            labels = self.labels.with_confident(self.mean(teachers), share)
            self._pupils[teachers, share] = Posteriors(self.context, labels)
        return self._pupils[teachers, share]

    def _start(self, evidence: str, with_labels: bool) -> Tensor:
        if with_labels:
            return self._once(
                f"{evidence}+",
                lambda: both(self._evidence(evidence), self._evidence("near-labels")),
            )
        return self._evidence(evidence)

    def _evidence(self, name: str) -> Tensor:
        makers: dict[str, Callable[[], Tensor]] = {
            "model": lambda: self.context.beliefs,
            "corrected": self._from_errors,
            "source": self._from_source,
            "probe": lambda: stacked_evidence(self.context.views, *self._members()),
            "plain-probe": lambda: self._from_probe(self.context.x),
            "near-labels": lambda: self._from_near_labels(*NEAR),
            "labels": lambda: self._from_near_labels(*FAR),
            "balanced-labels": lambda: balanced(self._evidence("labels")),
        }
        return self._once(name, makers.get(name) or (lambda: self._from_labelled(name)))

    def _from_errors(self) -> Tensor:
        return corrected_evidence(self.context.propagator, self.context.beliefs, self.labels)

    def _from_source(self) -> Tensor:
        """What the source's classes say of this graph's smoothed features, and the model itself."""
        source = self.context.source
        if source is None:
            return self.context.beliefs
        features = source.smoothed(self.context.x, self.context.propagator)
        return both(gaussian_evidence(features, source.statistics), self.context.beliefs)

    def _from_probe(self, features: Tensor) -> Tensor:
        nodes, memberships = self._members()
        return ridge_evidence(features, features[nodes], memberships)

    def _from_near_labels(self, teleport: float, steps: int) -> Tensor:
        near = label_evidence(self.context.propagator, self.labels, teleport, steps)
        missing = self._missing
        if not bool(missing.any()):
            return near
        own = self.context.beliefs * missing
        return near * ~missing * (1.0 - own.sum(dim=1, keepdim=True)) + own

    @property
    def _missing(self) -> Tensor:
        """Classes that no label is of, bool, shape (n_classes,)."""
        return torch.bincount(self.labels.classes, minlength=self.labels.n_classes) == 0

    def _members(self) -> tuple[Tensor, Tensor]:
        """Ids and memberships of who stands for the classes: the labels', else the model's."""
        memberships = self.labels.one_hot()
        missing = self._missing
        if not bool(missing.any()):
            return self.labels.nodes, memberships
        beliefs = self.context.beliefs
        claimed = (
            beliefs * missing * torch.nn.functional.one_hot(beliefs.argmax(dim=1), beliefs.shape[1])
        )
        nodes = claimed.sum(dim=1).topk(min(MOST_CLAIMED, len(claimed))).indices
        return torch.cat([self.labels.nodes, nodes]), torch.cat([memberships, claimed[nodes]])

    def _from_labelled(self, kind: str) -> Tensor:
        features, measure = self._measure(kind)
        nodes, memberships = self._members()
        return measure(features, features[nodes], memberships)

    def _refined(self, kind: str, memberships: Tensor) -> Tensor:
        features, measure = self._measure(kind)
        return measure(features, features, memberships)

    def _measure(self, kind: str) -> tuple[Tensor, Measure]:
        context = self.context
        if kind == "cosine":
            return context.directions, cosine_evidence
        if kind == "smoothed-cosine":
            return context.smoothed_directions, cosine_evidence
        if kind == "discriminant":
            return context.reduced, discriminant_evidence
        if kind == SIZED:
            return context.smoothed, sized_discriminant_evidence
        return context.smoothed, discriminant_evidence

    def _once(self, key: str, make: Callable[[], Tensor]) -> Tensor:
        if key not in self._known:
            self._known[key] = make()
        return self._known[key]
