"""A node as a person sees it: its likely classes, and what lies within two hops."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from torch_geometric.data import Data
from torch_geometric.utils import remove_self_loops, to_scipy_sparse_matrix, to_undirected

from graphkeel.graph.node_graph import node_graph
from graphkeel.reconstruct.reconstructor import Reconstructor

SUGGESTED = "suggested"
RANDOM = "random"


@dataclass(frozen=True)
class ViewSettings:
    """How much of a neighbourhood is drawn: more would not be read."""

    likely: int = 3  # classes that are offered first
    near: int = 12  # neighbours
    far: int = 24  # nodes two hops away


@dataclass(frozen=True)
class Row:
    """One line of a file of tasks or answers."""

    node: int  # its id
    label: int | None  # the class that a person gave; None: not asked yet, or skipped
    why: str  # `suggested`, or `random`
    predicted: int  # its class before the person was asked
    likeliest: str = ""  # the likeliest classes with their probabilities, as text
    neighbours: str = ""  # linked nodes, as text: `12=3` is known, `12~3` predicted
    known_nearby: str = ""  # known labels within two hops, as text


@dataclass(frozen=True, eq=False)
class View:
    """Known and predicted classes of all nodes at one moment."""

    links: sparse.csr_array  # who is linked with whom, either way, shape (N, N)
    probabilities: NDArray[np.float32]  # of the classes, shape (N, n_classes)
    predicted: NDArray[np.int64]  # the classes that ship, shape (N,)
    known: Mapping[int, int]  # known labels by node
    settings: ViewSettings = field(default_factory=ViewSettings)  # how much is shown

    @classmethod
    def of(cls, rec: Reconstructor, data: Data, links: sparse.csr_array | None = None) -> View:
        """The view of a reconstructor on its graph; `links` may be those of an earlier view."""
        given = rec.posterior_ if rec.posterior_ is not None else rec.predict_proba(data)
        graph = node_graph(data)
        return cls(
            _links(graph) if links is None else links,
            given.detach().cpu().numpy(),
            rec.predict(data).cpu().numpy(),
            _judging(graph) | known_of(rec),
        )

    def row(self, node: int, why: str = SUGGESTED) -> Row:
        """A node with its context, still without a label."""
        shown = self.surroundings(node)["nodes"][1:]
        near = [one for one in shown if one["hop"] == 1]
        known = Counter(one["class"] for one in shown if one["known"])
        return Row(
            node=node,
            label=None,
            why=why,
            predicted=int(self.predicted[node]),
            likeliest=", ".join(f"{label} ({100 * p:.0f} %)" for label, p in self.likely(node)),
            neighbours=", ".join(f"{n['node']}{'~='[n['known']]}{n['class']}" for n in near),
            known_nearby=", ".join(f"{count} of {label}" for label, count in known.most_common()),
        )

    def likely(self, node: int) -> list[tuple[int, float]]:
        """The likeliest classes of a node with their probabilities, best first."""
        own = self.probabilities[node]
        order = np.argsort(-own, kind="stable")[: self.settings.likely]
        return [(int(label), float(own[label])) for label in order]

    def surroundings(self, node: int) -> dict[str, Any]:
        """Nodes within two hops, the node itself first, and links among them, as plain values."""
        near, near_left = self._nearest(node, {node}, self.settings.near)
        hops = {node: 0, **dict.fromkeys(near, 1)}
        share = max(1, self.settings.far // max(1, len(near)))
        for middle in near:
            further, _ = self._nearest(middle, hops, share)
            hops |= dict.fromkeys(further, 2)
        ids = list(hops)
        inner = self.links[ids][:, ids].tocoo()
        pairs = zip(inner.row.tolist(), inner.col.tolist(), strict=True)
        return {
            "nodes": [self._seen(one, hop) for one, hop in hops.items()],
            "links": sorted((a, b) for a, b in pairs if a < b),
            "left_out": near_left,
        }

    def _nearest(self, node: int, seen: Iterable[int], most: int) -> tuple[list[int], int]:
        """Neighbours not seen yet, those with a known label first; and how many are left out."""
        row = self.links.indices[self.links.indptr[node] : self.links.indptr[node + 1]]
        fresh = row[~np.isin(row, list(seen))].tolist()
        fresh.sort(key=lambda one: (one not in self.known, one))
        return fresh[:most], max(0, len(fresh) - most)

    def _seen(self, node: int, hop: int) -> dict[str, Any]:
        known = self.known.get(node) if hop else None
        label = int(self.predicted[node]) if known is None else known
        return {"node": node, "hop": hop, "class": label, "known": known is not None}


def known_of(rec: Reconstructor) -> dict[int, int]:
    """The labels that a reconstructor uses, by node."""
    return dict(zip(rec.labels_.nodes.tolist(), rec.labels_.classes.tolist(), strict=True))


def _judging(graph: Data) -> dict[int, int]:
    """Labels in the validation mask: known, whether or not the reconstructor uses them."""
    mask = getattr(graph, "val_mask", None)
    if mask is None or getattr(graph, "y", None) is None:
        return {}
    nodes = mask.nonzero().flatten()
    return dict(zip(nodes.tolist(), graph.y[nodes].flatten().tolist(), strict=True))


def _links(graph: Data) -> sparse.csr_array:
    """Both directions of every edge, without loops."""
    edges, _ = remove_self_loops(to_undirected(graph.edge_index.cpu()))
    return sparse.csr_array(to_scipy_sparse_matrix(edges, num_nodes=graph.num_nodes))
