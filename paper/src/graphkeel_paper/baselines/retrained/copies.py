"""Copies of a frozen model that may be trained; the model that was handed over stays as it is."""

from __future__ import annotations

import copy

import torch
from torch import Tensor, nn
from torch_geometric.nn import MessagePassing

from graphkeel.core.errors import ModelError
from graphkeel.graph import GraphTask
from graphkeel.models.frozen import FrozenModel, ReturnType, cache_slots
from graphkeel.models.networks import SGC, propagated
from graphkeel_paper.baselines.frozen.embeddings import seen_inputs
from graphkeel_paper.baselines.training import seeded


def module_of(frozen: FrozenModel) -> nn.Module:
    """The network behind a frozen model; refused where it is a plain function."""
    if not isinstance(frozen.model, nn.Module):
        raise ModelError("only a torch module can be trained", got=type(frozen.model).__name__)
    return frozen.model


def clear_caches(model: nn.Module) -> None:
    """Empty the caches of `cached=True` layers."""
    for module, slot in cache_slots(model):
        setattr(module, slot, None)


def scores_of(model: SGC, x: Tensor, edge_index: Tensor) -> Tensor:
    """The model's scores, bit for bit, with gradients into its weights alone."""
    if model.is_large(x, edge_index):
        return model(x, edge_index)  # type: ignore[no-any-return]
    return model.conv.lin(propagated(model, x, edge_index))  # type: ignore[no-any-return]


def fresh_copy(model: nn.Module, seed: int) -> nn.Module:
    """The architecture with weights drawn anew."""
    copied = copy.deepcopy(model).requires_grad_(True)
    clear_caches(copied)
    with seeded(seed):
        for module in copied.modules():
            reset = getattr(module, "reset_parameters", None)
            if callable(reset) and module is not copied:
                reset()
    return copied


class TrainableCopy:
    """A copy of a frozen model whose weights may move. `scores` and `embedding` have gradients."""

    def __init__(self, frozen: FrozenModel, task: GraphTask) -> None:
        self.task = task
        self.return_type = frozen.return_type
        self.model = copy.deepcopy(module_of(frozen)).eval().requires_grad_(True)
        clear_caches(self.model)
        modules = list(self.model.modules())
        self.layers = [module for module in modules if isinstance(module, MessagePassing)]

    def parameters(self) -> list[nn.Parameter]:
        """The weights."""
        return list(self.model.parameters())

    def scores(self, x: Tensor | None = None, edge_index: Tensor | None = None) -> Tensor:
        """Logits of every node, shape (N, n_classes), for the task's features and edges where no
        other are given."""
        features = self.task.x if x is None else x
        edges = self.task.edge_index if edge_index is None else edge_index
        given = self._asked(features, edges)
        clear_caches(self.model)
        if self.return_type is ReturnType.PROBS:
            return given.clamp_min(torch.finfo(given.dtype).tiny).log()
        return given

    def _asked(self, x: Tensor, edge_index: Tensor) -> Tensor:
        own = x is self.task.x and edge_index is self.task.edge_index
        if own and isinstance(self.model, SGC):
            return scores_of(self.model, x, edge_index)
        return self.model(x, edge_index)  # type: ignore[no-any-return]

    def embedding(self, x: Tensor | None = None, edge_index: Tensor | None = None) -> Tensor:
        """The input of the last message-passing layer, shape (N, h); the logits where there is one
        such layer only."""
        if len(self.layers) < 2:
            return self.scores(x, edge_index)
        _, seen = seen_inputs(self.layers[-1:], lambda: self.scores(x, edge_index))
        return seen[-1][1]
