"""Each controller on plants whose answer is known by hand."""

from __future__ import annotations

import pytest
import torch

from graphkeel.control import (
    LQR,
    MFAC,
    PID,
    Deadbeat,
    NeuralController,
    NeuralWeights,
    jacobian,
    solve_anchor,
)
from graphkeel.core.errors import ConfigError
from graphkeel.testing.controller import OpaquePlant, affine_plant, random_plant

TARGET = torch.tensor([1.0, 0.0], dtype=torch.float64)


def test_deadbeat_is_the_least_norm_solution() -> None:
    # 2x₀ + x₂ = 0 and x₁ = 1: least norm has x₀ = x₂ = 0.
    result = Deadbeat().regulate(affine_plant(), TARGET)
    torch.testing.assert_close(result.anchor, torch.tensor([0.0, 1.0, 0.0]), atol=1e-7, rtol=0)
    assert result.residual < 1e-6
    assert result.steps == 1
    assert result.anchor.dtype == torch.float32


@pytest.mark.parametrize(
    "controller",
    [Deadbeat(), PID(), LQR(), MFAC(steps=600)],
    ids=lambda c: c.name,
)
def test_every_controller_reaches_the_target_of_an_affine_plant(controller) -> None:
    plant = affine_plant()
    result = controller.regulate(plant, TARGET)
    assert result.residual < 1e-4
    torch.testing.assert_close(plant(result.anchor.double()), TARGET, atol=1e-4, rtol=0)


def test_pid_with_unit_integral_gain_is_deadbeat() -> None:
    assert PID(kp=0.0, ki=1.0).regulate(affine_plant(), TARGET).steps == 1


def test_lqr_lyapunov_function_falls_along_its_loop() -> None:
    plant, regulator = affine_plant(), LQR(q=1.0, r=0.5)
    left, values, _ = torch.linalg.svd(plant.layers[0][0], full_matrices=False)
    matrix = left @ torch.diag(regulator._riccati(values)) @ left.T
    slope = plant.layers[0][0]
    factor = torch.eye(2, dtype=torch.float64) - slope @ regulator.gain(slope)
    error = torch.tensor([-8.0, 5.0], dtype=torch.float64)
    errors = torch.stack([torch.linalg.matrix_power(factor, k) @ error for k in range(9)])
    heights = torch.einsum("ti,ij,tj->t", errors, matrix, errors)
    drop = heights[:-1] - heights[1:]
    assert bool(
        (drop >= (errors[:-1] ** 2).sum(dim=1) * (1 - 1e-9) - 1e-12).all()
    )  # by at least q‖e‖²


def test_lqr_scalar_riccati_by_hand() -> None:
    # s = 1, q = 1, r·s² = 2: p = (1 + √(1 + 8))/2 = 2, gain 2/(2 + 2) = 1/2.
    gain = LQR(q=1.0, r=2.0).gain(torch.ones(1, 1, dtype=torch.float64))
    torch.testing.assert_close(gain, torch.full((1, 1), 0.5, dtype=torch.float64))


def test_blind_mfac_is_worse_than_probed() -> None:
    plant = random_plant((12, 4), scale=30.0)
    target = torch.eye(4, dtype=torch.float64)[1]
    blind = MFAC(initial="blind", steps=100).regulate(plant, target)
    probed = MFAC(initial="probed", steps=100).regulate(plant, target)
    assert probed.residual < 0.1 * blind.residual


def test_mfac_refuses_an_unknown_start() -> None:
    with pytest.raises(ConfigError, match="probed"):
        MFAC(initial="guess")


@pytest.mark.parametrize("sizes", [(30, 16, 4), (30, 12, 12, 3), (6, 32, 3)])
def test_newton_solves_a_perceptron_head(sizes: tuple[int, ...]) -> None:
    plant = random_plant(sizes, seed=5)
    for target in torch.eye(sizes[-1], dtype=torch.float64):
        assert float((plant(solve_anchor(plant, target)) - target).norm()) < 1e-8


def test_a_head_without_layers_still_gets_its_anchor() -> None:
    result = Deadbeat().regulate(OpaquePlant(), TARGET)
    assert result.residual < 1e-6


def test_jacobian_matches_finite_differences() -> None:
    plant = random_plant((5, 7, 3), seed=2)
    x, step = torch.randn(5, dtype=torch.float64), 1e-6
    numeric = torch.stack(
        [(plant(x + step * e) - plant(x - step * e)) / (2 * step) for e in torch.eye(5).double()], 1
    )
    torch.testing.assert_close(jacobian(plant, x), numeric, atol=1e-6, rtol=1e-6)


def test_neural_controller_gives_its_offset_at_rest() -> None:
    plant = affine_plant()
    weights = NeuralWeights(
        "anchored",
        TARGET,
        torch.tensor([[0.5, 0.0]]),
        torch.tensor([0.25]),
        torch.tensor([[0.1], [0.0], [0.0]]),
        torch.tensor([0.0, 1.0, 0.0]),
    )
    result = NeuralController(weights).regulate(plant, TARGET)
    assert torch.equal(result.anchor, weights.offset)
    # f((3, 0)) = h + 0.1·(relu(0.5·2 + 0.25) − 0.25) = h + 0.1 in the first feature
    moved = weights(torch.tensor([3.0, 0.0], dtype=torch.float64))
    torch.testing.assert_close(
        moved, torch.tensor([0.1, 1.0, 0.0], dtype=torch.float64), atol=1e-7, rtol=0
    )
    with pytest.raises(ConfigError, match="trained for"):
        NeuralController(weights).regulate(plant, 2 * TARGET)
