"""Models as people write them, each a function that returns what is handed to `fit`.

`ROWS` is what docs/compatibility.md shows."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
import torch.nn.functional as F
import torch_geometric.nn as pyg
import torch_geometric.transforms as T
from torch import Tensor, nn
from torch_geometric.data import Data, HeteroData

import graphkeel as gk
from graphkeel.graph import make_sbm, make_task

N, D, H, C = 60, 6, 4, 3
DATA = make_task(make_sbm(N, 240, n_classes=C, n_features=D), split="random").to_data()
N_EDGES = int(DATA.edge_index.shape[1])


@dataclass
class Case:
    """A model and what `fit` gets beside it."""

    model: Any
    data: Any = field(default_factory=lambda: copy.copy(DATA))
    arguments: dict[str, Any] = field(default_factory=dict)
    options: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Row:
    """A line of the page."""

    group: str
    name: str
    make: Callable[[], Case]


ROWS: list[Row] = []


def row(group: str, name: str) -> Callable[[Callable[[], Case]], Callable[[], Case]]:
    def register(make: Callable[[], Case]) -> Callable[[], Case]:
        ROWS.append(Row(group, name, make))
        return make

    return register


def with_fields(**fields: Any) -> Data:
    data = copy.copy(DATA)
    for name, value in fields.items():
        data[name] = value
    return data


class Stack(nn.Module):
    """Convolutions with an activation between them, and dropout as everybody has it."""

    def __init__(self, *layers: nn.Module, act: Callable[[Tensor], Tensor] = F.relu) -> None:
        super().__init__()
        self.layers = nn.ModuleList(layers)
        self.act = act

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        for layer in self.layers[:-1]:
            x = self.act(layer(x, edge_index))
            x = F.dropout(x, p=0.5, training=self.training)
        return self.layers[-1](x, edge_index)


def two(conv: Callable[..., nn.Module], **options: Any) -> nn.Module:
    return Stack(conv(D, H, **options), conv(H, C, **options))


# ---- convolutions

GROUP = "Convolutions"
SIMPLE: dict[str, Callable[[], nn.Module]] = {
    "GCNConv ×2, dropout": lambda: two(pyg.GCNConv),
    "GCNConv, `cached=True`": lambda: two(pyg.GCNConv, cached=True),
    "GCNConv, LeakyReLU": lambda: Stack(
        pyg.GCNConv(D, H), pyg.GCNConv(H, C), act=lambda x: F.leaky_relu(x, 0.2)
    ),
    "SGConv, K = 2": lambda: pyg.SGConv(D, C, K=2),
    "SSGConv": lambda: pyg.SSGConv(D, C, alpha=0.1, K=4),
    "SAGEConv, mean": lambda: two(pyg.SAGEConv),
    "SAGEConv, max": lambda: two(pyg.SAGEConv, aggr="max"),
    "SAGEConv, `project=True`": lambda: two(pyg.SAGEConv, project=True),
    "SAGEConv, `normalize=True`": lambda: two(pyg.SAGEConv, normalize=True),
    "GATConv, 2 heads, ELU (the PyG example)": lambda: Stack(
        pyg.GATConv(D, H, heads=2), pyg.GATConv(2 * H, C), act=F.elu
    ),
    "GATConv, 2 heads, ReLU": lambda: Stack(pyg.GATConv(D, H, heads=2), pyg.GATConv(2 * H, C)),
    "GATv2Conv": lambda: two(pyg.GATv2Conv),
    "TransformerConv": lambda: two(pyg.TransformerConv),
    "TAGConv": lambda: two(pyg.TAGConv),
    "ChebConv, K = 2": lambda: two(pyg.ChebConv, K=2),
    "ARMAConv": lambda: two(pyg.ARMAConv),
    "GraphConv": lambda: two(pyg.GraphConv),
    "LEConv": lambda: two(pyg.LEConv),
    "ClusterGCNConv": lambda: two(pyg.ClusterGCNConv),
    "GENConv": lambda: two(pyg.GENConv),
    "ResGatedGraphConv": lambda: two(pyg.ResGatedGraphConv),
    "FeaStConv": lambda: two(pyg.FeaStConv),
    "MixHopConv": lambda: Stack(pyg.MixHopConv(D, H), pyg.MixHopConv(3 * H, 1)),
}
for _name, _build in SIMPLE.items():
    ROWS.append(Row(GROUP, _name, lambda build=_build: Case(build())))


class TwoPart(nn.Module):
    """A perceptron, then propagation."""

    def __init__(self, spread: nn.Module) -> None:
        super().__init__()
        self.lin1, self.lin2, self.spread = nn.Linear(D, H), nn.Linear(H, C), spread

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        return self.spread(self.lin2(F.relu(self.lin1(x))), edge_index)


@row(GROUP, "APPNP after a perceptron")
def _() -> Case:
    return Case(TwoPart(pyg.APPNP(K=5, alpha=0.1)))


@row(GROUP, "AGNNConv between linear layers (the PyG example)")
def _() -> Case:
    class Agnn(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.lin1, self.lin2 = nn.Linear(D, H), nn.Linear(H, C)
            self.prop1, self.prop2 = pyg.AGNNConv(requires_grad=False), pyg.AGNNConv()

        def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
            x = self.prop2(self.prop1(F.relu(self.lin1(x)), edge_index), edge_index)
            return F.log_softmax(self.lin2(x), dim=1)

    return Case(Agnn())


@row(GROUP, "GIN with a perceptron and BatchNorm inside")
def _() -> Case:
    def mlp(d_in: int, d_out: int) -> nn.Module:
        layers = [nn.Linear(d_in, H), nn.BatchNorm1d(H), nn.ReLU(), nn.Linear(H, d_out)]
        return nn.Sequential(*layers)

    return Case(Stack(pyg.GINConv(mlp(D, H)), pyg.GINConv(mlp(H, C))))


@row(GROUP, "PNAConv")
def _() -> Case:
    degrees = torch.tensor([0, 10, 20, 20, 10])
    options = {"aggregators": ["mean", "max"], "scalers": ["identity"], "deg": degrees}
    return Case(Stack(pyg.PNAConv(D, H, **options), pyg.PNAConv(H, C, **options)))


@row(GROUP, "GCN2Conv (GCNII) with its first features")
def _() -> Case:
    class Gcn2(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.lin1, self.lin2 = nn.Linear(D, H), nn.Linear(H, C)
            self.convs = nn.ModuleList(pyg.GCN2Conv(H, alpha=0.1) for _ in range(2))

        def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
            x = first = F.relu(self.lin1(x))
            for conv in self.convs:
                x = F.relu(conv(x, first, edge_index))
            return self.lin2(x)

    return Case(Gcn2())


# ---- whole models

GROUP = "Whole models"
BASIC: dict[str, Callable[[], nn.Module]] = {
    "`torch_geometric.nn.GCN`": lambda: pyg.GCN(D, H, 2, C),
    "`torch_geometric.nn.GraphSAGE`, BatchNorm": lambda: pyg.GraphSAGE(
        D, H, 2, C, norm="BatchNorm"
    ),
    "`torch_geometric.nn.GAT`, `v2=True`": lambda: pyg.GAT(D, H, 2, C, v2=True),
    "`torch_geometric.nn.GIN`": lambda: pyg.GIN(D, H, 2, C),
    "`torch_geometric.nn.GCN`, JumpingKnowledge cat": lambda: pyg.GCN(D, H, 2, C, jk="cat"),
    "`torch_geometric.nn.GCN`, JumpingKnowledge max": lambda: pyg.GCN(D, H, 2, C, jk="max"),
    "`torch_geometric.nn.GCN`, LayerNorm": lambda: pyg.GCN(D, H, 2, C, norm="LayerNorm"),
    "`torch_geometric.nn.GCN`, GraphNorm": lambda: pyg.GCN(D, H, 2, C, norm="GraphNorm"),
    "`torch_geometric.nn.MLP` (no edges)": lambda: pyg.MLP([D, H, C], norm=None),
    "`torch_geometric.nn.Sequential`": lambda: pyg.Sequential(
        "x, edge_index",
        [
            (pyg.GCNConv(D, H), "x, edge_index -> x"),
            nn.ReLU(inplace=True),
            (pyg.GCNConv(H, C), "x, edge_index -> x"),
        ],
    ),
}
for _name, _build in BASIC.items():
    ROWS.append(Row(GROUP, _name, lambda build=_build: Case(build())))


@row(GROUP, "residual connections")
def _() -> Case:
    class Residual(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inside, self.conv = nn.Linear(D, H), pyg.GCNConv(H, H)
            self.outside = nn.Linear(H, C)

        def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
            x = F.relu(self.inside(x))
            return self.outside(x + F.relu(self.conv(x, edge_index)))

    return Case(Residual())


@row(GROUP, "an embedding per node (transductive)")
def _() -> Case:
    class Embedded(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.own, self.conv = nn.Embedding(N, D), pyg.GCNConv(D, C)

        def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
            return self.conv(x + self.own.weight, edge_index)

    return Case(Embedded())


# ---- ways of calling

GROUP = "Ways of calling"


class Pair(nn.Module):
    def __init__(self, out: int = C) -> None:
        super().__init__()
        self.first, self.second = pyg.GCNConv(D, H), pyg.GCNConv(H, out)

    def scores(self, x: Tensor, edges: Any, weight: Tensor | None = None) -> Tensor:
        return self.second(F.relu(self.first(x, edges, weight)), edges, weight)


@row(GROUP, "`forward(data)`")
def _() -> Case:
    class TakesData(Pair):
        def forward(self, data: Data) -> Tensor:
            return F.log_softmax(self.scores(data.x, data.edge_index), dim=1)

    return Case(TakesData())


class Weighted(Pair):
    def forward(self, x: Tensor, edge_index: Tensor, edge_weight: Tensor) -> Tensor:
        return self.scores(x, edge_index, edge_weight)


@row(GROUP, "required `edge_weight`, passed to `fit`")
def _() -> Case:
    return Case(Weighted(), arguments={"edge_weight": torch.rand(N_EDGES)})


@row(GROUP, "required `edge_weight`, in the graph")
def _() -> Case:
    return Case(Weighted(), with_fields(edge_weight=torch.rand(N_EDGES)))


@row(GROUP, "required `edge_weight`, nowhere")
def _() -> Case:
    return Case(Weighted())


@row(GROUP, "`edge_attr` of three columns (GATConv, `edge_dim=3`)")
def _() -> Case:
    class Attributed(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second = (
                pyg.GATConv(D, H, edge_dim=3),
                pyg.GATConv(H, C, edge_dim=3),
            )

        def forward(self, x: Tensor, edge_index: Tensor, edge_attr: Tensor) -> Tensor:
            return self.second(F.relu(self.first(x, edge_index, edge_attr)), edge_index, edge_attr)

    return Case(Attributed(), with_fields(edge_attr=torch.rand(N_EDGES, 3)))


@row(GROUP, "`batch` as an argument")
def _() -> Case:
    class Batched(Pair):
        def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor) -> Tensor:
            return self.scores(x, edge_index) + 0.0 * batch.unsqueeze(1)

    return Case(Batched(), arguments={"batch": torch.zeros(N, dtype=torch.long)})


@row(GROUP, "`data.adj_t` in place of `edge_index` (torch.sparse CSR)")
def _() -> Case:
    return Case(two(pyg.GCNConv), T.ToSparseTensor(layout=torch.sparse_csr)(copy.copy(DATA)))


@row(GROUP, "`forward(x, adj)` with a normalised sparse matrix (Kipf)")
def _() -> Case:
    class Kipf(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second = nn.Linear(D, H), nn.Linear(H, C)

        def forward(self, x: Tensor, adj: Tensor) -> Tensor:
            return adj @ self.second(F.relu(adj @ self.first(x)))

    loops = torch.arange(N).repeat(2, 1)
    matrix = torch.zeros(N, N)
    matrix[tuple(torch.cat([DATA.edge_index, loops], dim=1))] = 1.0
    scale = matrix.sum(1).rsqrt()
    return Case(Kipf(), with_fields(adj=(scale[:, None] * matrix * scale).to_sparse()))


@row(GROUP, "`forward(x, adj_t)` and a graph with `edge_index` only")
def _() -> Case:
    class Adjacency(Pair):
        def forward(self, x: Tensor, adj_t: Tensor) -> Tensor:
            return self.scores(x, adj_t)

    return Case(Adjacency())


@row(GROUP, "`forward(edge_index, x)`")
def _() -> Case:
    class Swapped(Pair):
        def forward(self, edge_index: Tensor, x: Tensor) -> Tensor:
            return self.scores(x, edge_index)

    return Case(Swapped())


@row(GROUP, "a closure over a model")
def _() -> Case:
    net = pyg.GCN(D, H, 2, C, dropout=0.5)
    return Case(lambda x, edge_index: net(x, edge_index))


@row(GROUP, "`torch.compile`d")
def _() -> Case:
    return Case(torch.compile(pyg.GCN(D, H, 2, C)))


@row(GROUP, "`torch.jit.script`ed")
def _() -> Case:
    class Scripted(Pair):
        def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
            return self.second(F.relu(self.first(x, edge_index)), edge_index)

    return Case(torch.jit.script(Scripted()))


@row(GROUP, "lazy layers that never ran")
def _() -> Case:
    return Case(pyg.GCN(-1, H, 2, C))


# ---- outputs and precision

GROUP = "Outputs and precision"


class Ending(Pair):
    def __init__(self, last: Callable[[Tensor], Any], out: int = C) -> None:
        super().__init__(out)
        self.last = last

    def forward(self, x: Tensor, edge_index: Tensor) -> Any:
        return self.last(self.scores(x, edge_index))


ENDINGS: dict[str, Callable[[Tensor], Any]] = {
    "log-probabilities": lambda z: F.log_softmax(z, dim=-1),
    "probabilities": lambda z: F.softmax(z, dim=-1),
    "a tuple (scores, embedding)": lambda z: (z, z.detach()),
}
for _name, _last in ENDINGS.items():
    ROWS.append(Row(GROUP, _name, lambda last=_last: Case(Ending(last))))

BINARY = (DATA.y > 0).float()


@row(GROUP, "one logit per node, labels 0.0 and 1.0")
def _() -> Case:
    model = Ending(lambda z: z.squeeze(-1), out=1)
    nn.init.constant_(model.second.bias, -0.3)
    return Case(model, with_fields(y=BINARY))


@row(GROUP, "one probability per node, unsaid")
def _() -> Case:
    return Case(Ending(torch.sigmoid, out=1), with_fields(y=BINARY))


@row(GROUP, "one probability per node, `return_type='probs'`")
def _() -> Case:
    case = Case(Ending(torch.sigmoid, out=1), with_fields(y=BINARY))
    return Case(case.model, case.data, options={"return_type": "probs"})


@row(GROUP, "double precision, model and graph")
def _() -> Case:
    return Case(two(pyg.GCNConv).double(), with_fields(x=DATA.x.double()))


@row(GROUP, "bfloat16 model")
def _() -> Case:
    return Case(pyg.GraphSAGE(D, H, 2, C).bfloat16())


# ---- tasks

GROUP = "Tasks"


def papers() -> HeteroData:
    graph = HeteroData()
    for name in ("x", "y", "train_mask", "val_mask", "test_mask"):
        graph["paper"][name] = DATA[name]
    graph["author"].x = torch.randn(20, D)
    writes = torch.stack([torch.arange(N) % 20, torch.arange(N)])
    graph["author", "writes", "paper"].edge_index = writes
    graph["paper", "written_by", "author"].edge_index = writes.flip(0)
    return graph


def hetero_model(graph: HeteroData) -> nn.Module:
    net = Stack(pyg.SAGEConv((-1, -1), H), pyg.SAGEConv((-1, -1), C))
    model = pyg.to_hetero(net, graph.metadata())
    with torch.no_grad():
        model(graph.x_dict, graph.edge_index_dict)
    return model


@row(GROUP, "HeteroData, handed over as it is")
def _() -> Case:
    return Case(hetero_model(papers()), papers())


@row(GROUP, "HeteroData, through `gk.for_node_type`")
def _() -> Case:
    graph = papers()
    view = gk.for_node_type(hetero_model(graph), graph, "paper")
    return Case(view.model, view.graph)


@row(GROUP, "regression")
def _() -> Case:
    return Case(two(pyg.GCNConv), with_fields(y=torch.linspace(0.1, 2.2, N)))


@row(GROUP, "several labels per node")
def _() -> Case:
    return Case(two(pyg.GCNConv), with_fields(y=torch.ones(N, 3)))


@row(GROUP, "one-hot labels")
def _() -> Case:
    return Case(two(pyg.GCNConv), with_fields(y=F.one_hot(DATA.y, C)))


@row(GROUP, "graph classification")
def _() -> Case:
    class Pooling(Pair):
        def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor) -> Tensor:
            return pyg.global_mean_pool(self.scores(x, edge_index), batch)

    return Case(Pooling(), arguments={"batch": torch.zeros(N, dtype=torch.long)})
