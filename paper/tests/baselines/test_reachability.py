"""Readings that know the test labels: they find the best h, and are refused to methods."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from graphkeel.core.errors import DataError
from graphkeel.runs.run import label_budget, prepare
from graphkeel_paper.baselines.frozen.readings import (
    READINGS,
    Question,
    SearchSettings,
    best_response,
    best_step,
)
from graphkeel_paper.baselines.registry import get_baseline
from graphkeel_paper.specs import InformedSpec, RunSpec


@pytest.fixture(scope="module")
def prepared():
    return prepare(RunSpec(dataset="sbm"), seed=0)


def _fit(prepared, method, *, labels=True):
    task = prepared.task if labels else prepared.task.without_test_labels()
    return method.fit_predict(prepared.frozen, task, *label_budget(task, "train", 0), 0)


def _right(prepared, scores):
    test = prepared.task.test_mask
    return int((scores.argmax(dim=1) == prepared.task.y)[test].sum())


def _random_question(seed, nodes=40):
    rng = np.random.default_rng(seed)
    constant = rng.normal(size=(nodes, 3))
    share = rng.uniform(0.0, 0.5, size=nodes) * (rng.random(nodes) < 0.8)
    return Question(constant, share, rng.integers(3, size=nodes), np.zeros(3))


def _count(question, response):
    scores = question.constant + question.share[:, None] * response
    return int((scores.argmax(axis=1) == question.labels).sum())


@pytest.mark.parametrize("seed", range(3))
def test_the_search_finds_what_a_fine_grid_finds(seed):
    question = _random_question(seed)
    axis = np.linspace(-60.0, 60.0, 241)
    grid = max(_count(question, np.array([0.0, b, c])) for b in axis for c in axis)
    found = best_response(question, SearchSettings(), seed)
    assert _count(question, found) >= grid > _count(question, question.start)


def test_a_step_has_as_many_right_as_it_says_and_no_other_has_more():
    question = _random_question(7)
    direction = np.array([1.0, -0.5, 0.2])
    step, right = best_step(question, question.start, direction)
    assert _count(question, question.start + step * direction) == right
    others = [_count(question, s * direction) for s in np.linspace(-80.0, 80.0, 4001)]
    assert max(others) <= right


def test_a_step_by_hand():
    """Class 0 needs v₀ > 1 at the first node and v₀ > 3 at the second; the third, of class 1, needs
    v₀ < 2; the fourth sees nothing of v."""
    constant = np.array([[0.0, 1.0], [0.0, 3.0], [0.0, 2.0], [5.0, 0.0]])
    question = Question(
        constant, np.array([1.0, 1.0, 1.0, 0.0]), np.array([0, 0, 1, 1]), np.zeros(2)
    )
    step, right = best_step(question, question.start, np.array([1.0, 0.0]))
    assert right == 2
    assert 1.0 < step < 2.0


def test_the_bound_is_replayed_on_the_model_and_above_the_row_as_written(prepared):
    as_written = _right(prepared, _fit(prepared, get_baseline("replace-one")).scores)
    drawn = _fit(prepared, READINGS["best-on-test"])
    best = _fit(prepared, READINGS["best-class-on-test"])
    changed = (drawn.features != prepared.task.x).any(dim=1)
    mine = prepared.task.train_mask & (prepared.task.y == drawn.decision["class"])
    assert torch.equal(changed, mine)
    assert torch.equal(prepared.frozen(drawn.features, prepared.task.edge_index), drawn.scores)
    assert as_written <= _right(prepared, drawn.scores) <= _right(prepared, best.scores)


def test_the_leak_replaces_training_and_test_nodes_of_one_class(prepared):
    result = _fit(prepared, READINGS["leak"])
    task = prepared.task
    changed = (result.features != task.x).any(dim=1)
    known = task.train_mask | task.test_mask
    assert torch.equal(changed, known & (task.y == result.decision["class"]))


def test_after_the_hops_no_other_node_is_moved(prepared):
    result = _fit(prepared, get_baseline("replace-one-after-hops"))
    moved = ~torch.isclose(result.scores, prepared.base, atol=1e-4).all(dim=1)
    mine = prepared.task.train_mask & (prepared.task.y == result.decision["class"])
    assert torch.equal(moved, mine)
    one_hot = torch.eye(prepared.task.n_classes)[result.decision["class"]]
    assert torch.allclose(result.scores[mine], one_hot.expand(int(mine.sum()), -1), atol=1e-3)


@pytest.mark.parametrize("name", READINGS)
def test_without_test_labels_these_readings_refuse(prepared, name):
    with pytest.raises(DataError, match="needs the labels of the test nodes"):
        _fit(prepared, READINGS[name], labels=False)


def test_a_run_hands_the_erased_labels_to_a_reading(prepared):
    row = InformedSpec(dataset="sbm", method="best-on-test").measure(0)
    test = prepared.task.test_mask
    right = _right(prepared, _fit(prepared, READINGS["best-on-test"]).scores)
    assert row["accuracy"] == pytest.approx(100 * right / int(test.sum()), abs=1e-4)
    assert row["base"] <= row["accuracy"]
