"""Anchors at which each class leads by as much as the head allows.

A head that was trained on few or biased labels may answer the typical anchor of some class with
another class. Whatever the features, it answers W₂a + b₂ with a ≥ 0; the a at which a class leads
most is a linear program, and its value says whether the class can be answered at all."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.optimize import linprog
from torch import Tensor

from graphkeel.control.base import Plant


def leads(plant: Plant, anchors: Tensor) -> Tensor:
    """How far each class is ahead of every other at its own anchor, shape (n_classes,).

    Args:
        plant: the head C, from d features to n logits.
        anchors: one feature per class, shape (n_classes, d).
    """
    answers = plant(anchors.double()).detach()
    own = answers.diagonal().clone()
    answers.fill_diagonal_(-torch.inf)
    return own - answers.max(dim=1).values


def foremost_anchors(plant: Plant, size: float, most: float) -> tuple[Tensor, Tensor]:
    """The anchors with the largest leads, shape (n_classes, d), and these leads.

    A class that could lead by more than `most` gets the smallest anchor with that lead: much
    stronger ones drown those of its neighbours.

    Args:
        plant: a head whose one hidden layer is free (`hidden_is_free`).
        size: largest sum of the hidden units; without a bound many leads would have none either.
        most: largest lead.
    """
    (inner, inner_bias), (outer, outer_bias) = plant.layers
    lift = torch.linalg.pinv(inner)
    features = []
    found = []
    for label in range(plant.n_out):
        active, lead = _foremost(outer.numpy(), outer_bias.numpy(), label, size)
        if lead > most:
            active, lead = _smallest(outer.numpy(), outer_bias.numpy(), label, most), most
        features.append((lift @ (torch.from_numpy(active) - inner_bias)).float())
        found.append(lead)
    return torch.stack(features), torch.tensor(found, dtype=torch.float64)


def hidden_sizes(plant: Plant, anchors: Tensor) -> Tensor:
    """The sum of the hidden units at each anchor, shape (n_classes,).

    Args:
        plant: a head with one hidden layer.
        anchors: shape (n_classes, d).
    """
    weight, bias = plant.layers[0]
    return (anchors.double() @ weight.T + bias).relu().sum(dim=1)


def _foremost(
    weight: NDArray[np.float64], bias: NDArray[np.float64], label: int, size: float
) -> tuple[NDArray[np.float64], float]:
    """max t with (w_c − w_j)·a + b_c − b_j ≥ t for every other class j, a ≥ 0, Σa ≤ size."""
    ahead, offset = _ahead(weight, bias, label)
    n_units = weight.shape[1]
    rows = np.vstack([np.column_stack([-ahead, np.ones(len(ahead))]), [*np.ones(n_units), 0.0]])
    aim = np.append(np.zeros(n_units), -1.0)
    bounds = [(0.0, None)] * n_units + [(None, None)]
    solved = linprog(aim, A_ub=rows, b_ub=np.append(offset, size), bounds=bounds, method="highs")
    if solved.x is None:  # numerically out of reach
        return np.zeros(n_units), -np.inf
    return solved.x[:n_units], -float(solved.fun)


def _smallest(
    weight: NDArray[np.float64], bias: NDArray[np.float64], label: int, lead: float
) -> NDArray[np.float64]:
    """min Σa with (w_c − w_j)·a + b_c − b_j ≥ lead for every other class j, a ≥ 0."""
    ahead, offset = _ahead(weight, bias, label)
    units = np.ones(weight.shape[1])
    solved = linprog(units, A_ub=-ahead, b_ub=offset - lead, bounds=(0.0, None), method="highs")
    return np.zeros_like(units) if solved.x is None else solved.x


def _ahead(
    weight: NDArray[np.float64], bias: NDArray[np.float64], label: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    others = np.arange(len(weight)) != label
    return weight[label] - weight[others], bias[label] - bias[others]
