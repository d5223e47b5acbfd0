"""The rewritings themselves."""

from __future__ import annotations

import pytest
import torch
from scipy.sparse.linalg import norm
from sklearn.linear_model import Ridge
from small_graphs import PATH, scene_of, shifted_task

from graphkeel.core.errors import ConfigError
from graphkeel.graph.propagate.propagator import Propagator
from graphkeel.reconstruct import (
    GRIDS,
    Builder,
    Diffuse,
    Labels,
    Posteriors,
    Prototype,
    Replace,
    replace,
)
from graphkeel.reconstruct.candidates.evidence import (
    balanced,
    both,
    class_means,
    corrected_evidence,
    cosine_evidence,
    discriminant_evidence,
    label_evidence,
)
from graphkeel.reconstruct.candidates.ridge import (
    RIDGES,
    SHARPNESSES,
    ridge_evidence,
    stacked_evidence,
)
from graphkeel.reconstruct.views import BENT, LINKED, ONE_HOP, OWN, SPREAD, TWO_HOPS, views_of

ANCHORS = torch.tensor([[10.0, 0.0], [0.0, 20.0]])
LABELS = Labels(torch.tensor([0, 2]), torch.tensor([1, 0]), 2)


def test_replace_all_classes_by_hand():
    x = torch.ones(3, 2)
    expected = torch.tensor([[0.0, 20.0], [1.0, 1.0], [10.0, 0.0]])
    torch.testing.assert_close(replace(x, LABELS, ANCHORS), expected)
    torch.testing.assert_close(x, torch.ones(3, 2))


def test_replace_one_class_leaves_the_others():
    expected = torch.tensor([[0.0, 20.0], [1.0, 1.0], [1.0, 1.0]])
    torch.testing.assert_close(replace(torch.ones(3, 2), LABELS, ANCHORS, only=1), expected)


def test_labels_can_be_taken_out_added_and_corrected():
    assert LABELS.without(torch.tensor([0])).nodes.tolist() == [2]
    more = LABELS.with_more(torch.tensor([1, 2]), torch.tensor([0, 1]))
    assert dict(zip(more.nodes.tolist(), more.classes.tolist(), strict=True)) == {0: 1, 2: 1, 1: 0}


def test_class_means_weigh_members():
    features, memberships = torch.tensor([[0.0], [4.0]]), torch.tensor([[1.0, 0.0], [1.0, 1.0]])
    torch.testing.assert_close(class_means(features, memberships), torch.tensor([[2.0], [4.0]]))


@pytest.mark.parametrize("evidence", [cosine_evidence, discriminant_evidence])
def test_feature_evidence_prefers_the_nearer_mean(evidence):
    torch.manual_seed(0)
    centres = torch.tensor([[3.0, 0.0], [0.0, 3.0]])
    classes = torch.arange(2).repeat(50)
    features = centres[classes] + 0.3 * torch.randn(100, 2)
    found = evidence(features, features[:10], torch.eye(2)[classes[:10]])
    torch.testing.assert_close(found.sum(dim=1), torch.ones(100))
    assert (found.argmax(dim=1) == classes).all()


def test_label_evidence_is_for_the_nearer_label_and_undecided_between():
    found = label_evidence(Propagator(PATH, 3), LABELS, 0.1, 20)
    assert found.argmax(dim=1)[[0, 2]].tolist() == [1, 0]
    assert found[1].tolist() == pytest.approx([0.5, 0.5], abs=1e-4)


def test_errors_seen_at_labels_are_taken_out_there_and_nearby():
    """A path 0 - 1 - 2: the model is surely wrong at both ends, undecided between."""
    beliefs = torch.tensor([[0.9, 0.1], [0.6, 0.4], [0.9, 0.1]])
    wrong = Labels(torch.tensor([0, 2]), torch.tensor([1, 1]), 2)
    found = corrected_evidence(Propagator(PATH, 3), beliefs, wrong)
    torch.testing.assert_close(found.sum(dim=1), torch.ones(3))
    assert found.argmax(dim=1).tolist() == [1, 1, 1]
    right = Labels(torch.tensor([0, 2]), torch.tensor([0, 0]), 2)
    assert corrected_evidence(Propagator(PATH, 3), beliefs, right).argmax(dim=1).tolist() == [0] * 3
    nobody = wrong.none()
    torch.testing.assert_close(corrected_evidence(Propagator(PATH, 3), beliefs, nobody), beliefs)


@pytest.mark.parametrize(("members", "width"), [(8, 30), (40, 5)])
def test_ridge_evidence_is_the_likeliest_when_each_member_is_left_out(members, width):
    torch.manual_seed(0)
    features = torch.randn(60, width)
    nodes = torch.arange(members)
    classes = nodes % 3
    features[nodes, classes] += 2.0
    memberships = torch.eye(3)[classes]

    def scores(kept, strength):
        """Of all nodes, from these members; the centre is that of all members."""
        alpha = strength * float((features[nodes] ** 2).sum(dim=1).mean())
        centre = memberships.mean(dim=0)
        fitted = Ridge(alpha=alpha, fit_intercept=False)
        fitted.fit(features[kept].numpy(), (memberships[kept] - centre).numpy())
        return torch.from_numpy(fitted.predict(features.numpy())) + centre

    likelihood = {}
    for strength in RIDGES:
        left_out = torch.stack([scores(nodes[nodes != node], strength)[node] for node in nodes])
        for sharpness in SHARPNESSES:
            said = (sharpness * left_out).log_softmax(dim=1)[nodes, classes]
            likelihood[strength, sharpness] = float(said.sum())
    strength, sharpness = max(likelihood, key=likelihood.get)
    expected = (sharpness * scores(nodes, strength)).softmax(dim=1).float()
    found = ridge_evidence(features, features[nodes], memberships)
    torch.testing.assert_close(found, expected, atol=1e-4, rtol=0)


def _two_moons_on_a_path(n=40):
    """Features in which no line tells the classes apart, and a path that tells nothing."""
    generator = torch.Generator().manual_seed(0)
    angles = torch.rand(n, generator=generator) * 6.28
    classes = torch.arange(n) % 2
    radii = 1.0 + 3.0 * classes
    x = torch.stack([radii * angles.cos(), radii * angles.sin(), torch.ones(n)], dim=1)
    path = torch.stack([torch.arange(n - 1), torch.arange(1, n)])
    return x, torch.cat([path, path.flip(0)], dim=1), classes


def test_views_are_unit_vectors_of_known_hops():
    x, edge_index, _ = _two_moons_on_a_path()
    propagator = Propagator(edge_index, len(x))
    views = views_of(x, propagator, edge_index, seed=0)
    own = x / x.norm(dim=1, keepdim=True)
    hop = propagator(own)
    torch.testing.assert_close(views[OWN], own)
    torch.testing.assert_close(views[ONE_HOP], hop / hop.norm(dim=1, keepdim=True))
    again = propagator(hop)
    torch.testing.assert_close(views[TWO_HOPS], again / again.norm(dim=1, keepdim=True))
    assert bool((views[BENT] >= 0).all())
    for name, view in views.items():
        lengths = view.norm(dim=1) if name != LINKED else torch.from_numpy(norm(view, axis=1))
        torch.testing.assert_close(lengths, torch.ones(len(x)))
    linked = views[LINKED].toarray()
    assert linked[0].nonzero()[0].tolist() == [1]  # the path's first node
    assert linked[5].nonzero()[0].tolist() == [4, 6]


def test_views_of_many_numbers_are_one(monkeypatch):
    x, edge_index, _ = _two_moons_on_a_path()
    propagator = Propagator(edge_index, len(x))
    monkeypatch.setattr("graphkeel.reconstruct.views.MOST_NUMBERS", 1000)
    views = views_of(x, propagator, edge_index, seed=0)
    nodes = torch.arange(20)
    memberships = torch.eye(2)[nodes % 2]
    assert set(views) == {SPREAD}
    torch.testing.assert_close(
        stacked_evidence(views, nodes, memberships),
        ridge_evidence(views[SPREAD], views[SPREAD][nodes], memberships),
    )


def test_stacked_evidence_is_one_probe_where_only_that_one_is_asked(monkeypatch):
    x, edge_index, classes = _two_moons_on_a_path()
    views = views_of(x, Propagator(edge_index, len(x)), edge_index, seed=0)
    nodes = torch.arange(20)
    memberships = torch.eye(2)[classes[nodes]]
    for name in (OWN, SPREAD):
        monkeypatch.setattr("graphkeel.reconstruct.candidates.ridge.PROBED", ((name,),))
        found = stacked_evidence(views, nodes, memberships)
        expected = ridge_evidence(views[name], views[name][nodes], memberships)
        torch.testing.assert_close(found, expected, atol=1e-5, rtol=0)


def test_stacked_evidence_turns_to_the_view_that_tells_classes_apart():
    """Features say nothing; whom a node is linked with says all: two hubs."""
    n = 40
    classes = torch.arange(n) % 2
    hubs = n + classes
    edges = torch.stack([torch.arange(n), hubs])
    edge_index = torch.cat([edges, edges.flip(0)], dim=1)
    x = torch.rand(n + 2, 6, generator=torch.Generator().manual_seed(1))
    views = views_of(x, Propagator(edge_index, n + 2), edge_index, seed=0)
    nodes = torch.arange(20)
    found = stacked_evidence(views, nodes, torch.eye(2)[classes[nodes]])
    torch.testing.assert_close(found.sum(dim=1), torch.ones(n + 2))
    assert found[20:n].argmax(dim=1).tolist() == classes[20:].tolist()


def test_balanced_evidence_gives_every_class_its_share():
    torch.manual_seed(0)
    skewed = (torch.rand(40, 3) + torch.tensor([2.0, 0.0, 0.0])).softmax(dim=1)
    assert balanced(skewed, rounds=200).mean(dim=0).tolist() == pytest.approx([1 / 3] * 3, abs=1e-3)


def test_both_is_the_geometric_mean():
    found = both(torch.tensor([[0.9, 0.1]]), torch.tensor([[0.5, 0.5]]))
    assert found.tolist()[0] == pytest.approx([0.75, 0.25])  # 3 : 1


@pytest.fixture(scope="module")
def situation():
    task = shifted_task()
    return task, *scene_of(task)


@pytest.mark.parametrize("prototype", GRIDS["prototype"], ids=lambda p: p.name)
def test_posteriors_are_distributions_that_keep_known_labels(situation, prototype):
    _, context, labels = situation
    posterior = Posteriors(context, labels)(prototype)
    torch.testing.assert_close(posterior.sum(dim=1), torch.ones(len(posterior)))
    assert (posterior >= 0).all()
    kept = (posterior[labels.nodes].argmax(dim=1) == labels.classes).float().mean()
    assert kept == 1 if not prototype.smooth else kept > 0.9


def test_the_frozen_model_answers_a_prototype_with_its_propagated_posterior(situation):
    """For SGC the claim is exact, up to the bias where rows of Ŝ do not sum to one."""
    _, context, labels = situation
    prototype = Prototype("cosine", with_labels=True)
    asked = (
        context.logits_for(Builder(context, labels).features((prototype,)))
        / context.anchors().strength
    )
    expected = Posteriors(context, labels)(prototype)
    for _ in range(3):
        expected = context.propagator(expected)
    torch.testing.assert_close(asked, expected, atol=0.3, rtol=0)
    assert (asked.argmax(1) == expected.argmax(1)).float().mean() > 0.97


def test_a_linear_model_is_asked_without_a_detour(situation):
    _, context, labels = situation
    builder = Builder(context, labels)
    fast = builder.scores((Prototype("labels"),))
    asked = context.logits_for(builder.features((Prototype("labels"),)))
    assert context.linear is not None
    torch.testing.assert_close(fast, asked, atol=1e-4, rtol=1e-4)


def test_several_prototypes_are_averaged(situation):
    _, context, labels = situation
    builder, (one, two) = Builder(context, labels), GRIDS["prototype"][:2]
    mean = (builder.features((one,)) + builder.features((two,))) / 2
    torch.testing.assert_close(builder.features((one, two)), mean, atol=1e-4, rtol=1e-4)


def test_no_member_means_the_features_as_they_are(situation):
    task, context, labels = situation
    assert torch.equal(Builder(context, labels).features(()), task.x)


def test_strengths_and_diffusions_are_built_as_named(situation):
    _, context, labels = situation
    builder = Builder(context, labels)
    replaced = builder.features((Replace(5.0),))
    torch.testing.assert_close(
        replaced[labels.nodes], context.anchors(5.0).features[labels.classes]
    )
    found = builder.diffusion(Diffuse(0.5, 5.0))
    assert found.contraction <= 0.5 + 1e-4
    assert torch.equal(builder.features((Diffuse(0.5, 5.0),)), found.features)


def test_names_in_a_grid_are_unique():
    for candidates in GRIDS.values():
        names = [candidate.name for candidate in candidates]
        assert len(set(names)) == len(names)


def test_unknown_steps_are_refused():
    with pytest.raises(ConfigError, match="the evidence must be one of model"):
        Prototype("tarot")
    with pytest.raises(ConfigError, match="refine must be None or one of cosine"):
        Prototype("model", refine="tarot")
