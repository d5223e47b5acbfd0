"""How a model takes its graph: read off its signature once, then every call is made that way.

People write `forward(x, edge_index)`, `forward(data)`, `forward(x, adj_t)`, and more. The rest of
the library asks all of them with (x, edge_index); this module turns that into the model's own call.
A graph that is not the one the model was bound to (a single node with a loop, above all) has no
edge weights, no batch and no adjacency of its own: they are made to fit, from their means.
Arguments are moved to where the model lives; a function becomes a module that holds what it
uses."""

from __future__ import annotations

import copy
import functools
import inspect
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from graphkeel.core.errors import ModelError
from graphkeel.graph.node_graph import graph_edges, is_adjacency, like_adjacency

_DATA_NAMES = frozenset({"data", "graph", "batch", "g", "d"})
_FEATURE_NAMES = frozenset({"x", "h", "input", "inputs", "feat", "feats", "feature", "features"})
_EDGE_NAMES = frozenset({"edge_index", "edges", "edge_list"})
_ADJACENCY_NAMES = frozenset({"adj_t", "adj", "adjacency", "adj_mat", "adj_matrix", "a"})
_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


class Style(StrEnum):
    """The ways in which a forward takes features and edges."""

    TENSORS = "model(x, edge_index)"
    SWAPPED = "model(edge_index, x)"
    FEATURES = "model(x)"
    DATA = "model(data)"
    ADJACENCY = "model(x, adj_t)"


@dataclass(frozen=True)
class Signature:
    """The arguments that a forward takes.

    Attributes:
        style: how features and edges are handed over.
        edges: the name of the parameter that takes the edges, where there is one.
        required: names of further parameters without a default.
        optional: names of further parameters with a default.
    """

    style: Style = Style.TENSORS
    edges: str = "edge_index"
    required: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()


def signature_of(forward: Callable[..., Any]) -> Signature:
    """How a forward takes its graph, by the names of its parameters.

    >>> signature_of(lambda x, edge_index, edge_weight: x).required
    ('edge_weight',)
    >>> signature_of(lambda data: data.x).style
    <Style.DATA: 'model(data)'>"""
    try:
        parameters = list(inspect.signature(forward).parameters.values())
    except (TypeError, ValueError):  # a scripted or a built-in forward has none
        return Signature()
    named = [one for one in parameters if one.kind in _POSITIONAL]
    names = [one.name for one in named]
    keyword_only = [one for one in parameters if one.kind is inspect.Parameter.KEYWORD_ONLY]
    open_ended = any(one.kind is inspect.Parameter.VAR_POSITIONAL for one in parameters)
    style = _style(names, [one.default is one.empty for one in named], open_ended)
    taken = 1 if style in (Style.DATA, Style.FEATURES) else 2
    rest = [*named[taken:], *keyword_only]
    return Signature(
        style,
        edges=names[1] if taken == 2 and len(names) > 1 else "edge_index",
        required=tuple(one.name for one in rest if one.default is one.empty),
        optional=tuple(one.name for one in rest if one.default is not one.empty),
    )


def _style(names: list[str], required: list[bool], open_ended: bool) -> Style:
    if not names or (open_ended and len(names) < 2):
        return Style.TENSORS
    first = names[0].lower()
    second = names[1].lower() if len(names) > 1 else ""
    if first in _EDGE_NAMES and second in _FEATURE_NAMES:
        return Style.SWAPPED
    if second in _ADJACENCY_NAMES:
        return Style.ADJACENCY
    if first in _DATA_NAMES and sum(required) == 1:
        return Style.DATA
    if len(names) == 1:
        return Style.FEATURES if first in _FEATURE_NAMES else Style.DATA
    return Style.TENSORS


@dataclass(frozen=True)
class Calling:
    """Calls a model as it wants to be called. The graph is the one that it is asked about, with
    every field that a forward may read; None where only (x, edge_index) are known."""

    signature: Signature = field(default_factory=Signature)
    graph: Data | None = None

    def __call__(
        self,
        model: Callable[..., Any],
        x: Tensor,
        edge_index: Tensor,
        arguments: dict[str, Any],
        placement: Placement | None,
    ) -> Any:
        fitting = {
            name: self._fitting(name, value, x, edge_index) for name, value in arguments.items()
        }
        graph = self._graph_arguments(x, edge_index)
        if placement is not None:
            fitting, graph = placement.moved(fitting), placement.moved(graph)
        return model(*graph, **fitting)

    def _graph_arguments(self, x: Tensor, edge_index: Tensor) -> list[Any]:
        style = self.signature.style
        if style is Style.FEATURES:
            return [x]
        if style is Style.DATA:
            return [self._data(x, edge_index)]
        given = self._given_edges()
        if style is Style.ADJACENCY or given is not None:
            edges: Any = self._adjacency(given, x, edge_index)
        else:
            edges = edge_index
        return [edges, x] if style is Style.SWAPPED else [x, edges]

    @property
    def has_adjacency(self) -> bool:
        """Whether the model is given a matrix of the graph's own, whose values may weigh edges."""
        return self.signature.style is Style.ADJACENCY or self._given_edges() is not None

    def _given_edges(self) -> Any:
        """The adjacency that the graph carries in place of an edge list."""
        if self.graph is None:
            return None
        own = self.graph.get(self.signature.edges)
        if is_adjacency(own):
            return own
        if self.signature.style is Style.ADJACENCY or self.graph.get("edge_index") is None:
            return self.graph.get("adj_t")
        return None

    def _adjacency(self, given: Any, x: Tensor, edge_index: Tensor) -> Any:
        if given is None and self.graph is not None:
            raise ModelError(
                f"the model takes an adjacency matrix ({self.signature.edges!r}), "
                "and the graph has none",
                got="edge_index only",
                fix=f"Set data.{self.signature.edges} to the matrix that it was trained with.",
            )
        return given if self._is_own(x, edge_index) else like_adjacency(given, x, edge_index)

    def _data(self, x: Tensor, edge_index: Tensor) -> Data:
        graph = self.graph
        if graph is None:
            return Data(x=x, edge_index=edge_index)
        changed = copy.copy(graph)
        for name, value in graph.items():
            if name not in ("x", "edge_index"):
                changed[name] = self._fitting(name, value, x, edge_index)
        changed.x = x
        if not is_adjacency(graph.get("edge_index")):
            changed.edge_index = edge_index
        return changed

    def _is_own(self, x: Tensor, edge_index: Tensor) -> bool:
        """Whether these are nodes and edges of the bound graph, or at least as many."""
        if self.graph is None:
            return True
        return (x.shape[0], edge_index.shape[1]) == (self._n_nodes, self._n_edges)

    def _fitting(self, name: str, value: Any, x: Tensor, edge_index: Tensor) -> Any:
        """An argument of the bound graph, made to fit another one."""
        if self.graph is None or self._is_own(x, edge_index):
            return value
        if is_adjacency(value):
            return like_adjacency(value, x, edge_index)
        if not isinstance(value, Tensor) or value.dim() == 0:
            return value
        rows = value.shape[0]
        of_edges = name.startswith("edge") or rows != self._n_nodes
        if rows == self._n_edges and of_edges:
            return _typical_rows(value, edge_index.shape[1])
        if rows != self._n_nodes:
            return value
        if name == "batch":  # every node of a field is a graph of its own
            return torch.arange(x.shape[0], device=value.device)
        return _typical_rows(value, x.shape[0])

    @cached_property
    def _n_nodes(self) -> int:
        return 0 if self.graph is None else int(self.graph.x.shape[0])

    @cached_property
    def _n_edges(self) -> int:
        edges = None if self.graph is None else graph_edges(self.graph)
        return 0 if edges is None else int(edges.shape[1])


def _typical_rows(value: Tensor, count: int) -> Tensor:
    """As many rows as asked for, each the mean (of whole numbers: the first)."""
    if not len(value):
        return value.new_zeros((count, *value.shape[1:]))
    row = value.mean(dim=0) if value.is_floating_point() else value[0]
    return row.expand(count, *row.shape)


# ---- where a model lives


@dataclass(frozen=True)
class Placement:
    """A device and a floating-point type.

    Attributes:
        device: where the tensors of a call must lie.
        dtype: the type of the features and of every other argument with a floating-point type.
    """

    device: torch.device
    dtype: torch.dtype

    def moved(self, value: Any) -> Any:
        """The value there; what is no tensor, and what is there already, is returned as it is."""
        if isinstance(value, Tensor):
            dtype = self.dtype if value.is_floating_point() else value.dtype
            return value.to(self.device, dtype)
        if isinstance(value, Data):
            return value.apply(self.moved)
        if type(value) in (list, tuple):
            return type(value)(self.moved(part) for part in value)
        if type(value) is dict:
            return {name: self.moved(part) for name, part in value.items()}
        return value


def placement_of(model: nn.Module, x: Tensor | None = None) -> Placement | None:
    """Where the model's weights are; for a model without weights, where the features are."""
    for tensor in (*model.parameters(), *model.buffers()):
        if tensor.is_floating_point():
            return Placement(tensor.device, tensor.dtype)
    if x is not None and x.is_floating_point():
        return Placement(x.device, x.dtype)
    return None


# ---- any callable as a module: a function that closes over modules holds their weights and modes


def uncompiled(model: Any) -> Any:
    """The module inside a `torch.compile`d one, with the same weights; others as they are.

    Hooks and changed modes would compile it anew at every call."""
    return getattr(model, "_orig_mod", model)


def as_module(model: nn.Module | Callable[..., Any]) -> nn.Module:
    """A module that calls the model; a module is one already."""
    return model if isinstance(model, nn.Module) else CallableModule(model)


def forward_of(model: nn.Module | Callable[..., Any]) -> Callable[..., Any]:
    """The function whose parameters are those of a call."""
    return model.forward if isinstance(model, nn.Module) else model


class CallableModule(nn.Module):
    """Calls a function, and holds the modules that it uses."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.used = nn.ModuleList(_modules_within(function))
        self._function = function

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self._function(*args, **kwargs)


def _modules_within(function: Callable[..., Any]) -> list[nn.Module]:
    """The modules that a callable holds, by its closure, its object, its arguments or the globals
    it names."""
    found: dict[int, nn.Module] = {}
    for value in _held(function):
        if isinstance(value, nn.Module):
            found[id(value)] = value
        elif inspect.isfunction(value) and value is not function:
            found |= {id(part): part for part in _held(value) if isinstance(part, nn.Module)}
    return list(found.values())


def _held(function: Callable[..., Any]) -> list[Any]:
    if isinstance(function, functools.partial):
        given = [*function.args, *function.keywords.values()]
        return [*given, function.func, *_held(function.func)]
    if inspect.ismethod(function):
        return [function.__self__, *_vars_of(function.__self__), *_held(function.__func__)]
    if inspect.isfunction(function):
        named = inspect.getclosurevars(function)
        defaults = [*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()]
        return [*named.nonlocals.values(), *named.globals.values(), *defaults]
    return list(_vars_of(function))


def _vars_of(value: Any) -> Iterable[Any]:
    return getattr(value, "__dict__", {}).values()
