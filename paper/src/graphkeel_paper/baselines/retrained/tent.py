"""TENT (Wang et al., ICLR 2021): entropy minimisation over the scale and shift of a model's batch
norms.

The batch norms take their statistics from the test graph, and their affine weights a few gradient
steps that make the predictions surer. All of it happens to a copy; the frozen model stays as it is.
A model without batch norm has nothing that TENT could move, and is left alone with that reason."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field

import torch
from torch import nn

from graphkeel.runs.method import CheckedMethod, Given, MethodResult
from graphkeel_paper.baselines.retrained.copies import TrainableCopy
from graphkeel_paper.baselines.training import descend, entropy


@dataclass(frozen=True)
class TentConfig:
    """Learning rate and steps as benchmarks of test-time training on graphs run it (the TSA
    repository)."""

    lr: float = 1e-3
    steps: int = 1


@dataclass(frozen=True)
class Tent(CheckedMethod):
    name: str = "tent"
    config: TentConfig = field(default_factory=TentConfig)
    retrains: bool = True  # a copy's batch norms, no more

    def _fit_predict(self, given: Given) -> MethodResult:
        frozen = given.frozen
        norms = batch_norms(frozen.model) if isinstance(frozen.model, nn.Module) else []
        if not norms:
            return MethodResult(
                decision={"applied": False, "reason": "the model has no batch norm with weights"}
            )
        copied = TrainableCopy(frozen, given.task)
        weights = _norm_weights(copied.model)
        before = entropy(copied.scores()).mean().detach()
        optimiser = torch.optim.Adam(weights, lr=self.config.lr)
        for _ in range(self.config.steps):
            descend(optimiser, entropy(copied.scores()).mean())
        with torch.no_grad():
            scores = copied.scores()
            after = entropy(copied.scores()).mean()
        entropies = {"entropy_before": float(before), "entropy_after": float(after)}
        return MethodResult(scores, None, {"applied": True, **asdict(self.config), **entropies})


def batch_norms(model: nn.Module) -> list[nn.Module]:
    """The normalisations that take statistics over nodes and have affine weights, PyG's wrappers
    seen through."""
    kinds = nn.modules.batchnorm._BatchNorm
    return [module for module in model.modules() if isinstance(module, kinds) and module.affine]


def _norm_weights(model: nn.Module) -> list[nn.Parameter]:
    """The weights of the batch norms, which alone may move; their statistics become those of the
    graph at hand instead of the training's running average."""
    model.requires_grad_(False)
    weights: list[nn.Parameter] = []
    for norm in batch_norms(model):
        weights += norm.train().requires_grad_(True).parameters()
    return weights
