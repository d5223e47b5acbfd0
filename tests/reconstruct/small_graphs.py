"""Small graphs and models with known answers."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch_geometric.nn import GCN, SGConv

from graphkeel.graph import GraphTask, load, make_sbm
from graphkeel.models import train_model
from graphkeel.models.frozen import FrozenModel
from graphkeel.reconstruct import Known
from graphkeel.reconstruct.scene import Scene

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


def rows_of(*rows: list[float]) -> NDArray[np.float32]:
    return np.array(rows, dtype=np.float32)


def known(nodes: object, classes: object, n_classes: int, **changes: object) -> Known:
    """Labels that all judge, unless said otherwise."""
    ids = np.asarray(nodes, dtype=np.int64)
    judging = np.ones(len(ids), dtype=bool)
    fields = {"nodes": ids, "classes": np.asarray(classes, dtype=np.int64), "judging": judging}
    return Known(**{**fields, "n_classes": n_classes, **changes})  # type: ignore[arg-type]


def small_scene(
    n_nodes: int = 60, n_features: int = 5, homophily: float = 0.8, seed: int = 0
) -> tuple[Scene, NDArray[np.int64]]:
    """A block model of three classes, a weak model's answers on it, and the classes."""
    graph = make_sbm(
        n_nodes,
        3 * n_nodes,
        n_classes=3,
        n_features=n_features,
        homophily=homophily,
        signal=1.0,
        seed=seed,
    )
    y = graph.y
    noise = np.random.default_rng(seed).normal(size=(n_nodes, 3))
    logits = (np.eye(3)[y] + noise).astype(np.float32)
    return Scene(logits, graph.x, graph.edge_index), y
