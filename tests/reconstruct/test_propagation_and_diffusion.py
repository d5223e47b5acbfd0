"""Ŝ by hand on three nodes, and the diffusion against its exact limit."""

from __future__ import annotations

import itertools

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from small_graphs import PATH

from graphkeel.core.errors import ConfigError
from graphkeel.reconstruct import Propagator, diffuse


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
