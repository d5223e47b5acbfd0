"""What no label changes: the frozen model on its graph, asked and propagated once, kept across
label feedback."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from graphkeel.control import Controller, Plant
from graphkeel.core.room import columns_with_room, has_room, with_room
from graphkeel.graph.propagate.propagator import Propagator
from graphkeel.models.frozen import FrozenModel
from graphkeel.models.sparse_hops import share_convolution
from graphkeel.reconstruct.anchors import (
    Anchors,
    blendable_anchors,
    hidden_is_free,
    plant_of,
    solve_anchors,
)
from graphkeel.reconstruct.large.linear import LinearModel
from graphkeel.reconstruct.views import View, views_of

if TYPE_CHECKING:
    from graphkeel.reconstruct.summary import SourceSummary

STRONG = 10.0
SHARPER = 4
WIDE, NARROW = 64, 32  # features beyond WIDE are looked at through NARROW principal directions


class Context:
    """A frozen model, its graph and its features; everything derived is computed on first use and
    kept.

    Args:
        frozen: the model.
        x, edge_index: the graph as the model gets it.
        model_kwargs: further arguments of the model's forward.
        controller: who finds the class anchors.
        seed: of the random projection that `reduced` uses when there are many features.
        source: what is kept of the graph the model was trained on, where that is another one.
    """

    def __init__(
        self,
        frozen: FrozenModel,
        x: Tensor,
        edge_index: Tensor,
        *,
        model_kwargs: dict[str, Any] | None = None,
        controller: str | Controller = "deadbeat",
        seed: int = 0,
        source: SourceSummary | None = None,
    ) -> None:
        self.frozen = frozen
        self.x = x
        self.edge_index = edge_index
        self.model_kwargs = model_kwargs or {}
        self.controller = controller
        self.seed = seed
        self.source = source

    def make_room(self) -> None:
        """Move features and edges to where there is room for those that are added later."""
        if has_room(self.x):
            return
        self.x = with_room(self.x)
        edges = columns_with_room(self.edge_index)
        share_convolution(self.edge_index, edges)
        self.edge_index = edges

    def logits_for(self, features: Tensor) -> Tensor:
        """The frozen model's logits with these features in place of its own.

        Args:
            features: shape (N, d).
        """
        return self.frozen.logits(features, self.edge_index, **self.model_kwargs)

    def differentiable_logits_for(self, features: Tensor) -> Tensor:
        """The same with gradients into the features.

        Args:
            features: shape (N, d).
        """
        return self.frozen.differentiable_logits(features, self.edge_index, **self.model_kwargs)

    @cached_property
    def logits(self) -> Tensor:
        """The untouched model's."""
        return self.logits_for(self.x)

    @property
    def n_classes(self) -> int:
        return int(self.logits.shape[1])

    @cached_property
    def beliefs(self) -> Tensor:
        """The untouched model's class probabilities."""
        return self.logits.softmax(dim=-1)

    @cached_property
    def linear(self) -> LinearModel | None:
        """The model as a matrix, where it is linear in its features."""
        if self.model_kwargs:
            return None
        return LinearModel.of(self.frozen, self.edge_index, self.x.shape[0])

    @cached_property
    def propagator(self) -> Propagator:
        return Propagator(self.edge_index, self.x.shape[0])

    @property
    def is_wide(self) -> bool:
        """Whether there are so many features that they are looked at through few directions."""
        return int(self.x.shape[1]) > WIDE

    @cached_property
    def reduction(self) -> tuple[Tensor, Tensor] | None:
        """Centre (d,) and principal directions (d, k) of many features; None for few."""
        if not self.is_wide:
            return None
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(int(self.seed))
            _, _, directions = torch.pca_lowrank(self.x, q=min(NARROW, *self.x.shape))
        return self.x.mean(dim=0), directions

    @cached_property
    def reduced(self) -> Tensor:
        """The features, or their leading principal components when there are many."""
        if self.reduction is None:
            return self.x
        centre, directions = self.reduction
        return (self.x - centre) @ directions

    @cached_property
    def smoothed(self) -> Tensor:
        """The reduced features, each node's mixed with its neighbourhood's."""
        return self.propagator.smooth(self.reduced)

    @cached_property
    def views(self) -> Mapping[str, View]:
        """All features, from several sides."""
        return views_of(self.x, self.propagator, self.edge_index, self.seed)

    @cached_property
    def directions(self) -> Tensor:
        return centred_directions(self.reduced)

    @cached_property
    def smoothed_directions(self) -> Tensor:
        return centred_directions(self.smoothed)

    def anchors(self, strength: float | None = None) -> Anchors:
        """The class anchors; by default with the typical strength.

        Args:
            strength: m; None: the typical one.
        """
        wanted = self.typical_strength if strength is None else strength
        if wanted not in self._anchors:
            self._anchors[wanted] = self._solve(wanted)
        return self._anchors[wanted]

    def blend(self, posterior: Tensor) -> Tensor:
        """Σ_c p_v(c)·h*_c for every node.

        Args:
            posterior: class probabilities, shape (N, n_classes).
        """
        return self._blend(posterior, self.anchors())

    def logits_of_blend(self, posterior: Tensor) -> Tensor:
        """The model's logits on a blend; of a linear model without a detour over all features.

        Args:
            posterior: class probabilities, shape (N, n_classes).
        """
        if self.linear is None:
            return self.logits_for(self.blend(posterior))
        carried = self.linear.project(self.anchors().features)
        return self.linear.everywhere(self.shares(posterior) @ carried)

    def shares(self, posterior: Tensor) -> Tensor:
        """The share of each class's anchor in a blend, shape (N, n_classes).

        Args:
            posterior: class probabilities, shape (N, n_classes).
        """
        if len(self.plant.layers) == 1:
            return posterior
        # Only an affine head answers a mixture with the mixture of its answers; others like it
        # clear-cut.
        sharp = posterior**SHARPER
        return sharp / sharp.sum(dim=1, keepdim=True).clamp_min(1e-30)

    def _blend(self, posterior: Tensor, anchors: Anchors) -> Tensor:
        return self.shares(posterior) @ anchors.features

    def _solve(self, strength: float) -> Anchors:
        """Where there are two ways to the anchors, those with which the model best repeats what it
        already says."""
        found = solve_anchors(self.plant, strength, self.controller)
        if self.controller != "deadbeat" or not hidden_is_free(self.plant.layers):
            return found
        return max((found, blendable_anchors(self.plant, strength)), key=self.faithfulness)

    def faithfulness(self, anchors: Anchors) -> float:
        """Share of nodes whose class the model repeats when its own beliefs are written with these
        anchors.

        Args:
            anchors: the class anchors.
        """
        repeated = self.logits_for(self._blend(self.beliefs, anchors)).argmax(dim=1)
        return float((repeated == self.beliefs.argmax(dim=1)).float().mean())

    def use_anchors(self, anchors: Anchors) -> None:
        """Use these anchors wherever typical ones are asked for.

        Args:
            anchors: the class anchors.
        """
        self._anchors[self.typical_strength] = anchors

    @cached_property
    def typical_strength(self) -> float:
        """The model's largest logit; more for an affine head.

        Where Ŝ's rows do not sum to one, the head's bias is off by as much, and strong anchors make
        that small. In a model with attention strong features drown it, though: GAT answers ten-fold
        anchors five points worse."""
        largest = max(1.0, float(self.logits.abs().max()))
        return STRONG * largest if len(self.plant.layers) == 1 else largest

    @cached_property
    def _anchors(self) -> dict[float, Anchors]:
        return {}

    @cached_property
    def plant(self) -> Plant:
        """The head C."""
        return plant_of(self.frozen, int(self.x.shape[1]), **self.model_kwargs)


def centred_directions(features: Tensor) -> Tensor:
    """Rows minus their mean, scaled to length one.

    Args:
        features: shape (N, d).
    """
    centred = features - features.mean(dim=0)
    return centred / centred.norm(dim=1, keepdim=True).clamp_min(1e-12)
