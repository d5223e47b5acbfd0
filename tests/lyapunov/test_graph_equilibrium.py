"""The equilibrium on a real graph: enclosed, counted, checked again, and not to be forged."""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from small_models import MODELS, NODES, D, N, Two, exact_answer, fractions
from torch import nn
from torch_geometric.data import Data
from torch_geometric.nn import ChebConv, SAGEConv

from graphkeel.certificate import check_certificate, write_certificate
from graphkeel.certificate.agreement import model_layers
from graphkeel.certificate.bounds import Bounded
from graphkeel.certificate.encoding import decode_array
from graphkeel.certificate.equilibrium import STATES
from graphkeel.certificate.graph_check import Enclosure, GraphStates
from graphkeel.certificate.layers import Operator, is_undirected
from graphkeel.core.errors import CertificateError
from graphkeel.core.tensors import save_tensors
from graphkeel.lyapunov import CertifyResult, LyapunovConfig, certify
from graphkeel.models.aggregation import operator_of, recognise
from graphkeel.models.frozen import FrozenModel

MODELS = MODELS | {"cheb": lambda: Two(ChebConv, K=2)}


@cache
def case(name: str) -> tuple[nn.Module, Data, CertifyResult]:
    torch.manual_seed(1)
    model = MODELS[name]().eval()
    ends = torch.randint(NODES, (2, 70))
    data = Data(x=torch.randn(NODES, D), edge_index=torch.cat([ends, ends.flip(0)], dim=1))
    nodes = torch.arange(0, NODES, 4)
    config = LyapunovConfig(samples=240, seconds=60.0)
    result = certify(
        FrozenModel(model),
        data.x,
        data.edge_index,
        config,
        constant=True,
        labelled=(nodes, nodes % N),
    )
    return model, data, result


@pytest.fixture(scope="module", params=MODELS)
def certified(request, tmp_path_factory) -> tuple[nn.Module, Data, CertifyResult, Path]:
    model, data, result = case(request.param)
    folder = tmp_path_factory.mktemp(request.param)
    save_tensors(folder / STATES, result.states)
    write_certificate(result.certificate, folder / "certificate.json")
    return model, data, result, folder / "certificate.json"


def test_the_check_agrees_and_says_so(certified) -> None:
    model, data, result, path = certified
    facts = result.graph["equilibrium"]
    assert facts["nodes"] == NODES and facts["certain"] + len(facts["uncertain"]) == NODES
    assert facts["certain"] > NODES // 2 and facts["residual"] < 1e-9
    checked = check_certificate(path, model=model, data=data)
    assert checked.accepted, checked.reason
    assert checked.model_checked and checked.data_checked


def test_the_loop_from_elsewhere_ends_in_the_enclosure(certified) -> None:
    model, data, result, _ = certified
    found = recognise(model, D)
    controls = {outcome.label: outcome.control for outcome in result.outcomes}
    nodes, labels = result.states["nodes"], result.states["labels"]
    y = 5 * torch.randn(NODES, N, dtype=torch.float64)
    x = data.x.double().clone()
    for _ in range(600):
        for label, control in controls.items():
            x[nodes[labels == label]] = control(y[nodes[labels == label]])
        y = found(x, data.edge_index)
    gap = float((y - result.states["states"]).abs().max())
    assert gap <= result.graph["equilibrium"]["radius"]


@cache
def one_way_case() -> tuple[nn.Module, Data, CertifyResult]:
    """Means over one-way, double and looped edges; isolated nodes; controllers everywhere."""
    torch.manual_seed(3)
    model = Two(SAGEConv).eval()
    ends = torch.randint(NODES - 4, (2, 60))
    loops = torch.arange(0, NODES, 7).repeat(2, 1)
    edges = torch.cat([ends, ends[:, :9], loops], dim=1)
    data = Data(x=torch.randn(NODES, D), edge_index=edges)
    result = certify(
        FrozenModel(model),
        data.x,
        edges,
        LyapunovConfig(samples=240, seconds=60.0),
        constant=True,
        labelled=(torch.arange(NODES), torch.arange(NODES) % N),
    )
    return model, data, result


def test_controllers_everywhere_end_in_the_enclosure_and_at_the_stated_distance() -> None:
    model, data, result = one_way_case()
    facts = result.equilibrium
    assert facts["labelled"] == NODES
    found = recognise(model, D)
    labels = result.states["labels"]
    y = 5 * torch.randn(NODES, N, dtype=torch.float64)
    for _ in range(600):
        answers = torch.stack([one.control(y) for one in result.outcomes])
        x = answers[labels, torch.arange(NODES)]
        y = found(x, data.edge_index)
    assert float((y - result.states["states"]).abs().max()) <= facts["radius"]
    written = result.anchors().double()[labels]
    apart = (x - written).abs().amax(dim=1)
    assert float(apart.max()) <= facts["written"]["max"] <= float(apart.max()) * 1.001 + 1e-9
    assert float(apart.median()) <= facts["written"]["median"]
    with_anchors = found(written, data.edge_index).argmax(dim=1)
    assert facts["written"]["kept"] <= int((with_anchors == y.argmax(dim=1)).sum())
    checked = check_certificate(result.certificate, model=model, data=data, states=result.states)
    assert checked.accepted, checked.reason


def test_v_falls_by_the_proved_factor_in_every_step() -> None:
    _, _, result = one_way_case()
    steps = result.certificate["provenance"]["graph_steps"]
    falls = steps["residuals"]
    kappa = result.graph["kappa"]
    assert len(falls) == len(steps["certain"]) > 2
    for before, after in pairwise(falls):
        assert after <= kappa * before * (1 + 1e-9) + 1e-12
    assert steps["certain"][-1] >= result.equilibrium["certain"]


def enclosure(**changes: Any) -> Enclosure:
    model, data, result = one_way_case()
    parts = {key: value.numpy().copy() for key, value in result.states.items()}
    given = {"x": data.x.numpy().copy(), "edges": data.edge_index.numpy(), **parts}
    graph = GraphStates(**{**given, **changes})
    return Enclosure(result.certificate, model_layers(recognise(model, D)), graph)


@pytest.mark.parametrize(
    "changes",
    [
        {"edges": np.array([[0], [NODES]])},
        {"edges": np.array([[-1], [0]])},
        {"nodes": np.zeros(NODES, dtype=np.int64)},
        {"labels": np.full(NODES, N)},
        {"nodes": np.arange(1, NODES + 1)},
        {"states": np.full((NODES, N), np.inf)},
        {"x": np.zeros((0, D)), "states": np.zeros((0, N))},
    ],
)
def test_states_that_do_not_fit_the_graph_are_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(CertificateError):
        enclosure(**changes).residual_bound()


def test_features_beyond_floats_are_refused() -> None:
    model, data, result = case("sgc")
    parts = {key: value.numpy() for key, value in result.states.items()}
    for bad in (np.nan, np.inf, 3e38):
        x = data.x.numpy().astype(np.float64)
        x[1] = bad * 1e300 if bad == 3e38 else bad
        graph = GraphStates(x, data.edge_index.numpy(), **parts)
        layers = model_layers(recognise(model, D))
        with pytest.raises(CertificateError), np.errstate(all="ignore"):
            Enclosure(result.certificate, layers, graph).residual_bound()


def test_other_labels_than_the_graphs_are_refused(certified) -> None:
    model, data, result, path = certified
    labelled = data.clone()
    labelled.y = torch.full((NODES,), -1)
    labelled.y[result.states["nodes"]] = result.states["labels"]
    assert check_certificate(path, model=model, data=labelled).accepted
    labelled.y[result.states["nodes"][0]] += 1
    assert "labels" in check_certificate(path, model=model, data=labelled).reason


def test_counts_without_their_states_are_not_accepted_for_a_graph(certified) -> None:
    model, data, result, _ = certified
    assert not check_certificate(result.certificate, model=model, data=data).accepted
    assert check_certificate(result.certificate, model=model).accepted


def exact_residual(certificate: dict, layers: list, graph: GraphStates) -> float:
    """The mean aggregation's residual in fractions, slowly."""
    operator = Operator.of(certificate["graph"]["operator"], graph.edges, len(graph.x))
    value = fractions(graph.x)
    for entry in certificate["classes"]:
        for node in graph.nodes[graph.labels == entry["class"]]:
            state = fractions(graph.states[node])
            for i, layer in enumerate(entry["controller"]):
                state = np.maximum(state, Fraction(0)) if i else state
                for factor in layer:
                    if factor["weight"] is not None:
                        state = fractions(decode_array(factor["weight"])) @ state
                    if factor["bias"] is not None:
                        state = state + fractions(decode_array(factor["bias"]))
            value[node] = state
    answer = exact_answer(layers, value, operator.sources, operator.targets)
    gauge = fractions(decode_array(certificate["graph"]["gauge"]))
    return float(max(np.abs(answer - fractions(graph.states)) @ gauge))


def test_the_bound_covers_the_residual_in_exact_arithmetic() -> None:
    model, data, result = case("sage")
    layers = model_layers(recognise(model, D))
    states = {key: value.numpy() for key, value in result.states.items()}
    edges = data.edge_index.numpy()
    for shift in (0.0, 1e-13, 1e-3):
        moved = {**states, "states": states["states"] + shift}
        graph = GraphStates(data.x.numpy(), edges, **moved)
        true = exact_residual(result.certificate, layers, graph)
        bound = Enclosure(result.certificate, layers, graph).residual_bound()
        assert true <= bound <= true * (1 + 1e-5) + 1e-10


@pytest.mark.parametrize("name", ["symmetric, loops added", "symmetric, loops removed", "mean"])
def test_both_homes_of_an_operator_agree(name: str) -> None:
    generator = torch.Generator().manual_seed(2)
    edges = torch.randint(12, (2, 40), generator=generator)
    values = torch.randn(12, 2, generator=generator, dtype=torch.float64)
    matrix, s = operator_of(name, edges, 12)
    own = Operator.of(name, edges.numpy(), 12)
    applied = own.apply(Bounded(values.numpy(), np.zeros((12, 2))))
    assert (np.abs(applied.value - (matrix @ values).numpy()) <= applied.error + 1e-15).all()
    assert (own.s_low <= s.numpy()).all() and (s.numpy() <= own.s_high).all()


def test_one_way_edges_are_seen() -> None:
    both = np.array([[0, 1, 2, 1], [1, 0, 1, 2]])
    assert is_undirected(both) and not is_undirected(both[:, :3])
