"""Any model that hears some hops far, asked about the nodes of a part with their receptive fields,
the halo: forward, and gradients that go back to the parts whose rows they belong to."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from graphkeel.cluster.lazy import Lazy
from graphkeel.cluster.stored import Stored, StoredMatrix, write_array
from graphkeel.cluster.work import Cluster, written
from graphkeel.core.errors import KeelError, ModelError
from graphkeel.graph.propagate.local import as_tensor
from graphkeel.models.batched import Batches, Field, close, fields_of
from graphkeel.models.frozen import FrozenModel
from graphkeel.models.narrowed import Narrowed, basis_of, copy_along, multiplied
from graphkeel.models.outputs import ReturnType

Ids = NDArray[np.int64]


@dataclass(frozen=True)
class _Looking:
    """How the way in which a model is asked is chosen.

    Attributes:
        nodes: whose answers are compared; some of them, if features of their fields are more than
        memory: bytes.
        most: features that are steered where weights do not tell which directions of them count.
    """

    nodes: int = 16
    memory: int = 1 << 27
    most: int = 64


_LOOKING = _Looking()


@dataclass(frozen=True)
class _Asked:
    """How a worker asks the model.

    Attributes:
        frozen: a copy, along the directions that its first weights read.
        hops: from how far away a node's answer is influenced.
        means: whether the matrix that it multiplies by has rows of sum one; None: it sends
            messages along edges.
        memory: bytes that a field may take.
    """

    frozen: FrozenModel
    hops: int
    means: bool | None
    memory: int

    def scores(self, field: Field, values: Tensor) -> Tensor:
        """Logits of the nodes that are asked about.

        Args:
            values: what the model reads of the field's nodes, shape (n, r).
        """
        model = self.frozen.module
        edges = field.edges if self.means is None else _matrix_of(field, self.means)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Sparse invariant checks")  # of PyG's own matrix
            return self.frozen.logits_of_copy(model, values, edges)[: field.n_asked]

    def fits(self, width: int, n_nodes: int, n_edges: int) -> bool:
        """Whether what layers make of a field, and its gradient, do: three times their widths for
        each node, and for each edge an entry of a matrix or a message."""
        weights = [weight for weight in self.frozen.module.parameters() if weight.dim() > 1]
        widths = [width, *(len(weight) for weight in weights)]
        an_edge = 12 if self.means is not None else 8 * sum(widths)
        return 12 * sum(widths) * n_nodes + an_edge * n_edges <= self.memory

    def fields(self, edges: StoredMatrix, nodes: Ids, width: int) -> Iterator[Field]:
        """Of as many of the nodes as fit, one after the other."""
        return fields_of(edges, nodes, self.hops, partial(self.fits, width))


def _matrix_of(field: Field, means: bool) -> Tensor:
    rows = field.rows.copy()
    counts = np.diff(rows.indptr)
    rows.data = (1 / np.repeat(counts, counts) if means else np.ones(rows.nnz)).astype(np.float32)
    ends = np.append(rows.indptr, np.full(len(field.nodes) - rows.shape[0], rows.nnz))
    rows.resize(len(field.nodes), len(field.nodes))
    rows.indptr = ends.astype(rows.indices.dtype)
    return as_tensor(rows)


class FieldModel:
    """A frozen model on a graph that lives on a cluster.

    Args:
        model: as it was trained.
        x: the features.
        edges: row v holds the edges into v, as they were given.
    """

    def __init__(self, cluster: Cluster, model: Any, x: Lazy, edges: StoredMatrix) -> None:
        self._cluster = cluster
        self._x = x
        self._edges = edges
        frozen = FrozenModel(model, return_type=ReturnType.AUTO)
        self.basis, self._asked = self._chosen(frozen, int(x.shape[1]))

    def narrowed(self) -> Narrowed:
        """The model as a function of what it reads of the features."""
        directions = torch.eye(int(self._x.shape[1])) if self.basis is None else self.basis
        start: Any = self._read(self._x).stored()
        return Narrowed(self.ask, start, directions, passes=0)

    def logits(self, features: Any) -> Any:
        """Answers to features of shape (N, d)."""
        return self.ask(self._read(features))[0]

    def _read(self, features: Any) -> Any:
        return features if self.basis is None else features @ self.basis

    def ask(self, values: Any) -> tuple[Any, Callable[[Any], Any]]:
        """Logits, and what carries their gradients back.

        Args:
            values: what the model reads of the features, shape (N, r).
        """
        read = values.numpy()
        task = partial(_answered, self._asked, self._edges, read)
        logits = self._cluster.tensor(self._cluster.written(task))
        return logits, partial(self._pulled, read)

    def _pulled(self, read: Stored, gradient: Any) -> Lazy:
        """The gradient of the values: each part's fields write what they pull at, then each part
        adds up what is its own."""
        cluster = self._cluster
        folder = cluster.folder()
        task = partial(_pulling, self._asked, self._edges, read, gradient.numpy(), folder)
        counts = cluster.each(partial(task, cluster.bounds), cluster.spans())
        found = cluster.written(partial(_added_up, folder, counts, read.shape[1]))
        cluster.owned(folder)  # nobody keeps it, so it goes
        return cluster.tensor(found)

    # ---- how it is asked

    def _chosen(self, frozen: FrozenModel, width: int) -> tuple[Tensor | None, _Asked]:
        """The cheapest way that gives the model's own answers at some nodes."""
        hops = Batches.of(frozen.module).hops
        near = self._seen(hops, width)
        expected = _of_nodes(frozen, near, self._x)
        for basis, means, module in _ways(frozen, width):
            copied = FrozenModel(module, return_type=frozen.return_type)
            asked = _Asked(copied, hops, means, self._cluster.walk_bytes)
            try:
                if close(self._scores(asked, near, basis), expected):
                    break
            except Exception:  # the model is not ours, and may raise anything
                continue
        else:
            raise ModelError(
                "on a cluster features must meet sums over neighbours and weights alone at first",
                got=f"{type(frozen.model).__name__} of {width} features",
                fix="Use Reconstructor on one machine.",
            )
        far = self._seen(hops + 1, width, [int(field.nodes[0]) for field in near])
        same = {int(field.nodes[0]) for field in far}
        near = [field for field in near if int(field.nodes[0]) in same]
        if not close(self._scores(asked, far, basis), self._scores(asked, near, basis)):
            raise ModelError(
                "on a cluster a model must tell how many hops away its answers come from",
                got=f"{type(frozen.model).__name__}: {hops} by its layers, but farther nodes count",
                fix="Use layers of PyG that are called once each, and no norm over all nodes.",
            )
        return basis, asked

    def _seen(self, hops: int, width: int, nodes: Sequence[int] = ()) -> list[Field]:
        """Fields of some nodes that are small enough to be looked at here."""
        n_nodes = len(self._cluster)
        chosen = nodes or np.linspace(0, n_nodes - 1, min(n_nodes, _LOOKING.nodes)).astype(np.int64)
        found = [next(fields_of(self._edges, np.array([v]), hops)) for v in chosen]
        fitting = [field for field in found if 4 * width * len(field.nodes) <= _LOOKING.memory]
        return fitting or [min(found, key=lambda field: len(field.nodes))]

    def _scores(self, asked: _Asked, fields: list[Field], basis: Tensor | None) -> Tensor:
        found = []
        with torch.no_grad():
            for field in fields:
                rows = self._x[field.nodes]
                found.append(asked.scores(field, rows if basis is None else rows @ basis))
        return torch.cat(found)


def _ways(
    frozen: FrozenModel, width: int
) -> Iterator[tuple[Tensor | None, bool | None, nn.Module]]:
    """Directions, whether rows have sum one (None: edges), and a copy that is asked so."""
    basis = basis_of(frozen, width)
    if basis is None and width > _LOOKING.most:
        return
    copied = copy_along(frozen.module, basis, cached=False).cpu()
    try:
        means = multiplied(copied, frozen)
        yield basis, means, copied
    except ModelError:
        pass  # its layers send messages
    yield basis, None, copy_along(frozen.module, basis, cached=False).cpu()
    if basis is not None and width <= _LOOKING.most:
        yield None, None, copy_along(frozen.module, None, cached=False).cpu()


def _of_nodes(frozen: FrozenModel, fields: list[Field], x: Lazy) -> Tensor:
    """The model's own answers."""
    try:
        found = [frozen.logits(x[field.nodes], field.edges)[: field.n_asked] for field in fields]
        return torch.cat(found)
    except KeelError:
        raise
    except Exception as error:  # an untrusted model may raise anything
        raise ModelError(
            f"the model cannot be asked about {x.shape[1]} features and edges alone",
            got=f"{type(error).__name__}: {error}"[:200],
            fix="Shards hold no edge weights or other arguments of a model.",
        ) from error


# ---- on the workers


def _answered(
    asked: _Asked, edges: StoredMatrix, read: Stored, folder: Path, span: Sequence[int]
) -> tuple[tuple[int, ...], str]:
    part, first, last = span
    fields = asked.fields(edges, np.arange(first, last), read.shape[1])
    found = [asked.scores(field, torch.from_numpy(read[field.nodes.numpy()])) for field in fields]
    return written(folder, part, torch.cat(found).numpy())


def _pulling(
    asked: _Asked,
    edges: StoredMatrix,
    read: Stored,
    gradient: Stored,
    folder: Path,
    bounds: list[int],
    span: Sequence[int],
) -> int:
    """Where a part's answers pull, a file for each field: ids, ascending, and rows."""
    part, first, last = span
    rows = gradient[first:last]
    pulling = first + np.flatnonzero(rows.any(axis=1))
    fields = asked.fields(edges, pulling, read.shape[1]) if len(pulling) else ()
    count = 0
    for count, field in enumerate(fields, 1):
        nodes = field.nodes.numpy()
        leaf = torch.from_numpy(read[nodes]).requires_grad_(True)
        wanted = torch.from_numpy(rows[nodes[: field.n_asked] - first])
        with torch.enable_grad():
            scores = asked.scores(field, leaf)
        (pull,) = torch.autograd.grad(scores, leaf, wanted)
        order = np.argsort(nodes)
        write_array(folder / f"{part}-{count}-ids.npy", nodes[order])
        write_array(folder / f"{part}-{count}.npy", pull.numpy()[order])
        places = np.searchsorted(nodes[order], bounds)
        write_array(folder / f"{part}-{count}-places.npy", places)
    return count


def _added_up(
    source: Path, counts: list[int], width: int, folder: Path, span: Sequence[int]
) -> tuple[tuple[int, ...], str]:
    part, first, last = span
    found = np.zeros((last - first, width), np.float32)
    for name in (f"{p}-{i}" for p, count in enumerate(counts) for i in range(1, count + 1)):
        own = slice(*np.load(source / f"{name}-places.npy")[part : part + 2])
        ids = np.load(source / f"{name}-ids.npy", mmap_mode="r")[own]
        found[ids - first] += np.load(source / f"{name}.npy", mmap_mode="r")[own]
    return written(folder, part, found)
