"""V by construction, and Eq. 11 by hand."""

from __future__ import annotations

import pytest
import torch
from small_models import logits_of, random_head
from torch import Tensor

from graphkeel.core.errors import ConfigError
from graphkeel.lyapunov.config import LyapunovConfig
from graphkeel.lyapunov.function import GeneralGauge, L1Gauge
from graphkeel.lyapunov.loop_batch import LoopBatch
from graphkeel.lyapunov.loss import lyapunov_loss, total

UNIT = torch.tensor([[1.0, 4.0, 2.0]], dtype=torch.float64)
TARGET = torch.tensor([[0.0, 1.0, 0.0]], dtype=torch.float64)


@pytest.mark.parametrize("units", [4, 7, 12])
def test_a_gauge_is_zero_at_rest_positive_elsewhere_and_homogeneous(units: int) -> None:
    function = GeneralGauge(TARGET, UNIT, units, torch.Generator().manual_seed(0)).shipped(0)
    offsets = torch.randn(500, 3, dtype=torch.float64)
    values = function(TARGET[0] + offsets)
    assert float(function(TARGET[0])) == 0.0
    assert bool((values > 0).all())
    torch.testing.assert_close(function(TARGET[0] + 4 * offsets), 4 * values)


def test_a_gauge_needs_enough_rows() -> None:
    with pytest.raises(ConfigError, match="at least 4"):
        GeneralGauge(TARGET, UNIT, 3, torch.Generator())


def test_l1_gauge_stays_above_its_floor_and_weighs_narrow_axes_more() -> None:
    function = L1Gauge(TARGET, UNIT, 0.1)
    gains = function.gains(torch.tensor([0]))[0].detach()
    assert bool((gains > 0.1).all())
    assert gains[0] > gains[2] > gains[1]
    shipped = function.shipped(0)
    y = torch.tensor([[1.0, -1.0, 0.5]], dtype=torch.float64)
    assert float(shipped(y)) == pytest.approx(
        float(gains @ torch.tensor([1.0, 2.0, 0.5]).double()), rel=1e-6
    )


def paper_batch(form: str = "paper", loss: str = "paper") -> LoopBatch:
    head = random_head((6, 3))
    return LoopBatch(
        head, logits_of(head), [0, 1], LyapunovConfig(form=form, loss=loss, samples=60)
    )


def test_paper_loss_is_equation_11() -> None:
    batch = paper_batch()
    active = torch.tensor([0, 1])
    states = batch.states.pool[:, :7]
    terms = lyapunov_loss(batch, states, active)
    assert set(terms) == {"positivity", "decrease", "origin"}
    for k in (0, 1):
        y, target = states[k], batch.controller.targets[k]
        value = _value(batch, k, y)
        following = batch.plant(_control(batch, k, y))
        rise = _value(batch, k, following) - value
        torch.testing.assert_close(terms["positivity"][k], sum(max(-v, 0 * v) for v in value) / 7)
        torch.testing.assert_close(terms["decrease"][k], sum(max(r, 0 * r) for r in rise) / 7)
        torch.testing.assert_close(terms["origin"][k], _value(batch, k, target[None])[0] ** 2)


def _value(batch: LoopBatch, k: int, y: Tensor) -> Tensor:
    v = batch.function
    return (y @ v.inner[k].T + v.bias[k]).relu() @ v.outer[k] + v.offset[k]


def _control(batch: LoopBatch, k: int, y: Tensor) -> Tensor:
    f = batch.controller
    return (y @ f.raw_inner[k].T + f.bias[k]).relu() @ f.raw_outer[k].T + f.offset[k]


def test_margin_loss_sees_an_expanding_loop_and_forgives_a_contracting_one() -> None:
    batch = paper_batch("anchored", "margin")
    active = torch.tensor([0, 1])
    with torch.no_grad():
        batch.controller.raw_outer.mul_(0.0)
    with torch.no_grad():
        assert float(total(lyapunov_loss(batch, batch.states.pool, active))) < 1e-9
    with torch.no_grad():
        batch.controller.raw_outer.add_(5.0)
    terms = lyapunov_loss(batch, batch.states.pool, active)
    assert all(
        float(terms[name].min()) > 0 for name in ("decrease", "invariance", "contraction", "hole")
    )


def test_configuration_refuses_nonsense() -> None:
    for bad in ({"form": "cubic"}, {"loss": "mse"}, {"rho": 1.5}, {"hidden": 0}, {"epsilon": -1.0}):
        with pytest.raises(ConfigError):
            LyapunovConfig(**bad)  # type: ignore[arg-type]
    assert LyapunovConfig(form="paper").rho == 1.0
    assert LyapunovConfig(form="paper", rho=0.99).rho == 0.99
