"""Ŝ by hand on three nodes, `replace` by hand, the diffusion against its exact limit, and what
labels choose among their settings."""

from __future__ import annotations

import itertools

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from small_graphs import PATH, known, sgc

from graphkeel.core.errors import ConfigError
from graphkeel.graph.propagate.propagator import Propagator
from graphkeel.models.frozen import FrozenModel
from graphkeel.reconstruct import Context, Labels, diffuse, replace
from graphkeel.reconstruct.correction import (
    Rule,
    Setting,
    best_setting,
    features_of,
    settings_of,
)


def dense(propagator: Propagator) -> torch.Tensor:
    return propagator(torch.eye(propagator.n_nodes))


def test_operator_of_a_path_by_hand():
    root6 = 6**-0.5
    expected = torch.tensor([[1 / 2, root6, 0], [root6, 1 / 3, root6], [0, root6, 1 / 2]])
    torch.testing.assert_close(dense(Propagator(PATH, 3)), expected)


def test_direction_repeats_and_self_loops_of_edges_do_not_matter():
    messy = torch.tensor([[0, 0, 2, 1], [1, 1, 1, 1]])
    torch.testing.assert_close(dense(Propagator(messy, 3)), dense(Propagator(PATH, 3)))


def test_isolated_nodes_keep_their_value():
    alone = Propagator(torch.zeros(2, 0, dtype=torch.int64), 2)
    values = torch.tensor([[1.0], [2.0]])
    torch.testing.assert_close(alone.smooth(values), values)


def limit(start: torch.Tensor, propagator: Propagator, alpha: float) -> torch.Tensor:
    system = torch.eye(len(start), dtype=torch.float64) - alpha * dense(propagator).double()
    return (1 - alpha) * torch.linalg.solve(system, start.double())


@settings(max_examples=30, deadline=None)
@given(st.integers(2, 12), st.floats(0.05, 0.97), st.integers(0, 10_000))
def test_diffusion_ends_within_its_own_bound_of_the_exact_limit(n, alpha, seed):
    generator = torch.Generator().manual_seed(seed)
    edges = torch.randint(n, (2, 2 * n), generator=generator)
    start = torch.randn(n, 3, generator=generator)
    propagator = Propagator(edges, n)
    found = diffuse(start, propagator, alpha)
    distance = float((found.features.double() - limit(start, propagator, alpha)).norm())
    rounding = 1e-5 * float(start.norm()) / (1 - alpha)
    assert distance <= found.distance_bound + rounding
    assert found.distance_bound <= 1e-3 * float(start.norm()) + rounding


@settings(max_examples=30, deadline=None)
@given(st.floats(0.1, 0.95), st.integers(0, 10_000))
def test_the_lyapunov_value_shrinks_by_alpha_in_every_step(alpha, seed):
    start = torch.randn(3, 2, generator=torch.Generator().manual_seed(seed))
    values = diffuse(start, Propagator(PATH, 3), alpha).lyapunov
    assert all(after <= alpha * before + 1e-5 for before, after in itertools.pairwise(values))


def test_contraction_is_reported():
    found = diffuse(torch.tensor([[1.0], [0.0], [0.0]]), Propagator(PATH, 3), 0.8)
    assert 0 < found.contraction <= 0.8 + 1e-5
    assert len(found.lyapunov) > 5


@pytest.mark.parametrize("alpha", [0.0, 1.0, -0.5, 2.0])
def test_alpha_outside_the_unit_interval_is_refused(alpha):
    with pytest.raises(ConfigError, match="alpha must lie strictly between 0 and 1"):
        diffuse(torch.zeros(3, 1), Propagator(PATH, 3), alpha)


# ---- replace


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
    assert len(LABELS.none()) == 0 and LABELS.none().n_classes == 2


# ---- their settings


@pytest.fixture(scope="module")
def context() -> Context:
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(40, 6, generator=generator)
    edges = torch.randint(40, (2, 100), generator=generator)
    return Context(FrozenModel(sgc()), x, edges)


def test_strengths_and_diffusions_are_built_as_named(context):
    labels = Labels(torch.arange(4), torch.tensor([0, 1, 2, 0]), 3)
    replaced = features_of(context, labels, Setting(5.0))
    torch.testing.assert_close(replaced[:4], context.anchors(5.0).features[labels.classes])
    assert torch.equal(replaced[4:], context.x[4:])
    spread = features_of(context, labels, Setting(5.0, 0.5))
    propagator = Propagator(context.edge_index, 40)
    torch.testing.assert_close(spread, diffuse(replaced, propagator, 0.5).features)


@pytest.mark.parametrize("method", ["replace", "diffuse"])
def test_held_back_labels_choose_the_setting(context, method):
    classes = torch.arange(20).numpy() % 3
    labels = known(range(20), classes, 3)
    setting, features, held = best_setting(context, labels, Rule(method))
    assert setting in settings_of(method)
    assert len({str(one) for one in settings_of(method)}) == len(settings_of(method))
    everything = Labels(torch.arange(20), torch.from_numpy(classes), 3)
    assert torch.equal(features, features_of(context, everything, setting))
    sets, judged_by = labels.sets(5, 0)
    for place in (0, 11):  # what a label is judged by was made without it
        part = sets.used[judged_by[place]]
        without = Labels(torch.from_numpy(sets.nodes[part]), torch.from_numpy(classes[part]), 3)
        answer = context.logits_for(features_of(context, without, setting))
        assert held[place] == pytest.approx(answer[place].numpy(), abs=1e-5)
