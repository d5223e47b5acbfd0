"""The Lyapunov loss: Eq. 11 as published, and the same conditions with margins.

Eq. 11 is zero, with zero gradient, at V ≡ 0: nothing in it separates V from zero or F(Y) from Y.
The margin loss asks for a little more than is to be proved: V ≥ c‖y−Y‖, V(F(y)) ≤ ρV(y), F(D)
⊆ D, F(Y) = Y, a decision region that keeps its states; where V is an l1 gauge, a contraction factor
that proves the decrease without any search; and, in one gauge for all classes, a factor below one
of the loop with message passing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from graphkeel.lyapunov.closed_loop import (
    BatchLayers,
    axis_factors,
    gain_matrix,
    interval_bounds,
    loop_layers,
    margin_bounds,
    run_layers,
)

if TYPE_CHECKING:
    from graphkeel.lyapunov.loop_batch import LoopBatch

_Terms = dict[str, Tensor]  # each of shape (active,); their sum over everything is minimised


def lyapunov_loss(batch: LoopBatch, states: Tensor, active: Tensor) -> _Terms:
    """All terms for states y of shape (active, points, n)."""
    layers = loop_layers(batch.plant, batch.controller, active)
    if batch.config.loss == "paper":
        return _paper_loss(batch, layers, states, active)
    return _margin_loss(batch, layers, states, active)


def _paper_loss(batch: LoopBatch, layers: BatchLayers, y: Tensor, active: Tensor) -> _Terms:
    """Eq. 11: mean of relu(−V) + relu(ΔV), plus V(Y)²."""
    value = batch.function(y, active)
    change = batch.function(run_layers(layers, y), active) - value
    at_rest = batch.function(batch.equilibria[active].unsqueeze(1), active).squeeze(1)
    return {
        "positivity": (-value).relu().mean(dim=1),
        "decrease": change.relu().mean(dim=1),
        "origin": at_rest**2,
    }


def _margin_loss(batch: LoopBatch, layers: BatchLayers, y: Tensor, active: Tensor) -> _Terms:
    config, origin = batch.config, batch.equilibria[active]
    distance = (y - origin.unsqueeze(1)).abs().amax(dim=2).clamp_min(1e-12)
    value, following = batch.function(y, active), run_layers(layers, y)
    aim = batch.aims[active].unsqueeze(1)
    excess = (batch.function(following, active) - aim * value) / distance
    outside = (distance >= config.epsilon / y.shape[2] ** 0.5).double()
    at_rest = run_layers(layers, origin.unsqueeze(1)).squeeze(1)
    terms = {
        "positivity": ((1.1 * config.positivity + 1e-3) - value / distance).relu().mean(dim=1),
        "decrease": (excess.relu() * outside).mean(dim=1),
        "origin": batch.function(origin.unsqueeze(1), active).squeeze(1) ** 2,
        "equilibrium": ((at_rest - origin) ** 2).sum(dim=1),
        "invariance": _invariance(batch, layers, following, active),
        "region": _region(batch, layers, active),
    }
    gains = batch.function.gains(active)
    if gains is not None:
        terms |= _closed_form(layers, gains, aim)
    if batch.passing is not None:
        terms["passing"] = batch.passing(active, aim)
    return terms


def _invariance(batch: LoopBatch, layers: BatchLayers, following: Tensor, active: Tensor) -> Tensor:
    """How far F(D) reaches out of D: at the sampled states, and by interval bounds over the whole
    box."""
    low, high = batch.low[active], batch.high[active]
    half = (high - low) / 2
    edge = batch.settings.inside * half
    inner_low, inner_high = low + edge, high - edge
    spread_low, spread_high = interval_bounds(layers, low, high)
    whole = ((spread_high - inner_high).relu() + (inner_low - spread_low).relu()) / half
    seen = (following - inner_high.unsqueeze(1)).relu() + (
        inner_low.unsqueeze(1) - following
    ).relu()
    return whole.sum(dim=1) + (seen / half.unsqueeze(1)).sum(dim=2).mean(dim=1)


def _region(batch: LoopBatch, layers: BatchLayers, active: Tensor) -> Tensor:
    """How far a state that belongs to the class may come to belong to another one, by bounds over
    the whole region."""
    config, classes = batch.config, torch.tensor(batch.classes)[active]
    low, high = batch.low[active], batch.high[active]
    bounds = margin_bounds(layers, low, high, classes, config.margin)
    margin = batch.margins[active].unsqueeze(1)
    excess = (bounds + batch.settings.margin * (margin - config.margin)).relu() / margin
    return excess.sum(dim=1) - excess[torch.arange(len(classes)), classes]


def _closed_form(layers: BatchLayers, gains: Tensor, aim: Tensor) -> _Terms:
    """The two factors that need no search: κ in V's norm, and the one that keeps the hole in
    itself."""
    gain = gain_matrix(layers)
    return {
        "contraction": (axis_factors(gain, gains) - aim).relu().sum(dim=1),
        "hole": (gain.sum(dim=2) - aim).relu().sum(dim=1),
    }


def total(terms: _Terms) -> Tensor:
    return torch.stack([term.sum() for term in terms.values()]).sum()
