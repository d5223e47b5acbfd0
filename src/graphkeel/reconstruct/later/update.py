"""`update`: the same graph later. The choice, the labels and the anchors stay; what follows from
the graph is that of a fresh fit with this choice.

Where the model is linear and the graph large (the state of `large/`), what the change does not
reach is kept: matrices grow in place of being sorted anew, projections and logits are computed at
the rows within the model's hops, features and edges are written into memory that has the room.
Labels are spread anew on the new graph, all at once, which takes a fraction of a second. Elsewhere
the context is made anew and one candidate is computed, where a fit computes all of them, several
times."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse
from torch import Tensor

from graphkeel.core.errors import DataError
from graphkeel.graph.propagate import normalise, normalise_as_given, rows_after, write_rows
from graphkeel.graph.propagate.adjacency import (
    grown,
    grown_as_given,
    near_ends,
)
from graphkeel.graph.propagate.propagator import Propagator
from graphkeel.graph.propagate.row_blocks import side_by_side
from graphkeel.models.frozen import FrozenModel
from graphkeel.models.sparse_hops import forget_convolution, remember_convolution
from graphkeel.reconstruct.context import Context
from graphkeel.reconstruct.large.linear import LinearModel
from graphkeel.reconstruct.large.local import LocalContext
from graphkeel.reconstruct.large.rows import laid_out, longer_rows, whole_rows
from graphkeel.reconstruct.later.change import Change

if TYPE_CHECKING:
    from graphkeel.reconstruct.chooser import Chooser


def keep_anchors(old: Context, new: Context) -> None:
    """Make a context use the anchors, the strength and the head of another.

    Args:
        old: the model on the graph as it was.
        new: the same model on the graph as it is.
    """
    new.typical_strength = old.typical_strength
    new.use_anchors(old.anchors())
    if "plant" in old.__dict__:
        new.plant = old.plant  # the head does not depend on the graph


def moved_locally(
    chooser: Chooser, fixed: LocalContext, change: Change, frozen: FrozenModel
) -> Chooser:
    """The chooser of a large graph and a linear model, on the graph as it is now.

    Args:
        chooser: of the graph as it was; of no use afterwards, as its memory is written over.
        fixed: its state that no label changes.
        change: the graph as it is now.
        frozen: the model, bound to it.
    """
    old = fixed.context
    frozen.return_type = old.frozen.return_type
    # what is kept of the old graph is written over from here on
    model, changed, propagator = _grown_matrices(fixed.model, old.propagator, change)
    projected = _projected(fixed, model, change)
    reached = _reached(changed, propagator.matrix, model.hops, change.other_features.numpy())
    first_hop = _first_hop(fixed, model, projected, reached[0])
    logits = _logits(old.logits, model, projected, first_hop, reached[-1])
    edge_index = change.all_edges(old.edge_index)
    remember_convolution(edge_index, model.matrix)
    context = Context(
        frozen,
        change.all_features(old.x),
        edge_index,
        model_kwargs=old.model_kwargs,
        controller=old.controller,
        seed=old.seed,
        source=old.source,
    )
    context.propagator = propagator
    context.logits = logits
    keep_anchors(old, context)
    moved = LocalContext(context, model)
    moved.projected = projected
    moved.first_hop = first_hop
    return chooser.moved(context, moved)


def _grown_matrices(
    model: LinearModel, propagator: Propagator, change: Change
) -> tuple[LinearModel, NDArray[np.bool_], Propagator]:
    """The model on the new graph, which rows of its matrix are others, and Ŝ."""
    n_nodes = change.n_nodes
    if change.added is None:
        assert change.edges is not None
        edges = change.edges.numpy()
        given = normalise_as_given(edges, n_nodes)
        changed = np.ones(n_nodes, dtype=bool)
        matrix = normalise(edges, n_nodes)
    else:
        added = change.added.numpy()
        forget_convolution(model.matrix)
        near = near_ends(propagator.matrix, added, n_nodes)
        one = grown_as_given(model.matrix, added, n_nodes, near)
        other = grown(propagator.matrix, added, n_nodes, near)
        side_by_side(one.write, other.write)
        given, changed, matrix = one.matrix, one.changed, other.matrix
    moved = LinearModel(given, model.hops, model.weight, model.bias)
    return moved, changed, Propagator.of_matrix(matrix)


def _projected(fixed: LocalContext, model: LinearModel, change: Change) -> Tensor:
    """What the hops carry; computed where features are new."""
    projected = longer_rows(fixed.projected, change.n_nodes)
    projected[change.nodes] = model.project(change.features)
    return projected


def _first_hop(
    fixed: LocalContext, model: LinearModel, projected: Tensor, reached: NDArray[np.bool_]
) -> Tensor:
    """What one hop makes of it; computed at the nodes that the change reaches in one hop."""
    if 2 * int(reached.sum()) > len(reached):
        return laid_out(model.after(projected, 1))
    found = longer_rows(fixed.first_hop, len(projected))
    write_rows(
        model.matrix,
        whole_rows(projected).numpy(),
        np.flatnonzero(reached),
        whole_rows(found).numpy(),
    )
    return found


def _logits(
    before: Tensor,
    model: LinearModel,
    projected: Tensor,
    first_hop: Tensor,
    reached: NDArray[np.bool_],
) -> Tensor:
    """The untouched model's; computed at the nodes that the change reaches."""
    if model.hops < 2:
        return (first_hop if model.hops else projected) + model.bias
    if 2 * int(reached.sum()) > len(reached):
        return model.after(first_hop, model.hops - 1).add_(model.bias)
    rows = np.flatnonzero(reached)
    logits = _lengthened(before, len(projected))
    found = rows_after(model.matrix, whole_rows(first_hop).numpy(), model.hops - 1, rows)
    found = found[:, : before.shape[1]]
    logits[torch.from_numpy(rows)] = torch.from_numpy(found) + model.bias
    return logits


def _reached(
    changed: NDArray[np.bool_], neighbours: sparse.csr_matrix, hops: int, other: NDArray[np.bool_]
) -> list[NDArray[np.bool_]]:
    """The nodes whose values may be others now after each hop, bool, shape (N,): the first, …, the
    last; all of them, once there are so many that their neighbours are most."""
    n_nodes = len(other)
    found = []
    reached = other
    for _ in range(max(1, hops)):
        nodes = np.flatnonzero(reached)
        n_neighbours = int(np.diff(neighbours.indptr)[nodes].sum())
        reached = changed.copy()
        if n_neighbours > 2 * n_nodes:
            reached[:] = True
        else:
            reached[neighbours[nodes].indices] = True
        found.append(reached)
    return found


def _lengthened(values: Tensor, n_rows: int) -> Tensor:
    longer = torch.zeros(n_rows, values.shape[1], dtype=values.dtype)
    longer[: len(values)] = values
    return longer


def arguments_again(before: dict[str, Any], given: dict[str, Any], graph: Any) -> dict[str, Any]:
    """Arguments of the model's forward on the new graph; a tensor of the old one is of no use.

    Args:
        before: the arguments on the graph as it was.
        given: those named now.
        graph: the graph as it is, which may hold some under their name.
    """
    arguments = dict(given)
    for name, value in before.items():
        if name in given:
            continue
        held = getattr(graph, name, None)
        if callable(value) or isinstance(value, bool | int | float | str) or value is None:
            arguments[name] = value
        elif held is not None:
            arguments[name] = held
        else:
            raise DataError(
                f"the model was fitted with {name}, and the new graph needs one of its own",
                got=f"no {name}",
                fix=f"Pass it on: update(data, {name}=…).",
            )
    return arguments
