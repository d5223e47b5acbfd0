"""TENT (Wang et al., ICLR 2021): entropy minimisation over the scale and shift of a model's batch
norms.

The batch norms take their statistics from the test graph, and their affine weights a few gradient
steps that make the predictions surer. All of it happens to a copy; the frozen model stays as it is.
A model without batch norm has nothing that TENT could move, and is left alone with that reason."""

from __future__ import annotations

import copy
from dataclasses import asdict, dataclass, field

import torch
from torch import Tensor, nn

from graphkeel.graph import GraphTask
from graphkeel.models.frozen import FrozenModel, ReturnType, clear_caches
from graphkeel.runs.method import MethodResult
from graphkeel_paper.baselines.rival import Baseline


@dataclass(frozen=True)
class TentConfig:
    """Learning rate and steps as benchmarks of test-time training on graphs run it (the TSA
    repository)."""

    lr: float = 1e-3
    steps: int = 1


CONFIG = TentConfig


@dataclass(frozen=True)
class Tent(Baseline):
    name: str = "tent"
    config: TentConfig = field(default_factory=TentConfig)
    retrains: bool = True  # a copy's batch norms, no more

    def _fit_predict(
        self, frozen: FrozenModel, task: GraphTask, labelled: Tensor, validation: Tensor, seed: int
    ) -> MethodResult:
        norms = batch_norms(frozen.model) if isinstance(frozen.model, nn.Module) else []
        if not norms:
            return MethodResult(
                decision={"applied": False, "reason": "the model has no batch norm with weights"}
            )
        copied = _Adaptable(frozen, task)
        before = copied.entropy().detach()
        optimiser = torch.optim.Adam(copied.weights, lr=self.config.lr)
        for _ in range(self.config.steps):
            optimiser.zero_grad()
            copied.entropy().backward()
            optimiser.step()
        with torch.no_grad():
            scores, after = copied.scores(), copied.entropy()
        entropies = {"entropy_before": float(before), "entropy_after": float(after)}
        return MethodResult(scores, None, {"applied": True, **asdict(self.config), **entropies})


def batch_norms(model: nn.Module) -> list[nn.Module]:
    """The normalisations that take statistics over nodes and have affine weights, PyG's wrappers
    seen through."""
    kinds = nn.modules.batchnorm._BatchNorm
    return [module for module in model.modules() if isinstance(module, kinds) and module.affine]


class _Adaptable:
    """A copy of the model in which only batch norm weights can move."""

    def __init__(self, frozen: FrozenModel, task: GraphTask) -> None:
        self.task, self.return_type = task, frozen.return_type
        model = copy.deepcopy(frozen.model).eval()  # type: ignore[union-attr]
        self.model: nn.Module = model.requires_grad_(False)
        clear_caches(self.model)
        self.weights: list[nn.Parameter] = []
        for norm in batch_norms(self.model):
            norm.train()  # statistics of the graph at hand, not of the training's running average
            self.weights += norm.requires_grad_(True).parameters()

    def scores(self) -> Tensor:
        given = self.model(self.task.x, self.task.edge_index)
        clear_caches(self.model)
        if self.return_type is ReturnType.PROBS:
            return given.clamp_min(torch.finfo(given.dtype).tiny).log()
        return given

    def entropy(self) -> Tensor:
        """Mean entropy of the predictions on all nodes; no label is needed."""
        logs = self.scores().log_softmax(dim=-1)
        return -(logs.exp() * logs).sum(dim=-1).mean()
