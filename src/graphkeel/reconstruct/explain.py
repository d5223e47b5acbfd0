"""Explanations: the share of each source of evidence for the whole graph, and the terms of the sum
for one node."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphkeel.graph.label_sets import Known
from graphkeel.graph.labels import checked_node
from graphkeel.graph.propagate.view import Layers
from graphkeel.reconstruct.decide import Decision
from graphkeel.reconstruct.scene import Scene


@dataclass(frozen=True)
class Source:
    """A source of evidence.

    Attributes:
        name: as in the pool.
        kind: its group: model, labels, features or self-training.
        weight: w_k.
        share: of all sources' part in the margin between the decided class and the next one, on
            average over evenly spaced nodes; a source that speaks against the decided classes has
            none.
    """

    name: str
    kind: str
    weight: float
    share: float


@dataclass(frozen=True)
class Term:
    """A source on one node: w_k·(e_k(v, c) − e_k(v, c')) for the two likeliest classes."""

    name: str
    kind: str
    weight: float
    for_class: float


@dataclass(frozen=True)
class Near:
    """A node that matters for another one: how far away (hops, or likeness of features), and what
    it is."""

    node: int
    label: int | None
    decided: int
    closeness: float


@dataclass(frozen=True)
class Explanation:
    """Why a node is answered as it is.

    Attributes:
        node: its id.
        decided, next_class: the likeliest class and the second.
        probability: of the likeliest.
        untouched: the frozen model's own class.
        terms: the sum that separates the two classes, largest first; with `offset` they add up to
            the margin.
        offset: b_c − b_c' of the two classes.
        margin: log p(decided) − log p(next).
        neighbours: nodes linked with it, with what is known of them.
        like: labelled nodes with the most similar smoothed features.
    """

    node: int
    decided: int
    next_class: int
    probability: float
    untouched: int
    terms: tuple[Term, ...]
    offset: float
    margin: float
    neighbours: tuple[Near, ...]
    like: tuple[Near, ...]

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    def table(self) -> str:
        """The terms as text, largest first, with bars."""
        head = (
            f"node {self.node}: class {self.decided} ({100 * self.probability:.0f} %), then"
            f" class {self.next_class}; the model alone says {self.untouched}"
        )
        widest = max((abs(term.for_class) for term in self.terms), default=1.0) or 1.0
        rows = [
            f"{term.name:16} {term.for_class:+7.2f} "
            + ("+" if term.for_class >= 0 else "-") * round(20 * abs(term.for_class) / widest)
            for term in self.terms
        ]
        last = f"{'class offset':16} {self.offset:+7.2f}\n{'margin':16} {self.margin:+7.2f}"
        return "\n".join([head, *rows, last])

    __str__ = table

    def plot(self, ax: Any = None) -> Any:
        """The terms as a bar chart; returns the matplotlib axes.

        Args:
            ax: where to draw; None: a figure of its own.
        """
        if ax is None:
            from matplotlib.figure import Figure

            ax = Figure(figsize=(6, 0.3 * len(self.terms) + 1.2), layout="constrained").subplots()
        values = [term.for_class for term in reversed(self.terms)]
        names = [term.name for term in reversed(self.terms)]
        ax.barh(names, values, color=["#1b7837" if v >= 0 else "#b2182b" for v in values])
        ax.axvline(0.0, color="0.4", linewidth=0.8)
        ax.set_xlabel(f"for class {self.decided} against {self.next_class} (log-odds)")
        ax.set_title(f"node {self.node}")
        return ax


def kind_of(name: str) -> str:
    """The group of a source."""
    if name.startswith(("soft ", "pseudo-")):
        return "self-training"
    if name.startswith("model"):
        return "model"
    return "labels" if name.startswith("labels") else "features"


def sources_of(decision: Decision, most: int = 10_000) -> tuple[Source, ...]:
    """All sources with a weight, the largest share first, seen at so many nodes."""
    n_nodes = len(decision.scores)
    some = np.arange(0, n_nodes, max(1, n_nodes // most))
    first, second = _two_likeliest(decision.scores[some])
    parts = {}
    for name, weight, source in _weighted(decision):
        values = source[some, -1]
        span = np.arange(len(some))
        parts[name] = weight * float((values[span, first] - values[span, second]).mean())
    total = sum(max(0.0, part) for part in parts.values()) or 1.0
    found = [
        Source(name, kind_of(name), decision.weights[name], max(0.0, part) / total)
        for name, part in parts.items()
    ]
    return tuple(sorted(found, key=lambda source: -source.share))


def explain_node(
    scene: Scene, decision: Decision, known: Known, node: int, most: int = 5
) -> Explanation:
    """Why a node is answered as it is."""
    node = checked_node(node, scene.n_nodes)
    (first,), (second,) = _two_likeliest(decision.scores[node : node + 1])
    terms = []
    for name, weight, source in _weighted(decision):
        (values,) = source[[node], -1]
        margin = weight * float(values[first] - values[second])
        terms.append(Term(name, kind_of(name), weight, margin))
    labels = dict(zip(known.nodes.tolist(), known.classes.tolist(), strict=True))
    decided = decision.scores.argmax(axis=1)
    scores = decision.scores[node]

    def near(nodes: list[tuple[int, float]]) -> tuple[Near, ...]:
        return tuple(Near(u, labels.get(u), int(decided[u]), c) for u, c in nodes[:most])

    return Explanation(
        node=node,
        decided=int(first),
        next_class=int(second),
        probability=float(decision.posterior[node, first]),
        untouched=int(scene.logits[node].argmax()),
        terms=tuple(sorted(terms, key=lambda term: -abs(term.for_class))),
        offset=float(decision.offsets[first] - decision.offsets[second]),
        margin=float(scores[first] - scores[second]),
        neighbours=near(_neighbours(scene, labels, node)),
        like=near(_alike(scene, labels, node)),
    )


def _weighted(decision: Decision) -> list[tuple[str, float, Layers]]:
    return [(k, w, decision.evidence[k]) for k, w in decision.weights.items() if w > 0.0]


def _two_likeliest(scores: NDArray[np.float32]) -> tuple[Any, Any]:
    order = np.argsort(scores, axis=1)
    return order[:, -1], order[:, -2]


def _neighbours(scene: Scene, labels: dict[int, int], node: int) -> list[tuple[int, float]]:
    """Those with a known label first, then by the weight of the link."""
    row = scene.matrix[node].tocoo()
    linked = [(int(c), float(v)) for c, v in zip(row.col, row.data, strict=True) if c != node]
    return sorted(linked, key=lambda pair: (pair[0] not in labels, -pair[1]))


def _alike(scene: Scene, labels: dict[int, int], node: int) -> list[tuple[int, float]]:
    """Labelled nodes by the cosine of smoothed, centred features."""
    others = np.array([u for u in labels if u != node], dtype=np.int64)
    likeness = scene.smoothed_directions[others] @ scene.smoothed_directions[node]
    return [(int(others[i]), float(likeness[i])) for i in np.argsort(-likeness)]
