"""Graphs and labels at the edge of what there is, through the whole of `fit`: finite features, no
traceback, and what people do next works."""

from __future__ import annotations

import pytest
import torch
from small_graphs import sgc
from torch_geometric.data import Data
from torch_geometric.nn import GCN

import graphkeel as gk


def graph(n: int = 24) -> Data:
    generator = torch.Generator().manual_seed(0)
    mask = torch.arange(n) % 3
    return Data(
        x=torch.randn(n, 6, generator=generator),
        edge_index=torch.randint(0, n, (2, 2 * n), generator=generator),
        y=torch.arange(n) % 3,
        train_mask=mask == 0,
        val_mask=mask == 1,
    )


def no_labels(data: Data) -> None:
    data.y = data.train_mask = data.val_mask = None


def validation_alone(data: Data) -> None:
    data.train_mask = torch.zeros_like(data.train_mask)


def one_label(data: Data) -> None:
    validation_alone(data)
    data.val_mask = torch.arange(len(data.x)) == 5


def everything_labelled(data: Data) -> None:
    data.val_mask = ~data.train_mask


def one_class(data: Data) -> None:
    data.y = torch.zeros_like(data.y)


def no_edges(data: Data) -> None:
    data.edge_index = data.edge_index[:, :0]


def one_edge_one_way(data: Data) -> None:
    data.edge_index = torch.tensor([[0], [1]])


def isolated_nodes(data: Data) -> None:
    data.edge_index = data.edge_index % 8


def zero_features(data: Data) -> None:
    data.x = torch.zeros_like(data.x)


def constant_features(data: Data) -> None:
    data.x = torch.full_like(data.x, 2.0)


def huge_features(data: Data) -> None:
    data.x = 1e6 * data.x


def one_large_row(data: Data) -> None:
    data.x[3] *= 1e6


def double_features(data: Data) -> None:
    data.x = data.x.double()


ODD = (
    no_labels,
    validation_alone,
    one_label,
    everything_labelled,
    one_class,
    no_edges,
    one_edge_one_way,
    isolated_nodes,
    zero_features,
    constant_features,
    huge_features,
    one_large_row,
)


@pytest.mark.parametrize("labels", ["all", "train"])
@pytest.mark.parametrize("spoil", ODD, ids=lambda spoil: spoil.__name__)
def test_odd_graphs(spoil, labels) -> None:
    data = graph()
    spoil(data)
    torch.manual_seed(0)
    for model in (sgc(), GCN(6, 4, 2, 3)):
        rec = gk.Reconstructor(model, labels=labels, risk=1.0).fit(data)
        assert torch.isfinite(rec.features_).all() and torch.isfinite(rec.change_).all()
        assert torch.isfinite(rec.posterior_).all()
        assert rec.predict(data).shape == (24,)
        assert rec.explain(0).table()
        rec.feedback([1, 2], [0, 1])
        assert rec.predict_sets(data).shape == (24, 3)


@pytest.mark.parametrize("n", [2, 3])
def test_two_and_three_nodes(n) -> None:
    data = Data(x=torch.randn(n, 6), edge_index=torch.tensor([[0], [1]]))
    rec = gk.Reconstructor(sgc()).fit(data, nodes=[0], labels=[2])
    assert torch.isfinite(rec.features_).all()
    assert rec.guard_.n_labels == 1


@pytest.mark.parametrize("method", ["auto", "replace", "diffuse"])
@pytest.mark.parametrize("guard", ["cross-fit", "holdout"])
@pytest.mark.parametrize("count", [0, 1, 2])
def test_few_labels_with_every_method_and_guard(method, guard, count) -> None:
    data = graph()
    no_labels(data)
    rec = gk.Reconstructor(sgc(), method=method, guard=guard)
    rec.fit(data, nodes=list(range(count)), labels=[0] * count)
    assert torch.isfinite(rec.features_).all()
    assert rec.suggest(3).shape == (3,)
    assert rec.feedback([7, 8], [1, 2]).guard_.reason
