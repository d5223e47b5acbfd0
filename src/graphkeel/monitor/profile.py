"""Profile of the fitted graph: what a later graph is compared with, so that nobody has to keep the
old one."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from scipy.sparse import coo_array
from scipy.sparse.csgraph import dijkstra
from torch import Tensor

from graphkeel.graph.fingerprint import row_numbers

if TYPE_CHECKING:
    from graphkeel.reconstruct.reconstructor import Reconstructor

_SAMPLE = 1000  # rows of features that are kept, as the format has it
_BLOCK = 1 << 12  # rows digested at once
NEAR = 3  # hops within which a label is near, as the format has it


@dataclass(frozen=True, eq=False)
class Profile:
    """Facts of a fitted graph."""

    rows: Tensor  # a digest of every node's features, int64, shape (N,)
    sample: Tensor  # features of some nodes drawn at random, float32, shape (m, d)
    confidence: Tensor  # of the frozen model there, its largest probability, shape (m,)
    counts: Tensor  # nodes that are answered with each class, shape (C,)
    within: int  # edges between nodes with the same answer
    edges: int  # all of them
    expected: float  # percent of the unlabelled nodes right by the answers' own account

    @classmethod
    def of(cls, rec: Reconstructor) -> Profile:
        """Of the graph that a reconstructor is on."""
        context = rec._context
        answers = context.logits_for(rec.features_).argmax(dim=1)
        everything = torch.ones(len(context.x), dtype=torch.bool)
        some = some_of(everything, _SAMPLE).sort().values
        return cls(
            rows=row_digests(context.x),
            sample=context.x[some].clone(),
            confidence=sureness(context.logits[some]),
            counts=torch.bincount(answers, minlength=context.n_classes),
            within=same_class(answers, context.edge_index),
            edges=int(context.edge_index.shape[1]),
            expected=believed(rec._probabilities(), answers, unlabelled(rec, len(answers))),
        )

    def stored(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """Tensors and JSON values."""
        parts = {field.name: getattr(self, field.name) for field in fields(self)}
        tensors = {name: part for name, part in parts.items() if isinstance(part, Tensor)}
        return tensors, {name: part for name, part in parts.items() if name not in tensors}

    @classmethod
    def restored(cls, tensors: dict[str, Tensor], facts: dict[str, Any]) -> Profile:
        """From what `stored` gave."""
        return cls(**{**tensors, **facts})


def row_digests(x: Tensor) -> Tensor:
    """A number for each row of features (N, d), int64, shape (N,): other rows have other ones."""
    parts = (part.to("cpu", torch.float32).contiguous() for part in x.detach().split(_BLOCK))
    return torch.from_numpy(np.concatenate([row_numbers(part.numpy()) for part in parts]))


def some_of(among: Tensor, most: int) -> Tensor:
    """Ids of at most so many of the nodes that a mask (N,) selects, drawn at random."""
    ids = among.nonzero().flatten().numpy()
    return torch.from_numpy(np.random.default_rng(0).permutation(ids)[:most])


def sureness(logits: Tensor) -> Tensor:
    """The largest probability of every row, shape (n,)."""
    return logits.softmax(dim=1).amax(dim=1)


def same_class(answers: Tensor, edge_index: Tensor) -> int:
    """Edges whose ends are answered alike."""
    return int((answers[edge_index[0]] == answers[edge_index[1]]).sum())


def unlabelled(rec: Reconstructor, n_nodes: int) -> Tensor:
    """Nodes whose label is not known, bool, shape (N,)."""
    free = torch.ones(n_nodes, dtype=torch.bool)
    free[rec.labels_.nodes] = False
    free[rec._validation.nodes] = False
    return free


def hops_to_labels(rec: Reconstructor) -> Tensor:
    """Along the edges, from the nearest label, shape (N,); infinite where no path leads."""
    n_nodes = len(rec._context.x)
    known = (~unlabelled(rec, n_nodes)).nonzero().flatten().numpy()
    if not len(known):
        return torch.full((n_nodes,), torch.inf)
    source, target = rec._context.edge_index.numpy()
    links = coo_array((np.ones(len(source)), (source, target)), shape=(n_nodes, n_nodes))
    return torch.from_numpy(dijkstra(links.tocsr(), indices=known, unweighted=True, min_only=True))


def believed(probabilities: Tensor, answers: Tensor, which: Tensor) -> float:
    """Percent of some answers (N,) right by the probabilities (N, C) of their classes; `which` (N,)
    selects."""
    own = probabilities.gather(1, answers[:, None]).flatten()[which]
    return 100.0 * float(own.double().mean()) if len(own) else 100.0
