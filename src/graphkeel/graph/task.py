"""`GraphTask`: one graph, its features, labels and split, checked once and then left alone."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

import torch
from torch import Tensor
from torch_geometric.data import Data

from graphkeel.core.digests import sha256_of
from graphkeel.core.errors import DataError

UNLABELLED = -1  # y of a node whose label is unknown


@dataclass(frozen=True, eq=False)
class GraphTask:
    """An immutable node-classification task.

    Attributes:
        x: features, float32, shape (N, d).
        edge_index: directed edges source -> target, int64, shape (2, E); used as given, in any
            order.
        y: labels 0..n_classes-1, or -1 where unknown, int64, shape (N,).
        train_mask, val_mask, test_mask: disjoint, bool, shape (N,); only labelled nodes.
        n_classes: how many classes there are.
        name: what to call it in tables.
        mapped: x lies on disk, mapped for reading, and is not copied.

    Other tensors are copied in, so a later change of the caller's data does not reach the task.
    """

    x: Tensor
    edge_index: Tensor
    y: Tensor
    train_mask: Tensor
    val_mask: Tensor
    test_mask: Tensor
    n_classes: int
    name: str = "graph"
    mapped: bool = False

    def __post_init__(self) -> None:
        types = {"x": torch.float32, "edge_index": torch.int64, "y": torch.int64}
        for field, dtype in (types | dict.fromkeys(_MASKS, torch.bool)).items():
            given = getattr(self, field)
            if field == "x" and self.mapped and getattr(given, "dtype", None) == dtype:
                continue
            object.__setattr__(self, field, _copied(given, field, dtype))
        check_features(self.x)
        check_edges(self.edge_index, self.n_nodes)
        _check_labels(self)
        _check_masks(self)

    @classmethod
    def from_data(
        cls, data: Data, *, n_classes: int | None = None, name: str = "graph"
    ) -> GraphTask:
        """Build from a PyG `Data` with x and edge_index; y and masks may be missing.

        Args:
            data: x of shape (N, d), edge_index of shape (2, E), y of shape (N,) or (N, 1), masks of
                shape (N,). Without y no label is known; a mask that is missing selects no node.
            n_classes: how many classes there are; by default one more than the largest label.
            name: what to call the task in tables.
        """
        for field in ("x", "edge_index"):
            if getattr(data, field, None) is None:
                raise DataError(
                    f"data.{field} is missing",
                    fix=f"Set data.{field} before handing the graph over.",
                )
        n_nodes = data.x.shape[0]
        none = torch.zeros(n_nodes, dtype=torch.bool)
        y = _given(data, "y", torch.full((n_nodes,), UNLABELLED))
        y = y.squeeze(-1) if y.dim() == 2 and y.shape[1] == 1 else y
        return cls(
            x=data.x,
            edge_index=data.edge_index,
            y=y,
            train_mask=_given(data, "train_mask", none),
            val_mask=_given(data, "val_mask", none),
            test_mask=_given(data, "test_mask", none),
            n_classes=int(y.max()) + 1 if n_classes is None else n_classes,
            name=name,
        )

    def to_data(self) -> Data:
        """A PyG `Data` of its own, free to change."""
        return Data(
            **{field: getattr(self, field).clone() for field in ("x", "edge_index", "y", *_MASKS)}
        )

    def without_test_labels(self) -> GraphTask:
        """This task with every label outside train and validation erased: what a method may
        see.

        >>> from graphkeel.graph import load
        >>> task = load("digits").without_test_labels()
        >>> int((task.y != UNLABELLED).sum()) == int((task.train_mask | task.val_mask).sum())
        True
        """
        visible = self.train_mask | self.val_mask
        y = torch.where(visible, self.y, torch.full_like(self.y, UNLABELLED))
        task = copy.copy(self)  # shares the tensors that are copied and checked already
        vars(task).pop("hash", None)
        object.__setattr__(task, "y", y)
        object.__setattr__(task, "test_mask", torch.zeros_like(self.test_mask))
        return task

    @property
    def n_nodes(self) -> int:
        return int(self.x.shape[0])

    @property
    def n_features(self) -> int:
        return int(self.x.shape[1])

    @property
    def n_edges(self) -> int:
        return int(self.edge_index.shape[1])

    @cached_property
    def hash(self) -> str:
        """SHA-256 over every array, so that a stored result names the data it was computed on."""
        named = {field: getattr(self, field) for field in ("x", "edge_index", "y", *_MASKS)}
        return sha256_of([f"{self.n_classes}", *_digested(named)])

    def __repr__(self) -> str:
        sizes = "/".join(str(int(getattr(self, mask).sum())) for mask in _MASKS)
        return (
            f"GraphTask({self.name!r}, nodes={self.n_nodes}, edges={self.n_edges}, "
            f"features={self.n_features}, classes={self.n_classes}, train/val/test={sizes})"
        )


def graph_sha256(x: Tensor, edge_index: Tensor) -> str:
    """SHA-256 of a graph's features and edges, whatever its labels and masks are.

    Args:
        x: features, shape (N, d).
        edge_index: edges, shape (2, E).
    """
    return sha256_of(_digested({"x": x, "edge_index": edge_index}))


def _digested(tensors: dict[str, Tensor]) -> Iterator[str | memoryview]:
    """Name, shape, type and numbers of each; the buffer itself, as a copy could be gigabytes."""
    for name, tensor in tensors.items():
        stored = tensor.detach().cpu().contiguous()
        yield f"{name}{tuple(stored.shape)}{stored.dtype}"
        yield stored.numpy().data


_MASKS = ("train_mask", "val_mask", "test_mask")


def _given(data: Data, field: str, default: Tensor) -> Tensor:
    value = getattr(data, field, None)
    return default if value is None else value


def _copied(value: object, field: str, dtype: torch.dtype) -> Tensor:
    if not isinstance(value, Tensor):
        raise DataError(
            f"{field} must be a torch tensor",
            got=type(value).__name__,
            fix="Wrap it with torch.as_tensor.",
        )
    if dtype == torch.bool and value.dtype != torch.bool:
        raise DataError(
            f"{field} must be a boolean mask over the nodes",
            got=f"dtype {value.dtype}",
            fix="Turn a list of node ids into a mask: mask = torch.zeros(N, dtype=torch.bool); "
            "mask[ids] = True.",
        )
    if dtype == torch.int64 and value.is_floating_point():
        raise DataError(
            f"{field} must hold integers",
            got=f"dtype {value.dtype}",
            fix="Convert it with .long().",
        )
    return value.detach().to("cpu", dtype, copy=True)


def check_features(x: Tensor, rows: int = 1 << 16) -> None:
    """Refuse features of another shape than (N, d), or that are not finite; block of rows by block,
    so that features on disk are never in memory as a whole."""
    if x.dim() != 2 or x.shape[0] == 0 or x.shape[1] == 0:
        raise DataError("x must have shape (nodes, features), both at least 1", got=tuple(x.shape))
    if all(bool(torch.isfinite(extreme)) for part in x.split(rows) for extreme in part.aminmax()):
        return  # both extremes are NaN where any value is
    bad = torch.cat([~torch.isfinite(part).all(dim=1) for part in x.split(rows)])
    if bad.any():
        first = int(bad.nonzero()[0])
        raise DataError(
            "x must be finite",
            got=f"NaN or infinity in {int(bad.sum())} rows, the first is row {first}",
            fix="Impute or drop those nodes first.",
        )


def check_edges(edge_index: Tensor, n_nodes: int) -> None:
    """Refuse an edge list of the wrong shape or with a node id outside 0..n_nodes-1.

    Args:
        edge_index: int64, shape (2, E).
    """
    if edge_index.dim() != 2 or edge_index.shape[0] != 2:
        raise DataError("edge_index must have shape (2, edges)", got=tuple(edge_index.shape))
    if edge_index.numel() and (int(edge_index.min()) < 0 or int(edge_index.max()) >= n_nodes):
        raise DataError(
            f"edge_index must hold node ids in 0..{n_nodes - 1}",
            got=f"ids from {int(edge_index.min())} to {int(edge_index.max())}",
            fix="Check that edges and features describe the same graph.",
        )


def _check_labels(task: GraphTask) -> None:
    y = task.y
    n = task.n_classes
    if y.shape != (task.n_nodes,):
        raise DataError(
            "y must have one label per node", got=f"{tuple(y.shape)} for {task.n_nodes} nodes"
        )
    if n < 2:
        raise DataError("there must be at least two classes", got=n)
    if int(y.min()) < UNLABELLED or int(y.max()) >= n:
        raise DataError(
            f"labels must lie in 0..{n - 1}, or be -1 where unknown",
            got=f"from {int(y.min())} to {int(y.max())}",
        )


def _check_masks(task: GraphTask) -> None:
    masks = {field: getattr(task, field) for field in _MASKS}
    for field, mask in masks.items():
        if mask.shape != (task.n_nodes,):
            raise DataError(
                f"{field} must have one entry per node",
                got=f"{tuple(mask.shape)} for {task.n_nodes} nodes",
            )
        unlabelled = int((mask & (task.y == UNLABELLED)).sum())
        if unlabelled:
            raise DataError(
                f"{field} selects nodes without a label",
                got=unlabelled,
                fix="Drop them from the mask.",
            )
    for a, b in combinations(_MASKS, 2):
        both = int((masks[a] & masks[b]).sum())
        if both:
            raise DataError(
                f"{a} and {b} overlap",
                got=f"{both} nodes in both",
                fix=f"Remove them: {b} &= ~{a}.",
            )
