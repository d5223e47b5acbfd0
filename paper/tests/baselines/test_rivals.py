"""The rivals, on cases worked out by hand."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from graphkeel.models import build_model
from graphkeel.models.frozen import FrozenModel
from graphkeel.reconstruct import Labels
from graphkeel.runs.method import MethodResult
from graphkeel_paper.baselines import get_baseline
from graphkeel_paper.baselines.frozen.embeddings import (
    Embedding,
    classified_embedding,
    gaussian_kernel,
    in_batches,
    neighbour_affinity,
    pulled_together,
    template_scores,
)
from graphkeel_paper.baselines.frozen.propagation import (
    SETTINGS,
    Setting,
    correct,
    normalisations,
)
from graphkeel_paper.baselines.rival import Candidate, Judged, Rival, folds, scored


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
    norms = normalisations(torch.tensor([[0, 1], [1, 0]]), 2)
    beliefs = torch.tensor([[0.5, 0.5], [0.5, 0.5]])
    labels = Labels(torch.tensor([0]), torch.tensor([0]), 2)
    setting = Setting(0.8, 0.8)
    found = correct(beliefs, labels, norms, setting)
    torch.testing.assert_close(found, torch.tensor([[1.0, 0.0], [1.0, 0.0]]))


def test_correction_without_a_labelled_neighbour_changes_nothing():
    norms = normalisations(torch.zeros(2, 0, dtype=torch.int64), 2)
    beliefs = torch.tensor([[0.6, 0.4], [0.3, 0.7]])
    labels = Labels(torch.tensor([0]), torch.tensor([0]), 2)
    setting = Setting(0.8, 0.8)
    found = correct(beliefs, labels, norms, setting)
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


def test_neighbour_affinity_counts_five_others():
    torch.manual_seed(0)
    matrix = neighbour_affinity(torch.randn(12, 3))(torch.eye(12))
    assert matrix.diagonal().abs().max() == 0
    assert matrix.sum(dim=1).tolist() == [5.0] * 12


def test_gaussian_affinity_is_the_authors():
    """σ is the mean distance to the k-th nearest, the node itself among them."""
    torch.manual_seed(0)
    unit = torch.nn.functional.normalize(torch.randn(30, 4), dim=1)
    log_beliefs = torch.randn(30, 3).log_softmax(dim=1)
    distances = torch.cdist(unit, unit)
    sigma = distances.sort(dim=1).values[:, 2].mean()
    weights = torch.exp(-(distances**2) / (2 * sigma**2))
    torch.testing.assert_close(gaussian_kernel(3)(unit), weights)
    found = in_batches(log_beliefs, unit, gaussian_kernel(3), seed=0)  # all in one batch
    torch.testing.assert_close(found, pulled_together(log_beliefs, weights.matmul))


def test_correct_and_smooth_has_the_authors_normalisations_and_17_settings():
    assert len(set(SETTINGS)) == 17
    path = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
    found = {name: matrix.toarray() for name, matrix in normalisations(path, 4).items()}
    assert found["DA"][1].tolist() == [0.5, 0, 0.5, 0]
    assert found["AD"][:, 1].tolist() == [0.5, 0, 0.5, 0]
    assert found["DAD"][0, 1] == pytest.approx(0.5**0.5)
    assert all(matrix[3].sum() == 0 and matrix.diagonal().sum() == 0 for matrix in found.values())


class Known(Rival):
    """Settings whose answers are known; `leak` copies the labels it is given."""

    name = "known"

    def __init__(self, answers):
        self.answers = answers

    def candidates(self, given):
        task, labelled = given.task, given.labelled
        for name, answer in self.answers.items():
            scores = torch.nn.functional.one_hot(answer, 2).float()
            if name == "leak":
                scores[labelled] = torch.nn.functional.one_hot(task.y[labelled], 2).float()
            yield scored({"s": name}, scores)


def test_settings_are_chosen_on_validation_and_ties_go_to_the_published_one(make_task):
    task = make_task()
    rival = Known({"wrong": 1 - task.y, "right": task.y, "right too": task.y})
    frozen = FrozenModel(lambda x, edge_index: torch.zeros(len(x), 2))
    nobody = torch.tensor([], dtype=torch.int64)
    found = rival.fit_predict(frozen, task, torch.tensor([0]), torch.tensor([1, 4]))
    assert found.decision["chosen"] == ["{'s': 'right'}"]
    found = rival.fit_predict(frozen, task, nobody, nobody)
    assert found.decision["chosen"] == ["{'s': 'wrong'}"]
    assert found.decision["n_labels"] == 0


def test_without_validation_labels_serve_and_judge_by_cross_fitting(make_task):
    """A setting that repeats the labels it is given is right on them, and says nothing."""
    task = make_task()
    rival = Known({"leak": 1 - task.y, "right": task.y})
    frozen = FrozenModel(lambda x, edge_index: torch.zeros(len(x), 2))
    labelled = torch.tensor([1, 2, 3, 4])  # two of them the model was not trained on
    nobody = torch.tensor([], dtype=torch.int64)
    found = rival.fit_predict(frozen, task, labelled, nobody)
    assert found.decision["chosen"] == ["{'s': 'right'}"]
    assert found.decision["n_labels"] == int((~task.train_mask[labelled]).sum())


def test_folds_are_a_partition():
    nodes = torch.arange(10, 33)
    parts = folds(nodes, seed=3)
    assert len(parts) == 5
    assert torch.equal(torch.cat(parts).sort().values, nodes)
    assert len(folds(nodes[:2], seed=0)) == 2


def test_a_candidate_without_scores_has_nothing_right(make_task):
    judged = Judged.on(Candidate({}, MethodResult()), make_task(), torch.tensor([0, 1]))
    assert judged.correct.tolist() == [False, False]
