"""Explanations of answers: terms that add up, shares that sum to one, in forms people can use."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch
from small_graphs import known, small_scene

from graphkeel.core.errors import ConfigError, DataError
from graphkeel.reconstruct.decide import decide
from graphkeel.reconstruct.explain import explain_node, kind_of, sources_of
from graphkeel.reconstruct.reconstructor import Reconstructor
from graphkeel.report.fit_facts import KINDS, shares_by_kind


@pytest.fixture(scope="module")
def situation():
    scene, y = small_scene()
    nodes = np.arange(0, 60, 4)
    labels = known(nodes, y[nodes], 3)
    return scene, decide(scene, labels), labels


@pytest.mark.parametrize("node", [0, 1, 30, 59])
def test_terms_and_offset_add_up_to_the_margin(situation, node) -> None:
    scene, decision, labels = situation
    found = explain_node(scene, decision, labels, node)
    total = sum(term.for_class for term in found.terms) + found.offset
    assert total == pytest.approx(found.margin, abs=1e-3)
    logs = np.log(decision.posterior[node])
    assert found.margin == pytest.approx(logs[found.decided] - logs[found.next_class], abs=1e-3)
    assert found.margin >= 0
    assert found.decided == decision.scores[node].argmax()
    assert found.untouched == scene.logits[node].argmax()
    sizes = [abs(term.for_class) for term in found.terms]
    assert sizes == sorted(sizes, reverse=True)


def test_neighbours_are_linked_and_labels_come_first(situation) -> None:
    scene, decision, labels = situation
    truth = dict(zip(labels.nodes.tolist(), labels.classes.tolist(), strict=True))
    for node in range(10):
        found = explain_node(scene, decision, labels, node)
        for near in found.neighbours:
            assert near.node != node and scene.matrix[node, near.node] > 0
            assert near.label == truth.get(near.node)
        named = [near.label is not None for near in found.neighbours]
        assert named == sorted(named, reverse=True)
        assert node not in [near.node for near in found.like]
        closeness = [near.closeness for near in found.like]
        assert closeness == sorted(closeness, reverse=True)
        assert all(near.node in truth for near in found.like)


def test_forms(situation) -> None:
    found = explain_node(*situation, 3)
    assert json.loads(json.dumps(found.to_dict()))["margin"] == pytest.approx(found.margin)
    text = found.table()
    assert str(found) == text and text.startswith("node 3: class ")
    assert all(term.name in text for term in found.terms)
    axes = found.plot()
    assert len(axes.patches) == len(found.terms)
    assert found.plot(ax=axes) is axes


def test_shares_sum_to_one(situation) -> None:
    _, decision, _ = situation
    sources = sources_of(decision)
    assert sum(source.share for source in sources) == pytest.approx(1.0)
    assert all(source.share >= 0 and source.weight > 0 for source in sources)
    assert {source.name for source in sources} <= set(decision.weights)
    groups = shares_by_kind(sources)
    assert set(groups) == set(KINDS.values())
    assert sum(groups.values()) == pytest.approx(1.0)
    assert list(groups.values()) == sorted(groups.values(), reverse=True)


def test_every_source_has_the_right_kind(situation) -> None:
    _, decision, _ = situation
    kinds = {
        "model": {"model", "model~"},
        "labels": {"labels", "labels="},
        "features": {"means~", "own", "hops~", "links"},
        "self-training": {"soft own", "soft hops~", "soft means~", "pseudo-labels="},
    }
    assert set(decision.evidence) == set.union(*kinds.values())
    for kind, names in kinds.items():
        assert {name for name in decision.evidence if kind_of(name) == kind} == names


def test_without_labels_the_model_is_named(situation) -> None:
    scene, *_ = situation
    nobody = known([], [], 3)
    decision = decide(scene, nobody)
    assert "model" in {source.kind for source in sources_of(decision)}
    assert explain_node(scene, decision, nobody, 0).like == ()


def test_a_reconstructor_explains_what_it_answers(fitted, data) -> None:
    predicted = fitted.predict(data)
    decided = [fitted.explain(node).decided for node in range(0, 600, 60)]
    assert np.mean(np.array(decided) == predicted[::60].numpy()) >= 0.9
    assert sum(source.share for source in fitted.evidence_) == pytest.approx(1.0)
    torch.testing.assert_close(fitted.posterior_.sum(dim=1), torch.ones(600))
    number = fitted.explain(np.int64(5))
    assert json.dumps(number.to_dict())


@pytest.mark.parametrize("node", [-1, 600, 1.5, "3", None, True])
def test_what_is_no_node_is_refused(fitted, node) -> None:
    with pytest.raises(DataError, match=r"node must be in 0\.\.599"):
        fitted.explain(node)


def test_methods_by_name_have_no_sum_to_explain(model, data) -> None:
    rec = Reconstructor(model, method="replace").fit(data)
    assert rec.evidence_ == () and rec.posterior_ is None
    with pytest.raises(ConfigError, match="only method='auto'"):
        rec.explain(3)
