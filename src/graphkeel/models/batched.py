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

Ids = NDArray[np.int64]
Inference = Callable[[nn.Module, Tensor, Tensor], Tensor]
# What PyG's layers that divide by degrees have: those of a field's last nodes are not known.
_DEGREES = ("_cached_edge_index", "_cached_x", "_cached_h")


@dataclass(frozen=True)
class Field:
    """Some nodes and all that their answers depend on.

    Attributes:
        nodes: int64, shape (n,); those that are asked about come first, the farthest last.
        rows: of the edges into all but the farthest, over these nodes.
        n_asked: how many are asked about.
    """

    nodes: Tensor
    rows: sparse.csr_matrix
    n_asked: int

    @property
    def edges(self) -> Tensor:
        """Among the nodes, int64, shape (2, e)."""
        target = np.repeat(np.arange(self.rows.shape[0]), np.diff(self.rows.indptr))
        return torch.from_numpy(np.stack([self.rows.indices, target]).astype(np.int64))


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

    def fields(self, asked: Tensor, x: Tensor, edge_index: Tensor) -> Iterator[Field]:
        """The batches of some nodes.

        Args:
            asked: the nodes, int64, shape (k,).
            x: features, shape (N, d).
            edge_index: int64, shape (2, E).
        """
        matrix = self._matrix(edge_index, len(x))
        for nodes in asked.split(self.size):
            yield from fields_of(matrix, nodes.numpy(force=True), self.hops)

    def _check_hops(self, model: nn.Module, x: Tensor, matrix: sparse.csr_matrix) -> None:
        """Once a graph: what lies farther away must not change an answer."""
        nodes = np.linspace(0, len(x) - 1, min(len(x), self.checked)).astype(np.int64)
        near, far = (
            torch.cat([
                _answer(model, x, field)
                for one in nodes[:, None]
                for field in fields_of(matrix, one, hops)
            ])
            for hops in (self.hops, self.hops + 1)
        )  # fmt: skip
        if not close(near, far):
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


def close(found: Tensor, expected: Tensor) -> bool:
    """Whether answers are the same but for rounding."""
    return torch.allclose(found, expected, rtol=1e-4, atol=1e-5 * float(expected.abs().max()))


def fields_of(
    matrix: Any, asked: Ids, hops: int, fits: Callable[[int, int], bool] | None = None
) -> Iterator[Field]:
    """The receptive field of some nodes; those of its halves where it is too large.

    Args:
        matrix: row v holds the edges into v; all that is asked of it is rows.
        asked: int64, shape (k,).
        fits: whether so many nodes and so many edges do; one node's field always has to.
    """
    field = _field(matrix, asked, hops, fits if len(asked) > 1 else None)
    if field is not None:
        yield field
        return
    for half in np.array_split(asked, 2):
        yield from fields_of(matrix, half, hops, fits)


def _field(
    matrix: Any, asked: Ids, hops: int, fits: Callable[[int, int], bool] | None
) -> Field | None:
    nodes = farthest = asked
    found = [sparse.csr_matrix((0, matrix.shape[1]), dtype=np.float32)]
    n_edges = 0
    for _ in range(hops):
        found.append(matrix[farthest])
        n_edges += found[-1].nnz
        farthest = np.setdiff1d(found[-1].indices, nodes).astype(np.int64)
        nodes = np.concatenate([nodes, farthest])
        if fits is not None and not fits(len(nodes), n_edges):
            return None
    rows = sparse.vstack(found, format="csr")
    order = np.argsort(nodes)
    places = order[np.searchsorted(nodes, rows.indices, sorter=order)]
    shape = (rows.shape[0], len(nodes))
    rows = sparse.csr_matrix((rows.data, places, rows.indptr), shape=shape)
    return Field(torch.from_numpy(nodes), rows, len(asked))


def _answer(model: nn.Module, x: Tensor, field: Field) -> Tensor:
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
