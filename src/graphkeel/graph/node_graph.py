"""A graph as people hand it over, as a node-classification task needs it: one node type, a list of
edges, one class per node. What is another kind of task is refused in its own words.

Edges may come as an adjacency matrix, as PyG's models take it: in torch's sparse layouts, dense, or
as torch_sparse's `SparseTensor` where that package is installed. Row i then holds the edges *into*
node i, as in `data.adj_t`."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data, HeteroData

from graphkeel.core.errors import DataError
from graphkeel.graph.task import check_edges

_SPARSE = (torch.sparse_coo, torch.sparse_csr, torch.sparse_csc)


def node_graph(data: Any) -> Any:
    """The graph with `edge_index` as a list and `y` as classes; a shallow copy where that changes
    anything, and whatever is no graph at all as it is."""
    if isinstance(data, list | tuple) and len(data) == 1:
        data = data[0]  # a sample of one graph, as scikit-learn's searches cut it
    _refuse_other_containers(data)
    if not isinstance(data, Data):
        return data
    changes = {}
    edges = graph_edges(data)
    if edges is not data.get("edge_index"):
        changes["edge_index"] = edges
    x = data.get("x")
    if isinstance(x, Tensor) and x.dim() == 2:
        labels = _classes(data, int(x.shape[0]))
        if labels is not data.get("y"):
            changes["y"] = labels
    if not changes:
        return data
    changed = copy.copy(data)
    for name, value in changes.items():
        changed[name] = value
    return changed


def check_graph(data: object) -> None:
    """Refuse what is no `Data` with x (N, d) and edge_index (2, E), before a model fails on it with
    words of its own."""
    for field in ("x", "edge_index"):
        if not hasattr(data, field):
            raise DataError(
                "the graph must be a PyG Data object with x and edge_index",
                got=type(data).__name__,
                fix="Data(x=…, edge_index=…, y=…, train_mask=…) makes one.",
            )
        value = getattr(data, field)
        if not isinstance(value, Tensor):
            missing = value is None
            raise DataError(
                f"data.{field} is missing" if missing else f"data.{field} must be a torch tensor",
                got=None if missing else type(value).__name__,
                fix=f"Set data.{field} before handing the graph over."
                if missing
                else "torch.as_tensor makes one of an array, or of a table's to_numpy().",
            )
    x, edge_index = data.x, data.edge_index  # type: ignore[attr-defined]
    if x.dim() != 2:
        raise DataError("x must have shape (nodes, features)", got=tuple(x.shape))
    if edge_index.is_floating_point():
        raise DataError("edge_index must hold integers", got=f"dtype {edge_index.dtype}")
    check_edges(edge_index, x.shape[0])


def check_width(x: Tensor, n_features: int) -> None:
    """Refuse a target whose features x (N, d) are not the source's."""
    if x.shape[1] != n_features:
        raise DataError(
            f"the target must have the source's {n_features} features",
            got=int(x.shape[1]),
            fix="Prepare them in the same way: the same words, the same fitted PCA.",
        )


def check_grown(x: Tensor, new_x: Tensor) -> None:
    """Refuse features (N, d) of a graph that cannot be the one of x (n, d) later."""
    if new_x.shape[1] != x.shape[1]:
        raise DataError(
            f"update needs the {x.shape[1]} features of the graph that was fitted",
            got=int(new_x.shape[1]),
            fix="Prepare them in the same way, or call fit.",
        )
    if new_x.shape[0] < x.shape[0]:
        raise DataError(
            f"update keeps the ids of all {x.shape[0]} nodes that were fitted",
            got=f"{new_x.shape[0]} nodes",
            fix="Leave nodes that are gone in place, without edges; or call fit.",
        )


def graph_edges(graph: Data) -> Tensor | None:
    """The edges of a graph as a list, int64, shape (2, E), whichever way it keeps them."""
    edge_index = graph.get("edge_index")
    if is_adjacency(edge_index):
        return edges_of(edge_index)
    if edge_index is None and graph.get("adj_t") is not None:
        return edges_of(graph.adj_t)
    return edge_index


def _refuse_other_containers(data: Any) -> None:
    if isinstance(data, HeteroData):
        raise DataError(
            "a graph with several node types is taken one type at a time",
            got=f"HeteroData with {', '.join(data.node_types)}",
            fix=f"model, graph = gk.for_node_type(model, data, {_labelled_type(data)!r}) makes a "
            "model and a graph of one type.",
        )
    if not isinstance(data, Data | Tensor | str) and hasattr(data, "__getitem__"):
        holds_graphs = hasattr(data, "__len__") and len(data) and _first_is_graph(data)
        if holds_graphs:
            raise DataError(
                "one graph is taken at a time",
                got=f"{type(data).__name__} of {len(data)}",
                fix="Hand over one of them: dataset[0].",
            )


def _labelled_type(data: HeteroData) -> str:
    """The first node type that has labels; else the first one."""
    labelled = [name for name in data.node_types if data[name].get("y") is not None]
    return str([*labelled, *data.node_types, "…"][0])


def _first_is_graph(data: Any) -> bool:
    try:
        return isinstance(data[0], Data | HeteroData)
    except (KeyError, IndexError, TypeError, AttributeError):
        return False


# ---- labels


def _classes(data: Data, n_nodes: int) -> Any:
    """The labels as whole numbers, one per node; other kinds of task are refused."""
    y = data.get("y")
    if y is not None and not isinstance(y, Tensor):
        raise DataError(
            "data.y must be a torch tensor",
            got=type(y).__name__,
            fix="torch.as_tensor makes one; of names, scikit-learn's LabelEncoder makes numbers.",
        )
    if y is None or y.dim() == 0:
        return y
    if y.shape[0] != n_nodes:
        if y.shape[0] == 1 or data.get("batch") is not None:
            raise DataError(
                f"y must have one label for each of the {n_nodes} nodes",
                got=f"{tuple(y.shape)}: a label per graph",
                fix="graphkeel is for classifying nodes, not whole graphs.",
            )
        return y
    if y.dim() == 2 and y.shape[1] > 1:
        raise _several_columns(y)
    if y.is_floating_point():
        return _whole(y)
    return y.long() if y.dtype == torch.bool else y


def _several_columns(y: Tensor) -> DataError:
    shape = tuple(y.shape)
    if bool(((y == 0) | (y == 1)).all()) and bool((y.sum(dim=1) == 1).all()):
        return DataError(
            "y must hold one class per node",
            got=f"{shape}, one-hot",
            fix="data.y = data.y.argmax(dim=1) gives the classes.",
        )
    return DataError(
        "y must hold one class per node",
        got=f"{shape}: several labels per node",
        fix="Take one label at a time: y[:, j], with a function that returns the model's scores of "
        "that label.",
    )


def _whole(y: Tensor) -> Tensor:
    """Labels of a floating-point type, as a binary cross-entropy wants them."""
    whole = torch.isfinite(y) & (y == y.round())
    if bool(whole.all()):
        return y.long()
    example = y[~whole].flatten()[0].item()
    raise DataError(
        "the labels must be classes",
        got=f"real numbers, for instance {example:.6g}",
        fix="graphkeel is for classifying nodes. A regression model has no classes; its target "
        "would have to be binned, and the model trained on the bins.",
    )


# ---- adjacency matrices


def is_adjacency(value: object) -> bool:
    """Whether a value is a sparse matrix, and not an edge list."""
    if isinstance(value, Tensor):
        return value.layout in _SPARSE
    return hasattr(value, "coo") and hasattr(value, "sparse_sizes")


def copy_sparse(values: Iterable[Any], memo: dict[int, Any]) -> None:
    """Copy sparse tensors ahead of `copy.deepcopy`, which cannot copy compressed ones."""
    for value in values:
        if isinstance(value, Tensor) and is_adjacency(value):
            memo[id(value)] = value.clone()


def edges_of(adjacency: Any) -> Tensor:
    """The edges source -> target of an adjacency matrix, int64, shape (2, E), by target."""
    if not isinstance(adjacency, Tensor):
        target, source, _ = adjacency.coo()
        return torch.stack([source, target])
    dense = adjacency.layout == torch.strided
    indices = adjacency.nonzero().T if dense else adjacency.to_sparse_coo().coalesce().indices()
    return indices.flip(0)


def weighs_edges(adjacency: Any) -> bool:
    """Whether an adjacency matrix says more than which edges there are: a value that is not one."""
    if isinstance(adjacency, Tensor):
        values = adjacency.to_sparse_coo().coalesce().values()
    else:
        values = adjacency.coo()[2]
    return values is not None and bool((values != 1).any())


def like_adjacency(adjacency: Any, x: Tensor, edge_index: Tensor) -> Any:
    """The adjacency matrix of another graph, of features (n, d) and edges (2, e), in the layout of
    a known one; every edge weighs one, as the loop of a single node does in a normalised matrix."""
    n_nodes = x.shape[0]
    row, column = edge_index.flip(0)
    if adjacency is not None and not isinstance(adjacency, Tensor):
        kind: Any = type(adjacency)
        return kind(row=row, col=column, sparse_sizes=(n_nodes, n_nodes))
    values = x.new_ones(edge_index.shape[1])
    matrix = torch.sparse_coo_tensor(torch.stack([row, column]), values, (n_nodes, n_nodes))
    matrix = matrix.coalesce()
    layout = torch.sparse_csr if adjacency is None else adjacency.layout
    if layout == torch.strided:
        return matrix.to_dense()
    return matrix if layout == torch.sparse_coo else matrix.to_sparse(layout=layout)
