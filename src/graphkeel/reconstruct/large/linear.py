"""A model that is linear in the features: logits = M^K (X Wᵀ) + b; at a few nodes, a few sparse
rows of M^K."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import torch
from scipy import sparse
from torch import Tensor
from torch_geometric.nn import SGConv

from graphkeel.graph.propagate import multiply
from graphkeel.graph.propagate.local import hops_of
from graphkeel.graph.propagate.products import prepared
from graphkeel.models.frozen import FrozenModel, ReturnType
from graphkeel.models.networks import SGC
from graphkeel.models.sparse_hops import convolution, hop
from graphkeel.reconstruct.large.rows import whole_rows

MOST_ROWS = 2000  # nodes looked at through sparse rows; beyond, all hops are taken for all nodes


@dataclass(frozen=True)
class LinearModel:
    """M, K, W and b of a simple graph convolution on its graph."""

    matrix: sparse.csr_matrix
    hops: int
    weight: Tensor
    bias: Tensor

    @classmethod
    def of(cls, frozen: FrozenModel, edge_index: Tensor, n_nodes: int) -> LinearModel | None:
        """None where the model is no simple graph convolution, says probabilities, or is given a
        matrix of the graph's own.

        Args:
            frozen: the model.
            edge_index: int64, shape (2, E).
            n_nodes: N.
        """
        layer = frozen.model.conv if isinstance(frozen.model, SGC) else frozen.model
        if (
            not isinstance(layer, SGConv)
            or not layer.add_self_loops
            or frozen.return_type is not ReturnType.RAW
            or frozen.calling.has_adjacency
            or not _is_plain(layer.lin.weight)
        ):
            return None
        weight = layer.lin.weight.detach()
        bias = torch.zeros(weight.shape[0]) if layer.lin.bias is None else layer.lin.bias.detach()
        return cls(convolution(edge_index, n_nodes), layer.K, weight, bias)

    def project(self, features: Tensor) -> Tensor:
        """X Wᵀ: what the hops carry.

        Args:
            features: shape (N, d).
        """
        return torch.nn.functional.linear(features, self.weight)

    def everywhere(self, projected: Tensor) -> Tensor:
        """Logits of all nodes.

        Args:
            projected: what the hops carry, shape (N, n_classes).
        """
        return self.after(projected, self.hops) + self.bias

    def with_gradients(self, projected: Tensor, transposed: sparse.csr_matrix) -> Tensor:
        """The same logits, by operations that pass gradients on.

        Args:
            projected: what the hops carry, shape (N, n_classes).
            transposed: of the matrix, made once for all steps of a loop.
        """
        for _ in range(self.hops):
            projected = hop(self.matrix, projected, transposed)
        return projected + self.bias

    def after(self, carried: Tensor, hops: int) -> Tensor:
        """What some hops make of it, shape (N, n_classes).

        Args:
            carried: what the hops carry, shape (N, n_classes).
            hops: how many.
        """
        found = hops_of(self.matrix, prepared(whole_rows(carried).numpy()), hops)
        return torch.from_numpy(found[:, : carried.shape[1]])

    def rows_at(self, nodes: Tensor) -> PropagatedRows:
        """The model at some nodes alone.

        Args:
            nodes: the nodes to look at, int64, shape (k,).
        """
        return PropagatedRows(self, nodes)


def _is_plain(weight: Tensor) -> bool:
    """Float32 on the processor, and a row per class; a binary model may have one for two."""
    is_here = weight.device.type == "cpu" and weight.dtype == torch.float32
    return is_here and weight.shape[0] > 1


class PropagatedRows:
    """The logits at some nodes: the rows of M^K there, made once.

    Attributes:
        looked_at: the nodes that these logits depend on; what the hops carry from others need not
            be computed.
    """

    def __init__(self, model: LinearModel, nodes: Tensor) -> None:
        self.model = model
        self.nodes = nodes
        self.looked_at: Tensor | slice = slice(None)
        self._rows = None
        if len(nodes) <= MOST_ROWS:
            n = model.matrix.shape[0]
            ones = np.ones(len(nodes), dtype=np.float32)
            rows = sparse.csr_matrix(
                (ones, (np.arange(len(nodes)), nodes.numpy())), shape=(len(nodes), n)
            )
            for _ in range(model.hops):
                rows = rows @ model.matrix
            self._rows, self.looked_at = _without_empty_columns(rows)

    def __call__(self, carried: Tensor) -> Tensor:
        """From what the hops carry, at the nodes looked at."""
        return self.each([carried])[0]

    def each(self, carried: Iterable[Tensor]) -> list[Tensor]:
        """The same for several; side by side they cost little more than one, as fetching rows is
        what takes time.

        Args:
            carried: several of shape (looked at, n_classes).
        """
        if self._rows is None:
            return [self.model.everywhere(one)[self.nodes] for one in carried]
        together = multiply(self._rows, torch.cat(list(carried), dim=1).numpy())
        return [
            part + self.model.bias
            for part in torch.from_numpy(together).split(len(self.model.bias), dim=1)
        ]

    def at(self, nodes: Tensor) -> PropagatedRows:
        """The rows of some of its nodes (for others, a new one).

        Args:
            nodes: the nodes to look at, int64, shape (k,).
        """
        if torch.equal(nodes, self.nodes):
            return self
        place = {node: i for i, node in enumerate(self.nodes.tolist())}
        if self._rows is None or not set(nodes.tolist()) <= place.keys():
            return PropagatedRows(self.model, nodes)
        part = object.__new__(PropagatedRows)
        part.model = self.model
        part.nodes = nodes
        part.looked_at = self.looked_at
        part._rows = self._rows[[place[node] for node in nodes.tolist()]]
        return part


def _without_empty_columns(rows: sparse.csr_matrix) -> tuple[sparse.csr_matrix, Tensor]:
    """The same rows over the columns in use alone, and which these are."""
    used = np.zeros(rows.shape[1], dtype=bool)
    used[rows.indices] = True
    columns = np.flatnonzero(used)
    number = np.cumsum(used, dtype=np.int32) - 1
    shape = (rows.shape[0], len(columns))
    return sparse.csr_matrix(
        (rows.data, number[rows.indices], rows.indptr), shape=shape
    ), torch.from_numpy(columns)
