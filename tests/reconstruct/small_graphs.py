"""Small graphs and models with known answers."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch_geometric.nn import GCN, SGConv

from graphkeel.graph import GraphTask, load
from graphkeel.models import train_model
from graphkeel.models.frozen import FrozenModel
from graphkeel.reconstruct import Context, Labels

PATH = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])  # 0 - 1 - 2


class Linear(nn.Module):
    """Scores are W x + b of the node alone: a model that looks at no edge."""

    def __init__(self, weight: Tensor, bias: Tensor) -> None:
        super().__init__()
        self.lin = nn.Linear(weight.shape[1], weight.shape[0])
        self.lin.weight.data, self.lin.bias.data = weight.clone(), bias.clone()

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        return self.lin(x)


def sgc(n_features: int = 6, n_classes: int = 3, k: int = 2, seed: int = 0) -> SGConv:
    torch.manual_seed(seed)
    return SGConv(n_features, n_classes, K=k)


def gcn(n_features: int = 20, n_classes: int = 3, seed: int = 0) -> GCN:
    torch.manual_seed(seed)
    return GCN(n_features, hidden_channels=8, num_layers=2, out_channels=n_classes).eval()


def shifted_task(seed: int = 0) -> GraphTask:
    """The embedded digits under the biased sampler: the labels come from one corner of each
    class."""
    return load("digits", seed=seed)


def trained(task: GraphTask, name: str = "sgc") -> FrozenModel:
    return FrozenModel(train_model(name, task, seed=0), n_classes=task.n_classes)


def scene_of(task: GraphTask, model: str = "sgc") -> tuple[Context, Labels]:
    nodes = task.train_mask.nonzero().flatten()
    return Context(trained(task, model), task.x, task.edge_index), Labels(
        nodes, task.y[nodes], task.n_classes
    )
