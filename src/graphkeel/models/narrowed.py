"""A model on fewer features: those combinations of them that its answers depend on."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint
from torch_geometric.nn import MessagePassing

from graphkeel.core.errors import ModelError
from graphkeel.graph.propagate.adjacency import normalise_as_given
from graphkeel.graph.propagate.local import as_tensor, row_blocks
from graphkeel.models.batched import Batches, fields_of
from graphkeel.models.calling import Style
from graphkeel.models.frozen import FrozenModel

Forward = Callable[[Tensor], Tensor]
Ask = Callable[[Tensor], tuple[Tensor, Forward]]


def asked(forward: Forward) -> Ask:
    """The answers of a function that torch differentiates, and what carries their gradients back
    to the values it was asked with."""

    def ask(values: Tensor) -> tuple[Tensor, Forward]:
        leaf = values.detach().requires_grad_(True)
        with torch.enable_grad():
            found = forward(leaf)
        return found.detach(), lambda gradient: torch.autograd.grad(found, leaf, gradient)[0]

    return ask


@dataclass(frozen=True)
class Narrowed:
    """A model as a function of moves in a few directions.

    Attributes:
        ask: logits of the start plus coefficients, shape (N, r) to (N, C), and what carries a
            gradient of theirs back.
        start: its input for the features as they are, shape (N, r).
        directions: orthonormal, shape (d, r).
        passes: of the whole model that it took to find them.
        logits: of the features as they are, where they were found on the way, shape (N, C).
    """

    ask: Ask
    start: Tensor
    directions: Tensor
    passes: int
    logits: Tensor | None = None

    @classmethod
    def not_at_all(cls, forward: Forward, x: Tensor) -> Narrowed:
        """A model that reads few features."""
        return cls(asked(forward), x, torch.eye(x.shape[1]).to(x), passes=0)


def narrowed_by_gradients(
    frozen: FrozenModel, x: Tensor, edge_index: Tensor, kwargs: Mapping[str, Any], rank: int
) -> Narrowed | None:
    """At most `rank` directions, the strongest first; None where gradients are not finite."""

    def forward(features: Tensor) -> Tensor:
        return frozen.differentiable_logits(features, edge_index, **kwargs)

    directions = _row_space(forward, x, rank)
    if directions is None:
        return None
    start = x.new_zeros(len(x), directions.shape[1])
    ask = asked(lambda moves: forward(x + moves @ directions.T))
    return Narrowed(ask, start, directions, passes=2)


def narrowed_by_weights(
    frozen: FrozenModel,
    x: Tensor,
    edge_index: Tensor,
    kwargs: Mapping[str, Any],
    logits: Tensor | None = None,
) -> Narrowed | None:
    """Every weight W of shape (h, d) becomes W Q, Q an orthonormal basis of all their rows; None
    where the model reads more of the features.

    Where features meet nothing but sums over neighbours before these weights, answers to x Q are
    those to x. Whether they are is seen at all nodes by their logits, where these are known, else
    at some nodes, about which the model is asked with their receptive fields."""
    basis = basis_of(frozen, x.shape[1])
    if basis is None:
        return None
    basis = basis.to(x)
    everyone = torch.arange(len(x))
    asked_of = (everyone, logits) if logits is not None else _at_some(frozen, x, edge_index, kwargs)
    if asked_of is None:
        return None
    nodes, expected = asked_of
    values = x @ basis
    kind, graph = frozen.return_type, frozen.calling.graph
    for read_through in (_by_products, _by_messages):
        try:
            copied, edges = read_through(frozen, basis, edge_index, kwargs)
            model = FrozenModel(copied, return_type=kind, graph=graph)
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", "Sparse invariant checks")  # of PyG's own matrix
                found = model.logits(values, edges, **kwargs)
        except Exception:  # the model is not ours, and may raise anything
            continue
        size = float(expected.abs().max())
        if torch.allclose(found[nodes], expected, rtol=1e-3, atol=1e-4 * size):
            forward = partial(model.logits_of_copy, copied, edge_index=edges, **kwargs)
            passes = int(logits is not None)  # that the answers at all nodes took
            return Narrowed(asked(forward), values, basis, passes, None if passes else found)
    return None


def _at_some(
    frozen: FrozenModel, x: Tensor, edge_index: Tensor, kwargs: Mapping[str, Any], count: int = 16
) -> tuple[Tensor, Tensor] | None:
    """Evenly spaced nodes and the model's own answers there; None where it cannot be asked about a
    part of the graph."""
    if kwargs or frozen.calling.signature.style is not Style.TENSORS:
        return None
    nodes = np.unique(np.linspace(0, len(x) - 1, min(len(x), count)).astype(np.int64))
    matrix = normalise_as_given(edge_index.numpy(), len(x), loops="as given")
    (part,) = fields_of(matrix, nodes, Batches.of(frozen.module).hops)
    alone = FrozenModel(frozen.model, return_type=frozen.return_type)
    try:
        found = alone.logits(x[part.nodes], part.edges)
    except Exception:  # the model is not ours, and may raise anything
        return None
    return part.nodes[: part.n_asked], found[: part.n_asked]


def basis_of(frozen: FrozenModel, width: int) -> Tensor | None:
    """Orthonormal directions of all features that the first weights read, shape (d, r); None where
    these read all of them, or there are none."""
    weights = [weight.detach() for _, weight in _first_weights(frozen.module, width)]
    if frozen.module is not frozen.model or not 0 < sum(map(len, weights)) < width:
        return None
    return torch.linalg.qr(torch.cat(weights).T).Q


def _by_products(
    frozen: FrozenModel, basis: Tensor, edge_index: Tensor, kwargs: Mapping[str, Any]
) -> tuple[nn.Module, Tensor]:
    """A copy whose layers multiply by the graph's matrix instead of sending a message an edge: a
    pass takes a third of the time, and no memory for messages."""
    if kwargs:
        raise ModelError("only (x, edge_index) can become (x, matrix)")
    copied, _ = _by_messages(frozen, basis, edge_index, kwargs)
    n_nodes = len(frozen.calling.graph.x)  # type: ignore[union-attr]
    matrix = normalise_as_given(edge_index.numpy(), n_nodes, "row", loops="as given")
    if not multiplied(copied, frozen):
        matrix.data[:] = 1.0
    return copied, as_tensor(matrix)


def multiplied(copied: nn.Module, frozen: FrozenModel) -> bool:
    """Make a copy's layers multiply by a matrix. Layers that take means become ones that take sums:
    whether they did, and the rows of the matrix have to have sum one."""
    layers = [layer for layer in copied.modules() if isinstance(layer, MessagePassing)]
    kinds = {layer.aggr for layer in layers}
    takes_edges = frozen.calling.signature.style is Style.TENSORS
    if not takes_edges or len(kinds) != 1 or not all(layer.fuse for layer in layers):
        raise ModelError("the layers send messages that are no products")
    if kinds != {"mean"}:
        return False
    for layer in layers:
        layer.aggr = "sum"
    return True


def _by_messages(
    frozen: FrozenModel, basis: Tensor, edge_index: Tensor, _kwargs: Mapping[str, Any]
) -> tuple[nn.Module, Tensor]:
    """A copy on the directions, for one graph only."""
    return copy_along(frozen.module, basis, cached=True), edge_index


def _part_by_part(
    propagate: Callable[..., Tensor], edge_index: Any, *, most: int = 1 << 17, **values: Any
) -> Tensor:
    """The sum of a layer's messages, of some edges after the others; these are made again when
    gradients are carried back, so that no more of them are held at once."""
    n_edges = edge_index.shape[1]
    if edge_index.is_sparse_csr or n_edges <= 8 * most:
        return propagate(edge_index, **values)
    own = {k for k, v in values.items() if isinstance(v, Tensor) and len(v) == n_edges}

    def some(edges: slice) -> Tensor:
        part = {k: v[edges] if k in own else v for k, v in values.items()}
        return propagate(edge_index[:, edges], **part)

    again = partial(checkpoint, some, use_reentrant=False, preserve_rng_state=False)
    return sum(map(again, row_blocks(n_edges, most)))  # type: ignore[arg-type, return-value]


def copy_along(model: nn.Module, basis: Tensor | None, *, cached: bool) -> nn.Module:
    """A copy with W Q in the place of every first weight W.

    Args:
        basis: Q, shape (d, r); None: the weights stay.
        cached: whether layers keep the normalisation of the first graph they meet, and add up
            messages of many edges part by part.
    """
    copied = copy.deepcopy(model).eval().requires_grad_(False)
    for layer in copied.modules():
        if hasattr(layer, "_cached_edge_index"):
            layer.cached = cached  # type: ignore[assignment]
        if cached and getattr(layer, "aggr", None) in ("add", "sum"):
            layer.propagate = partial(_part_by_part, layer.propagate)  # type: ignore
    if basis is None:
        return copied
    for name, weight in _first_weights(copied, len(basis)):
        owner, _, own = name.rpartition(".")
        narrow = nn.Parameter(weight.detach() @ basis.to(weight), requires_grad=False)
        setattr(copied.get_submodule(owner), own, narrow)
    return copied


def _first_weights(model: nn.Module, width: int) -> list[tuple[str, nn.Parameter]]:
    return [
        (name, weight)
        for name, weight in model.named_parameters()
        if weight.dim() == 2 and weight.shape[1] == width
    ]


def _row_space(forward: Forward, x: Tensor, rank: int) -> Tensor | None:
    """Directions in which answers change, shape (d, r); None where gradients are not finite.

    Gradients of all nodes lie in the row space of the first layer; sums of a few dozen span it."""
    leaf = x.detach().clone().requires_grad_(True)
    with torch.enable_grad():
        logits = forward(leaf)
    generator = torch.Generator().manual_seed(0)
    sums = x.new_zeros(2 * rank, x.shape[1])
    for first in (0, rank):
        weights = torch.randn(logits.shape, generator=generator).to(logits)
        (pull,) = torch.autograd.grad(logits, leaf, weights, retain_graph=True)
        sums.index_add_(0, first + torch.arange(len(x)).to(x.device) % rank, pull)
    if not bool(torch.isfinite(sums).all()):
        return None
    _, sizes, directions = torch.linalg.svd(sums, full_matrices=False)
    kept = max(1, int((sizes[:rank] > 1e-4 * sizes[0]).sum()))
    return directions[:kept].T.contiguous()
