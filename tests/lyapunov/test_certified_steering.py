"""Claims of a certificate about the features that ship: shown again with model and graph, and not
to be forged."""

from __future__ import annotations

import copy
from contextlib import suppress
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from small_models import MODELS, NODES, D, N, Two
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.nn import GATConv, SAGEConv, SGConv

from graphkeel.certificate import LinkedResult, check_certificate, sealed, write_certificate
from graphkeel.certificate.agreement import model_layers
from graphkeel.certificate.steering import (
    STEERING,
    ShippedFeatures,
    _stating,
    linear_contraction,
    with_steering,
    without_features,
)
from graphkeel.checker.graph import not_covered
from graphkeel.cli.check import report
from graphkeel.core.errors import CertificateError, DataError
from graphkeel.core.tensors import save_tensors
from graphkeel.graph.task import graph_sha256
from graphkeel.lyapunov import CertifyResult, LyapunovConfig, certify
from graphkeel.lyapunov.on_graph import released, steered
from graphkeel.models.frozen import FrozenModel

LINEAR = {"ridge": 0.01, "hops": 2, "length": 2.25, "unit": 0.5}


@cache
def unsteered(name: str, *, directed: bool = False) -> tuple[nn.Module, Data, CertifyResult]:
    torch.manual_seed(1)
    model = (MODELS | {"gat": lambda: Two(GATConv)})[name]().eval()
    ends = torch.randint(NODES, (2, 70))
    edges = ends if directed else torch.cat([ends, ends.flip(0)], dim=1)
    x = torch.randn(NODES, D)
    x[3] = 0.0
    data = Data(x=x, edge_index=edges)
    config = LyapunovConfig(samples=240, seconds=60.0)
    result = certify(FrozenModel(model), data.x, data.edge_index, config, constant=True)
    return model, data, result


def moved(model: nn.Module, data: Data) -> tuple[Tensor, Tensor, list[float]]:
    """Features that lead most nodes to classes that other features have, and a loss that falls."""
    torch.manual_seed(4)
    wanted = model(3 * torch.randn(NODES, D), data.edge_index).argmax(dim=1)
    x = data.x.clone().requires_grad_(True)
    optimizer = torch.optim.Adam([x], lr=0.1)
    fall = []
    for _ in range(150):
        loss = torch.nn.functional.cross_entropy(model(x, data.edge_index), wanted)
        fall.append(loss.item())
        (x.grad,) = torch.autograd.grad(loss, x)
        x.grad[:3] = 0.0  # these keep their features
        optimizer.step()
    wanted[0] = (model(x, data.edge_index)[0].argmax() + 1) % N  # one is missed
    return x.detach(), wanted, [max(fall[i:]) for i in range(len(fall))]


@cache
def shipped(name: str, *, directed: bool = False) -> tuple[nn.Module, Data, CertifyResult]:
    model, data, result = unsteered(name, directed=directed)
    features, wanted, fall = moved(model, data)
    options: dict[str, Any] = {"fall": fall, "passes": 61, "linear": LINEAR}
    graph = (data.x, data.edge_index)
    return model, data, steered(result, FrozenModel(model), *graph, features, wanted, **options)


def checked(model: nn.Module, data: Data, content: Any, tensors: Any) -> LinkedResult:
    return check_certificate(content, model=model, data=data, steering=tensors)


@pytest.mark.parametrize("name", MODELS)
def test_the_check_agrees_and_says_so(name: str, tmp_path: Path) -> None:
    model, data, result = shipped(name)
    assert result.certificate is not None and result.steering is not None
    facts = result.certificate["steering"]["features"]
    linear = result.certificate["steering"]["contraction"]
    assert (linear is not None) == (name == "sgc")
    assert NODES // 2 < facts["as_decided"] <= facts["nodes"] == NODES
    assert facts["changed"] == NODES - 3
    save_tensors(tmp_path / STEERING, result.steering)
    write_certificate(result.certificate, tmp_path / "certificate.json")
    found = check_certificate(tmp_path / "certificate.json", model=model, data=data)
    assert found.accepted, found.reason
    said = " ".join(found.on_graph)
    assert f"{facts['as_decided']} of {NODES} nodes certainly have the decided class" in said
    assert f"gives {facts['as_decided']} of these {facts['as_decided']} nodes" in said
    assert any(text.startswith("Steering: ") for text in result.sentences())
    assert any(text.startswith("Steering: ") for text in report(found))
    alone = check_certificate(tmp_path / "certificate.json")
    assert alone.accepted and "checked only with the model and the graph" in alone.steering
    assert not alone.on_graph
    with_model = check_certificate(tmp_path / "certificate.json", model=model)
    assert with_model.accepted and not with_model.on_graph
    (tmp_path / STEERING).unlink()
    with pytest.raises(DataError, match="Keep both files"):
        check_certificate(tmp_path / "certificate.json", model=model, data=data)


@pytest.mark.parametrize("name", MODELS)
def test_the_facts_are_those_of_exact_arithmetic(name: str) -> None:
    _, data, result = shipped(name)
    assert result.certificate is not None and result.steering is not None
    facts = result.certificate["steering"]["features"]
    features, wanted = result.steering["features"], result.steering["wanted"]
    answers = result.passing(features, data.edge_index)
    assert facts["as_decided"] == int((answers.argmax(dim=1) == wanted).sum())
    lengths = [squared(row) for row in data.x]
    typical = sorted(value for value in lengths if value)[(NODES - 2) // 2]
    moves = [squared(row) for row in features.double() - data.x.double()]
    changes = sorted(m / (s or typical) for m, s in zip(moves, lengths, strict=True))
    stated = Fraction(facts["median_change"])
    assert changes[NODES // 2 - 1] <= stated**2 <= changes[NODES // 2] * Fraction(1001, 1000)


def squared(row: Tensor) -> Fraction:
    return sum((Fraction(value) ** 2 for value in row.tolist()), Fraction(0))


@pytest.mark.parametrize("scale", [1e-150, 1e-100, 1e-30, 1.0, 1e30, 1e100, 1e150])
def test_the_median_change_is_bounded_from_above_at_any_scale(scale: float) -> None:
    """Compared with exact rationals; what floats cannot bound is refused."""
    rng = np.random.default_rng(7)
    edges = np.zeros((2, 0), dtype=np.int64)
    bounded = 0
    for _ in range(20):
        size = int(rng.integers(1, 8))
        x = scale * rng.normal(size=(size, 3)) * (rng.random((size, 1)) < 0.8)
        features = x + scale * rng.normal(size=x.shape) * 10.0 ** rng.integers(-12, 3)
        given = ShippedFeatures(x, edges, features, np.zeros(size, dtype=np.int64))
        with suppress(CertificateError):
            found = Fraction(given._median_change(given._changed()))
            exact = median_square(x, features)
            assert exact <= found**2
            sharp = scale != 1e-150 and size % 2  # squares underflow; of two medians the larger one
            assert not sharp or found**2 <= exact * Fraction(1001, 1000)
            bounded += 1
    assert bounded == 20 or scale in (1e-150, 1e150)


def median_square(x: np.ndarray, features: np.ndarray) -> Fraction:
    """The square of the lower median of the change, in exact arithmetic."""
    lengths = [squared(torch.from_numpy(row)) for row in x]
    known = sorted(value for value in lengths if value)
    typical = known[(len(known) - 1) // 2] if known else Fraction(1)
    moves = [
        sum(((Fraction(a) - Fraction(b)) ** 2 for a, b in zip(p, q, strict=True)), Fraction(0))
        for p, q in zip(features.tolist(), x.tolist(), strict=True)
    ]
    changes = sorted(m / (s or typical) for m, s in zip(moves, lengths, strict=True))
    return changes[(len(changes) - 1) // 2]


def test_features_as_given_have_not_changed() -> None:
    model, data, result = unsteered("gcn")
    wanted = model(data.x, data.edge_index).argmax(dim=1)
    same = steered(result, FrozenModel(model), data.x, data.edge_index, data.x, wanted)
    assert same.certificate is not None
    facts = same.certificate["steering"]["features"]
    assert (facts["changed"], facts["median_change"], facts["as_decided"]) == (0, 0.0, NODES)
    assert checked(model, data, same.certificate, same.steering).accepted


# ---- forgeries: sealed anew, and the sentence derived anew where that can be done


def resealed(content: dict[str, Any], features: Any = None, linear: Any = None) -> dict[str, Any]:
    """The certificate with other facts; whoever forges knows how to write one."""
    steering = content["steering"]
    stated = {
        "contraction": steering["contraction"] if linear is None else linear,
        "features": steering["features"] if features is None else features,
    }
    return _stating(content, stated)


LIES: dict[str, tuple[str, dict[str, Any]]] = {
    "a node more": ("nodes is", {"nodes": NODES + 1}),
    "a node less": ("nodes is", {"nodes": NODES - 1, "as_decided": 1, "changed": 1}),
    "one more changed": ("changed is", {"changed": NODES - 2}),
    "one less changed": ("changed is", {"changed": NODES - 4}),
    "a smaller change": ("median change", {"median_change": 1e-3}),
    "no change": ("median change", {"median_change": 0.0}),
    "another SHA-256": ("not those that the certificate names", {"sha256": "0" * 64}),
}


@pytest.mark.parametrize("lie", LIES)
@pytest.mark.parametrize("name", MODELS)
def test_a_lie_about_the_features_is_refused(name: str, lie: str) -> None:
    model, data, result = shipped(name)
    assert result.certificate is not None
    why, changes = LIES[lie]
    forged = resealed(result.certificate, result.certificate["steering"]["features"] | changes)
    assert check_certificate(forged).accepted  # nothing is known of the graph
    found = checked(model, data, forged, result.steering)
    assert not found.accepted and why in found.reason


@pytest.mark.parametrize("name", MODELS)
def test_a_count_raised_by_one_is_refused_and_a_lower_one_holds(name: str) -> None:
    model, data, result = shipped(name)
    assert result.certificate is not None
    facts = result.certificate["steering"]["features"]
    for by in (1, -1):
        forged = resealed(result.certificate, facts | {"as_decided": facts["as_decided"] + by})
        assert checked(model, data, forged, result.steering).accepted == (by < 0)
    larger = resealed(result.certificate, facts | {"median_change": 2 * facts["median_change"]})
    assert checked(model, data, larger, result.steering).accepted


@pytest.mark.parametrize("name", MODELS)
def test_other_features_and_classes_are_refused(name: str) -> None:
    model, data, result = shipped(name)
    assert result.certificate is not None and result.steering is not None
    features, wanted = result.steering["features"], result.steering["wanted"]
    other = features.clone()
    other[5, 0] = torch.nextafter(other[5, 0], torch.tensor(9.0))
    for tensors in (
        {"features": other, "wanted": wanted},
        {"features": features.flip(0), "wanted": wanted},
        {"features": data.x, "wanted": wanted},
        {"features": features, "wanted": wanted.flip(0)},
        {"features": features.double(), "wanted": wanted},
        {"features": features, "wanted": wanted.int()},
        {"features": features[1:], "wanted": wanted[1:]},
        {"features": features, "wanted": wanted - 1},
        {"features": features, "wanted": wanted, "more": wanted},
        {"features": features},
        {},
        None,
    ):
        found = checked(model, data, result.certificate, tensors)
        assert not found.accepted and not found.on_graph and not found.steering


@pytest.mark.parametrize("name", MODELS)
def test_classes_swapped_with_their_digest_are_counted_again(name: str) -> None:
    """A forger names the digest of other arrays, and leaves the count as it was."""
    model, data, result = shipped(name)
    assert result.certificate is not None and result.steering is not None
    arrays = {key: value.numpy() for key, value in result.steering.items()}
    x, edges = data.x.numpy(), data.edge_index.numpy()
    for changes in (
        {"wanted": (arrays["wanted"] + 1) % N},
        {"features": x.copy()},
        {"features": np.full_like(x, np.nan)},
        {"features": np.full_like(x, np.inf)},
        {"features": np.full_like(x, np.finfo(np.float32).max)},
        {"wanted": arrays["wanted"] + N},
    ):
        tensors = arrays | changes
        digest = ShippedFeatures(x, edges, **tensors).sha256()
        facts = result.certificate["steering"]["features"] | {"sha256": digest}
        found = checked(model, data, resealed(result.certificate, facts), tensors)
        assert not found.accepted, changes


@pytest.mark.parametrize("changes", [{"fall": [1.0, 2.0]}, {"nodes": 0}, {"passes": -1}])
def test_what_needs_no_graph_is_refused_without_one(changes: dict[str, Any]) -> None:
    _, _, result = shipped("gcn")
    assert result.certificate is not None
    content = copy.deepcopy(result.certificate)
    content["steering"]["features"] |= changes
    with suppress(CertificateError):  # unreadable
        assert not check_certificate(sealed(content)).accepted
    with pytest.raises(CertificateError):
        resealed(result.certificate, content["steering"]["features"])


# ---- the contraction, tied to the model and the graph


def test_a_contraction_for_another_number_of_hops_is_refused() -> None:
    model, data, result = shipped("sgc")
    assert result.certificate is not None
    linear = result.certificate["steering"]["contraction"]
    forged = resealed(result.certificate, linear=linear | {"hops": 3})
    assert check_certificate(forged).accepted  # true of another model with these weights
    for graph in (None, data):
        found = check_certificate(forged, model=model, data=graph, steering=result.steering)
        assert not found.accepted and "hops" in found.reason


def test_a_contraction_for_a_model_that_is_not_linear_is_refused() -> None:
    """The head of SAGE with means is no single layer; that of one layer with means is."""
    torch.manual_seed(2)
    model = SAGEConv(D, N, root_weight=False).eval()
    _, data, _ = unsteered("sgc")
    config = LyapunovConfig(samples=240, seconds=60.0)
    result = certify(FrozenModel(model), data.x, data.edge_index, config, constant=True)
    features, wanted, _ = moved(model, data)
    options: dict[str, Any] = {"linear": LINEAR | {"hops": 1}}
    graph = (data.x, data.edge_index)
    found = steered(result, FrozenModel(model), *graph, features, wanted, **options)
    assert found.certificate is not None
    assert found.certificate["steering"]["contraction"] is None
    weight = result.head.layers[0][0].detach().numpy()
    forged = linear_contraction(weight, **options["linear"])
    with pytest.raises(CertificateError):
        resealed(found.certificate, linear=forged)
    # Without a part about message passing the file alone is true; the model is not that one.
    lie = resealed(without_graph(found.certificate), linear=forged)
    assert check_certificate(lie).accepted
    answer = check_certificate(lie, model=model)
    assert not answer.accepted and "symmetric" in answer.reason


def without_graph(content: dict[str, Any]) -> dict[str, Any]:
    graph = {"contraction": "unknown", "reason": "not looked at"}
    return sealed({**content, "graph": graph, "not_covered": not_covered(graph)})


def test_features_are_certified_where_the_controllers_do_not_contract() -> None:
    """Steering does not need the loop with message passing."""
    model, data, result = shipped("sgc")
    assert result.certificate is not None
    content = resealed(without_graph(result.certificate))
    found = checked(model, data, content, result.steering)
    assert found.accepted, found.reason
    assert "certainly have the decided class" in found.on_graph[0]
    facts = content["steering"]["features"]
    lie = resealed(content, facts | {"as_decided": facts["as_decided"] + 1})
    assert not checked(model, data, lie, result.steering).accepted


def test_on_a_directed_graph_features_are_certified_and_no_contraction() -> None:
    model, data, result = shipped("sgc", directed=True)
    assert result.certificate is not None
    assert result.certificate["steering"]["contraction"] is None
    found = checked(model, data, result.certificate, result.steering)
    assert found.accepted, found.reason
    linear = shipped("sgc")[2].certificate["steering"]["contraction"]  # type: ignore[index]
    forged = resealed(result.certificate, linear=linear)
    refused = checked(model, data, forged, result.steering)
    assert not refused.accepted and "directed" in refused.reason


def test_a_model_that_is_not_recognised_gets_no_such_part() -> None:
    model, data, result = unsteered("gat")
    features, wanted, fall = moved(model, data)
    graph = (data.x, data.edge_index)
    found = steered(result, FrozenModel(model), *graph, features, wanted, fall=fall, passes=9)
    assert found is result and found.steering is None


def test_another_model_and_another_graph_are_refused() -> None:
    _, data, result = shipped("sgc")
    torch.manual_seed(9)
    other = SGConv(D, N, K=2).eval()
    assert not checked(other, data, result.certificate, result.steering).accepted
    model, _, _ = shipped("sgc")
    first = int((data.edge_index[0] != data.edge_index[1]).nonzero()[0])
    left = torch.arange(data.edge_index.shape[1]) != first
    fewer = Data(x=data.x, edge_index=data.edge_index[:, left])
    assert not checked(model, fewer, result.certificate, result.steering).accepted
    assert result.certificate is not None
    own = sealed({**result.certificate, "data": graph_sha256(fewer.x, fewer.edge_index)})
    assert "directed" in checked(model, fewer, own, result.steering).reason


class Lying(nn.Module):
    """Another model for features that are not the given ones: only its own answers show it."""

    def __init__(self, model: nn.Module, x: Tensor) -> None:
        super().__init__()
        self.model = model
        self.register_buffer("known", x)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        answers = self.model(x, edge_index)
        known: Any = self.known
        same = x.shape == known.shape and not torch.equal(x.to(known), known)
        return answers.flip(1) if same else answers


def test_a_model_that_answers_otherwise_to_the_shipped_features_is_refused() -> None:
    model, data, result = shipped("gcn")
    found = checked(Lying(model, data.x).eval(), data, result.certificate, result.steering)
    assert not found.accepted and "the shipped features" in found.reason


def test_when_labels_change_the_features_are_left_out() -> None:
    model, data, result = shipped("sgc")
    assert result.certificate is not None
    kept = released(result.certificate)
    assert kept["steering"]["features"] is None and kept["steering"]["contraction"] is not None
    assert check_certificate(kept, model=model, data=data).accepted
    _, _, other = shipped("gcn")
    assert other.certificate is not None
    assert "steering" not in released(other.certificate)
    assert check_certificate(released(other.certificate)).accepted
    _, _, plain = unsteered("gcn")
    assert plain.certificate is not None
    assert without_features(plain.certificate) == plain.certificate


def test_what_floats_cannot_bound_is_not_certified() -> None:
    _, data, result = unsteered("gcn")
    assert result.certificate is not None
    x, edges = data.x.numpy(), data.edge_index.numpy()
    layers, operator = model_layers(result.passing), result.passing.operator
    wanted = np.zeros(NODES, dtype=np.int64)
    for value in (np.nan, np.inf, 1e300):
        features = np.full(x.shape, value)
        with pytest.raises(CertificateError):
            given = ShippedFeatures(x, edges, features, wanted)
            with_steering(result.certificate, layers, operator, given)
    with pytest.raises(CertificateError):
        given = ShippedFeatures(x, edges, x, wanted)
        with_steering(result.certificate, layers, operator, given, fall=[1.0, 2.0])
    huge = np.full(x.shape, 1e160)
    other = huge.copy()
    other[:, 0] = 1.0
    with pytest.raises(CertificateError):  # not a change of zero
        ShippedFeatures(other, edges, huge, wanted)._median_change(np.ones(NODES, dtype=bool))
    with pytest.raises(CertificateError):
        ShippedFeatures(huge, edges, other, wanted)._median_change(np.ones(NODES, dtype=bool))
    for broken in (wanted[1:], wanted.astype(np.int32)):
        with pytest.raises(CertificateError):
            ShippedFeatures(x, edges, x, broken)
