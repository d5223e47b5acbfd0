"""Candidates for graphs whose neighbours differ, for a second round, and for known class shares."""

from __future__ import annotations

import time

import pytest
import torch
from torch_geometric.data import Data

import graphkeel as gk
from graphkeel.core.errors import ConfigError
from graphkeel.models.networks import SGC
from graphkeel.reconstruct import Builder, Labels, Posteriors, Prototype
from graphkeel.reconstruct.candidates.builder import Steered, sized, taught
from graphkeel.reconstruct.candidates.evidence import with_shares
from graphkeel.reconstruct.candidates.steer import missing_lead, steer
from graphkeel.reconstruct.context import Context
from graphkeel.reconstruct.guard.decision import Evaluation, best_of
from graphkeel.reconstruct.later.budget import within

N = 60


def crossed_graph(seed: int = 0) -> tuple[Data, SGC]:
    """Two classes with every edge between them, and a model that tells them by the sign of x."""
    rng = torch.Generator().manual_seed(seed)
    y = torch.arange(N) % 2
    ends = torch.randint(0, N // 2, (2, 4 * N), generator=rng)
    one, other = 2 * ends[0], 2 * ends[1] + 1
    edge_index = torch.cat([torch.stack([one, other]), torch.stack([other, one])], dim=1)
    signs = (2.0 * y - 1.0).unsqueeze(1)
    x = torch.cat([signs, -signs], dim=1) + 0.3 * torch.randn(N, 2, generator=rng)
    model = SGC(2, 2, k=1)
    with torch.no_grad():
        model.conv.lin.weight.copy_(torch.tensor([[-1.0, 1.0], [1.0, -1.0]]))
        model.conv.lin.bias.zero_()
    data = Data(x=x, edge_index=edge_index, y=y)
    data.train_mask = torch.zeros(N, dtype=torch.bool)
    data.val_mask = torch.arange(N) < N // 2
    return data, model


def context_of(data: Data, model: SGC) -> Context:
    return Context(gk.FrozenModel(model), data.x, data.edge_index)


def test_a_blend_is_blurred_by_neighbours_and_a_steered_one_is_not():
    data, model = crossed_graph()
    context = context_of(data, model)
    wanted = torch.nn.functional.one_hot(data.y, 2).float()
    blended = context.logits_for(context.blend(wanted)).argmax(dim=1)
    steered = context.logits_for(steer(context, wanted)).argmax(dim=1)
    assert (blended == data.y).float().mean() < 0.2
    assert (steered == data.y).float().mean() == 1.0


def test_a_model_without_gradients_gets_the_blend(monkeypatch):
    data, model = crossed_graph()
    context = context_of(data, model)
    context.linear = None
    monkeypatch.setattr(context, "differentiable_logits_for", context.logits_for)
    wanted = torch.nn.functional.one_hot(data.y, 2).float()
    torch.testing.assert_close(steer(context, wanted), context.blend(wanted))


@pytest.mark.parametrize("evidence", ["probe", "plain-probe"])
def test_evidence_that_does_not_lean_on_neighbours(evidence):
    data, model = crossed_graph()
    known = torch.arange(0, N, 3)
    labels = Labels(known, data.y[known], 2)
    posterior = Posteriors(context_of(data, model), labels)(Prototype(evidence))
    assert (posterior.argmax(dim=1) == data.y).float().mean() > 0.9
    torch.testing.assert_close(posterior.sum(dim=1), torch.ones(N))


def test_learned_recipes_weigh_as_much_as_all_others():
    data, model = crossed_graph()
    known = torch.arange(0, N, 3)
    posteriors = Posteriors(context_of(data, model), Labels(known, data.y[known], 2))
    learned, others = [Prototype("plain-probe")], [Prototype("model"), Prototype("labels")]
    expected = (posteriors.mean(learned) + posteriors.mean(others)) / 2.0
    torch.testing.assert_close(posteriors.mean([*learned, *others]), expected)


def test_less_risk_is_taken_where_neighbours_differ():
    data, model = crossed_graph()
    chooser = gk.Reconstructor(model, risk=0.5).fit(data)._chooser
    some = torch.arange(N)
    assert chooser.risk_for(Labels(some, data.y, 2)) == pytest.approx(0.15)
    assert chooser.risk_for(Labels(some, torch.zeros_like(data.y), 2)) == pytest.approx(0.15)
    chooser.risk = 1.0  # whatever is not worse
    assert chooser.risk_for(Labels(some, data.y, 2)) == 1.0


def test_the_whole_risk_is_taken_where_neighbours_agree():
    data, model = crossed_graph()
    ends = data.edge_index[0]
    data.edge_index = torch.stack([ends, (ends + 2) % N])  # two rings, a class each
    chooser = gk.Reconstructor(model, risk=0.5).fit(data)._chooser
    assert chooser.risk_for(Labels(torch.arange(N), data.y, 2)) == 0.5


def test_auto_steers_where_labels_say_that_neighbours_differ():
    data, model = crossed_graph()
    rec = gk.Reconstructor(model).fit(data)
    assert rec.guard_.chosen[0].startswith("steered(")
    hidden = ~data.val_mask
    before = model(data.x, data.edge_index).argmax(dim=1)
    after = rec.predict(data)
    assert (before == data.y)[hidden].float().mean() < 0.2
    assert (after == data.y)[hidden].float().mean() > 0.9


def test_steered_candidates_are_averaged_among_themselves():
    data, model = crossed_graph()
    known = torch.arange(0, N, 3)
    builder = Builder(context_of(data, model), Labels(known, data.y[known], 2))
    pair = [Steered(Prototype(kind)) for kind in ("probe", "discriminant")]
    mean = torch.stack([builder.posteriors(one.recipe) for one in pair]).mean(dim=0)
    torch.testing.assert_close(builder.features(pair), steer(builder.context, mean))


def test_the_second_round_learns_from_the_surest_nodes_of_the_mean():
    data, model = crossed_graph()
    known = torch.arange(0, N, 10)
    labels = Labels(known, data.y[known], 2)
    context = context_of(data, model)
    recipes = (Prototype("discriminant"), Prototype("cosine"))
    pupils = taught(recipes, recipes)
    assert [one.confident for one in pupils] == [0.1, 0.1, 0.3, 0.3]
    posteriors = Posteriors(context, labels)
    mean = (posteriors(recipes[0]) + posteriors(recipes[1])) / 2
    expected = Posteriors(context, labels.with_confident(mean, 0.3))(recipes[1])
    torch.testing.assert_close(posteriors(pupils[-1]), expected)


def test_leaders_of_another_kind_teach_nobody():
    steered = [Steered(Prototype("probe"))]
    assert taught(steered, [Prototype("cosine")]) == []
    assert sized(steered, [Prototype("cosine")]) == []


def test_sizes_follow_the_leaders():
    data, model = crossed_graph()
    known = torch.arange(0, N, 10)
    posteriors = Posteriors(context_of(data, model), Labels(known, data.y[known], 2))
    leader = Prototype("discriminant")
    (follower,) = sized([leader], [Prototype("labels")])
    assert follower.name == "labels>sized"
    counts = torch.bincount(posteriors(leader).argmax(dim=1), minlength=2) + 1.0
    expected = with_shares(posteriors(Prototype("labels")), counts / counts.sum())
    torch.testing.assert_close(posteriors(follower), expected)


def test_evidence_takes_the_shares_it_is_given():
    evidence = torch.rand(500, 3, generator=torch.Generator().manual_seed(1))
    evidence = evidence / evidence.sum(dim=1, keepdim=True)
    shares = torch.tensor([0.6, 0.3, 0.1])
    rescaled = with_shares(evidence, shares, rounds=200)
    torch.testing.assert_close(rescaled.mean(dim=0), shares, atol=1e-3, rtol=0)
    torch.testing.assert_close(rescaled.sum(dim=1), torch.ones(500))


@pytest.mark.parametrize("shares", [[0.5], [0.5, 0.6], [1.0, 0.0], "guess", object()])
def test_shares_that_are_none_are_refused(shares):
    data, model = crossed_graph()
    with pytest.raises(ConfigError, match="class_shares must be"):
        gk.Reconstructor(model, class_shares=shares).fit(data)


def test_shares_come_from_labels_that_the_model_was_not_trained_on():
    data, model = crossed_graph()
    data.train_mask = torch.arange(N) >= N - 6
    rec = gk.Reconstructor(model, class_shares="labels").fit(data)
    shares = rec._chooser._shares(rec.labels_, rec._validation)
    counts = torch.bincount(data.y[data.val_mask], minlength=2) + 1.0
    torch.testing.assert_close(shares, counts / counts.sum())
    assert any(score.name.endswith(">shares") for score in rec.guard_.scores)


def test_later_rounds_end_with_the_budget():
    def further(leaders, so_far):
        return [Prototype("cosine"), Prototype("labels")]

    (late,) = within([further], deadline=time.monotonic() - 1.0)
    (free,) = within([further], deadline=None)
    assert list(late([], [])) == []
    assert list(free([], [])) == further([], [])


def test_a_missing_lead_by_hand():
    logits = torch.tensor([[2.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
    posterior = torch.tensor([[0.3, 0.4, 0.3], [0.1, 0.1, 0.8]])
    # class 1 should lead by a half: it is 1.5 short of class 0; the second node leads by enough
    found = missing_lead(logits, posterior, lead=0.5)
    torch.testing.assert_close(found, torch.tensor((1.5 / 3 + 0.0) / 2))


def test_steered_candidates_come_first_where_neighbours_differ():
    """Nine labels right, of ten: the blend is lucky by one, and by four."""
    blend, steered = Prototype("probe"), Steered(Prototype("probe"))
    for behind, chosen in ((1, steered), (4, blend)):
        right = torch.tensor([True] * 9 + [False])
        fewer = torch.tensor([True] * (9 - behind) + [False] * (1 + behind))
        trials = {
            one: Evaluation(correct, 1, torch.zeros(10), torch.zeros(10, 2))
            for one, correct in ((blend, right), (steered, fewer))
        }
        assert best_of(trials) == blend
        assert best_of(trials, steered_first=True) == chosen
