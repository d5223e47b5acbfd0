"""The rivals, on cases worked out by hand."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from graphkeel.models import build_model
from graphkeel.models.frozen import FrozenModel
from graphkeel.paper.baselines import get_baseline
from graphkeel.paper.baselines.frozen.correct_and_smooth import correct
from graphkeel.paper.baselines.frozen.embeddings import Embedding, classified_embedding
from graphkeel.paper.baselines.frozen.lame import neighbour_affinity, pulled_together
from graphkeel.paper.baselines.frozen.t3a import template_scores
from graphkeel.paper.baselines.rival import best_on_validation, scored
from graphkeel.reconstruct import Labels, Propagator


@pytest.mark.parametrize("name", ["t3a", "cs", "smooth", "lame", "lp"])
def test_every_rival_scores_every_node(make_task, name):
    task = make_task()
    torch.manual_seed(0)
    frozen = FrozenModel(build_model("sgc", 2, 2))
    result = get_baseline(name).fit_predict(
        frozen, task, torch.tensor([0, 5]), torch.tensor([1, 4]), 0
    )
    assert result.scores.shape == (6, 2)
    assert torch.isfinite(result.scores).all()
    assert result.features is None


def test_label_propagation_gives_a_path_to_its_nearer_end(make_task):
    task = make_task()
    frozen = FrozenModel(lambda x, edge_index: torch.zeros(len(x), 2))
    ends = torch.tensor([0, 5])
    result = get_baseline("lp").fit_predict(frozen, task, ends, torch.tensor([1, 4]), 0)
    assert result.scores.argmax(dim=1).tolist() == [0, 0, 0, 1, 1, 1]


def test_smoothing_outvotes_a_model_that_is_wrong_at_one_node(make_task):
    task = make_task()
    beliefs = torch.tensor([[3.0, 0.0], [0.0, 0.5], [3.0, 0.0], [0.0, 3.0], [0.0, 3.0], [0.0, 3.0]])
    frozen = FrozenModel(lambda x, edge_index: beliefs)
    result = get_baseline("smooth").fit_predict(
        frozen, task, torch.tensor([0, 2]), torch.tensor([4]), 0
    )
    assert result.scores.argmax(dim=1)[1] == 0


def test_correction_moves_unlabelled_nodes_as_far_as_labelled_ones():
    """On a single edge the labelled node's error reaches its neighbour, scaled to the same size."""
    propagator = Propagator(torch.tensor([[0, 1], [1, 0]]), 2)
    beliefs = torch.tensor([[0.5, 0.5], [0.5, 0.5]])
    found = correct(beliefs, Labels(torch.tensor([0]), torch.tensor([0]), 2), propagator, 0.8)
    torch.testing.assert_close(found, torch.tensor([[1.0, 0.0], [1.0, 0.0]]))


def test_correction_without_a_labelled_neighbour_changes_nothing():
    propagator = Propagator(torch.zeros(2, 0, dtype=torch.int64), 2)
    beliefs = torch.tensor([[0.6, 0.4], [0.3, 0.7]])
    found = correct(beliefs, Labels(torch.tensor([0]), torch.tensor([0]), 2), propagator, 0.8)
    torch.testing.assert_close(found[1], beliefs[1])


def test_templates_follow_the_surest_nodes_of_a_class():
    nodes = torch.tensor([[1.0, 0.0], [0.0, 1.0], [0.0, 1.0], [0.7, 0.8]])
    logits = torch.tensor([[4.0, 0.0], [0.0, 4.0], [0.0, 3.0], [0.1, 0.0]])
    found = template_scores(Embedding(nodes, torch.eye(2), logits), None)
    # class 0: (1,0) + (1,0) + (0.7,0.8)/|.|; class 1: (0,1) three times; the last node is nearer to
    # class 0's template
    first = torch.tensor([1.0, 0.0]) * 2 + nodes[3] / nodes[3].norm()
    assert found[3, 0] == pytest.approx(float(nodes[3] @ first / nodes[3].norm() / first.norm()))
    assert found[3].argmax() == 0
    one = template_scores(Embedding(nodes, torch.eye(2), logits), 1)
    torch.testing.assert_close(one[0], torch.tensor([1.0, 0.0]))


def test_the_embedding_is_what_the_last_linear_layer_reads(make_task):
    task = make_task()
    model = build_model("sgc", 2, 2)
    found = classified_embedding(FrozenModel(model), task)
    assert torch.equal(found.weights, model.conv.lin.weight)
    torch.testing.assert_close(found.nodes @ found.weights.T + model.conv.lin.bias, found.logits)


def test_a_model_that_propagates_last_is_represented_by_its_logits(make_task):
    task = make_task()
    found = classified_embedding(FrozenModel(build_model("appnp", 2, 2).eval()), task)
    assert torch.equal(found.nodes, found.logits)
    assert torch.equal(found.weights, torch.eye(2))


def test_a_plain_mlp_has_its_penultimate_layer(make_task):
    class Mlp(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second = nn.Linear(2, 5), nn.Linear(5, 2)

        def forward(self, x, edge_index):
            return self.second(self.first(x).relu())

    assert classified_embedding(FrozenModel(Mlp()), make_task()).nodes.shape == (6, 5)


def test_pulling_together_flips_a_lone_dissenter():
    log_beliefs = torch.tensor([[0.9, 0.1], [0.9, 0.1], [0.45, 0.55]]).log()
    assert pulled_together(log_beliefs, lambda y: y.sum(dim=0, keepdim=True) - y).argmax(
        dim=1
    ).tolist() == [0, 0, 0]


def test_neighbour_affinity_is_symmetric_and_without_self():
    torch.manual_seed(0)
    matrix = neighbour_affinity(torch.randn(12, 3))(torch.eye(12))
    torch.testing.assert_close(matrix, matrix.T)
    assert matrix.diagonal().abs().max() == 0
    assert matrix.sum() == 12 * 5


def test_settings_are_chosen_on_validation_and_ties_go_to_the_published_one(make_task):
    task = make_task()
    right = torch.nn.functional.one_hot(task.y, 2).float()
    tried = [scored({"s": 1}, right.flip(1)), scored({"s": 2}, right), scored({"s": 3}, right)]
    chosen = best_on_validation(tried, task, torch.tensor([1, 4])).decision["chosen"]
    assert chosen == ["{'s': 2}"]
    nobody = torch.tensor([], dtype=torch.int64)
    assert best_on_validation(tried, task, nobody).decision["chosen"] == ["{'s': 1}"]
    with pytest.raises(ValueError, match="at least one setting"):
        best_on_validation([], task, torch.tensor([1]))
