"""The reference networks, on PyG layers: all take (x, edge_index) and return logits."""

from __future__ import annotations

import weakref
from typing import Any

import torch
import torch.nn.functional as F
from scipy import sparse
from torch import Tensor, nn
from torch.utils.weak import WeakIdKeyDictionary
from torch_geometric.nn import APPNP as Propagation
from torch_geometric.nn import GATConv, GCNConv, SAGEConv, SGConv

from graphkeel.graph.propagate.adjacency import normalise_as_given
from graphkeel.graph.propagate.local import as_tensor, hops_of

# The matrix of an edge list, and what SGC feeds its linear layer by features, for as long as they
# live; versions tell whether something was changed in place.
_matrices: Any = WeakIdKeyDictionary()
_propagated: Any = WeakIdKeyDictionary()


def convolution(edge_index: Tensor, n_nodes: int) -> sparse.csr_matrix:
    """The matrix that PyG's graph convolutions multiply by, made once per edge list."""
    known = _matrices.get(edge_index)
    if known is None or known[:2] != (edge_index._version, n_nodes):
        known = (edge_index._version, n_nodes, normalise_as_given(edge_index.numpy(), n_nodes))
        _matrices[edge_index] = known
    return known[2]


def share_convolution(edge_index: Tensor, copied: Tensor) -> None:
    """A copy of an edge list has the same matrix; if there is one, it is not made again."""
    known = _matrices.get(edge_index)
    if known is not None and known[0] == edge_index._version:
        _matrices[copied] = (copied._version, *known[1:])


class SGC(nn.Module):
    """Simple graph convolution: one linear layer after K propagation steps.

    Both are linear, so on a large graph the layer goes first and the hops carry class scores
    instead of features, by sparse products instead of one message per edge.

    Args:
        n_features, n_classes: input and output sizes.
        k: propagation steps.
    """

    def __init__(self, n_features: int, n_classes: int, *, k: int = 3) -> None:
        super().__init__()
        self.conv = SGConv(n_features, n_classes, K=k)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        """Logits of every node, shape (N, n_classes).

        Args:
            x: features, float32, shape (N, d).
            edge_index: int64, shape (2, E).
        """
        if not self.is_large(x, edge_index):
            return self.conv(x, edge_index)
        scores = F.linear(x, self.conv.lin.weight)
        matrix = as_tensor(convolution(edge_index, x.shape[0]))
        for _ in range(self.conv.K):
            scores = matrix @ scores
        return scores + self.conv.lin.bias

    @staticmethod
    def is_large(x: Tensor, edge_index: Tensor, most: int = 1 << 26) -> bool:
        """Whether the messages would take too much memory to be sent one by one.

        Args:
            x: features, shape (N, d).
            edge_index: int64, shape (2, E).
            most: numbers in the messages of one hop up to which PyG's own code runs.
        """
        return int(x.shape[1]) * int(edge_index.shape[1]) > most


def propagated(model: SGC, x: Tensor, edge_index: Tensor) -> Tensor:
    """The features after the hops, shape (N, d)."""
    versions = (x._version, edge_index._version, model.conv.K)
    known = _propagated.get(x)
    if known is None or known[0] != versions or known[1]() is not edge_index:
        made = _made(model, x, edge_index)
        known = (versions, weakref.ref(edge_index), made)
        _propagated[x] = known
    result: Tensor = known[2]
    return result


def _made(model: SGC, x: Tensor, edge_index: Tensor) -> Tensor:
    """Read with a hook, so that the normalisation is PyG's own; on a large graph by products."""
    if model.is_large(x, edge_index):
        matrix = convolution(edge_index, x.shape[0])
        return torch.from_numpy(hops_of(matrix, x.detach().numpy(), model.conv.K))
    seen: list[Tensor] = []
    handle = model.conv.lin.register_forward_pre_hook(
        lambda _, inputs: seen.append(inputs[0].detach())
    )
    try:
        with torch.no_grad():
            model(x, edge_index)
    finally:
        handle.remove()
    return seen[0]


class _TwoConvolutions(nn.Module):
    """conv -> ReLU -> dropout -> conv, with dropout on the input as well: the shape GCN, SAGE and
    GAT share, with so many hidden units between the layers."""

    layer: type[nn.Module]

    def __init__(
        self, n_features: int, n_classes: int, *, hidden: int = 16, dropout: float = 0.5
    ) -> None:
        super().__init__()
        self.conv1 = self.layer(n_features, hidden)
        self.conv2 = self.layer(hidden, n_classes)
        self.dropout = dropout

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        x = F.dropout(x, self.dropout, self.training)
        x = self.conv1(x, edge_index).relu()
        x = F.dropout(x, self.dropout, self.training)
        return self.conv2(x, edge_index)


class GCN(_TwoConvolutions):
    """Kipf & Welling's two-layer graph convolutional network, with 16 hidden units by default."""

    layer = GCNConv


class GraphSAGE(_TwoConvolutions):
    """Two GraphSAGE layers with the mean aggregator, with 16 hidden units by default."""

    layer = SAGEConv


class GAT(_TwoConvolutions):
    """Two graph attention layers. ReLU instead of the original ELU: its head is then a ReLU
    network, open to proof.

    Args:
        n_features, n_classes: input and output sizes.
        hidden: units of a head.
        heads: of the first layer.
        dropout: share of inputs and attention weights dropped in training.
    """

    def __init__(
        self,
        n_features: int,
        n_classes: int,
        *,
        hidden: int = 8,
        heads: int = 8,
        dropout: float = 0.6,
    ) -> None:
        nn.Module.__init__(self)
        self.conv1 = GATConv(n_features, hidden, heads=heads, dropout=dropout)
        self.conv2 = GATConv(hidden * heads, n_classes, concat=False, dropout=dropout)
        self.dropout = dropout


class APPNP(nn.Module):
    """Predict with an MLP, then propagate the predictions by personalised PageRank.

    Args:
        n_features, n_classes: input and output sizes.
        hidden: units of the MLP.
        k: propagation steps.
        alpha: teleport of each of them.
        dropout: share of inputs dropped in training.
    """

    def __init__(
        self,
        n_features: int,
        n_classes: int,
        *,
        hidden: int = 64,
        k: int = 10,
        alpha: float = 0.1,
        dropout: float = 0.5,
    ) -> None:
        super().__init__()
        self.lin1 = nn.Linear(n_features, hidden)
        self.lin2 = nn.Linear(hidden, n_classes)
        self.propagation = Propagation(K=k, alpha=alpha)
        self.dropout = dropout

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        """Logits of every node, shape (N, n_classes).

        Args:
            x: features, float32, shape (N, d).
            edge_index: int64, shape (2, E).
        """
        x = F.dropout(x, self.dropout, self.training)
        x = self.lin1(x).relu()
        x = F.dropout(x, self.dropout, self.training)
        return self.propagation(self.lin2(x), edge_index)
