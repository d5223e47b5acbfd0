"""`update`: the same graph later. The choice, the labels and the anchors stay; what follows from
the graph is that of a fresh fit with this choice.

Where the model is linear and the graph large (the state of `large/`), only what the change reaches
is computed: matrices grow in place of being sorted anew, projections and logits are computed at the
rows within the model's hops. Labels are spread anew on the new graph: their pushes end at a
threshold, so that any change on their way moves what they leave behind, and most of them meet one.
Elsewhere the context is made anew and one candidate is computed, where a fit computes all of them,
several times."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse
from torch import Tensor

from graphkeel.core.errors import DataError
from graphkeel.graph.propagate import normalise, normalise_as_given, rows_after
from graphkeel.graph.propagate.adjacency import (
    changed_rows,
    grown,
    grown_as_given,
    rows_looking_at,
)
from graphkeel.graph.propagate.propagator import Propagator
from graphkeel.models.frozen import FrozenModel
from graphkeel.models.sparse_hops import remember_convolution
from graphkeel.reconstruct.context import Context
from graphkeel.reconstruct.large.linear import LinearModel
from graphkeel.reconstruct.large.local import LocalContext
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
        chooser: of the graph as it was; left as it was.
        fixed: its state that no label changes.
        change: the graph as it is now.
        frozen: the model, bound to it.
    """
    old = fixed.context
    frozen.return_type = old.frozen.return_type
    model = _grown_model(fixed.model, change)
    remember_convolution(change.edge_index, model.matrix)
    context = Context(
        frozen,
        change.x,
        change.edge_index,
        model_kwargs=old.model_kwargs,
        controller=old.controller,
        seed=old.seed,
        source=old.source,
    )
    context.propagator = _grown_propagator(old.propagator, change)
    moved = LocalContext(context, model)
    moved.projected = _projected(fixed, model, change)
    context.logits = _logits(fixed, moved, change)
    keep_anchors(old, context)
    return chooser.moved(context, moved)


def _grown_model(model: LinearModel, change: Change) -> LinearModel:
    if change.added is None:
        matrix = normalise_as_given(change.edge_index.numpy(), change.n_nodes)
    else:
        matrix = grown_as_given(model.matrix, change.added.numpy(), change.n_nodes)
    return LinearModel(matrix, model.hops, model.weight, model.bias)


def _grown_propagator(propagator: Propagator, change: Change) -> Propagator:
    if change.added is None:
        return Propagator.of_matrix(normalise(change.edge_index.numpy(), change.n_nodes))
    return Propagator.of_matrix(grown(propagator.matrix, change.added.numpy(), change.n_nodes))


def _projected(fixed: LocalContext, model: LinearModel, change: Change) -> Tensor:
    """What the hops carry; computed where features are new."""
    projected = _lengthened(fixed.projected, change.n_nodes)
    rows = change.other_features.nonzero().flatten()
    projected[rows] = model.project(change.x[rows])
    return projected


def _logits(fixed: LocalContext, moved: LocalContext, change: Change) -> Tensor:
    """The untouched model's; computed at the nodes that the change reaches."""
    model = moved.model
    reached = torch.from_numpy(_reached(fixed.model.matrix, model, change.other_features.numpy()))
    rows = reached.nonzero().flatten()
    if 2 * len(rows) > change.n_nodes:
        return model.everywhere(moved.projected)
    logits = _lengthened(fixed.context.logits, change.n_nodes)
    found = rows_after(model.matrix, moved.projected.numpy(), model.hops, rows.numpy())
    logits[rows] = torch.from_numpy(found) + model.bias
    return logits


def _reached(
    before: sparse.csr_matrix, model: LinearModel, other: NDArray[np.bool_]
) -> NDArray[np.bool_]:
    """The nodes whose logits may be others now, bool, shape (N,)."""
    now = model.matrix
    rows = changed_rows(
        before.indptr, before.indices, before.data, now.indptr, now.indices, now.data
    )
    reached = other
    for _ in range(model.hops):
        reached = rows | rows_looking_at(now.indptr, now.indices, reached)
        if 2 * int(reached.sum()) > len(reached):
            break  # all of them will be computed
    return reached


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
