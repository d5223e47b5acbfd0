"""Controllers as methods: they reach their target, touch one class's training nodes, and leave the
rest alone."""

from __future__ import annotations

import itertools
import time
from dataclasses import replace

import numpy as np
import pytest
import torch

from graphkeel.core.errors import ConfigError
from graphkeel.runs.run import label_budget, prepare
from graphkeel.verify import Network, Problem, verify
from graphkeel_paper.baselines.frozen import controllers
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


@pytest.mark.parametrize("controller", ["literal", "neural-paper"])
def test_the_papers_form_ends_by_rounds_whatever_the_clock_says(prepared, controller, monkeypatch):
    limits = replace(
        controllers._LIMITS, rounds=2, boxes=50, literal_rounds=4, solver_steps=100_000
    )
    monkeypatch.setattr(controllers, "_LIMITS", limits)
    first = _fit(prepared, controller=controller)
    ahead = itertools.count(step=1000.0)
    monkeypatch.setattr(time, "monotonic", lambda: next(ahead))  # a machine that stands still
    again = _fit(prepared, controller=controller)
    assert torch.equal(first.scores, again.scores)
    assert first.decision == again.decision
    (proof,) = first.decision["proofs"]
    assert proof["rounds"] <= 4
    assert set(proof["conditions"]) == {"positivity", "decrease"}


def test_the_literal_row_asks_z3_where_a_search_finds_nothing(monkeypatch):
    """V(y) = |y| and a loop that halves every state: no violation, and Z3 says so."""
    asked = []
    monkeypatch.setattr(controllers, "verify", _counted(asked))
    problem = _halving_loop()
    report = controllers._solver_oracle(problem, seconds=60.0, complete=True)
    assert asked == ["falsify", "smt"]
    verdicts = {c.condition: c.verdict.value for c in report.conditions}
    assert verdicts["positivity"] == verdicts["decrease"] == "proved"
    assert verdicts["invariance"] == "unknown"  # not asked


def _halving_loop():
    split = np.array([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]])
    loop = Network.of((split, np.zeros(4)), (0.5 * split.T, np.zeros(2)))
    value = Network.of((split, np.zeros(4)), (np.ones((1, 4)), np.zeros(1)))
    box = np.ones(2)
    return Problem(loop, value, -box, box, 0 * box, 0.125, rho=0.75, positivity=0.5)


def _counted(asked):
    def ask(problem, engine, *rest):
        asked.append(engine)
        return verify(problem, engine, *rest)

    return ask
