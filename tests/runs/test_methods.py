"""Methods as the experiments call them."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from graphkeel.core.errors import ConfigError, DataError
from graphkeel.graph import load
from graphkeel.models import accuracy, train_model
from graphkeel.models.frozen import FrozenModel
from graphkeel.runs import METHODS, get_method
from graphkeel.runs.methods import untrained


@pytest.fixture(scope="module")
def shifted():
    """The embedded digits: labels come from one corner of each class."""
    task = load("digits", seed=0)
    return task, FrozenModel(train_model("sgc", task, seed=0), n_classes=task.n_classes)


@pytest.fixture(scope="module")
def results(shifted):
    return {name: run(name, shifted) for name in METHODS}


def run(name, shifted, seed=0):
    task, frozen = shifted
    nodes = [mask.nonzero().flatten() for mask in (task.train_mask, task.val_mask)]
    return get_method(name).fit_predict(frozen, task.without_test_labels(), *nodes, seed)


@pytest.mark.parametrize("name", sorted(METHODS))
def test_every_method_scores_every_node_or_leaves_the_model_alone(shifted, results, name):
    task, _ = shifted
    result = results[name]
    if result.scores is None:
        assert result.features is None
        assert result.decision["kept"] is False
    else:
        assert result.scores.shape == (task.n_nodes, task.n_classes)
        assert torch.isfinite(result.scores).all()


def test_auto_repairs_shifted_digits(shifted, results):
    task, frozen = shifted
    base = accuracy(frozen(task.x, task.edge_index), task, task.test_mask)
    assert accuracy(results["auto"].scores, task, task.test_mask) > base + 5


def test_scores_are_the_frozen_models_own_on_the_new_features(shifted, results):
    task, frozen = shifted
    result = results["auto"]
    assert torch.equal(result.scores, frozen(result.features, task.edge_index))


def test_controls_show_what_the_model_contributes(shifted, results):
    """Where labels are many, neither its evidence nor its weights are needed."""
    task, frozen = shifted
    base = accuracy(frozen(task.x, task.edge_index), task, task.test_mask)
    for name in ("no-model", "random-weights"):
        assert accuracy(results[name].scores, task, task.test_mask) > base


def test_random_weights_keep_form_and_forget_the_rest(shifted):
    _, frozen = shifted
    twins = [untrained(frozen.model, seed) for seed in (0, 0, 1)]
    own = [next(model.parameters()) for model in (frozen.model, *twins)]
    assert len({tuple(one.shape) for one in own}) == 1
    assert not torch.equal(own[0], own[1])
    assert torch.equal(own[1], own[2]) and not torch.equal(own[1], own[3])


def test_test_labels_change_nothing_to_the_last_bit(shifted, results):
    task, frozen = shifted
    scrambled = torch.where(task.test_mask, (task.y + 1) % task.n_classes, task.y)
    nodes = [mask.nonzero().flatten() for mask in (task.train_mask, task.val_mask)]
    again = get_method("auto").fit_predict(frozen, replace(task, y=scrambled), *nodes, 0)
    assert torch.equal(again.features, results["auto"].features)
    assert again.decision == results["auto"].decision


def test_no_label_at_all_leaves_the_model_and_the_graph(shifted):
    task, frozen = shifted
    nobody = torch.zeros(0, dtype=torch.int64)
    for name in ("auto", "random-weights"):
        result = get_method(name).fit_predict(frozen, task.without_test_labels(), nobody, nobody, 0)
        assert torch.isfinite(result.scores).all()
    with pytest.raises(DataError, match="needs labelled nodes"):
        get_method("no-model").fit_predict(frozen, task, nobody, nobody, 0)


def test_leaks_and_unknown_names_are_refused(shifted):
    task, frozen = shifted
    both = torch.tensor([0, 1])
    with pytest.raises(DataError, match="never both"):
        get_method("auto").fit_predict(frozen, task, both, both, 0)
    with pytest.raises(ConfigError, match="the method must be one of none, replace"):
        get_method("hope")
