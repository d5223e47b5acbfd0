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
RATE = 0.01
EPOCHS = 200


@dataclass(frozen=True)
class WordsConfig:
    """What differs between trainings; the first of `SETTINGS` is the published one."""

    weight_decay: float = 5e-4
    unit: bool = True  # features divided by their mean row length, as for every trained row


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
        networks = _Networks(self, task, seed)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            scores = _train(networks, labelled, task.y[labelled])
        for config, found in zip(SETTINGS, scores.unbind(dim=1), strict=True):
            setting = {"weight_decay": config.weight_decay, "unit": config.unit}
            yield scored(setting, found.contiguous())


class _Networks(nn.Module):
    """Two layers on a fixed graph, once for each of `SETTINGS` and side by side: they begin with
    the same weights and drop the same entries. `forward` gives the logits of every node."""

    def __init__(self, kind: Words, task: GraphTask, seed: int) -> None:
        super().__init__()
        self.kind = kind
        self.pattern = Pattern(task.edge_index, task.n_nodes)
        self.weights = self.pattern.gcn_weights()
        self.x = SparseRows(task.x)
        unit = float(unit_scale(task.x).norm() / task.x.norm().clamp_min(1e-12))
        self.decays = torch.tensor([config.weight_decay for config in SETTINGS])[:, None]
        self.scales = torch.tensor([unit if config.unit else 1.0 for config in SETTINGS])[:, None]
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            first = nn.Linear(task.x.shape[1], kind.hidden)
            second = nn.Linear(kind.hidden, task.n_classes)
        count = len(SETTINGS)
        self.first = nn.Parameter(first.weight.T[:, None].repeat(1, count, 1))
        self.first_bias = nn.Parameter(first.bias.repeat(count, 1))
        self.second = nn.Parameter(second.weight.T[:, None].repeat(1, count, 1))
        self.second_bias = nn.Parameter(second.bias.repeat(count, 1))

    def forward(self) -> Tensor:
        """Logits, shape (N, settings, n_classes)."""
        hidden = self._first() * self.scales
        if self.kind.hops is None:
            hidden = self._hop(hidden)
        hidden = (hidden + self.first_bias).relu()
        hidden = dropout(hidden, DROPOUT, self.training, alike=1)
        scores = torch.einsum("nsh,hsc->nsc", hidden, self.second)
        if self.kind.hops is None:
            return self._hop(scores) + self.second_bias
        start = scores + self.second_bias
        scores = start
        for _ in range(self.kind.hops):
            scores = (1.0 - self.kind.teleport) * self._hop(scores) + self.kind.teleport * start
        return scores

    def _first(self) -> Tensor:
        """The dropped features times the first layers' weights."""
        rows = self.x.dropped(DROPOUT) if self.training else self.x
        product = rows.product(self.first.flatten(start_dim=1))
        return product.view(-1, *self.first.shape[1:])

    def _hop(self, values: Tensor) -> Tensor:
        product = self.pattern.product(self.weights, values.flatten(start_dim=1))
        return product.view(values.shape)

    def decay(self) -> None:
        """Each setting's weight decay, added to its gradients as torch's Adam adds it."""
        for parameter in self.parameters():
            if parameter.grad is not None:
                parameter.grad += self.decays * parameter.detach()


def _train(networks: _Networks, labelled: Tensor, classes: Tensor) -> Tensor:
    """Scores of every node after the last epoch, shape (N, settings, n_classes); no label beside
    those given is looked at."""
    optimiser = torch.optim.Adam(networks.parameters(), lr=RATE)
    networks.train()
    for _ in range(EPOCHS):
        optimiser.zero_grad()
        scores = networks()[labelled].flatten(end_dim=1)
        wanted = classes.repeat_interleave(len(SETTINGS))
        loss = F.cross_entropy(scores, wanted) * len(SETTINGS)  # each its own mean
        loss.backward()
        networks.decay()
        optimiser.step()
    with torch.no_grad():
        return networks.eval()()


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
        places = (self.matrix.indices.copy(), self.matrix.indptr.copy())
        kept = sparse.csr_matrix((values, *places), shape=self.shape)
        kept.eliminate_zeros()  # half the products
        return SparseRows(kept)

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
