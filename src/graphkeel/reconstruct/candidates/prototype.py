"""`prototype`: every node's feature becomes a blend of class anchors, Σ_c p_v(c)·h*_c.

The frozen head answers an anchor with its class, so the model's output on the blend is the
(propagated) posterior p. What p should be is the whole question. A `Prototype` composes it of steps
that `docs/research.md` compares: evidence, joined with where labels are in the graph, refined once
on all nodes, smoothed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from torch import Tensor

from graphkeel.core.errors import ConfigError
from graphkeel.reconstruct.candidates.evidence import (
    balanced,
    both,
    cosine_evidence,
    discriminant_evidence,
    label_evidence,
)
from graphkeel.reconstruct.context import Context
from graphkeel.reconstruct.labels import Labels

NEAR = (0.1, 20)  # teleport and steps of label evidence to join with another source
FAR = (0.02, 50)  # of label evidence that stands alone, so it has to reach further

MEASURES = ("cosine", "smoothed-cosine", "discriminant", "smoothed-discriminant")
EVIDENCE = ("model", *MEASURES, "labels", "balanced-labels")


@dataclass(frozen=True)
class Prototype:
    """A recipe for p.

    Attributes:
        evidence: where p starts: `model` (its own probabilities); `cosine` or `discriminant`
            (nearest class mean, LDA; `smoothed-…` on features mixed with the neighbourhood's);
            `labels`, `balanced-labels` (labels spread).
        with_labels: join with the labels spread over the graph.
        refine: with p as memberships, class means of *all* nodes give p anew, by one of the feature
            evidences.
        smooth: diffuse p over the graph at the end.
    """

    evidence: str
    with_labels: bool = False
    refine: str | None = None
    smooth: bool = False

    def __post_init__(self) -> None:
        if self.evidence not in EVIDENCE:
            raise ConfigError(
                f"the evidence must be one of {', '.join(EVIDENCE)}", got=repr(self.evidence)
            )
        if self.refine is not None and self.refine not in MEASURES:
            raise ConfigError(
                f"refine must be None or one of {', '.join(MEASURES)}", got=repr(self.refine)
            )

    @property
    def name(self) -> str:
        parts = [self.evidence + ("+labels" if self.with_labels else "")]
        parts += [self.refine] if self.refine else []
        parts += ["smooth"] if self.smooth else []
        return ">".join(parts)


class Posteriors:
    """The posteriors of prototypes for one set of labels; what two recipes share is computed
    once."""

    def __init__(self, context: Context, labels: Labels) -> None:
        self.context = context
        self.labels = labels
        self._known: dict[str, Tensor] = {}

    def __call__(self, prototype: Prototype) -> Tensor:
        """p of every node, rows summing to one: shape (N, n_classes)."""
        clamp = self.labels.clamp
        posterior = clamp(self._start(prototype.evidence, prototype.with_labels))
        if prototype.refine is not None:
            posterior = clamp(self._refined(prototype.refine, posterior))
        if prototype.smooth:
            posterior = self.context.propagator.smooth(posterior)
        return posterior / posterior.sum(dim=1, keepdim=True).clamp_min(1e-12)

    def _start(self, evidence: str, with_labels: bool) -> Tensor:
        if with_labels:
            return self._once(
                f"{evidence}+",
                lambda: both(self._evidence(evidence), self._evidence("near-labels")),
            )
        return self._evidence(evidence)

    def _evidence(self, name: str) -> Tensor:
        propagator = self.context.propagator
        labels = self.labels
        makers: dict[str, Callable[[], Tensor]] = {
            "model": lambda: self.context.beliefs,
            "near-labels": lambda: label_evidence(propagator, labels, *NEAR),
            "labels": lambda: label_evidence(propagator, labels, *FAR),
            "balanced-labels": lambda: balanced(self._evidence("labels")),
        }
        return self._once(name, makers.get(name) or (lambda: self._from_labelled(name)))

    def _from_labelled(self, kind: str) -> Tensor:
        features, measure = self._measure(kind)
        return measure(features, features[self.labels.nodes], self.labels.one_hot())

    def _refined(self, kind: str, memberships: Tensor) -> Tensor:
        features, measure = self._measure(kind)
        return measure(features, features, memberships)

    def _measure(self, kind: str) -> tuple[Tensor, Callable[[Tensor, Tensor, Tensor], Tensor]]:
        context = self.context
        if kind == "cosine":
            return context.directions, cosine_evidence
        if kind == "smoothed-cosine":
            return context.smoothed_directions, cosine_evidence
        if kind == "discriminant":
            return context.reduced, discriminant_evidence
        return context.smoothed, discriminant_evidence

    def _once(self, key: str, make: Callable[[], Tensor]) -> Tensor:
        if key not in self._known:
            self._known[key] = make()
        return self._known[key]
