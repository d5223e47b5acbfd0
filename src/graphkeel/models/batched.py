"""Models that are asked about some nodes at a time: each batch with its receptive field."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse
from torch import Tensor, nn
from torch_geometric.nn import MessagePassing

from graphkeel.core.errors import ConfigError, ModelError
from graphkeel.graph.propagate.adjacency import normalise_as_given
from graphkeel.models.frozen import evaluating
from graphkeel.models.outputs import first_of

Inference = Callable[[nn.Module, Tensor, Tensor], Tensor]
# What PyG's layers that divide by degrees have: those of a field's last nodes are not known.
_DEGREES = ("_cached_edge_index", "_cached_x", "_cached_h")


@dataclass(frozen=True)
class _Field:
    """Some nodes and all that their answers depend on.

    Attributes:
        nodes: int64, shape (n,); those that are asked about come first.
        edges: among them, int64, shape (2, e).
        n_asked: how many are asked about.
    """

    nodes: Tensor
    edges: Tensor
    n_asked: int


class Batches:
    """Asks a model batch by batch: `batches(model, x, edge_index)` gives the scores of all nodes.

    A plain loader of receptive fields, as PyG's `NeighborLoader` that samples nothing.

    Args:
        hops: from how far away a node's answer is influenced; one more where layers divide by
            degrees, as GCN's do.
        size: nodes a batch.
        checked: nodes whose answers must be the same with one hop more; once a graph.
    """

    def __init__(self, hops: int, size: int = 1024, checked: int = 16) -> None:
        if not all(isinstance(number, int) for number in (hops, size)) or hops < 0 or size < 1:
            raise ConfigError("batches need whole hops >= 0 and size >= 1", got=(hops, size))
        self.hops = hops
        self.size = size
        self.checked = checked
        self._known: tuple[Any, int, sparse.csr_matrix] | None = None

    @classmethod
    def of(cls, model: nn.Module) -> Batches:
        """With the hops of the model's layers."""
        layers = [layer for layer in model.modules() if isinstance(layer, MessagePassing)]
        hops = sum(int(getattr(layer, "K", 1)) for layer in layers)
        divides = any(hasattr(layer, name) for layer in layers for name in _DEGREES)
        return cls(hops + divides)

    def __call__(self, model: nn.Module, x: Tensor, edge_index: Tensor) -> Tensor:
        """Scores of all nodes, without gradients."""
        everyone = torch.arange(len(x))
        with torch.no_grad():
            before = self._known
            matrix = self._matrix(edge_index, len(x))
            if self._known is not before:
                self._check_hops(model, x, matrix)
            return torch.cat([_answer(model, x, f) for f in self.fields(everyone, x, edge_index)])

    def fields(self, asked: Tensor, x: Tensor, edge_index: Tensor) -> Iterator[_Field]:
        """The batches of some nodes.

        Args:
            asked: the nodes, int64, shape (k,).
            x: features, shape (N, d).
            edge_index: int64, shape (2, E).
        """
        matrix = self._matrix(edge_index, len(x))
        for nodes in asked.split(self.size):
            yield _field(matrix, nodes.numpy(force=True), self.hops)

    def _check_hops(self, model: nn.Module, x: Tensor, matrix: sparse.csr_matrix) -> None:
        """Once a graph: what lies farther away must not change an answer."""
        nodes = np.linspace(0, len(x) - 1, min(len(x), self.checked)).astype(np.int64)
        near, far = (
            torch.cat([_answer(model, x, _field(matrix, one, hops)) for one in nodes[:, None]])
            for hops in (self.hops, self.hops + 1)
        )
        if not torch.allclose(near, far, rtol=1e-4, atol=1e-5 * float(far.abs().max())):
            self._known = None
            raise ConfigError(
                "the model reads nodes that its batches do not hold",
                got=f"hops={self.hops}",
                fix="Give more hops: one a layer, and one more where layers divide by degrees.",
            )

    def _matrix(self, edge_index: Tensor, n_nodes: int) -> sparse.csr_matrix:
        """Row v holds the edges into v; made once a graph."""
        known = self._known
        if known is None or known[0]() is not edge_index or known[1] != edge_index._version:
            matrix = normalise_as_given(edge_index.numpy(force=True), n_nodes, loops="as given")
            known = self._known = (weakref.ref(edge_index), edge_index._version, matrix)
        return known[2]


def _field(matrix: sparse.csr_matrix, asked: NDArray[np.int64], hops: int) -> _Field:
    nodes = asked
    for _ in range(hops):
        reached = np.setdiff1d(matrix[nodes].indices, nodes)
        nodes = np.concatenate([nodes, reached.astype(np.int64)])
    place = np.full(matrix.shape[0], -1)
    place[nodes] = np.arange(len(nodes))
    rows = matrix[nodes]
    target = np.repeat(np.arange(len(nodes)), np.diff(rows.indptr))
    source = place[rows.indices]
    inside = source >= 0
    edges = np.stack([source[inside], target[inside]])
    return _Field(torch.from_numpy(nodes), torch.from_numpy(edges), len(asked))


def _answer(model: nn.Module, x: Tensor, field: _Field) -> Tensor:
    scores: Tensor = first_of(model(x[field.nodes], field.edges.to(x.device)))
    return scores[: field.n_asked]


class AskedInBatches(nn.Module):
    """A model whose answers are found by a function of the user's, with gradients by receptive
    fields of the nodes that pull.

    Args:
        model: called as `model(x, edge_index)` on a part of the graph.
        inference: `(model, x, edge_index) -> scores` of all nodes.
    """

    def __init__(self, model: nn.Module, inference: Inference) -> None:
        super().__init__()
        if not isinstance(model, nn.Module):
            raise ModelError("inference= needs a torch module", got=type(model).__name__)
        self.model = model
        self.inference = inference
        self.batches = inference if isinstance(inference, Batches) else Batches.of(model)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        """Scores of all nodes."""
        found: Tensor = _Whole.apply(x, edge_index, self)
        return found


class _Whole(torch.autograd.Function):
    """Answers of all nodes forward; backward the receptive fields of those with a gradient."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, edge_index: Tensor, asked: AskedInBatches) -> Tensor:
        ctx.save_for_backward(x)
        ctx.rest = (edge_index, asked)
        return first_of(asked.inference(asked.model, x, edge_index))  # type: ignore[no-any-return]

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Any:
        (x,) = ctx.saved_tensors
        edge_index, asked = ctx.rest
        pull = torch.zeros_like(x)
        pulling = gradient.any(dim=1).nonzero().flatten()
        with evaluating(asked.model), torch.enable_grad():
            for field in asked.batches.fields(pulling, x, edge_index):
                leaf = x[field.nodes].detach().requires_grad_(True)
                scores = first_of(asked.model(leaf, field.edges.to(x.device)))[: field.n_asked]
                wanted = gradient[field.nodes[: field.n_asked]]
                (part,) = torch.autograd.grad(scores, leaf, wanted)
                pull.index_add_(0, field.nodes.to(x.device), part)
        return pull, None, None
