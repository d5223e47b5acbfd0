"""Models that are linear in their features, as a matrix product."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from scipy import sparse
from torch import Tensor
from torch_geometric.nn import SGConv

from graphkeel.models.frozen import FrozenModel, ReturnType
from graphkeel.models.networks import SGC
from graphkeel.models.sparse_hops import convolution, hop

Ask = Callable[[Tensor], Tensor]


@dataclass(frozen=True)
class LinearMap:
    """A model that is linear in its features: logits = S^K X Wᵀ + b.

    Attributes:
        matrix: S, float32, shape (N, N).
        hops: K.
        weight: W, shape (C, d).
        bias: b, shape (C,).
    """

    matrix: sparse.csr_matrix
    hops: int
    weight: Tensor
    bias: Tensor

    @classmethod
    def of(cls, frozen: FrozenModel, edge_index: Tensor, n_nodes: int) -> LinearMap | None:
        """The map of a simple graph convolution; None for any other model."""
        layer = frozen.model.conv if isinstance(frozen.model, SGC) else frozen.model
        if (
            not isinstance(layer, SGConv)
            or not layer.add_self_loops
            or frozen.return_type is not ReturnType.RAW
            or frozen.calling.has_adjacency
            or layer.lin.weight.device.type != "cpu"
            or layer.lin.weight.dtype != torch.float32
            or layer.lin.weight.shape[0] < 2  # one logit for two classes
        ):
            return None
        weight = layer.lin.weight.detach()
        bias = torch.zeros(len(weight)) if layer.lin.bias is None else layer.lin.bias.detach()
        return cls(convolution(edge_index, n_nodes), layer.K, weight, bias)

    def reduced(self, x: Tensor) -> tuple[Ask, Tensor]:
        """Logits as a function of coefficients (N, r), and r orthonormal directions (d, r).

        Only moves in the row space of W change an answer: a pass carries C columns, not d."""
        directions, upper = torch.linalg.qr(self.weight.T)
        carried = torch.nn.functional.linear(x, self.weight)
        transposed = self.matrix.T.tocsr()

        def ask(coefficients: Tensor) -> Tensor:
            found = carried + coefficients @ upper
            for _ in range(self.hops):
                found = hop(self.matrix, found, transposed)
            return found + self.bias

        return ask, directions
