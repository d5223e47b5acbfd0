"""One node type of a heterogeneous graph, as a model and a graph that everything else can take."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch_geometric.data import Data, HeteroData
from torch_geometric.utils import coalesce

from graphkeel.core.errors import DataError, ModelError


class NodeTypeView(NamedTuple):
    """A model of one node type, and that type's own graph.

    Attributes:
        model: takes (x, edge_index) of that type; the other types keep the features they have.
        graph: x, y and masks of that type; nodes are joined where a relation joins them, or where
            they share a neighbour of another type.
    """

    model: nn.Module
    graph: Data


def for_node_type(model: nn.Module, data: HeteroData, node_type: str) -> NodeTypeView:
    """Look at one node type of a heterogeneous graph: `Reconstructor(view.model).fit(view.graph)`.

    Args:
        model: called as `model(x_dict, edge_index_dict)`; returns the scores of that type, or a
            dict of scores by type.
        data: the whole graph.
        node_type: the type whose nodes are classified.
    """
    if not isinstance(data, HeteroData):
        raise DataError(
            "for_node_type takes a HeteroData",
            got=type(data).__name__,
            fix="Hand a Data object to the Reconstructor itself.",
        )
    if node_type not in data.node_types:
        raise DataError(f"the node types are {', '.join(data.node_types)}", got=repr(node_type))
    store = data[node_type]
    if not isinstance(store.get("x"), Tensor):
        raise DataError(f"data[{node_type!r}].x is missing", fix="Give that type features first.")
    fields = {
        name: store[name]
        for name in ("x", "y", "train_mask", "val_mask", "test_mask")
        if store.get(name) is not None
    }
    graph = Data(**fields, edge_index=_edges_within(data, node_type))
    return NodeTypeView(OneNodeType(model, data, node_type), graph)


class OneNodeType(nn.Module):
    """Runs a heterogeneous model with other features for one node type, as
    `model(x_dict, edge_index_dict)`."""

    def __init__(self, model: nn.Module, data: HeteroData, node_type: str) -> None:
        super().__init__()
        self.model = model
        self.node_type = node_type
        self._features = dict(data.x_dict)
        self._edges = dict(data.edge_index_dict)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        """Scores of that type's nodes, shape (N, n); edge_index is not looked at: the model has
        the edges of all types."""
        expected = self._features[self.node_type].shape[0]
        if x.shape[0] != expected:
            raise ModelError(
                f"the model is bound to the {expected} nodes of type {self.node_type!r}",
                got=x.shape[0],
            )
        features = {name: values.to(x.device, x.dtype) for name, values in self._features.items()}
        edges = {name: values.to(x.device) for name, values in self._edges.items()}
        scores: Any = self.model({**features, self.node_type: x}, edges)
        return scores[self.node_type] if isinstance(scores, dict) else scores


def _edges_within(data: HeteroData, node_type: str) -> Tensor:
    """Edges between nodes of one type, int64, shape (2, E): those of its own relations; without
    any, pairs that share a neighbour of another type."""
    n_nodes = int(data[node_type].x.shape[0])
    own = [
        edges
        for (source, _, target), edges in data.edge_index_dict.items()
        if source == node_type == target
    ]
    found = own or [
        _sharing(edges, n_nodes, inwards=target == node_type)
        for (source, _, target), edges in data.edge_index_dict.items()
        if node_type in (source, target)
    ]
    if not found:
        return torch.empty(2, 0, dtype=torch.long)
    return coalesce(torch.cat(found, dim=1), num_nodes=n_nodes)


def _sharing(edges: Tensor, n_nodes: int, *, inwards: bool, most: int = 20_000_000) -> Tensor:
    """Pairs of nodes of the type that one edge each joins to the same node of another type; more
    than `most` would not fit into memory."""
    other, ours = edges if inwards else edges.flip(0)
    counts = torch.bincount(other)
    pairs = int((counts.double() ** 2).sum())
    if pairs > most:
        raise DataError(
            "too many nodes share a neighbour of another type",
            got=f"{pairs} pairs",
            fix="Set graph.edge_index to edges of your own between nodes of that type.",
        )
    shape = (n_nodes, len(counts))
    incidence = torch.sparse_coo_tensor(
        torch.stack([ours, other]), torch.ones(len(ours)), shape
    ).coalesce()
    joined = torch.sparse.mm(incidence, incidence.T).coalesce().indices()
    return joined[:, joined[0] != joined[1]]
