"""GCN and APPNP on the words themselves, trained on the labels that a method gets: the natural
alternative wherever retraining is allowed.

Most words are absent from most nodes, so products and dropout touch the other entries alone, as in
the authors' codes; on Cora that is ten times faster than dense input dropout."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import cycle
from typing import Any

import torch
import torch.nn.functional as F
from scipy import sparse
from torch import Tensor, nn

from graphkeel.graph import GraphTask
from graphkeel.models import build_model
from graphkeel.runs.method import Given
from graphkeel_paper.baselines.retrained.sparse import Pattern
from graphkeel_paper.baselines.rival import Candidate, Rival, scored
from graphkeel_paper.baselines.training import dropout, seeded, unit_scale


@dataclass(frozen=True)
class WordsConfig:
    """The difference between trainings; the defaults are the published ones."""

    weight_decay: float = 5e-4
    unit: bool = True  # features divided by their mean row length, as for every trained row


@dataclass(frozen=True)
class Words(Rival):
    """A network trained from scratch on the labels; the given model is not asked."""

    needs_labels = True
    name: str = "gcn-words"
    hidden: int = 16
    hops: int | None = (
        None  # of PageRank after the second layer (APPNP); None: a GCN's convolutions
    )
    teleport: float = 0.1
    settings: tuple[WordsConfig, ...] = (
        WordsConfig(),
        WordsConfig(weight_decay=5e-3),
        WordsConfig(weight_decay=5e-5),
        WordsConfig(unit=False),
    )
    dropout: float = 0.5
    rate: float = 0.01
    epochs: int = 200
    retrains: bool = True

    def candidates(self, given: Given) -> Iterator[Candidate]:
        yield from self.candidates_of(given, [given.labelled])[0]

    def candidates_of(self, given: Given, sets: Sequence[Tensor]) -> list[list[Candidate]]:
        settings = [{"weight_decay": c.weight_decay, "unit": c.unit} for c in self.settings]
        networks = self._trained(given.task, sets, given.seed)
        with torch.no_grad():
            scores = networks()
        made = zip(cycle(settings), scores.unbind(dim=1))
        found = [scored(setting, one.contiguous()) for setting, one in made]
        count = len(settings)
        return [found[start : start + count] for start in range(0, len(found), count)]

    def network(self, task: GraphTask, seed: int) -> nn.Module:
        """The zoo's GCN or APPNP (an MLP where it has no hops), trained by the first setting on the
        training nodes."""
        alone = replace(self, settings=self.settings[:1])
        found = alone._trained(task, [task.train_mask.nonzero().flatten()], seed)
        is_gcn = self.hops is None
        options: dict[str, Any] = {} if is_gcn else {"k": self.hops}
        sizes = (task.n_features, task.n_classes)
        kind = "gcn" if is_gcn else "appnp"
        model = build_model(kind, *sizes, hidden=self.hidden, **options)
        names = ("conv1", "conv2") if is_gcn else ("lin1", "lin2")
        for name, weights, bias in zip(names, found.weights, found.biases, strict=True):
            layer = getattr(model, name)
            (layer.lin if is_gcn else layer).weight.data = weights.detach()[:, 0].T.contiguous()
            layer.bias.data = bias.detach()[0].clone()
        return model.eval()

    def _trained(self, task: GraphTask, sets: Sequence[Tensor], seed: int) -> _Networks:
        """Every setting on every set of labels; no label beside these is looked at."""
        wanted = _Wanted.of(sets, task.y)
        networks = _Networks(self, task, wanted.nodes, len(sets), seed)
        optimiser = torch.optim.Adam(networks.parameters(), lr=self.rate)
        with seeded(seed):
            networks.train()
            for _ in range(self.epochs):
                optimiser.zero_grad()
                wanted.loss(networks()).backward()
                networks.decay()
                optimiser.step()
        return networks.eval()


@dataclass(frozen=True, eq=False)
class _Wanted:
    """Nodes and weights of several trainings side by side."""

    nodes: Tensor  # in one set of labels or several, shape (n,)
    classes: Tensor
    weights: Tensor  # in the loss of each set: one over its size, or 0 outside it, shape (n, sets)

    @classmethod
    def of(cls, sets: Sequence[Tensor], y: Tensor) -> _Wanted:
        """The union of the sets."""
        nodes = torch.cat(list(sets)).unique()
        shares = [torch.isin(nodes, one) / len(one) for one in sets]
        return cls(nodes, y[nodes], torch.stack(shares, dim=1))

    def loss(self, scores: Tensor) -> Tensor:
        """The sum of the cross-entropies, each a mean over its own set, of scores (n, sets ·
        settings, n_classes), the settings of a set beside each other."""
        members = scores.shape[1]
        classes = self.classes.repeat_interleave(members)
        losses = F.cross_entropy(scores.flatten(end_dim=1), classes, reduction="none")
        weights = self.weights.repeat_interleave(members // self.weights.shape[1], dim=1)
        return (losses.view(-1, members) * weights).sum()


class _Networks(nn.Module):
    """Two layers on a fixed graph, once for each setting and each set of labels, side by
    side: they begin with the same weights and drop the same entries. `forward` gives the logits of
    every node; in training, of the nodes with labels alone."""

    def __init__(
        self, kind: Words, task: GraphTask, labelled: Tensor, n_sets: int, seed: int
    ) -> None:
        super().__init__()
        self.kind = kind
        self.pattern = Pattern(task.edge_index, task.n_nodes)
        self.edges = self.pattern.gcn_weights()
        self.readout = self._rows_of_hops(labelled)
        self.x = SparseRows(task.x)
        unit = float(unit_scale(task.x).norm() / task.x.norm().clamp_min(1e-12))
        decays = [config.weight_decay for config in kind.settings]
        scales = [unit if config.unit else 1.0 for config in kind.settings]
        self.decays = torch.tensor(decays).repeat(n_sets)[:, None]
        self.scales = torch.tensor(scales).repeat(n_sets)[:, None]
        with seeded(seed):
            first = nn.Linear(task.x.shape[1], kind.hidden)
            second = nn.Linear(kind.hidden, task.n_classes)
        count = n_sets * len(kind.settings)
        layers = (first, second)
        many = [nn.Parameter(layer.weight.T[:, None].repeat(1, count, 1)) for layer in layers]
        self.weights = nn.ParameterList(many)
        self.biases = nn.ParameterList(
            nn.Parameter(layer.bias.repeat(count, 1)) for layer in layers
        )

    def forward(self) -> Tensor:
        """Logits, shape (N, members, n_classes); in training (labelled, members, n_classes)."""
        hidden = self._first()
        if self.kind.hops is None:
            hidden = self._hop(hidden)
        hidden = (hidden + self.biases[0]).relu()
        hidden = dropout(hidden, self.kind.dropout, self.training, alike=1)
        scores = torch.einsum("nsh,hsc->nsc", hidden, self.weights[1])
        if self.kind.hops is None:
            return self._last_hops(scores) + self.biases[1]
        return self._last_hops(scores + self.biases[1])

    def _first(self) -> Tensor:
        """The dropped features times the first layers' weights."""
        rows = self.x.dropped(self.kind.dropout) if self.training else self.x
        weights = self.weights[0] * self.scales  # the same as scaled features, and smaller
        product = rows.product(weights.flatten(start_dim=1))
        return product.view(-1, *self.weights[0].shape[1:])

    def _last_hops(self, values: Tensor) -> Tensor:
        if not self.training:
            return self._hops(self._hop, values)
        product = self.readout @ values.flatten(start_dim=1)
        return product.view(-1, *values.shape[1:])

    def _rows_of_hops(self, nodes: Tensor) -> Tensor:
        """The last hops to these nodes as one matrix: hops are linear, and training
        asks about no other node. Its rows are columns of the transposed hops."""
        start = torch.zeros(self.pattern.n_nodes, len(nodes))
        start[nodes, torch.arange(len(nodes))] = 1.0
        turned = self.pattern.transposed(self.edges)
        rows = self._hops(turned.matmul, start).T.contiguous()
        return rows if self.kind.hops else rows.to_sparse()  # ten hops reach most nodes

    def _hops(self, hop: Callable[[Tensor], Tensor], start: Tensor) -> Tensor:
        """One hop of a GCN, all hops of APPNP."""
        if self.kind.hops is None:
            return hop(start)
        values = start
        for _ in range(self.kind.hops):
            values = (1.0 - self.kind.teleport) * hop(values) + self.kind.teleport * start
        return values

    def _hop(self, values: Tensor) -> Tensor:
        product = self.pattern.product(self.edges, values.flatten(start_dim=1))
        return product.view(values.shape)

    def decay(self) -> None:
        """Each setting's weight decay, added to its gradients as torch's Adam adds it."""
        for parameter in self.parameters():
            if parameter.grad is not None:
                parameter.grad += self.decays * parameter.detach()


class SparseRows:
    """A matrix of mostly zeros whose entries may be dropped and rescaled, and products with it."""

    def __init__(self, x: Tensor | sparse.csr_matrix) -> None:
        self.matrix = sparse.csr_matrix(x.numpy()) if isinstance(x, Tensor) else x
        self.shape = self.matrix.shape

    def dropped(self, p: float) -> SparseRows:
        """The matrix with a share of its entries set to 0, the others made larger."""
        values = dropout(torch.from_numpy(self.matrix.data), p, training=True).numpy()
        places = (self.matrix.indices.copy(), self.matrix.indptr.copy())
        kept = sparse.csr_matrix((values, *places), shape=self.shape)
        kept.eliminate_zeros()  # half the products
        return SparseRows(kept)

    def product(self, right: Tensor) -> Tensor:
        """This matrix times another, differentiable in the other."""
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
