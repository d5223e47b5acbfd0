"""Methods as the experiments call them."""

from __future__ import annotations

import pytest
import torch
from small_graphs import shifted_task, trained

from graphkeel.core.errors import ConfigError
from graphkeel.models import accuracy
from graphkeel.reconstruct import METHODS, get_method


@pytest.fixture(scope="module")
def shifted():
    task = shifted_task()
    return task, trained(task)


def run(name, shifted, seed=0):
    task, frozen = shifted
    nodes = [mask.nonzero().flatten() for mask in (task.train_mask, task.val_mask)]
    return get_method(name).fit_predict(frozen, task.without_test_labels(), *nodes, seed)


@pytest.mark.parametrize("name", sorted(METHODS))
def test_every_method_scores_every_node_or_leaves_the_model_alone(shifted, name):
    task, _ = shifted
    result = run(name, shifted)
    assert "chosen" in result.decision
    if result.scores is None:
        assert result.features is None
        assert result.decision["chosen"] == []
    else:
        assert result.scores.shape == (task.n_nodes, task.n_classes)
        assert torch.isfinite(result.scores).all()


def test_auto_repairs_shifted_digits(shifted):
    task, frozen = shifted
    base = accuracy(frozen(task.x, task.edge_index), task, task.test_mask)
    assert accuracy(run("auto", shifted).scores, task, task.test_mask) > base + 5


def test_scores_are_the_frozen_models_own_on_the_new_features(shifted):
    task, frozen = shifted
    result = run("auto", shifted)
    assert torch.equal(result.scores, frozen(result.features, task.edge_index))


def test_test_labels_change_nothing_to_the_last_bit(shifted):
    """Scrambled test labels, and even none at all, give bit-identical results."""
    from dataclasses import replace

    task, frozen = shifted
    scrambled = torch.where(task.test_mask, (task.y + 1) % task.n_classes, task.y)
    nodes = [mask.nonzero().flatten() for mask in (task.train_mask, task.val_mask)]
    results = [
        get_method("auto").fit_predict(frozen, replace(task, y=y), *nodes, 0)
        for y in (task.y, scrambled)
    ]
    assert torch.equal(results[0].features, results[1].features)
    assert results[0].decision == results[1].decision


def test_the_papers_replacement_names_its_class_and_how_exact_it_is(shifted):
    decision = run("replace-one", shifted).decision
    assert decision["chosen"][0].startswith("replace(class ")
    assert decision["residual"] < 1e-4


def test_unknown_methods_are_refused():
    with pytest.raises(ConfigError, match="the method must be one of none, replace"):
        get_method("hope")
