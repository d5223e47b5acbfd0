"""`steer`: a closed loop around the frozen model that holds its answers at a wanted posterior.

A blend of anchors is answered by the *propagated* posterior: right where neighbours are alike,
wrong where they are not. Here the error between what the model answers and what is wanted goes
back into the coefficients of the anchors, step by step, until message passing is made up for."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy, multi_margin_loss

from graphkeel.reconstruct.anchors import hidden_is_free
from graphkeel.reconstruct.candidates.foremost import foremost_anchors, hidden_sizes, leads
from graphkeel.reconstruct.context import Context

STEPS = 60
GAIN = 0.07  # of a step, in units of an anchor
# A head may answer some class by a small margin only, whatever the features; the likelihood alone
# then gives that class up for a little more certainty elsewhere.
LEAD = 0.03  # of the wanted class over every other, in units of the typical strength
FIRMNESS = 30.0  # what a missing lead counts, beside the likelihood
ATTAINABLE = 0.3  # of the least lead that the head allows: as much may be asked for
MOST = 0.3  # largest lead of an anchor that was made for its lead, in units of the strength


def steer(context: Context, posterior: Tensor) -> Tensor:
    """Features under which the model answers with this posterior as nearly as it can.

    Reads the context; its model is asked `STEPS` times, with gradients into the features only. A
    model that passes no gradients on gets the plain blend.

    Args:
        context: the model on its graph.
        posterior: class probabilities, shape (N, n_classes).
    """
    anchors, lead = anchors_to_steer(context)
    answer = _answer(context, anchors)
    coefficients = context.shares(posterior).clone().requires_grad_(True)
    optimiser = torch.optim.Adam([coefficients], lr=GAIN)
    with torch.enable_grad():
        for _ in range(STEPS):
            logits = answer(coefficients)
            if not logits.requires_grad:
                break
            optimiser.zero_grad()
            error = cross_entropy(logits, posterior)
            (error + FIRMNESS * missing_lead(logits, posterior, lead)).backward()
            optimiser.step()
    return coefficients.detach() @ anchors


def anchors_to_steer(context: Context) -> tuple[Tensor, float]:
    """The class anchors, and the lead to ask for.

    Where the head answers the anchor of some class with another class, that class is hardly reached
    by blends of these anchors: then those of the largest leads.

    Args:
        context: the model on its graph.
    """
    anchors, plant = context.anchors().features, context.plant
    lead = LEAD * context.typical_strength
    if not hidden_is_free(plant.layers) or bool((leads(plant, anchors) > 0).all()):
        return anchors, lead
    size = float(hidden_sizes(plant, anchors).mean())
    foremost, largest = foremost_anchors(plant, size, MOST * context.typical_strength)
    reached = largest[largest > 0]  # a class that no feature reaches is given up
    least = float(reached.min()) if len(reached) else 0.0
    return foremost, min(lead, ATTAINABLE * least)


def missing_lead(logits: Tensor, posterior: Tensor, lead: float) -> Tensor:
    """By how much the likeliest class falls short of its lead over another one, on average.

    Args:
        logits: shape (N, n_classes).
        posterior: class probabilities, shape (N, n_classes).
        lead: how far it should be ahead.
    """
    return multi_margin_loss(logits, posterior.argmax(dim=1), margin=lead)


def _answer(context: Context, anchors: Tensor) -> Callable[[Tensor], Tensor]:
    """From coefficients to logits; of a linear model without a detour over all features."""
    linear = context.linear
    if linear is None:
        return lambda mixture: context.differentiable_logits_for(mixture @ anchors)
    carried = linear.project(anchors)
    transposed = linear.matrix.T.tocsr()
    return lambda mixture: linear.with_gradients(mixture @ carried, transposed)
