"""`monitor`: the graph as it is now, against the profile of the fitted one."""

from __future__ import annotations

import copy
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from graphkeel.core.statistics import wilson
from graphkeel.graph.node_graph import check_graph, node_graph
from graphkeel.monitor.advice import (
    ACTIONS,
    LABEL,
    NOTHING,
    RETRAIN,
    UPDATE,
    MonitorSettings,
    advise,
)
from graphkeel.monitor.drift import DriftTest, count_drift, sample_drift
from graphkeel.monitor.profile import (
    NEAR,
    Profile,
    believed,
    hops_to_labels,
    row_digests,
    same_class,
    some_of,
    sureness,
    unlabelled,
)

if TYPE_CHECKING:
    from graphkeel.reconstruct.reconstructor import Reconstructor


@dataclass(frozen=True)
class DriftReport:
    """Comparison of the graph as it is now with the fitted one.

    Attributes:
        time: when, in UTC.
        nodes, new, changed: all nodes, those that came since the fit, and those whose features
            changed.
        far: of the new ones, how many have no label within the hops that are looked at.
        apart: new or changed nodes that are far from every label and unlike all nodes with one;
            their answers count as guesses.
        shares, shares_fitted: percent of all nodes answered with each class.
        homophily, homophily_fitted: percent of edges between nodes answered alike.
        expected, low, high: percent of the unlabelled nodes that are right after an update, by the
            answers' own account, with a 90 % interval.
        expected_fitted: likewise of the fitted graph.
        after: likewise after each step, by its name.
        tests: features, confidence, class shares and homophily against the fitted graph.
        action: one of `ACTIONS`.
        reason: why, in a sentence.
        suggested: ids of the nodes whose labels would help most, best first.
    """

    time: str
    nodes: int
    new: int
    changed: int
    far: int
    apart: int
    shares: tuple[float, ...]
    shares_fitted: tuple[float, ...]
    homophily: float
    homophily_fitted: float
    expected: float
    low: float
    high: float
    expected_fitted: float
    after: dict[str, float]
    tests: tuple[DriftTest, ...]
    action: str
    reason: str
    suggested: tuple[int, ...]

    @property
    def drifted(self) -> tuple[str, ...]:
        """Names of what has drifted."""
        return tuple(test.name for test in self.tests if test.drifted)

    def to_dict(self) -> dict[str, Any]:
        """JSON values."""
        return {**asdict(self), "drifted": list(self.drifted)}

    def __str__(self) -> str:
        return f"{ACTIONS[self.action]}: {self.reason}"


def monitor(
    rec: Reconstructor,
    data: Data,
    *,
    another: bool = False,
    settings: MonitorSettings | None = None,
    **model_kwargs: Any,
) -> DriftReport:
    """Compare a graph with the fitted one, without labels, and say what to do; changes nothing.

    Args:
        rec: fitted, or loaded with its model.
        data: the fitted graph as it is now, as for `update`.
        another: it is a graph of its own instead, whose nodes are others.
        settings: of the comparison and of the advice.
        model_kwargs: passed to the model on this graph.
    """
    settings = settings or MonitorSettings()
    profile = rec._profile()
    graph = node_graph(data)
    check_graph(graph)
    now = _Now.of(rec, graph, profile, another, model_kwargs)
    tests = _tests(profile, now, settings)
    free = unlabelled(now.rec, len(now.answers)) if not another else now.arrived
    hops = hops_to_labels(now.rec)
    far = hops[0 if another else len(profile.rows) :] > NEAR
    suggested = now.rec.suggest(settings.suggested)
    apart = unlike_all_labelled(now, hops, settings)
    chances = now.probabilities.clone()
    chances[apart] = 1.0 / chances.shape[1]
    expected = believed(chances, now.answers, free)
    training = _training_set(rec, now.rec, settings)
    # where the guard keeps an update back, labels are what lets it judge
    decided = believed(chances, now.probabilities.argmax(dim=1), free)
    after = {
        NOTHING: believed(chances, now.untouched, free),
        UPDATE: expected,
        LABEL: min(100.0, decided + gain_of_labels(now.rec, suggested, apart, settings)),
        RETRAIN: min(100.0, decided + gain_of_labels(now.rec, training, apart, settings)),
    }
    action, reason = advise(after, settings.prices)
    low, high = wilson(expected / 100.0, settings.worth, settings.confidence)
    edges = now.edge_index.shape[1]
    return DriftReport(
        time=datetime.now(UTC).isoformat(timespec="seconds"),
        nodes=len(now.answers),
        new=len(now.answers) if another else len(now.answers) - len(profile.rows),
        changed=0 if another else int(now.arrived[: len(profile.rows)].sum()),
        far=int(far.sum()),
        apart=int(apart.sum()),
        shares=_percent(torch.bincount(now.answers, minlength=len(profile.counts))),
        shares_fitted=_percent(profile.counts),
        homophily=100.0 * same_class(now.answers, now.edge_index) / max(1, edges),
        homophily_fitted=100.0 * profile.within / max(1, profile.edges),
        expected=expected,
        low=100.0 * low,
        high=100.0 * high,
        expected_fitted=profile.expected,
        after=after,
        tests=tests,
        action=action,
        reason=reason,
        suggested=tuple(suggested.tolist()),
    )


@dataclass(frozen=True, eq=False)
class _Now:
    """The graph as it is now, and the answers there."""

    rec: Reconstructor  # a reconstructor of this graph
    arrived: Tensor  # nodes that came, or changed, since the fit, bool, shape (N,)
    probabilities: Tensor  # of the classes, shape (N, C)
    answers: Tensor  # after an update, shape (N,)
    # if nothing is done, shape (N,): features as they were written where a node is as it was, and
    # as they come elsewhere
    untouched: Tensor

    @classmethod
    def of(
        cls,
        rec: Reconstructor,
        graph: Data,
        profile: Profile,
        another: bool,
        model_kwargs: dict[str, Any],
    ) -> _Now:
        twin = copy.copy(rec)
        twin.callbacks, twin.verbose = (), False
        if another:
            there = twin.adapt(graph, keep="model", **model_kwargs)
            arrived = torch.ones(len(graph.x), dtype=torch.bool)
        else:
            there = twin.update(graph, rechoose=True, **model_kwargs)
            n = len(profile.rows)
            arrived = torch.ones(len(graph.x), dtype=torch.bool)
            arrived[:n] = row_digests(graph.x[:n]) != profile.rows
        context = there._context
        served = context.x.clone()
        as_they_were = (~arrived).nonzero().flatten()
        served[as_they_were] = rec.features_[as_they_were]
        return cls(
            rec=there,
            arrived=arrived,
            probabilities=there._probabilities(),
            answers=context.logits_for(there.features_).argmax(dim=1),
            untouched=context.logits_for(served).argmax(dim=1),
        )

    @property
    def edge_index(self) -> Tensor:
        return self.rec._context.edge_index


def unlike_all_labelled(now: _Now, hops: Tensor, settings: MonitorSettings) -> Tensor:
    """Nodes that came, farther from every label than any node that was there and has a path to one,
    if their features are drawn otherwise than those of labelled nodes, bool, shape (N,): nothing
    says that what labels show holds there."""
    none = torch.zeros_like(now.arrived)
    there = hops[~now.arrived & hops.isfinite()]
    labelled = (hops == 0).nonzero().flatten()
    beyond = now.arrived & (hops > (there.max() if len(there) else torch.inf))
    if not beyond.any():
        return none
    x = now.rec._context.x
    some = some_of(beyond, settings.sample)
    test = sample_drift("features", x[labelled].numpy(), x[some].numpy(), settings.drift)
    return beyond if test.drifted else none


def gain_of_labels(
    rec: Reconstructor, nodes: Tensor, apart: Tensor, settings: MonitorSettings
) -> float:
    """Points that labels of these nodes are expected to bring to all other nodes without a label.

    Labels are drawn from the probabilities as they are, and the answers decided with them; the
    probabilities after the labels say how much more right those answers are than the ones before.
    At nodes apart (N,) as many labels bring what they bring here when there are no others. Methods
    without such a decision gain nothing."""
    if not rec._rounds:
        return 0.0
    probabilities = rec._probabilities().double()
    before = probabilities.argmax(dim=1)
    others = unlabelled(rec, len(before))
    others[nodes] = False
    near, there = others & ~apart, int(apart[nodes].sum())
    gain = 0.0
    if there:
        alone = torch.from_numpy(rec._decide_alone(there).posterior).argmax(dim=1)
        above_chance = believed(probabilities, alone, near) - 100.0 / probabilities.shape[1]
        gain = int(apart[others].sum()) * above_chance
    nodes = nodes[~apart[nodes]]
    if len(nodes):
        generator = torch.Generator().manual_seed(0)
        gains = []
        for _ in range(settings.draws):
            drawn = torch.multinomial(probabilities[nodes], 1, generator=generator).flatten()
            known = rec.labels_.with_more(nodes, drawn)
            after = torch.from_numpy(rec._decide_again(known).posterior)
            answers = after.argmax(dim=1)
            gains.append(believed(after, answers, near) - believed(after, before, near))
        gain += int(near.sum()) * settings.label_yield * float(np.mean(gains))
    return gain / max(1, int(others.sum()))


def _training_set(rec: Reconstructor, now: Reconstructor, settings: MonitorSettings) -> Tensor:
    """Nodes without a label, drawn at random: as many as the model was trained on."""
    wanted = int(rec._trained_on.sum()) or settings.training * len(rec.classes_)
    return some_of(unlabelled(now, len(now.features_)), wanted)


def _tests(profile: Profile, now: _Now, settings: MonitorSettings) -> tuple[DriftTest, ...]:
    """Nodes that arrived against those that were fitted; edges all together."""
    context, drift = now.rec._context, settings.drift
    compared = now.arrived if now.arrived.any() else ~now.arrived
    some = some_of(compared, settings.sample)
    sure = sureness(context.logits[some])[:, None].numpy()
    answered = torch.bincount(now.answers[compared], minlength=len(profile.counts)).numpy()
    edges, within = now.edge_index.shape[1], same_class(now.answers, now.edge_index)
    fitted = np.array([profile.within, profile.edges - profile.within])
    arrived = np.array([within, edges - within])
    return (
        sample_drift("features", profile.sample.numpy(), context.x[some].numpy(), drift),
        sample_drift("confidence", profile.confidence[:, None].numpy(), sure, drift),
        count_drift("class shares", profile.counts.numpy(), answered, drift.shares, drift),
        count_drift("homophily", fitted, arrived, drift.homophily, drift),
    )


def _percent(counts: Tensor) -> tuple[float, ...]:
    return tuple((100.0 * counts.double() / counts.sum()).tolist())
