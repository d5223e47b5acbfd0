"""Models that are not linear, asked by parts with their halo, beside one machine."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn
from torch_geometric.data import Data
from torch_geometric.nn import GCNConv, PairNorm

from graphkeel import Reconstructor
from graphkeel.cluster import ClusterSettings, ShardedGraph, fit_shards, save_shards
from graphkeel.cluster.fields import FieldModel
from graphkeel.cluster.graph import make_matrices
from graphkeel.core.errors import ModelError
from graphkeel.graph import make_sbm
from graphkeel.models import build_model

N = 200
KINDS = [("sage", 8), ("gcn", 80), ("gat", 80)]


def case(name: str, width: int) -> tuple[Data, nn.Module]:
    """A model trained on a graph, whose features moved afterwards; one-way and repeated edges."""
    raw = make_sbm(N, 700, n_classes=3, n_features=width, seed=0)
    x, edges, y = (torch.from_numpy(np.asarray(a)) for a in (raw.x, raw.edge_index, raw.y))
    torch.manual_seed(0)
    edges = torch.cat([edges, torch.randint(0, N - 5, (2, 60)), edges[:, :9]], dim=1)
    model = build_model(name, width, 3)
    optimiser = torch.optim.Adam(model.parameters(), lr=0.02)
    for _ in range(40):
        optimiser.zero_grad()
        nn.functional.cross_entropy(model(x, edges), y).backward()
        optimiser.step()
    val = torch.rand(N) < 0.3
    return Data(x=x + torch.randn(width), edge_index=edges, y=y, val_mask=val), model.eval()


def read(folder, name):
    return np.concatenate([np.load(path) for path in sorted((folder / name).glob("*.npy"))])


@pytest.fixture
def asked(cluster, tmp_path):
    """A model on a graph in four parts; a field may take so many bytes."""

    def made(data: Data, model: nn.Module, room: int = 2**30) -> FieldModel:
        save_shards(data, tmp_path / "graph", rows=70)
        graph = ShardedGraph.open(tmp_path / "graph")
        home = cluster(N, 64)
        home.walk_bytes = room
        matrices = make_matrices(home, graph.edges, linear=False)
        return FieldModel(home, model, home.tensor(home.at_home(graph.x)), matrices.given)

    return made


@pytest.mark.parametrize(
    ("name", "width", "room"),
    [("sage", 80, 2**30), ("gcn", 8, 2**30), *((*kind, 2**19) for kind in KINDS)],
)
def test_answers_and_gradients_are_those_of_the_whole_pass(asked, name, width, room):
    """In fields as large as parts, and in fields of a few nodes each."""
    data, model = case(name, width)
    found = asked(data, model, room)
    leaf = data.x.clone().requires_grad_(True)
    whole = model(leaf, data.edge_index)
    torch.testing.assert_close(found.logits(found._x)[:], whole, atol=1e-4, rtol=1e-4)
    weights = torch.randn(N, 3) * (torch.arange(N) % 7 == 0)[:, None]  # some nodes pull
    (expected,) = torch.autograd.grad(whole, leaf, weights)
    narrow = found.narrowed()
    _, back = narrow.ask(narrow.start)
    home = found._cluster
    pull = back(home.tensor(home.rowwise(lambda ids: weights.numpy()[ids], [np.arange(N)])))
    torch.testing.assert_close(pull[:] @ narrow.directions.T, expected, atol=1e-4, rtol=1e-3)


@pytest.mark.parametrize(("name", "width"), KINDS)
def test_a_fit_is_that_of_one_machine(at_once, tmp_path, name, width):
    data, model = case(name, width)
    save_shards(data, tmp_path / "graph", rows=70)
    settings = ClusterSettings(rows=64)
    found = fit_shards(tmp_path / "graph", model, tmp_path / "out", settings=settings)
    rec = Reconstructor(model).fit(data)
    assert found.guard.kept and found.guard.reason == rec.guard_.reason
    np.testing.assert_allclose(read(tmp_path / "out", "posterior"), rec.posterior_, atol=2e-4)
    np.testing.assert_allclose(read(tmp_path / "out", "x"), rec.features_, atol=2e-3)
    assert np.array_equal(read(tmp_path / "out", "answers"), rec.predict(data).numpy())
    assert not np.array_equal(read(tmp_path / "out", "x"), data.x.numpy())
    np.testing.assert_allclose(found.fall, rec.fall_, rtol=1e-3, atol=1e-3)


class Normed(nn.Module):
    """Reads all nodes between its layers, or each of its layers twice."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        self.first = GCNConv(8, 8)
        self.last = GCNConv(8, 3)
        self.norm = PairNorm() if kind == "norm" else nn.Identity()
        self.turns = 2 if kind == "twice" else 1
        self.scale = kind == "scale"

    def forward(self, x, edge_index):
        x = x / x.norm() if self.scale else x
        for _ in range(self.turns):
            x = self.norm(self.first(x, edge_index)).relu()
        return self.last(x, edge_index)


@pytest.mark.parametrize("kind", ["norm", "twice", "scale"])
def test_models_whose_field_is_not_known_are_refused(asked, kind):
    data, _ = case("gcn", 8)
    torch.manual_seed(0)
    with pytest.raises(ModelError, match=r"how many hops away|weights alone"):
        asked(data, Normed(kind).eval())


def test_wide_features_that_meet_more_than_weights_are_refused(asked):
    data, _ = case("gcn", 80)
    model = Normed("scale")
    model.first = GCNConv(80, 8)
    with pytest.raises(ModelError, match="weights alone"):
        asked(data, model.eval())
