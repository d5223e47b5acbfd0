"""Results computed side by side, or once for many, are those of each alone."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from graphkeel.models import build_model
from graphkeel.models.frozen import FrozenModel
from graphkeel.models.networks import propagated
from graphkeel.runs.method import Given
from graphkeel_paper.baselines.frozen.gtrans import Views
from graphkeel_paper.baselines.retrained import words
from graphkeel_paper.baselines.retrained.copies import TrainableCopy, scores_of


@pytest.mark.parametrize("kind", [{}, {"name": "appnp-words", "hidden": 4, "hops": 3}])
def test_words_settings_do_not_touch_one_another(make_task, kind):
    task = make_task()
    labelled = torch.tensor([0, 5])
    frozen = FrozenModel(lambda x, edge_index: x)
    row = words.Words(**kind)
    given = Given(frozen, task, labelled, labelled[:0], 3)
    together = list(row.candidates(given))
    for place, setting in enumerate(row.settings):
        (alone,) = replace(row, settings=(setting,)).candidates(
            Given(frozen, task, labelled, labelled[:0], 3)
        )
        assert alone.setting == together[place].setting
        torch.testing.assert_close(
            alone.result.scores, together[place].result.scores, rtol=1e-3, atol=1e-4
        )


@pytest.mark.parametrize("kind", [{}, {"name": "appnp-words", "hidden": 4, "hops": 3}])
def test_words_sets_of_labels_do_not_touch_one_another(make_task, kind):
    task = make_task()
    row = words.Words(**kind)
    frozen = FrozenModel(lambda x, edge_index: x)
    sets = [torch.tensor([0, 1, 5]), torch.tensor([0, 5]), torch.tensor([1, 5])]
    given = Given(frozen, task, sets[0], sets[0][:0], 3)
    together = row.candidates_of(given, sets)
    for labelled, found in zip(sets, together, strict=True):
        for alone, beside in zip(
            row.candidates(Given(frozen, task, labelled, labelled[:0], 3)), found, strict=True
        ):
            assert alone.setting == beside.setting
            torch.testing.assert_close(
                alone.result.scores, beside.result.scores, rtol=1e-3, atol=1e-4
            )


@pytest.mark.parametrize("kind", [{}, {"name": "appnp-words", "hidden": 4, "hops": 3}])
def test_words_training_sees_what_all_nodes_receive_also_along_directed_edges(make_task, kind):
    task = make_task()
    directed = replace(task, edge_index=task.edge_index[:, task.edge_index[0] < task.edge_index[1]])
    nodes = torch.tensor([0, 4, 5])
    networks = words._Networks(words.Words(**kind), directed, nodes, 1, 3)
    values = torch.rand(task.n_nodes, 4, 2)
    seen = networks.train()._last_hops(values)
    torch.testing.assert_close(seen, networks.eval()._last_hops(values)[nodes])


def test_hops_made_once_answer_as_the_model_and_notice_changes(make_task):
    task = make_task()
    torch.manual_seed(0)
    model = build_model("sgc", 2, 2)
    assert torch.equal(scores_of(model, task.x, task.edge_index), model(task.x, task.edge_index))
    assert propagated(model, task.x, task.edge_index) is propagated(model, task.x, task.edge_index)
    task.x[0] += 1.0
    assert torch.equal(scores_of(model, task.x, task.edge_index), model(task.x, task.edge_index))
    fewer = task.edge_index[:, 2:]
    assert torch.equal(scores_of(model, task.x, fewer), model(task.x, fewer))
    deeper = build_model("sgc", 2, 2, k=1)
    assert torch.equal(scores_of(deeper, task.x, fewer), deeper(task.x, fewer))
    copied = TrainableCopy(FrozenModel(model), task)
    assert torch.equal(copied.scores(), model(task.x, task.edge_index))


def test_gtrans_sees_what_the_sgc_says_of_weighted_edges(make_task):
    task = make_task()
    torch.manual_seed(0)
    model = build_model("sgc", 2, 2)
    weights = torch.rand(task.n_edges)
    views = Views(FrozenModel(model), task)
    expected = model.conv(task.x, task.edge_index, edge_weight=weights)
    torch.testing.assert_close(views.logits(task.x, weights), expected)
