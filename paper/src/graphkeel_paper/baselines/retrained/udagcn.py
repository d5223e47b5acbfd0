"""UDAGCN (Wu et al., WWW 2020): two views of each graph, and a classifier of domains that is
deceived.

One pair of convolutions reads the edges (local) and, with the same weights, the positive pointwise
mutual information of random walks (global); attention joins both views. Loss: cross-entropy on the
labels, that of the domain classifier behind a gradient reversal, and the entropy of the target's
predictions. Settings as the collection PyGDA runs it on the citation pairs: with the rate of the
authors' code (3e-3) and no weight decay it had 26.5 percent right on acmv9 → citationv1; their code
reports the epoch that is best on the target's labels."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from scipy import sparse
from torch import Tensor, nn

from graphkeel.graph import GraphTask
from graphkeel.graph.propagate import neighbours
from graphkeel_paper.baselines.retrained.sparse import Pattern
from graphkeel_paper.baselines.retrained.two_graphs import Domain, Network, TwoGraphs, layer
from graphkeel_paper.baselines.training import dropout, entropy


@dataclass(frozen=True)
class UDAGCN(TwoGraphs):
    """Args:
    hidden, encoded: units of the two convolutions.
    judging: units of the domain classifier.
    dropped: share of units that are dropped in training.
    reversal: the largest rate at which the domain classifier's gradient is reversed.
    sureness: weight of the entropy at the end of the training.
    walks, steps: random walks from each node, and their largest length.
    """

    name: str = "udagcn"
    epochs: int = 400
    rate: float = 1e-4
    weight_decay: float = 1e-3
    hidden: int = 128
    encoded: int = 128
    judging: int = 40
    dropped: float = 0.4
    reversal: float = 0.05
    sureness: float = 0.01
    walks: int = 40
    steps: int = 10

    def network(self, source: Domain, target: Domain) -> Network:
        return _TwoViews(self, source, target)


class _TwoViews(Network):
    def __init__(self, settings: UDAGCN, source: Domain, target: Domain) -> None:
        super().__init__()
        self.settings = settings
        task = target.task
        self.first, self.first_bias = layer(task.n_features, settings.hidden)
        self.second, self.second_bias = layer(settings.hidden, settings.encoded)
        self.attention = nn.Linear(settings.encoded, 1)
        self.classifier = nn.Linear(settings.encoded, task.n_classes)
        self.judge = nn.Sequential(
            nn.Linear(settings.encoded, settings.judging),
            nn.ReLU(),
            nn.Dropout(settings.dropped),
            nn.Linear(settings.judging, 2),
        )
        self.walked = {one: _walked(one, settings) for one in {source, target}}

    def loss(self, source: Domain, target: Domain, progress: float) -> Tensor:
        codes = [self._encoded(domain) for domain in (source, target)]
        near, far = (self.classifier(code) for code in codes)
        rate = min(progress, self.settings.reversal)
        judged = [
            F.cross_entropy(
                self.judge(reversed_gradient(code, rate)), torch.full((len(code),), domain)
            )
            for domain, code in enumerate(codes)
        ]
        unsure = self.settings.sureness * progress * entropy(far).mean()
        return source.loss(near) + target.loss(far) + judged[0] + judged[1] + unsure

    def scores(self, target: Domain) -> Tensor:
        return self.classifier(self._encoded(target))  # type: ignore[no-any-return]

    def _encoded(self, domain: Domain) -> Tensor:
        features = domain.features.product(self.first)
        views = (domain, self.walked[domain])
        both = torch.stack([self._view(view, features) for view in views], dim=1)
        return (both * self.attention(both).softmax(dim=1)).sum(dim=1)

    def _view(self, view: Domain, features: Tensor) -> Tensor:
        hidden = (view.hop(features) + self.first_bias).relu()
        hidden = dropout(hidden, self.settings.dropped, self.training)
        return view.hop(hidden @ self.second) + self.second_bias


class _Reversal(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, values: Tensor, rate: float) -> Tensor:
        ctx.rate = rate
        return values.view_as(values)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        return -ctx.rate * gradients[0], None


def reversed_gradient(values: Tensor, rate: float) -> Tensor:
    """The values as they are; their gradient times −rate."""
    result: Tensor = _Reversal.apply(values, rate)
    return result


def _walked(domain: Domain, settings: UDAGCN) -> Domain:
    """The domain with mutual information instead of edges, a self-loop of weight one where a node
    has none, symmetrically normalised."""
    matrix = ppmi(visits(domain.task, settings.walks, settings.steps))
    matrix = sparse.csr_matrix(matrix + sparse.diags((matrix.diagonal() == 0).astype(np.float32)))
    matrix.sort_indices()  # in the order of a pattern
    rows, columns = (torch.from_numpy(part.astype(np.int64)) for part in matrix.nonzero())
    pattern = Pattern(torch.stack([columns, rows]), domain.task.n_nodes)
    weights = pattern.gcn_weights(torch.from_numpy(matrix.data))
    return replace(domain, pattern=pattern, weights=weights)


def visits(task: GraphTask, walks: int, steps: int) -> sparse.csr_matrix:
    """How often random walks from each node, of 1 to `steps` steps, come to each node."""
    adjacency = neighbours(task.edge_index.numpy(), task.n_nodes)
    degree = np.diff(adjacency.indptr)
    start = np.repeat(np.flatnonzero(degree), walks)
    left = torch.randint(1, steps + 1, (len(start),)).numpy()
    here, seen = start, [(start[:0], start[:0])]
    while len(start):
        offsets = (torch.rand(len(here), dtype=torch.float64).numpy() * degree[here]).astype(
            np.int64
        )
        here = adjacency.indices[adjacency.indptr[here] + offsets]
        seen.append((start, here))
        left = left - 1
        start, here, left = start[left > 0], here[left > 0], left[left > 0]
    rows, columns = (np.concatenate(parts) for parts in zip(*seen, strict=True))
    counts = np.ones(len(rows), dtype=np.float32)
    return sparse.csr_matrix((counts, (rows, columns)), shape=(task.n_nodes, task.n_nodes))


def ppmi(counts: sparse.csr_matrix) -> sparse.csr_matrix:
    """Positive pointwise mutual information: log p(i, j) / (p(i) p(j)), or 0 where it is less."""
    pairs = sparse.coo_matrix(counts)
    rows, columns = (np.asarray(counts.sum(axis=axis)).ravel() for axis in (1, 0))
    expected = rows[pairs.row] * columns[pairs.col] / pairs.data.sum()
    values = np.log(pairs.data / expected).clip(min=0.0).astype(np.float32)
    result = sparse.csr_matrix((values, (pairs.row, pairs.col)), shape=counts.shape)
    result.eliminate_zeros()
    return result
