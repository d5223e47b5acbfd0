"""GCN and APPNP on the words themselves, trained on the labels that a method gets: the natural
alternative wherever retraining is allowed.

Most words are absent from most nodes, so products and dropout touch the other entries alone, as in
the authors' codes; on Cora that is ten times faster than dense input dropout."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from scipy import sparse
from torch import Tensor, nn

from graphkeel.graph import GraphTask
from graphkeel.models.frozen import FrozenModel
from graphkeel.paper.baselines.retrained.sparse import Pattern
from graphkeel.paper.baselines.retrained.training import dropout, unit_scale
from graphkeel.paper.baselines.rival import Candidate, Rival, scored

DROPOUT = 0.5


@dataclass(frozen=True)
class WordsConfig:
    """Settings of a training; the first of `SETTINGS` is the published one."""

    lr: float = 0.01
    weight_decay: float = 5e-4
    epochs: int = 200
    unit: bool = True  # features divided by their mean row length, as for every trained row


CONFIG = WordsConfig
SETTINGS = (
    WordsConfig(),
    WordsConfig(weight_decay=5e-3),
    WordsConfig(weight_decay=5e-5),
    WordsConfig(unit=False),
)


@dataclass(frozen=True)
class Words(Rival):
    """A network trained from scratch on the labels; the given model is not asked.

    Args:
        name: of the row.
        hidden: units between its layers.
        hops: of personalised PageRank after the second layer (APPNP); None: a convolution in each
            layer (GCN).
        teleport: of these hops.
    """

    needs_labels = True
    name: str = "gcn-words"
    hidden: int = 16
    hops: int | None = None
    teleport: float = 0.1
    retrains: bool = True

    def _candidates(
        self, frozen: FrozenModel, task: GraphTask, labelled: Tensor, seed: int
    ) -> Iterator[Candidate]:
        pattern = Pattern(task.edge_index, task.n_nodes)
        for config in SETTINGS:
            x = unit_scale(task.x) if config.unit else task.x
            network = _Network(self, pattern, SparseRows(x), task.n_classes, seed)
            with torch.random.fork_rng(devices=[]):
                torch.manual_seed(seed)
                scores = _train(network, labelled, task.y[labelled], config)
            setting = {"weight_decay": config.weight_decay, "unit": config.unit}
            yield scored(setting, scores)


class _Network(nn.Module):
    """Two layers on a fixed graph; `forward` gives the logits of every node."""

    def __init__(
        self, kind: Words, pattern: Pattern, x: SparseRows, n_classes: int, seed: int
    ) -> None:
        super().__init__()
        self.kind = kind
        self.pattern = pattern
        self.weights = pattern.gcn_weights()
        self.x = x
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.first = nn.Linear(x.shape[1], kind.hidden)
            self.second = nn.Linear(kind.hidden, n_classes)

    def forward(self) -> Tensor:
        hidden = self._first()
        if self.kind.hops is None:
            hidden = self._hop(hidden)
        hidden = dropout((hidden + self.first.bias).relu(), DROPOUT, self.training)
        scores = hidden @ self.second.weight.T
        if self.kind.hops is None:
            return self._hop(scores) + self.second.bias
        start = scores + self.second.bias
        scores = start
        for _ in range(self.kind.hops):
            scores = (1.0 - self.kind.teleport) * self._hop(scores) + self.kind.teleport * start
        return scores

    def _first(self) -> Tensor:
        """The dropped features times the first layer's weights."""
        rows = self.x.dropped(DROPOUT) if self.training else self.x
        return rows.product(self.first.weight.T)

    def _hop(self, values: Tensor) -> Tensor:
        return self.pattern.product(self.weights, values)


def _train(network: _Network, labelled: Tensor, classes: Tensor, config: WordsConfig) -> Tensor:
    """Scores of every node after the last epoch; no label beside those given is looked at."""
    optimiser = torch.optim.Adam(
        network.parameters(), lr=config.lr, weight_decay=config.weight_decay
    )
    network.train()
    for _ in range(config.epochs):
        optimiser.zero_grad()
        F.cross_entropy(network()[labelled], classes).backward()
        optimiser.step()
    with torch.no_grad():
        return network.eval()()


class SparseRows:
    """A matrix of mostly zeros whose entries may be dropped and rescaled, and products with it.

    Args:
        x: dense, shape (N, d), or a sparse matrix.
    """

    def __init__(self, x: Tensor | sparse.csr_matrix) -> None:
        self.matrix = sparse.csr_matrix(x.numpy()) if isinstance(x, Tensor) else x
        self.shape = self.matrix.shape

    def dropped(self, p: float) -> SparseRows:
        """The same matrix with a share of its entries set to 0, the others made larger.

        Args:
            p: the share.
        """
        values = dropout(torch.from_numpy(self.matrix.data), p, training=True).numpy()
        kept = (values, self.matrix.indices, self.matrix.indptr)
        return SparseRows(sparse.csr_matrix(kept, shape=self.shape))

    def product(self, right: Tensor) -> Tensor:
        """This matrix times another, differentiable in the other.

        Args:
            right: shape (d, k).
        """
        result: Tensor = _RowsProduct.apply(self, right)
        return result


class _RowsProduct(torch.autograd.Function):
    """By scipy: its product with the transpose needs no other order of the entries."""

    @staticmethod
    def forward(ctx: Any, rows: SparseRows, right: Tensor) -> Tensor:
        ctx.rows = rows
        return torch.from_numpy(rows.matrix @ right.detach().numpy())

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[None, Tensor]:
        return None, torch.from_numpy(ctx.rows.matrix.T @ gradients[0].numpy())
