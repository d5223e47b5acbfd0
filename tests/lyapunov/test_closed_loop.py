"""The collapsed loop is C∘f: in exact rationals within its stated errors, and for any feature
dimension."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
import torch
from small_models import logits_of, random_head

from graphkeel.control.neural import FORMS
from graphkeel.lyapunov.closed_loop import (
    axis_factors,
    gain_matrix,
    interval_bounds,
    loop_layers,
    run_layers,
)
from graphkeel.lyapunov.config import LyapunovConfig
from graphkeel.lyapunov.loop_batch import LoopBatch
from graphkeel.verify.problem import Affine


def batch_of(form: str, sizes: tuple[int, ...], **options: object) -> LoopBatch:
    head = random_head(sizes)
    config = LyapunovConfig(form=form, hidden=5, samples=60, **options)  # type: ignore[arg-type]
    return LoopBatch(head, logits_of(head), [0, 2], config)


def product(left: np.ndarray, right: np.ndarray) -> list[list[Fraction]]:
    return [
        [
            sum((Fraction(a) * Fraction(b) for a, b in zip(r, c, strict=True)), Fraction(0))
            for c in right.T
        ]
        for r in left
    ]


def within(layer: Affine, weight: list[list[Fraction]]) -> bool:
    error = np.zeros_like(layer.weight) if layer.weight_error is None else layer.weight_error
    flat = zip(layer.weight.ravel(), error.ravel(), (w for row in weight for w in row), strict=True)
    return all(abs(Fraction(v) - w) <= Fraction(e) for v, e, w in flat)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("sizes", [(40, 3), (40, 6, 3)])
def test_collapse_is_the_exact_product_within_its_error(form: str, sizes: tuple[int, ...]) -> None:
    batch = batch_of(form, sizes)
    control, _ = batch.shipped(1)
    layers = batch.problem(1).closed_loop.layers
    first = batch.plant.layers[0]
    assert within(layers[1], product(first[0].numpy(), control.outer.double().numpy()))
    assert len(layers) == len(sizes)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("sizes", [(40, 3), (40, 6, 3), (4, 9, 3)])
def test_collapse_batch_and_shipped_model_agree(form: str, sizes: tuple[int, ...]) -> None:
    batch = batch_of(form, sizes)
    problem = batch.problem(1)
    control, function = batch.shipped(1)
    states = batch.states.pool[1][:50]
    direct = batch.plant(control(states))
    np.testing.assert_allclose(problem.closed_loop(states.numpy()), direct.numpy(), atol=1e-10)
    np.testing.assert_allclose(
        problem.lyapunov(states.numpy())[:, 0], function(states).numpy(), atol=1e-10
    )
    trained = run_layers(
        loop_layers(batch.plant, batch.controller, torch.tensor([1])), states[None]
    )[0]
    torch.testing.assert_close(
        trained, direct, atol=1e-4, rtol=1e-4
    )  # training is float64, shipping float32


@pytest.mark.parametrize("sizes", [(40, 3), (40, 12, 3)])
def test_anchored_loop_rests_at_its_equilibrium(sizes: tuple[int, ...]) -> None:
    batch = batch_of("anchored", sizes)
    for k in range(2):
        control, function = batch.shipped(k)
        assert (
            float((batch.plant(control(control.equilibrium)) - control.equilibrium).abs().max())
            < 1e-5
        )
        assert float(function(control.equilibrium)) == 0.0


def test_problem_size_does_not_depend_on_the_feature_dimension() -> None:
    shapes = [
        [layer.weight.shape for layer in batch_of("anchored", (d, 3)).problem(0).closed_loop.layers]
        for d in (5, 2000)
    ]
    assert shapes[0] == shapes[1] == [(5, 3), (3, 5)]


def test_homogeneous_loop_is_conic_up_to_its_residual() -> None:
    batch = batch_of("homogeneous", (40, 3))
    problem = batch.problem(0)
    offset = np.array([0.3, -0.2, 0.9])
    at = lambda t: problem.closed_loop(problem.equilibrium + t * offset) - problem.equilibrium  # noqa: E731
    np.testing.assert_allclose(at(8.0), 8 * at(1.0), atol=1e-5)


def test_training_bounds_hold_on_samples() -> None:
    batch = batch_of("anchored", (40, 6, 3))
    active = torch.tensor([0, 1])
    layers = loop_layers(batch.plant, batch.controller, active)
    states = batch.states.pool
    following = run_layers(layers, states)
    low, high = interval_bounds(layers, batch.low, batch.high)
    assert bool(
        (following >= low.unsqueeze(1) - 1e-9).all()
        and (following <= high.unsqueeze(1) + 1e-9).all()
    )
    gain = gain_matrix(layers)
    moved = (following[:, :1] - following).abs()
    assert bool(
        (moved <= torch.einsum("knm,kbm->kbn", gain, (states[:, :1] - states).abs()) + 1e-9).all()
    )
    gains = batch.function.gains(active)
    kappa = axis_factors(gain, gains).amax(dim=1, keepdim=True)
    value = lambda t: torch.einsum("kbn,kn->kb", t.abs(), gains)  # noqa: E731
    assert bool((value(moved) <= kappa * value(states[:, :1] - states) + 1e-9).all())
