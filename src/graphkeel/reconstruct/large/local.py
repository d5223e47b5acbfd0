"""Candidates on large graphs: those that a label changes in its neighbourhood alone.

Class means and discriminants are left out, as every label moves every node's evidence there. For a
linear model the rest is done in as many dimensions as there are classes. The state is a handful of
N × C arrays; `update_labels` moves it to other labels by the difference, and it then holds, up to
rounding, what it would have held had it begun with them."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from graphkeel.core.room import empty_with_room, lengthened
from graphkeel.reconstruct.candidates.builder import Candidate, Diffuse, Replace
from graphkeel.reconstruct.candidates.diffuse import diffuse
from graphkeel.reconstruct.candidates.prototype import NEAR, Prototype
from graphkeel.reconstruct.candidates.replace import replace
from graphkeel.reconstruct.context import Context
from graphkeel.reconstruct.labels import Labels
from graphkeel.reconstruct.large.blends import beliefs_of, posterior_of, write_blend, write_shares
from graphkeel.reconstruct.large.linear import LinearModel
from graphkeel.reconstruct.large.rows import laid_out
from graphkeel.reconstruct.large.spread import spread

TELEPORT = NEAR[0]
LOCAL: tuple[Candidate, ...] = (
    Replace(),
    Diffuse(1.0 - TELEPORT),
    Prototype("model", with_labels=True),
    Prototype("labels"),
)
_UNKNOWN = -1


class LocalContext:
    """What no label changes, for a linear model: its projections and what feature evidence is
    measured by."""

    def __init__(self, context: Context, model: LinearModel) -> None:
        self.context = context
        self.model = model
        self.graph = context.propagator.arrays()

    @cached_property
    def projected(self) -> Tensor:
        return laid_out(self.model.project(self.context.x))

    @cached_property
    def first_hop(self) -> Tensor:
        """What the model's first hop makes of the projections; kept for when the graph changes."""
        return laid_out(self.model.after(self.projected, 1))

    @cached_property
    def diffused(self) -> Tensor:
        """The features' diffusion, projected (projection and diffusion commute)."""
        return diffuse(self.projected, self.context.propagator, 1.0 - TELEPORT).features

    @cached_property
    def diffused_features(self) -> Tensor:
        """The same unprojected; only asked for where diffusion is chosen."""
        return diffuse(self.context.x, self.context.propagator, 1.0 - TELEPORT).features

    @cached_property
    def answers(self) -> Tensor:
        """The anchors, projected: shape (C, C)."""
        return self.model.project(self.context.anchors().features)

    @cached_property
    def beliefs(self) -> Tensor:
        """The untouched model's class probabilities; none rules a class out."""
        return beliefs_of(self.context.logits)


class LocalBuilder:
    """The candidates of `LOCAL` for one set of labels, which may change.

    Args:
        fixed: what no label changes.
        labels: the labels to use.
        before: one that is no longer needed, of a graph with as many nodes or fewer; its memory is
            written over.
    """

    def __init__(
        self, fixed: LocalContext, labels: Labels, before: LocalBuilder | None = None
    ) -> None:
        self.fixed = fixed
        self.context = fixed.context
        n, c = fixed.projected.shape
        self.labels = labels.none()
        self._known = torch.full((n,), _UNKNOWN, dtype=torch.int64)
        # Evidence for the classes. In float64, since what rounding leaves of labels that were taken
        # back would else be a share of the evidence where no label is near.
        near, shares, features = (None, None, None) if before is None else before.memory()
        self._near: Tensor = _memory_of(near, n, c, torch.float64).zero_()
        # the same as probabilities
        self._shares: Tensor = _memory_of(shares, n, c).fill_(1.0 / c)
        self._added: Tensor | None = None  # what diffusion of labels adds to the scores
        self._written: tuple[tuple[Candidate, ...], Tensor] | None = (
            None  # the features handed out last, and of whom
        )
        self._memory = features
        self._stale = np.zeros(n, dtype=bool)  # nodes whose evidence has changed since
        self._posteriors: dict[Prototype, Tensor] = {}  # of those that were asked for
        self.update_labels(labels)

    # ---- labels

    def update_labels(self, labels: Labels) -> None:
        """Take these labels in place of the present ones; the work is that of the labels that
        differ.

        Args:
            labels: the labels to use.
        """
        wanted = torch.full_like(self._known, _UNKNOWN)
        wanted[labels.nodes] = labels.classes
        changed = (wanted != self._known).nonzero().flatten()
        touched = self._spread(changed, self._known[changed], wanted[changed])
        self.labels = labels
        self._known = wanted
        touched[changed.numpy()] = True
        self._stale |= touched
        if self._posteriors:
            rows = _marked(touched)
            for prototype, posterior in self._posteriors.items():
                posterior[rows] = self._posterior(prototype, rows)

    def with_labels(self, labels: Labels) -> LocalBuilder:
        """A builder of its own for other labels; the work is that of the labels that differ.

        Args:
            labels: the labels to use.
        """
        other = copy.copy(self)
        other._known = self._known.clone()
        other._near = self._near.clone()
        other._shares = self._shares.clone()
        other._added = None if self._added is None else self._added.clone()
        other._posteriors = {one: found.clone() for one, found in self._posteriors.items()}
        other._written = None
        other._memory = None
        other._stale = self._stale.copy()
        other.update_labels(labels)
        return other

    def _row(self, nodes: Tensor, classes: Tensor) -> Tensor:
        """What the hops carry from these nodes: their anchor's answer, or their own where no label
        is known."""
        own = self.fixed.projected[nodes]
        return torch.where((classes == _UNKNOWN).unsqueeze(1), own, self.fixed.answers[classes])

    def _spread(self, nodes: Tensor, before: Tensor, after: Tensor) -> NDArray[np.bool_]:
        """Spread the difference; marks the nodes it reached."""
        c = self.labels.n_classes
        touched = self._spread_over(nodes, _one_hot(after, c) - _one_hot(before, c), self._near)
        if self._added is not None:
            difference = self._row(nodes, after) - self._row(nodes, before)
            self._spread_over(nodes, difference, self._added)
        if 2 * int(touched.sum()) > len(touched):  # picking them out would cost more
            write_shares(self._near, self._shares)
        else:
            rows = _marked(touched)
            shares = torch.empty(len(rows), c)
            write_shares(self._near[rows], shares)
            self._shares[rows] = shares
        return touched

    def _spread_over(self, nodes: Tensor, amounts: Tensor, out: Tensor) -> NDArray[np.bool_]:
        return spread(self.fixed.graph, nodes.numpy(), amounts.numpy(), TELEPORT, out.numpy())

    def _diffused_labels(self) -> Tensor:
        """What the labels add to the projected features' diffusion, float64, shape (N, C)."""
        if self._added is None:
            self._added = torch.zeros_like(self._near)
            nodes = self.labels.nodes
            unknown = torch.full_like(nodes, _UNKNOWN)
            difference = self._row(nodes, self.labels.classes) - self._row(nodes, unknown)
            self._spread_over(nodes, difference, self._added)
        return self._added

    # ---- candidates

    def carried(self, members: Sequence[Candidate], nodes: Tensor | slice = slice(None)) -> Tensor:
        """What the model's hops carry from the nodes with the candidates' features (several
        prototypes: the mean).

        Args:
            members: the candidates; several are averaged, none means the untouched features.
            nodes: the nodes wanted, int64 or a slice.
        """
        if not members:
            return self.fixed.projected[nodes]
        if isinstance(members[0], Replace):
            replaced = self.fixed.projected.clone()
            replaced[self.labels.nodes] = self.fixed.answers[self.labels.classes]
            return replaced[nodes]
        if isinstance(members[0], Diffuse):
            return self.fixed.diffused[nodes] + self._diffused_labels()[nodes].float()
        return self._mean_posterior(members, nodes) @ self.fixed.answers

    def features(self, members: Sequence[Candidate]) -> Tensor:
        """New features for every node.

        Args:
            members: the candidates; several are averaged, none means the untouched features.
        """
        anchors = self.context.anchors().features
        if not members:
            return self.context.x
        if isinstance(members[0], Replace):
            return replace(self.context.x, self.labels, anchors)
        if isinstance(members[0], Diffuse):
            features = self.fixed.diffused_features.clone()
            self._spread_over(
                self.labels.nodes,
                anchors[self.labels.classes] - self.context.x[self.labels.nodes],
                features,
            )
            return features
        return self._written_features(tuple(members), anchors)

    def _written_features(self, members: tuple[Candidate, ...], anchors: Tensor) -> Tensor:
        """Of prototypes; while the choice stays the same, only the rows that labels have reached
        are rewritten."""
        if self._written is None or self._written[0] != members:
            features = self._room_for_features(anchors.shape[1])
            write_blend(self._mean_posterior(members), anchors, features)
            self._written = members, features
        else:
            rows = _marked(self._stale)
            changed = torch.empty(len(rows), anchors.shape[1])
            write_blend(self._mean_posterior(members, rows), anchors, changed)
            self._written[1][rows] = changed
        self._stale[:] = False
        return self._written[1]

    def _room_for_features(self, width: int) -> Tensor:
        memory = self._memory
        self._memory = None
        return _memory_of(memory, len(self._known), width)

    def memory(self) -> tuple[Tensor, Tensor, Tensor | None]:
        """Of evidence, of probabilities and of the features handed out last, for a builder that
        takes over from this one."""
        return self._near, self._shares, None if self._written is None else self._written[1]

    def scores(self, members: Sequence[Candidate]) -> Tensor:
        """The logits of every node, shape (N, n_classes).

        Args:
            members: the candidates; several are averaged, none means the untouched features.
        """
        if not members:
            return self.context.logits
        return self.fixed.model.everywhere(self.carried(members))

    def posterior(self, members: Sequence[Candidate]) -> Tensor | None:
        """The mean class probabilities of prototypes, shape (N, n_classes); None for others.

        Args:
            members: the candidates.
        """
        blends = [one for one in members if isinstance(one, Prototype)]
        return self._mean_posterior(blends) if blends else None

    def predict(self, members: Sequence[Candidate]) -> Tensor:
        """The class of every node, shape (N,).

        Args:
            members: the candidates; several are averaged, none means the untouched features.
        """
        return self.scores(members).argmax(dim=1)

    def _posterior(self, prototype: Prototype, rows: Tensor | slice) -> Tensor:
        """p of some nodes, as in `Posteriors`."""
        # evidence of the model: the mean of their logarithms
        beliefs = self.fixed.beliefs[rows] if prototype.evidence == "model" else None
        return posterior_of(self._shares[rows], beliefs, self._known[rows])

    def _all(self, prototype: Prototype) -> Tensor:
        """p of every node; made once, and kept up to date with the labels."""
        if prototype not in self._posteriors:
            self._posteriors[prototype] = self._posterior(prototype, slice(None))
        return self._posteriors[prototype]

    def _mean_posterior(
        self, members: Sequence[Candidate], rows: Tensor | slice = slice(None)
    ) -> Tensor:
        found = [self._all(one)[rows] for one in members if isinstance(one, Prototype)]
        if len(found) == 1:
            return found[0]
        total = found[0] + found[1]  # not stacked, which would copy all of them
        for one in found[2:]:
            total += one
        return total.div_(len(found))


def _memory_of(
    before: Tensor | None, n_rows: int, width: int, dtype: torch.dtype = torch.float32
) -> Tensor:
    """Rows to be written, where others lay if there are any: memory that was never used is dear."""
    if before is None:
        return empty_with_room(n_rows, width, dtype)
    return lengthened(before, n_rows)


def _marked(mask: NDArray[np.bool_]) -> Tensor:
    return torch.from_numpy(np.flatnonzero(mask))


def _one_hot(classes: Tensor, n_classes: int) -> Tensor:
    """Rows of zeros where the class is unknown."""
    rows = torch.zeros(len(classes), n_classes)
    named = (classes != _UNKNOWN).nonzero().flatten()
    rows[named, classes[named]] = 1.0
    return rows
