"""Readings of the paper's own row that might explain its published gain, each under a name of its
own.

The paper's words (class of a random training node, its training nodes replaced, C(h*) = e_c) are
the row `replace-one`. The others change one thing each: the class is picked on validation; the
validation nodes of the class are replaced as well; the equilibrium is m·e_c with a larger m, fixed
or picked on validation. For an affine head every controller that reaches its target gives the same
predictions, so the closed-form anchors stand for all of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from graphkeel.core.errors import DataError
from graphkeel.graph import UNLABELLED, GraphTask
from graphkeel.graph.labels import Labels
from graphkeel.reconstruct.context import Context
from graphkeel.reconstruct.correction import replace as replaced
from graphkeel.runs.method import CheckedMethod, Given, MethodResult
from graphkeel_paper.baselines.rival import drawn_class, percent_right

if TYPE_CHECKING:
    from graphkeel_paper.specs import InformedSpec


class _Try(NamedTuple):
    label: int
    strength: float
    features: Tensor
    scores: Tensor


@dataclass(frozen=True)
class PaperReading(CheckedMethod):
    """One class replaced by its anchor."""

    needs_labels = True
    name: str
    strengths: tuple[float, ...] = (1.0,)  # values of m; validation picks among several
    pick_class: bool = False  # try every class and let validation pick
    with_validation: bool = False  # replace the validation nodes of the class, too

    def _fit_predict(self, given: Given) -> MethodResult:
        tried = list(self._tries(given))
        right = [percent_right(one.scores, given.task, given.validation) for one in tried]
        best = tried[max(range(len(tried)), key=right.__getitem__)]  # the first on ties
        decision = {
            "class": best.label,
            "strength": best.strength,
            "tried": len(tried),
            "picked_on_validation": len(tried) > 1,
            "validation_labels_replaced": self.with_validation,
        }
        return MethodResult(best.scores, best.features, decision)

    def _tries(self, given: Given) -> Iterator[_Try]:
        task, nodes = given.task, given.labelled
        context = Context(given.frozen, task.x, task.edge_index, seed=given.seed)
        if self.with_validation:
            nodes = torch.cat([nodes, given.validation])
        labels = Labels(nodes, task.y[nodes], task.n_classes)
        drawn = drawn_class(task, given.labelled, given.seed)
        for strength in self.strengths:
            for label in range(task.n_classes) if self.pick_class else (drawn,):
                features = replaced(task.x, labels, context.anchors(strength).features, label)
                yield _Try(label, strength, features, context.logits_for(features))


# ---- Is the published gain reachable? One class replaced, under readings that no method may
# follow: they know the labels of the test nodes.
#
# Where the model is affine in its features (SGC), the logits are Z₀ + a·vᵀ, with Z₀ those without
# the replaced features, a the share of each node that comes from the replaced nodes, and v = Wh.
# A search over the few entries of v is therefore a search over every h.


Array = NDArray[np.float64]


@dataclass(frozen=True)
class AfterHops(CheckedMethod):
    """Eq. 4 literally: h* takes the place of a row of g(X, A), after the hops, so that no other
    node sees it."""

    needs_labels = True
    name: str

    def _fit_predict(self, given: Given) -> MethodResult:
        task = given.task
        label = drawn_class(task, given.labelled, given.seed)
        context = Context(given.frozen, task.x, task.edge_index, seed=given.seed)
        rows = given.labelled[task.y[given.labelled] == label]
        scores = context.logits.clone()
        scores[rows] = context.plant(context.anchors(1.0).features[label].double()).to(scores.dtype)
        return MethodResult(scores, None, {"class": label})


# ---- readings that know the labels of the test nodes


@dataclass
class Informed(CheckedMethod):
    """A reading with the test nodes and labels that are erased before any method is called."""

    name: str
    reading: CheckedMethod
    spec: InformedSpec

    def _fit_predict(self, given: Given) -> MethodResult:
        known = self.spec.task(given.seed)
        whole = replace(given.task, y=known.y, test_mask=known.test_mask)
        return self.reading.fit_predict(*given._replace(task=whole))


@dataclass(frozen=True)
class Leak(CheckedMethod):
    """The features of a class's test nodes are replaced as well, by their true label, with
    C(h*) = e_c."""

    needs_labels = True
    name: str = "leak"

    def _fit_predict(self, given: Given) -> MethodResult:
        task = given.task
        _check_test_labels(task)
        label = drawn_class(task, given.labelled, given.seed)
        context = Context(given.frozen, task.x, task.edge_index, seed=given.seed)
        features = task.x.clone()
        known = task.train_mask | task.test_mask
        features[known & (task.y == label)] = context.anchors(1.0).features[label]
        return MethodResult(context.logits_for(features), features, {"class": label})


@dataclass(frozen=True)
class SearchSettings:
    """How the best v is sought. Every step is the best one on a whole line."""

    starts: int = 3  # the first is the paper's own
    directions: int = 8  # random ones a start, after those of the single classes


@dataclass(frozen=True)
class BestOnTest(CheckedMethod):
    """The h with most test nodes right: what no h of the class can be above, as far as the search
    finds it."""

    needs_labels = True
    name: str
    every_class: bool = False  # try all and keep the best; else that of a training node drawn
    settings: SearchSettings = field(default_factory=SearchSettings)

    def _fit_predict(self, given: Given) -> MethodResult:
        task = given.task
        _check_test_labels(task)
        drawn = drawn_class(task, given.labelled, given.seed)
        classes = range(task.n_classes) if self.every_class else (drawn,)
        test = task.test_mask.nonzero().flatten()
        best, most = MethodResult(), -1.0
        for label in classes:
            features, scores = self._replaced(given, label, test)
            right = percent_right(scores, task, test)
            if right > most:
                best, most = MethodResult(scores, features, {"class": label}), right
        return best

    def _replaced(self, given: Given, label: int, test: Tensor) -> tuple[Tensor, Tensor]:
        """Features and the model's own scores with the best h of a class."""
        task = given.task
        context = Context(given.frozen, task.x, task.edge_index, seed=given.seed)
        rows = given.labelled[task.y[given.labelled] == label]
        ((weight, _),) = context.plant.layers
        question = _question(context, rows, label, weight, task.y, test)
        found = best_response(question, self.settings, given.seed)
        features = task.x.clone()
        features[rows] = (torch.linalg.pinv(weight) @ torch.from_numpy(found)).float()
        return features, context.logits_for(features)


def _check_test_labels(task: GraphTask) -> None:
    labels = task.y[task.test_mask]
    if not len(labels) or bool((labels == UNLABELLED).any()):
        raise DataError(
            "this reading needs the labels of the test nodes", fix="Run keel-paper table reach."
        )


class Question(NamedTuple):
    """Which v has most nodes right in Z₀ + a·vᵀ?"""

    constant: Array  # Z₀, shape (N, n)
    share: Array  # a, shape (N,)
    labels: NDArray[np.int64]
    start: Array  # the paper's own v, shape (n,)


def _question(
    context: Context, rows: Tensor, label: int, weight: Tensor, y: Tensor, test: Tensor
) -> Question:
    """The nodes of the test set, by the model's answers without features and with the paper's."""
    anchor = context.anchors(1.0).features[label]
    without, with_anchor = context.x.clone(), context.x.clone()
    without[rows] = 0.0
    with_anchor[rows] = anchor
    constant = context.logits_for(without)[test].double()
    response = weight @ anchor.double()
    moved = context.logits_for(with_anchor)[test].double() - constant
    share = (moved @ response) / (response @ response)
    return Question(constant.numpy(), share.numpy(), y[test].numpy(), response.numpy())


def best_response(question: Question, settings: SearchSettings, seed: int) -> Array:
    """The best v that line searches find, of shape (n,)."""
    rng = np.random.default_rng(seed)
    n = len(question.start)
    scale = np.abs(question.constant).max() / max(float(np.abs(question.share).max()), 1e-12)
    best, most = question.start, -1
    for number in range(settings.starts):
        start = question.start if number == 0 else scale * rng.normal(size=n)
        directions = np.concatenate([np.eye(n), rng.normal(size=(settings.directions, n))])
        response, right = _climb(question, start, directions)
        if right > most:
            best, most = response, right
    return best


def _climb(question: Question, response: Array, directions: Array) -> tuple[Array, int]:
    """The best point of each line in turn, again and again while that helps."""
    right = -1
    while True:
        before = right
        for direction in directions:
            step, right = best_step(question, response, direction)
            response = response + step * direction
        if right <= before:
            return response, right


def best_step(question: Question, response: Array, direction: Array) -> tuple[float, int]:
    """The step s with most nodes right at v + s·d, and how many are.

    A node is right on an interval of s: its class leads each other one on a half-line."""
    nodes = np.arange(len(question.labels))
    scores = question.constant + question.share[:, None] * response
    leads = scores[nodes, question.labels][:, None] - scores
    slopes = question.share[:, None] * (direction[question.labels][:, None] - direction)
    with np.errstate(divide="ignore", invalid="ignore"):
        ends = -leads / slopes
    low = np.where(slopes > 0, ends, -np.inf).max(axis=1)
    high = np.where(slopes < 0, ends, np.inf).min(axis=1)
    other = np.arange(scores.shape[1]) != question.labels[:, None]
    never = ((slopes == 0) & (leads <= 0) & other).any(axis=1)
    there = ~never & (low < high)
    return _most_covered(low[there], high[there])


def _most_covered(low: Array, high: Array) -> tuple[float, int]:
    """A point in most of the intervals, and their number: of all such stretches the middle of the
    widest that ends on both sides."""
    begun = int((low == -np.inf).sum())
    low, high = low[np.isfinite(low)], high[np.isfinite(high)]
    ends = np.concatenate([low, high, [0.0]])
    changes = np.repeat([1, -1, 0], [len(low), len(high), 1])
    order = ends.argsort()
    ends = ends[order]
    count = begun + np.concatenate([[0], changes[order].cumsum()])
    widths = np.concatenate([[0.0], np.diff(ends), [0.0]])
    margin = 1.0 + ends[-1] - ends[0]
    points = np.concatenate([[ends[0] - margin], (ends[1:] + ends[:-1]) / 2, [ends[-1] + margin]])
    inside = widths > 0.0
    inside[[0, -1]] = True  # where ends coincide there is no stretch between them
    count = np.where(inside, count, -1)
    widest = np.where(count == count.max(), widths, -1.0).argmax()
    return float(points[widest]), int(count.max())


READINGS: dict[str, CheckedMethod] = {
    "leak": Leak(),
    "best-on-test": BestOnTest("best-on-test"),
    "best-class-on-test": BestOnTest("best-class-on-test", every_class=True),
}
