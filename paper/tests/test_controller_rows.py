"""Controllers as methods: they reach their target, touch one class's training nodes, and leave the
rest alone."""

from __future__ import annotations

import pytest
import torch

from graphkeel.core.errors import ConfigError
from graphkeel.runs.run import label_budget, prepare
from graphkeel_paper.baselines.frozen.controllers import ControllerMethod
from graphkeel_paper.specs import RunSpec


@pytest.fixture(scope="module")
def prepared():
    return prepare(RunSpec(dataset="sbm"), seed=0)


def _fit(prepared, **options):
    labelled, validation = label_budget(prepared.task, "train", 0)
    method = ControllerMethod(**options)
    return method.fit_predict(
        prepared.frozen, prepared.task.without_test_labels(), labelled, validation, 0
    )


@pytest.mark.parametrize("controller", ["deadbeat", "lqr", "pid", "mfac-probed"])
def test_controllers_reach_the_target_and_agree(prepared, controller):
    result, closed_form = (
        _fit(prepared, controller=controller),
        _fit(prepared, controller="deadbeat"),
    )
    assert result.decision["residual"] < 1e-3
    assert torch.equal(result.scores.argmax(-1), closed_form.scores.argmax(-1))


def test_one_class_of_training_nodes_is_replaced(prepared):
    result = _fit(prepared)
    changed = (result.features != prepared.task.x).any(dim=1).nonzero().flatten()
    (label,) = result.decision["classes"]
    mine = prepared.task.train_mask & (prepared.task.y == label)
    assert torch.equal(changed, mine.nonzero().flatten())


def test_all_classes_means_all_training_nodes(prepared):
    result = _fit(prepared, classes="all")
    changed = (result.features != prepared.task.x).any(dim=1)
    assert torch.equal(changed, prepared.task.train_mask)


def test_bad_options_are_refused():
    with pytest.raises(ConfigError, match="the controller must be one of"):
        ControllerMethod(controller="bang-bang")
    with pytest.raises(ConfigError, match="'one' or 'all'"):
        ControllerMethod(classes="some")
