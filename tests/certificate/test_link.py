"""The link from a certificate to the model and the graph it speaks of."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from graphkeel.certificate import ClassProof, build_certificate, check_certificate, mlp, sealed
from graphkeel.certificate.agreement import Differs
from graphkeel.certificate.encoding import encode_array
from graphkeel.certificate.link import link
from graphkeel.certificate.sources import anchored_controller, collapsed, collapsed_loop
from graphkeel.core.errors import CertificateError, KeelError
from graphkeel.graph.task import graph_sha256
from graphkeel.models.head import extract_head
from graphkeel.models.zoo import SGC
from graphkeel.verify import Network, Problem
from hand_networks import anchored_lyapunov


@pytest.fixture(scope="module")
def linked() -> tuple[dict[str, Any], torch.nn.Module, Any]:
    """A model, its graph, and a certificate of its first class, in which nothing was asked."""
    torch.manual_seed(0)
    model = SGC(3, 2).eval()
    edges = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
    data = SimpleNamespace(x=torch.rand(3, 3), edge_index=edges)
    (weight, bias), *_ = extract_head(model, 3).layers
    head = mlp([(weight.detach().double().numpy(), bias.detach().double().numpy())])
    Y, both = np.array([1.0, 0.0]), np.concatenate([np.eye(2), -np.eye(2)])
    W, b = head[0][0]
    h = np.linalg.pinv(W) @ (Y - b)
    controller = anchored_controller(both, np.zeros(4), np.linalg.pinv(W) @ (0.25 * both.T), h, Y)
    lyapunov = anchored_lyapunov(both, np.ones(4), Y)
    networks = [
        Network.of(*layers) for layers in (collapsed_loop(controller, head), collapsed(lyapunov))
    ]
    problem = Problem(*networks, Y - 9, Y + 9, Y, hole_radius=0.1, rho=0.9, positivity=0.1)
    proof = ClassProof(0, "anchored", controller, lyapunov, h, problem, {}, 1e-6)
    seal = graph_sha256(data.x, data.edge_index)
    return build_certificate(head, [proof], data_sha256=seal), model, data


def test_the_right_pair(linked: tuple[Any, Any, Any]) -> None:
    content, model, data = linked
    result = check_certificate(content, model=model, data=data)
    assert result.accepted and result.model_checked and result.data_checked, result.reason
    assert check_certificate(content, model=model).data_checked is False
    with pytest.raises(CertificateError, match="together with its model"):
        check_certificate(content, data=data)


def test_another_model(linked: tuple[Any, Any, Any]) -> None:
    content, _, data = linked
    torch.manual_seed(1)
    result = check_certificate(content, model=SGC(3, 2).eval(), data=data)
    assert not result.accepted and "another model" in result.reason


def test_a_factor_behind_the_models_weights_is_noticed(linked: tuple[Any, Any, Any]) -> None:
    """The first factor is the model's own; a second one makes another head of it."""
    content, model, data = linked
    more = {"weight": encode_array(2 * np.eye(2)), "bias": None}
    forged = {**content, "head": [[*content["head"][0], more]]}
    bare = {**content, "head": [[{"weight": None, "bias": encode_array([0.0, 0.0])}]]}
    for other in (forged, bare):
        with pytest.raises(Differs, match="no plain chain"):
            link(other, model, data)


@pytest.mark.parametrize("change", ["edges", "features", "hash", "no hash", "number"])
def test_another_graph(linked: tuple[Any, Any, Any], change: str) -> None:
    content, model, data = linked
    x, edges = data.x, data.edge_index
    if change == "edges":
        edges = edges[:, :2]
    elif change == "features":
        x = torch.nextafter(x, torch.tensor(9.0))
    else:
        content = sealed(
            {**content, "data": {"hash": "0" * 64, "no hash": None, "number": 7}[change]}
        )
    result = check_certificate(content, model=model, data=SimpleNamespace(x=x, edge_index=edges))
    assert not result.accepted and "graph" in result.reason


def test_logits_outside_of_the_domain(linked: tuple[Any, Any, Any]) -> None:
    content, model, data = linked
    for x in (1e6 * data.x, torch.full_like(data.x, torch.nan)):
        far = SimpleNamespace(x=x, edge_index=data.edge_index)
        stated = {**content, "data": graph_sha256(far.x, far.edge_index)}
        # logits that are no numbers may be refused before
        with pytest.raises((Differs, KeelError), match=r"outside the domain|finite"):
            link(stated, model, far)
