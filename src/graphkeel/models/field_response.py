"""C by its definition, with no layers to read: the model on constant feature fields.

On single nodes that see only themselves where the model takes such a graph; else on its own graph,
every node of which carries the same features. Models with an embedding per node, with a norm over
all nodes, or with a graph that they keep themselves need that."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from graphkeel.core.errors import ModelError
from graphkeel.graph.node_graph import graph_edges
from graphkeel.models.frozen import FrozenModel


@dataclass(frozen=True)
class _Probing:
    """How fields are answered.

    Attributes:
        chunk: nodes per probe, which bounds memory at full feature dimension.
        probed: fields that are answered together and alone.
        same: relative agreement of the two; a normalisation over all nodes is far from it.
    """

    chunk: int = 512
    probed: int = 3
    same: float = 1e-3


PROBING = _Probing()

_Response = Callable[[Tensor], Tensor]


def self_loops(x: Tensor) -> Tensor:
    """Edges of a graph in which every node sees itself and nobody else, shape (2, n).

    Args:
        x: features, shape (n, d).
    """
    nodes = torch.arange(x.shape[0], device=x.device)
    return torch.stack([nodes, nodes])


@dataclass(frozen=True)
class FieldResponse:
    """Fields, shape (B, d), to logits, shape (B, n), each on a single node with a loop."""

    frozen: FrozenModel
    model_kwargs: dict[str, Any] = field(default_factory=dict)  # further arguments of its forward

    def __call__(self, x: Tensor) -> Tensor:
        logits = self.frozen.differentiable_logits
        parts = x.split(PROBING.chunk)
        return torch.cat([logits(part, self_loops(part), **self.model_kwargs) for part in parts])


@dataclass(frozen=True)
class _GraphResponse:
    """Fields, shape (B, d), to logits, shape (B, n), each on all nodes of the model's own graph at
    once; the mean over the nodes counts."""

    frozen: FrozenModel
    model_kwargs: dict[str, Any] = field(default_factory=dict)

    def __call__(self, x: Tensor) -> Tensor:
        return torch.stack([self._answer(row) for row in x])

    def _answer(self, row: Tensor) -> Tensor:
        graph = self.frozen.calling.graph
        assert graph is not None
        edges = graph_edges(graph)
        assert edges is not None
        everywhere = row.expand(int(graph.x.shape[0]), -1)
        logits = self.frozen.differentiable_logits
        return logits(everywhere, edges.to(row.device), **self.model_kwargs).mean(dim=0)


def response_of(
    frozen: FrozenModel, fields: Tensor, model_kwargs: dict[str, Any]
) -> tuple[_Response, int, str | None]:
    """How the model answers fields, how many logits it gives, and, where it must be asked on its
    own graph, why nothing can be read off.

    Args:
        fields: examples, shape (B, d).
    """
    single = FieldResponse(frozen, model_kwargs)
    probes = fields[: PROBING.probed]
    try:
        together = single(probes).detach()
        alone = torch.cat([single(row).detach() for row in probes.split(1)])
    except Exception as error:  # the model is untrusted, and it may raise anything
        what = f"{type(error).__name__}: {error}"[:300]
        return *_on_graph(frozen, probes, model_kwargs, what), _NO_FIELD.format(what)
    scale = max(1.0, float(together.abs().max()))
    apart = float((together - alone).abs().max()) > PROBING.same * scale
    if apart and frozen.calling.graph is not None:
        return *_on_graph(frozen, probes, model_kwargs, "nodes depend on each other"), _MIXED
    return single, int(together.shape[1]), _MIXED if apart else None


_NO_FIELD = "the model cannot be run on a single node ({})"
_MIXED = "the answer for a node depends on nodes that it has no edge to (a norm over the graph?)"


def _on_graph(
    frozen: FrozenModel, probes: Tensor, model_kwargs: dict[str, Any], why: str
) -> tuple[_Response, int]:
    if frozen.calling.graph is None:
        raise ModelError(
            "the model could not be run on a constant feature field",
            got=why,
            fix="Give it its graph: FrozenModel(model, graph=data).",
        )
    response = _GraphResponse(frozen, model_kwargs)
    return response, int(response(probes[:1]).shape[1])
