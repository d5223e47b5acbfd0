"""The frozen model on its graph: asked once, kept across label feedback."""

from __future__ import annotations

import copy
from dataclasses import KW_ONLY, dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from graphkeel.control import Controller, Plant
from graphkeel.control.anchors import (
    Anchors,
    AnchorSettings,
    blendable_anchors,
    hidden_is_free,
    solve_anchors,
)
from graphkeel.graph.node_graph import copy_sparse
from graphkeel.models.frozen import FrozenModel
from graphkeel.models.head import extract_head
from graphkeel.models.linear_map import LinearMap, Propagation
from graphkeel.models.narrowed import (
    Narrowed,
    narrowed_by_gradients,
    narrowed_by_weights,
)
from graphkeel.reconstruct.scene import Scene


@dataclass(eq=False, repr=False)
class Context:
    """A frozen model, its graph and its features; what is derived is computed on first use.

    Attributes:
        frozen: the model.
        x, edge_index: the graph as the model gets it.
        model_kwargs: further arguments of the model's forward.
        controller: who finds the class anchors.
        seed: of everything random.
        settings: of the anchors.
    """

    frozen: FrozenModel
    x: Tensor
    edge_index: Tensor
    _: KW_ONLY
    model_kwargs: dict[str, Any] = field(default_factory=dict)
    controller: str | Controller = "deadbeat"
    seed: int = 0
    settings: AnchorSettings = field(default_factory=AnchorSettings)
    _anchors: dict[float, Anchors] = field(default_factory=dict, init=False)
    _narrow: Narrowed | None = field(default=None, init=False)

    def __deepcopy__(self, memo: dict[int, Any]) -> Context:
        graph = self.frozen.calling.graph
        fields = () if graph is None else graph.to_dict().values()
        copy_sparse([*self.model_kwargs.values(), *fields], memo)
        twin = memo[id(self)] = object.__new__(Context)
        twin.__dict__.update(copy.deepcopy(self.__dict__, memo))
        return twin

    def logits_for(self, features: Tensor) -> Tensor:
        """The frozen model's logits with these features in place of its own.

        Args:
            features: shape (N, d).
        """
        return self.frozen.logits(features, self.edge_index, **self.model_kwargs)

    def differentiable_logits_for(self, features: Tensor) -> Tensor:
        """`logits_for`, with gradients into the features.

        Args:
            features: shape (N, d).
        """
        return self.frozen.differentiable_logits(features, self.edge_index, **self.model_kwargs)

    @cached_property
    def logits(self) -> Tensor:
        """The untouched model's."""
        return self.logits_for(self.x)

    @cached_property
    def answers(self) -> NDArray[np.int64]:
        """The untouched model's classes, shape (N,)."""
        return self.logits.numpy().argmax(axis=1)

    @property
    def linear(self) -> LinearMap | None:
        """The model as a matrix product, where it is one."""
        if self.model_kwargs:
            return None
        return LinearMap.of(self.frozen, self.edge_index, len(self.x))

    @property
    def propagation(self) -> Propagation | None:
        """Roughly how any model blurs features."""
        return Propagation.of(self.edge_index, len(self.x))

    def narrowed(self, rank: int) -> Narrowed | None:
        """The model on fewer features, at most `rank` where its weights do not tell them; None
        where it passes no gradients back.

        Args:
            rank: from how many features on fewer are sought.
        """
        asked_with = (self.frozen, self.x, self.edge_index, self.model_kwargs)
        found, self._narrow = self._narrow, None  # not kept: it holds the graph once more
        many = self.x.shape[1] > rank
        if found is None and many:
            found = narrowed_by_weights(*asked_with, self.logits)
        if found is None and not self.frozen.passes_gradients(*asked_with[1:3], **asked_with[3]):
            return None
        if found is None and many:
            found = narrowed_by_gradients(*asked_with, rank)
        return found or Narrowed.not_at_all(self.differentiable_logits_for, self.x)

    def tensor(self, array: Any) -> Tensor:
        """An array as the model takes it.

        Args:
            array: of all nodes, shape (N, …).
        """
        return torch.from_numpy(array)

    @property
    def n_classes(self) -> int:
        return int(self.logits.shape[1])

    @cached_property
    def scene(self) -> Scene:
        """The answers, features and graph that evidence is drawn from."""
        arrays = (self.logits.numpy(), self.x.numpy(), self.edge_index.numpy())
        return Scene(*arrays, seed=self.seed)

    # ---- class anchors

    def anchors(self, strength: float | None = None) -> Anchors:
        """The class anchors; by default with the typical strength.

        Args:
            strength: m; None: the typical one.
        """
        wanted = self.typical_strength if strength is None else strength
        if wanted not in self._anchors:
            self._anchors[wanted] = self._solve(wanted)
        return self._anchors[wanted]

    def use_anchors(self, anchors: Anchors) -> None:
        """Use these anchors wherever typical ones are asked for.

        Args:
            anchors: the class anchors.
        """
        self._anchors[self.typical_strength] = anchors

    def blend(self, posterior: Tensor, anchors: Anchors | None = None) -> Tensor:
        """Σ_c p_v(c)·h*_c for every node; with sharper shares where the head is not known to be
        affine.

        Args:
            posterior: class probabilities, shape (N, n_classes).
            anchors: None: those in use.
        """
        shares = posterior
        if len(self.plant.layers) != 1:
            sharp = posterior**self.settings.sharper
            shares = sharp / sharp.sum(dim=1, keepdim=True).clamp_min(1e-30)
        return shares @ (anchors or self.anchors()).features

    def _solve(self, strength: float) -> Anchors:
        """Where there are two ways to the anchors, those with which the model best repeats what it
        already says."""
        found = solve_anchors(self.plant, strength, self.controller, self.settings)
        if self.controller != "deadbeat" or not hidden_is_free(self.plant.layers):
            return found
        blendable = blendable_anchors(self.plant, strength, self.settings)
        return max((found, blendable), key=self._faithfulness)

    def _faithfulness(self, anchors: Anchors) -> float:
        """Share of nodes whose class the model repeats when its own answers are written with these
        anchors."""
        answers = self.logits.softmax(dim=1)
        repeated = self.logits_for(self.blend(answers, anchors)).argmax(dim=1)
        return float((repeated == answers.argmax(dim=1)).float().mean())

    @cached_property
    def typical_strength(self) -> float:
        """The model's largest logit; more for an affine head."""
        largest = max(1.0, float(self.logits.abs().max()))
        return self.settings.strong * largest if len(self.plant.layers) == 1 else largest

    @cached_property
    def plant(self) -> Plant:
        """The head C, as an exact network where it can be read off, else the model on constant
        fields."""
        return extract_head(self.frozen, int(self.x.shape[1]), **self.model_kwargs)
