"""The embedding a model classifies linearly, for rivals that work there."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from graphkeel.graph import GraphTask
from graphkeel.models.frozen import FrozenModel


@dataclass(frozen=True)
class Embedding:
    """Embeddings z, shape (N, h), and the class weights w_c, shape (n_classes, h), that score them
    as w_c·z."""

    nodes: Tensor
    weights: Tensor
    logits: Tensor


def classified_embedding(frozen: FrozenModel, task: GraphTask) -> Embedding:
    """The input of the model's last linear layer, where that layer's output is the model's (SGC, an
    MLP on top).

    Models that propagate after their last linear layer have no such embedding; there the logits
    stand for it, each class weighing its own."""
    modules = frozen.model.modules() if isinstance(frozen.model, nn.Module) else []
    linears = [module for module in modules if isinstance(getattr(module, "weight", None), Tensor)]
    linears = [module for module in linears if "Linear" in type(module).__name__]
    logits, seen = seen_inputs(linears, lambda: frozen.logits(task.x, task.edge_index))
    if seen:
        last, inputs = seen[-1]
        inputs = inputs.detach()
        weight = last.get_parameter("weight").detach()
        if weight.shape[0] == logits.shape[1] and _scores(inputs, weight, logits):
            return Embedding(inputs, weight, logits)
    return Embedding(logits, torch.eye(logits.shape[1]), logits)


def seen_inputs(
    modules: Sequence[nn.Module], ask: Callable[[], Tensor]
) -> tuple[Tensor, list[tuple[nn.Module, Tensor]]]:
    """The answer, and the modules that it went through, in their order, with what entered each."""
    seen: list[tuple[nn.Module, Tensor]] = []
    handles = [
        module.register_forward_pre_hook(lambda m, args: seen.append((m, args[0])))
        for module in modules
    ]
    try:
        return ask(), seen
    finally:
        for handle in handles:
            handle.remove()


def _scores(inputs: Tensor, weight: Tensor, logits: Tensor, tolerance: float = 1e-3) -> bool:
    """Whether the logits are weight·inputs up to one constant (the bias)."""
    offset = logits - inputs @ weight.T
    return bool((offset - offset[0]).abs().max() <= tolerance * logits.abs().max())
