"""The theorem of docs/mathematics.md against measured factors, on random graphs, models and
controllers."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn
from torch_geometric.data import Data
from torch_geometric.nn import (
    APPNP,
    ChebConv,
    GATConv,
    GCNConv,
    SAGEConv,
    SGConv,
    TAGConv,
)

import graphkeel as gk
from graphkeel.certificate import GraphProof, check_certificate, sealed
from graphkeel.certificate.encoding import encode_array
from graphkeel.certificate.sources import source_to_json
from graphkeel.checker.exact import Work
from graphkeel.checker.graph import derive_graph
from graphkeel.control.neural import ControllerBatch, NeuralWeights
from graphkeel.lyapunov import LyapunovConfig, certify
from graphkeel.lyapunov.closed_loop import axis_factors, controller_source
from graphkeel.lyapunov.message_passing import (
    Passing,
    graph_proof,
    loop_factor,
    used_layers,
    word_gains,
)
from graphkeel.lyapunov.on_graph import passing_of
from graphkeel.models.aggregation import _answers, _gradients, operator_of, recognise
from graphkeel.models.binding import bind
from graphkeel.models.frozen import FrozenModel
from graphkeel.models.head import extract_head

D, N = 6, 3


class Two(nn.Module):
    def __init__(self, first: nn.Module, second: nn.Module, leaky: bool = False) -> None:
        super().__init__()
        self.first, self.second = first, second
        self.act = nn.LeakyReLU(0.2) if leaky else nn.ReLU()

    def forward(self, x: torch.Tensor, edge_index: torch.Tensor) -> torch.Tensor:
        return self.second(self.act(self.first(x, edge_index)), edge_index)


class Predict(nn.Module):
    """APPNP: a perceptron, then propagation."""

    def __init__(self) -> None:
        super().__init__()
        self.inner, self.outer, self.spread = nn.Linear(D, 5), nn.Linear(5, N), APPNP(4, 0.2)

    def forward(self, x: torch.Tensor, edge_index: torch.Tensor) -> torch.Tensor:
        return self.spread(self.outer(self.inner(x).relu()), edge_index)


MODELS = {
    "sgc": lambda: SGConv(D, N, K=2),
    "gcn": lambda: Two(GCNConv(D, 5), GCNConv(5, N)),
    "leaky gcn": lambda: Two(GCNConv(D, 5), GCNConv(5, N), leaky=True),
    "sage": lambda: Two(SAGEConv(D, 5), SAGEConv(5, N)),
    "tag": lambda: Two(TAGConv(D, 5, K=2), TAGConv(5, N, K=1)),
    "cheb": lambda: Two(ChebConv(D, 5, K=3), ChebConv(5, N, K=2)),
    "appnp": Predict,
}
NAMES = {
    "sgc": "symmetric, loops added",
    "gcn": "symmetric, loops added",
    "leaky gcn": "symmetric, loops added",
    "sage": "mean",
    "tag": "symmetric",
    "cheb": "symmetric, loops removed",
    "appnp": "symmetric, loops added",
}


def model_of(name: str, seed: int = 0) -> nn.Module:
    torch.manual_seed(seed)
    model = MODELS[name]()
    for parameter in model.parameters():
        parameter.data = 0.6 * torch.randn_like(parameter)
    return model.eval()


def random_graph(generator: torch.Generator, nodes: int, undirected: bool) -> torch.Tensor:
    edges = torch.randint(nodes, (2, 2 * nodes), generator=generator)
    return torch.cat([edges, edges.flip(0)], dim=1) if undirected else edges


def random_control(generator: torch.Generator, scale: float) -> NeuralWeights:
    def draw(*shape: int) -> torch.Tensor:
        return torch.randn(shape, generator=generator)

    return NeuralWeights(
        "anchored", draw(N).double(), draw(7, N), draw(7), scale * draw(D, 7), draw(D)
    )


@pytest.mark.parametrize("name", MODELS)
def test_models_are_recognised_by_their_answers(name: str) -> None:
    model = model_of(name)
    found = recognise(model, D)
    assert found.reason == "" and found.operator == NAMES[name]
    generator = torch.Generator().manual_seed(9)
    edges = random_graph(generator, 40, undirected=found.undirected)
    x = torch.randn(40, D, generator=generator, dtype=torch.float64)
    assert torch.allclose(found(x, edges), model.double()(x, edges), atol=1e-9)


def test_attention_is_not_recognised_and_the_reason_is_said() -> None:
    torch.manual_seed(0)
    found = recognise(Two(GATConv(D, 5), GATConv(5, N)).eval(), D)
    assert not found.layers and "GATConv" in found.reason


@pytest.mark.parametrize("name", sorted({*NAMES.values(), "mean, loops added"}))
def test_the_operators_do_not_expand_their_vector(name: str) -> None:
    generator = torch.Generator().manual_seed(1)
    for _ in range(20):
        matrix, s = operator_of(name, random_graph(generator, 15, undirected=False), 15)
        dense = matrix.to_dense()
        assert bool((dense >= 0).all()) and bool((s > 0).all())
        assert bool((dense @ s <= s * (1 + 1e-12)).all())


def _graph_entry_of(proof: GraphProof, controls: list[NeuralWeights]) -> dict:
    """The exact factor of the trusted base."""
    entries = [
        {"class": c, "controller": source_to_json(controller_source(control))}
        for c, control in enumerate(controls)
    ]
    layers = [
        [{"power": power, "weight": encode_array(weight)} for power, weight in layer]
        for layer in proof.layers
    ]
    named = {"operator": proof.operator, "undirected": proof.undirected}
    content = {"layers": layers, "gauge": encode_array(proof.gauge), **named}
    return derive_graph(content, entries, Work(10**9))


@pytest.mark.parametrize("name", MODELS)
def test_the_measured_factor_never_exceeds_kappa(name: str) -> None:
    """Controllers mixed at random on random graphs; moves of single axes at single nodes, where the
    bound is tightest, and of all at once."""
    found = recognise(model_of(name), D)
    generator = torch.Generator().manual_seed(7)
    largest = 0.0
    for _ in range(8):
        controls = [random_control(generator, 0.05) for _ in range(N)]
        proof = graph_proof(found, controls)
        entry = _graph_entry_of(proof, controls)
        kappa = entry["kappa"]
        assert kappa <= loop_factor(word_gains(used_layers(found), controls), proof.gauge) + 1e-9
        nodes = int(torch.randint(3, 15, (1,), generator=generator))
        edges = random_graph(generator, nodes, undirected=found.undirected)
        _, s = operator_of(found.operator, edges, nodes)
        gauge = torch.from_numpy(np.asarray(proof.gauge))
        mix = torch.rand(nodes, N, generator=generator, dtype=torch.float64)
        mix = mix / mix.sum(dim=1, keepdim=True)

        def loop(y: torch.Tensor, mix=mix, edges=edges, controls=controls) -> torch.Tensor:
            parts = [mix[:, c : c + 1] * control(y) for c, control in enumerate(controls)]
            return found(torch.stack(parts).sum(dim=0), edges)

        def norm(z: torch.Tensor, s=s, gauge=gauge) -> float:
            return float(((z.abs() @ gauge) / s).max())

        for kind in range(30):
            y = 3 * torch.randn(nodes, N, generator=generator, dtype=torch.float64)
            move = torch.randn(nodes, N, generator=generator, dtype=torch.float64)
            if kind % 2:  # one axis a node: the corners of the gauge's ball
                axis = torch.randint(N, (nodes, 1), generator=generator)
                move = move.sign() * torch.zeros_like(move).scatter(1, axis, 1.0) / gauge
                move = move * s.unsqueeze(1)
            factor = norm(loop(y + move) - loop(y)) / norm(move)
            largest = max(largest, factor / kappa)
            assert factor <= kappa * (1 + 1e-9)
    assert largest > 0.01  # the bound says something


@pytest.mark.parametrize("name", MODELS)
def test_what_training_sees_is_no_more_than_what_is_proved(name: str) -> None:
    """The loss merges words: its factor bounds κ from below, and is κ where there is one word."""
    model = model_of(name)
    found = recognise(model, D)
    head = extract_head(model, D)
    targets = torch.eye(N, dtype=torch.float64)
    generator = torch.Generator().manual_seed(4)
    batch = ControllerBatch(
        head, targets, torch.ones(N, N), form="anchored", hidden=7, generator=generator
    )
    term = Passing(found, batch)
    everyone = torch.arange(N)
    for _ in range(50):
        term(everyone, torch.zeros(N, 1))  # the gauge settles
    controls = [batch.shipped(k) for k in range(N)]
    gains = word_gains(used_layers(found), controls)
    proved = loop_factor(gains, term.gauge.numpy())
    factors = axis_factors(term.gains(everyone), term.gauge.expand(N, -1))
    seen = float(factors.detach().max())
    assert seen <= proved * (1 + 1e-5)
    if len(gains) == 1:
        assert seen == pytest.approx(proved, rel=1e-5)


def test_training_works_for_the_common_factor() -> None:
    model = model_of("gcn")
    x = torch.randn(30, D)
    edges = torch.randint(30, (2, 90))
    result = certify(FrozenModel(model), x, edges, LyapunovConfig(samples=240), constant=True)
    assert result and result.graph["kappa"] <= 0.6 * 1.05
    assert not any("for message passing" in one.note for one in result.outcomes)  # none scaled
    assert "passing" in result.log[0].losses


def test_a_wide_layer_is_read_the_same_by_gradients() -> None:
    torch.manual_seed(0)
    layer = TAGConv(40, 2, K=2).double()
    rest = _answers(layer, torch.zeros(1, 40, dtype=torch.float64), 5)[0]
    with torch.no_grad():
        by_gradients = _gradients(layer, 40, 5)
        moved = _answers(layer, torch.eye(40, dtype=torch.float64), 5) - rest
    assert torch.allclose(by_gradients, moved.permute(1, 2, 0), atol=1e-12)


def test_a_model_that_answers_with_a_tuple_is_recognised() -> None:
    class Tuple(Two):
        def forward(self, x: torch.Tensor, edge_index: torch.Tensor):
            scores = super().forward(x, edge_index)
            return scores, x

    torch.manual_seed(0)
    found = recognise(Tuple(GCNConv(D, 5), GCNConv(5, N)).eval(), D)
    assert found.layers and not found.reason


def test_a_matrix_in_place_of_edges_is_not_taken_for_plain_edges() -> None:
    """Its values are weights: what holds of the bare edges need not hold with them."""

    class OfMatrix(Two):
        def forward(self, x: torch.Tensor, adj_t: torch.Tensor) -> torch.Tensor:
            return super().forward(x, adj_t)

    torch.manual_seed(0)
    edges = torch.randint(30, (2, 90)).unique(dim=1)
    values = torch.rand(edges.shape[1])
    data = Data(x=torch.randn(30, D), edge_index=edges)
    data.adj_t = torch.sparse_coo_tensor(edges.flip(0), values, (30, 30)).coalesce()
    model = OfMatrix(GCNConv(D, 5), GCNConv(5, N)).eval()
    frozen, arguments = bind(model, data, {}, return_type="auto")
    found = passing_of(frozen, extract_head(frozen, D), data.x, edges, arguments)
    assert not found.layers and "adjacency" in found.reason


def test_a_graph_with_weights_that_the_model_takes_is_not_the_certificates() -> None:
    torch.manual_seed(0)
    model = GCNConv(D, N).eval()
    data = Data(x=torch.randn(30, D), edge_index=torch.randint(30, (2, 90)))
    config = LyapunovConfig(samples=240)
    nodes = torch.arange(6)
    labelled = (nodes, nodes % N)
    result = certify(FrozenModel(model), data.x, data.edge_index, config, labelled=labelled)
    linked = {"model": model, "states": result.states}
    assert gk.check(result.certificate, data=data, **linked).accepted
    data.edge_weight = torch.rand(90)
    assert "edge_weight" in gk.check(result.certificate, data=data, **linked).reason


def test_merging_the_branches_would_be_wrong() -> None:
    """A node that moves along one axis, neighbours along another: the sum of both is reached,
    although no axis alone sees more than one of them."""
    half = torch.tensor([[0.5, 0.0], [0.0, 0.0]]).double()
    other = torch.tensor([[0.0, 0.0], [0.0, 0.5]]).double()
    moved = half @ torch.tensor([1.0, 0.0]).double() + other @ torch.tensor([0.0, 1.0]).double()
    merged = (half + other).abs().sum(dim=0).max()
    summed = half.abs().sum(dim=0).max() + other.abs().sum(dim=0).max()
    assert float(moved.abs().sum()) == float(summed) > float(merged)


@pytest.fixture(scope="module")
def certified() -> dict:
    torch.manual_seed(0)
    model = Two(SAGEConv(D, 5), SAGEConv(5, N)).eval()
    x = torch.randn(30, D)
    edges = torch.randint(30, (2, 90))
    result = certify(FrozenModel(model), x, edges, LyapunovConfig(samples=240), constant=True)
    assert result and result.graph["contraction"] == "proved"
    return result.certificate


def test_a_certificate_with_message_passing_is_accepted(certified: dict) -> None:
    checked = check_certificate(certified)
    assert checked.accepted, checked.reason
    assert "every graph" in checked.graph
    assert certified["graph"]["kappa"] < 1
    assert not any("Message passing on the real graph" in line for line in certified["not_covered"])


def test_false_statements_about_message_passing_are_rejected(certified: dict) -> None:
    graph = certified["graph"]
    forged = {
        "kappa lowered": {**graph, "kappa": np.nextafter(graph["kappa"], 0.0)},
        "a branch left out": {**graph, "layers": [layer[:1] for layer in graph["layers"]]},
        "another sentence": {**graph, "sentence": graph["sentence"] + " And more."},
        "another gauge": {**graph, "gauge": certified["classes"][0]["problem"]["upper"]},
    }
    for name, content in forged.items():
        assert not check_certificate(sealed({**certified, "graph": content})).accepted, name
    without = {key: value for key, value in certified.items() if key != "graph"}
    assert not check_certificate(sealed(without)).accepted  # the list of what is not covered
