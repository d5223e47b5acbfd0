"""Decide: what the model should answer at every node.

Evidence is pooled with weights that labels choose, judged where they had no part in it
(cross-fitting); later rounds draw evidence from the pooled answer before them. Before labels
speak, a prior does, which depends on two numbers: how far neighbours agree beyond chance, and how
many labels there are."""

from __future__ import annotations

import json
from collections.abc import Callable, Container, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from importlib.resources import files
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphkeel.core.memory import release_memory
from graphkeel.core.steps import stage
from graphkeel.graph.agreement import KnownLabels, same_ends
from graphkeel.graph.changes import changed_nodes, node_digests
from graphkeel.graph.label_sets import Known, LabelSets
from graphkeel.graph.propagate.local import home_of
from graphkeel.graph.propagate.rowwise import fold, rowwise
from graphkeel.graph.propagate.view import ALL, LAST, Layers, Sets, kept
from graphkeel.graph.rows import log_rows, softmax
from graphkeel.reconstruct.evidence import (
    Array,
    Evidence,
    EvidenceSettings,
    first_evidence,
    second_evidence,
)
from graphkeel.reconstruct.pool import Judged, PoolSettings, fit_pool, gram, held_out
from graphkeel.reconstruct.scene import Scene

Doubles = NDArray[np.float64]
CORNERS = (
    "homophilous, many labels",
    "homophilous, no label",
    "heterophilous, many labels",
    "heterophilous, no label",
)


@dataclass(frozen=True)
class DecideSettings:
    """Numbers of the decision; paper/docs/research.md has the study that chose them.

    Attributes:
        folds: parts in which labels judge evidence that was made without them;
        large_folds: on large graphs, where each costs walks. Photo and Pubmed SGC, splits 20 and
            21, 100 and 500 labels: 84.97 percent with two folds, 84.94 with five.
        homophilous: agreement of neighbours beyond chance at which the prior is all homophilous;
        heterophilous: at which it is all heterophilous.
        half: labels with which the prior is half way to that of many labels;
        trained: for how many a label counts that the model was trained on. A model trained here
            knows no more than those labels do, one trained elsewhere does.
        seen_edges: with a label at both ends, from which on labels tell the agreement.
        large: nodes from which on a graph that was decided on is taken up again when it has grown
            or a few labels have come: nodes keep what was decided of them, but those that have come
            or have changed (`Resumable`).
        newly: share of a node's links that lead to nodes that have come, from which on it has
            changed.
        few: share of the labels that judge which are a few. More of them: all is chosen anew.
    """

    folds: int = 5
    large_folds: int = 2
    homophilous: float = 0.6
    heterophilous: float = 0.2
    half: float = 150.0
    trained: float = 3.0
    seen_edges: int = 20
    large: int = 50_000
    newly: float = 0.3
    few: float = 0.1
    evidence: EvidenceSettings = field(default_factory=EvidenceSettings)
    pool: PoolSettings = field(default_factory=PoolSettings)

    def at_size(self, n_nodes: int) -> DecideSettings:
        """As they are for a graph of a size.

        Args:
            n_nodes: of the graph.
        """
        return replace(self, folds=self.large_folds) if n_nodes >= self.large else self


@dataclass(frozen=True, eq=False)
class PoolWeights:
    """The pool of one round: w_k by name, and b, shape (C,)."""

    weights: dict[str, float]
    offsets: Doubles


@dataclass(frozen=True, eq=False)
class Resumable:
    """The start of the next decision, when the graph has grown or a few labels have come.

    Attributes:
        before: log-probabilities after the round before the last, shape (N, C).
        walks: what was spread over the graph for the last round, by name, shape (N, …).
        projection: of wide features, shape (1 + r, d); of others nothing.
        digests: of each node's features and links when all was chosen, shape (M,) with M <= N.
        names: the sources that the last round uses.
        judged: these at the labels that judge.
        chosen: how many judged when all was chosen.
        served: ids of the labelled nodes that have served.
    """

    before: Array
    walks: dict[str, Array]
    projection: Array
    digests: NDArray[np.int64]
    names: tuple[str, ...]
    judged: Judged
    chosen: int
    served: NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Decision:
    """The decided answers, and the evidence they rest on.

    Attributes:
        scores: log-probabilities but for a constant, shape (N, C).
        held: the same at judging labels, from evidence and weights that they had no part in, shape
            (n, C).
        rounds: the pools, one a round.
        evidence: by name, shape (N, S, C); that of the last set of labels counts.
        agreement: of neighbours beyond chance, where weights were chosen.
        resumable: of a large graph.
    """

    scores: Array
    held: Array
    rounds: tuple[PoolWeights, ...]
    evidence: Evidence
    agreement: float | None = None
    resumable: Resumable | None = None

    @property
    def weights(self) -> dict[str, float]:
        """Of the last round, which the scores are made with."""
        return self.rounds[-1].weights

    @property
    def offsets(self) -> Doubles:
        return self.rounds[-1].offsets

    @cached_property
    def posterior(self) -> Array:
        return rowwise(softmax, self.scores)  # type: ignore[no-any-return]


def decide(
    scene: Scene,
    known: Known,
    *,
    seed: int = 0,
    settings: DecideSettings = DecideSettings(),
    balanced: bool = False,
    without: Iterable[str] = (),
) -> Decision:
    """The pooled answer for every node.

    Where classes are to count alike, the posterior is divided by the share that it gives to each
    class: the likeliest class then maximises the expected balanced accuracy."""
    labels, judged_by = known.sets(settings.folds, seed)
    choice = _Choice(scene, known, judged_by, seed, settings)
    left_out = frozenset(without)
    scores, found, before = _rounds(
        scene, labels, settings, choice.pool, choice.collect, lambda _: left_out
    )
    made = Decision(
        scores=scores,
        held=_single(held_out(choice.judged, settings.pool)),
        rounds=tuple(choice.rounds),
        agreement=choice.agreement,
        evidence=found,
        resumable=None if before is None else choice.resumable(before, scene, found, labels),
    )
    if made.resumable is not None:
        scene.forget_features()
    return _alike(made) if balanced else made


class _Choice:
    """Looks at each source where labels judge it that had no part in it, and pools a round."""

    judged: Judged  # of the last round

    def __init__(
        self,
        scene: Scene,
        known: Known,
        judged_by: NDArray[np.int64],
        seed: int,
        settings: DecideSettings,
    ) -> None:
        self.settings = settings.pool
        self.nodes, self.classes = known.nodes[known.judging], known.classes[known.judging]
        self.n_classes = known.n_classes
        self.judged_by = judged_by
        self.parts = known.parts(settings.folds, seed)
        self.some = np.random.default_rng(seed).permutation(scene.n_nodes)[: self.settings.sample]
        self.agreement = neighbour_agreement(scene, known, settings.seen_edges)
        self.priors = prior_weights(self.agreement, known.count(settings.trained), settings)
        self.rounds: list[PoolWeights] = []
        self.seen: dict[str, tuple[Array, Array]] = {}

    def collect(self, name: str, source: Layers) -> None:
        self.seen[name] = (source[self.nodes, self.judged_by], source[self.some, -1])

    def pool(self) -> PoolWeights:
        prior = self.priors[len(self.rounds)]
        judging, others = ([pair[i] for pair in self.seen.values()] for i in (0, 1))
        self.judged = Judged(
            _stacked(judging, len(self.nodes), self.n_classes),
            self.classes,
            np.array([prior.get(name, 0.0) for name in self.seen]),
            gram(_stacked(others, len(self.some), self.n_classes)),
            self.parts,
        )
        self.rounds.append(_chosen(self.judged, list(self.seen), self.settings))
        return self.rounds[-1]

    def resumable(
        self, before: Array, scene: Scene, found: Evidence, labels: LabelSets
    ) -> Resumable:
        used = [name for name in self.seen if self.rounds[-1].weights[name] > 0]
        places = [list(self.seen).index(name) for name in used]
        return Resumable(
            before=before,
            walks=_walks(scene, {name: found[name] for name in used}),
            projection=scene.projection if scene.is_wide else np.zeros((0, 0), np.float32),
            digests=node_digests(scene.x, scene.matrix),
            names=tuple(used),
            judged=self.judged.sources(places),
            chosen=len(self.nodes),
            served=labels.nodes,
        )


def _walks(scene: Scene, evidence: Evidence) -> dict[str, Array]:
    """Spread arrays that pieces of evidence are made of, by the names of `Scene.walked`."""
    found = {name.removesuffix("="): source.root for name, source in evidence.items()}
    found["features"] = scene.smoothed
    if "model~" in found:
        found["model~"] = scene.smoothed_beliefs
    return {name: root for name, root in found.items() if isinstance(root, np.ndarray)}


def _chosen(judged: Judged, names: Sequence[str], settings: PoolSettings) -> PoolWeights:
    weights, offsets = fit_pool(judged, settings)
    return PoolWeights(dict(zip(names, weights.tolist(), strict=True)), offsets)


def _single(values: Doubles) -> Array:
    return values.astype(np.float32)


def _alike(made: Decision) -> Decision:
    """The decision with which classes count alike."""
    sums = fold(lambda part: softmax(part).sum(axis=0, dtype=np.float64), made.scores)
    shift = -np.log(sums / len(made.scores))
    last = replace(made.rounds[-1], offsets=made.offsets + shift)
    return replace(
        made,
        scores=rowwise(lambda part: part + _single(shift), made.scores),
        held=_single(made.held + shift),
        rounds=(*made.rounds[:-1], last),
    )


def decide_again(
    scene: Scene,
    known: Known,
    rounds: Sequence[PoolWeights],
    settings: DecideSettings = DecideSettings(),
    resumable: Resumable | None = None,
    posterior: Array | None = None,
) -> Decision:
    """The answer with weights that were chosen before: the same graph, later.

    Args:
        resumable: what it is taken up from; None: from nothing.
        posterior: what was decided then, by these weights; None: all nodes are decided anew.
    """
    labels, _ = known.sets(1, 0)
    labels = replace(labels, used=labels.used[-1:])  # all that serve
    if resumable is not None:
        scores, found, resumable = _taken_up(
            scene, labels, settings, rounds[-1], resumable, posterior
        )
    else:
        coming = iter(rounds)
        unused = [_without_weight(rounds[turn:]) for turn in range(len(rounds))]
        scores, found, _ = _rounds(
            scene, labels, settings, lambda: next(coming), lambda *_: None, unused.__getitem__
        )
    held = np.zeros((0, known.n_classes), np.float32)
    return Decision(scores, held, tuple(rounds), found, resumable=resumable)


def decide_with_more(
    scene: Scene,
    known: Known,
    made: Decision,
    *,
    settings: DecideSettings = DecideSettings(),
    balanced: bool = False,
) -> Decision:
    """The answer with a few labels more, that judge and come last among the known ones.

    The evidence there is had no part in them, so they judge it as it is, beside the labels there
    were: weights of the last round are chosen anew, and that round is drawn anew."""
    resumable = made.resumable
    assert resumable is not None
    before, names = resumable.judged, resumable.names
    new = np.flatnonzero(known.judging)[before.evidence.shape[1] :]
    rows = [made.evidence[name][known.nodes[new], -1] for name in names]
    judged = replace(
        before,
        evidence=np.concatenate(
            [before.evidence, _stacked(rows, len(new), known.n_classes)], axis=1
        ),
        classes=known.classes[known.judging],
        parts=np.append(before.parts, new % settings.folds),
    )
    rounds = (*made.rounds[:-1], _chosen(judged, names, settings.pool))
    again = decide_again(scene, known, rounds, settings, replace(resumable, judged=judged))
    again = replace(again, held=_single(held_out(judged, settings.pool)))
    return _alike(again) if balanced else again


def _grown(scene: Scene, before: Array) -> Array:
    """Log-probabilities of all nodes: those that have come begin with what their neighbours are,
    where they have none with what the model says."""
    n_old = len(before)
    if n_old == scene.n_nodes:
        return before
    found = scene.matrix[n_old:, :n_old] @ np.exp(before.astype(np.float32))
    found = np.where(found.any(axis=1, keepdims=True), found, softmax(scene.logits[n_old:]))
    found /= found.sum(axis=1, keepdims=True)
    return np.concatenate([before, log_rows(found).astype(before.dtype)])


def _without_weight(rounds: Sequence[PoolWeights]) -> set[str]:
    """Sources that no round uses."""
    return {name for name in rounds[-1].weights if not any(one.weights.get(name) for one in rounds)}


def _taken_up(
    scene: Scene,
    labels: LabelSets,
    settings: DecideSettings,
    chosen: PoolWeights,
    resumable: Resumable,
    posterior: Array | None,
) -> tuple[Array, Evidence, Resumable]:
    """Scores of every node by one set of labels, the evidence they are made of, and what the next
    time is taken up from.

    Walks go on at nodes that have come or have changed, and near labels that have come. Other nodes
    keep what was decided of them, unless there are such labels, or other weights."""
    changed = changed_nodes(scene.x, scene.matrix, resumable.digests, settings.newly)
    near = np.setxor1d(labels.nodes, resumable.served)
    for _ in range(scene.settings.sweeps if len(near) else 0):
        near = np.unique(scene.matrix[near].indices)
    before = _grown(scene, resumable.before)
    unused = _without_weight([chosen])
    answer: Any = Layers(before[:, None], lambda part, *_: softmax(part))
    stale = np.union1d(changed, near).astype(np.int64)
    with scene.taken_up(resumable.walks, resumable.projection, stale):
        found = dict(first_evidence(scene, labels, settings.evidence, unused))
        found |= second_evidence(scene, labels, answer, settings.evidence, unused)
        walks = _walks(scene, found)
    if posterior is None or len(near):
        scores = pooled(scene, found, chosen, LAST, 1).reshape(scene.n_nodes, -1)
    else:
        scores = np.empty((scene.n_nodes, scene.n_classes), np.float32)
        rowwise(log_rows, posterior, out=scores)
        if len(changed):
            scores[changed] = pooled(scene, found, chosen, LAST, 1, changed)[:, 0]
    return scores, found, replace(resumable, before=before, walks=walks, served=labels.nodes)


def _rounds(
    scene: Scene,
    labels: LabelSets,
    settings: DecideSettings,
    pool: Callable[[], PoolWeights],
    collect: Callable[[str, Layers], None],
    without: Callable[[int], Container[str]],
) -> tuple[Array, Evidence, Array | None]:
    """Scores of every node by all labels that serve, the evidence they are made of, and on a large
    graph what the round before the last said.

    Of the sets of labels that leave some out, the last round needs what `collect` gets, no more."""
    found: Evidence = {}
    scores = np.zeros(0, np.float32)
    before = None
    last = len(_stored_prior()) - 1
    for turn in range(last + 1):
        release_memory()
        if turn == last:
            for source in found.values():
                source.keep_last()
        if turn == 0:
            more = first_evidence(scene, labels, settings.evidence, without(turn))
        else:
            scores = rowwise(softmax, scores, out=scores)
            more = second_evidence(scene, labels, scores, settings.evidence, without(turn))
        if turn == last and scene.n_nodes >= settings.large and home_of(scores) is None:
            before = kept(rowwise(lambda part: log_rows(part[:, -1]), scores))
        for name, source in more:
            stage(f"deciding, round {turn + 1} of {last + 1}: {name}")
            collect(name, source)
            if turn == last:
                source.keep_last()
            found[name] = source
        sets = LAST if turn == last else ALL
        scores = pooled(scene, found, pool(), sets, len(labels.used[sets]))
    return scores.reshape(scene.n_nodes, -1), found, before


def _stacked(rows: list[Array], n_nodes: int, n_classes: int) -> Doubles:
    """All sources at some nodes, shape (K, n, C); K may be 0."""
    return np.array(rows, dtype=np.float64).reshape(len(rows), n_nodes, n_classes)


def pooled(
    scene: Scene,
    evidence: Evidence,
    chosen: PoolWeights,
    sets: slice,
    n_sets: int,
    nodes: NDArray[np.int64] | None = None,
) -> Array:
    """Σ_k w_k·e_k + b, shape (N, S, C), by blocks of rows; or of some nodes alone."""
    used = [name for name in evidence if chosen.weights.get(name, 0.0) > 0]
    weights = [np.float32(chosen.weights[name]) for name in used]
    offsets = chosen.offsets.astype(np.float32)

    def added(answers: Array, parts: list[Array]) -> Array:
        found = np.zeros((len(answers), n_sets, len(offsets)), np.float32)
        for weight, part in zip(weights, parts, strict=True):
            found += weight * part
        found += offsets
        return found

    parts = Sets([evidence[name] for name in used], sets)
    if nodes is not None:
        return added(scene.logits[nodes], parts[nodes])
    return rowwise(added, scene.logits, parts)  # type: ignore[no-any-return]


def neighbour_agreement(scene: Scene, known: Known, seen_edges: int) -> float:
    """How much more often than by chance neighbours have the same class: by known labels where
    enough edges have both ends known, else by the model's answers."""
    matrix, n_classes = scene.matrix, scene.n_classes
    ends, same = same_ends(matrix, KnownLabels(known.nodes, known.classes), n_classes)
    if ends.sum() < 2 * seen_edges:  # every edge is there both ways
        answers = rowwise(lambda part: part.argmax(axis=1), scene.logits)
        ends, same = same_ends(matrix, answers, n_classes)
    if not ends.sum():
        return 0.0
    chance = float(((ends / ends.sum()) ** 2).sum())
    agreeing = float(same.sum() / ends.sum())
    return (agreeing - chance) / (1.0 - chance) if chance < 1.0 else 0.0


def prior_corners(agreement: float, n_labels: float, settings: DecideSettings) -> dict[str, float]:
    """How much each corner of the prior counts: bilinear in agreement and in labels."""
    span = settings.homophilous - settings.heterophilous
    homophily = float(np.clip((agreement - settings.heterophilous) / span, 0.0, 1.0))
    many = n_labels**2 / (n_labels**2 + settings.half**2)
    shares = np.outer([homophily, 1 - homophily], [many, 1 - many])
    return dict(zip(CORNERS, shares.ravel().tolist(), strict=True))


def prior_weights(
    agreement: float, n_labels: float, settings: DecideSettings
) -> list[dict[str, float]]:
    """w0 of each round, believed before labels judge."""
    corners = prior_corners(agreement, n_labels, settings)
    found = []
    for stored in _stored_prior():
        weights: dict[str, float] = {}
        for corner, share in corners.items():
            for name, weight in stored[corner].items():
                weights[name] = weights.get(name, 0.0) + share * weight
        found.append(weights)
    return found


@cache
def _stored_prior() -> list[dict[str, dict[str, float]]]:
    text = files("graphkeel.reconstruct").joinpath("prior.json").read_text(encoding="utf-8")
    return list(json.loads(text)["rounds"])
