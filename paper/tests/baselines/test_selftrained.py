"""A rival with a round of self-training: what becomes a label, and that both rounds stand to
choice."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from graphkeel.core.errors import ConfigError
from graphkeel.graph import UNLABELLED
from graphkeel.runs.method import Given
from graphkeel.runs.run import label_budget, prepare
from graphkeel_paper.baselines.registry import get_baseline
from graphkeel_paper.baselines.rival import with_pseudo_labels
from graphkeel_paper.specs import RunSpec
from graphkeel_paper.tables.filled import TABLES


def test_the_surest_predictions_of_each_class_become_labels(make_task):
    task = make_task()  # six nodes, two classes
    labelled, validation = torch.tensor([0]), torch.tensor([5])
    nobody = torch.zeros(6, dtype=torch.bool)
    y = torch.full_like(task.y, UNLABELLED).index_copy(0, labelled, task.y[:1])
    hidden = replace(task, y=y, train_mask=nobody, val_mask=nobody, test_mask=nobody)
    first = torch.tensor([0.5, 0.9, 0.8, 0.4, 0.1, 0.9])
    beliefs = torch.stack([first, 1 - first], dim=1)
    given = Given(None, hidden, labelled, validation, 0)
    taught = with_pseudo_labels(given, beliefs, share=0.5)
    assert taught.labelled.tolist() == [0, 1, 4]  # one of {1, 2}, one of {3, 4}; 0 and 5 are taken
    assert taught.task.y[[1, 4]].tolist() == [0, 1]
    assert taught.task.y[[0, 2, 3, 5]].tolist() == hidden.y[[0, 2, 3, 5]].tolist()
    assert given.labelled.tolist() == [0] and hidden.y[1] == UNLABELLED


@pytest.mark.parametrize("name", ["t3a", "cs", "smooth", "lp", "retrain"])
@pytest.mark.parametrize("labels", ["train", "train+val"])
def test_both_rounds_stand_to_choice(name, labels):
    prepared = prepare(RunSpec(dataset="sbm"), seed=0)
    task = prepared.task.without_test_labels()
    nodes = label_budget(task, labels, 0)
    method = get_baseline(f"{name}+self")
    result = method.fit_predict(prepared.frozen, task, *nodes, 0)
    assert result.scores.shape == (task.n_nodes, task.n_classes)
    (chosen,) = result.decision["chosen"]
    assert chosen.startswith(("{'round': 1", "{'round': 2"))
    settings = [one.setting for one in method.candidates(Given(prepared.frozen, task, *nodes, 0))]
    count = len(settings) // 2
    first, second = settings[:count], settings[count:]
    assert [{**one, "round": 2} for one in first] == second


def test_known_labels_stand_before_all_others_in_their_templates():
    prepared = prepare(RunSpec(dataset="sbm"), seed=0)
    task = prepared.task.without_test_labels()
    nodes = label_budget(task, "train", 0)
    plain, known = (
        {str(c.setting): c.result.scores for c in get_baseline(name).candidates(given)}
        for name in ("t3a", "t3a-known")
        for given in [Given(prepared.frozen, task, *nodes, 0)]
    )
    assert plain.keys() == known.keys()
    assert any(not torch.equal(plain[one], known[one]) for one in plain)


@pytest.mark.parametrize("name", ["lame", "rivals", "auto-magic", "mh-aug"])
def test_what_has_no_use_for_labels_is_refused(name):
    with pytest.raises(ConfigError):
        get_baseline(f"{name}+self")


def test_tables_have_these_rows():
    for name in (1, "examination"):
        methods = {row.method for row in TABLES[name].rows}
        assert {"t3a+self", "cs+self", "smooth+self", "lp+self", "retrain+self"} <= methods
