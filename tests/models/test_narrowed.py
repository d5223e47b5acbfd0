"""Models on fewer features: the answers stay, and where they would not, gradients find the way."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn
from torch_geometric.nn import GCNConv

from graphkeel.models import APPNP, GAT, GCN, FrozenModel, GraphSAGE
from graphkeel.models.narrowed import narrowed_by_gradients, narrowed_by_weights

D, N = 300, 40


def graph() -> tuple[Tensor, Tensor]:
    torch.manual_seed(0)
    return torch.randn(N, D), torch.randint(N, (2, 100))


class Normalised(nn.Module):
    """Reads the length of its features, too."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = GCNConv(D, 3)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        return self.conv(x / x.norm(dim=1, keepdim=True), edge_index)


@pytest.mark.parametrize("kind", [GCN, GraphSAGE, GAT, APPNP])
def test_answers_to_moves_are_those_of_the_whole_model(kind: type[nn.Module]) -> None:
    x, edges = graph()
    frozen = FrozenModel(kind(D, 3).eval())
    logits = frozen.logits(x, edges)
    for known in (logits, None):
        found = narrowed_by_weights(frozen, x, edges, {}, known)
        assert found is not None and found.passes == (known is not None)
        assert found.start.shape[1] <= 128
        move = torch.randn(found.start.shape)
        expected = frozen.logits(x + move @ found.directions.T, edges)
        torch.testing.assert_close(found.ask(found.start + move)[0], expected, atol=1e-4, rtol=1e-4)
    torch.testing.assert_close(found.logits, logits, atol=1e-4, rtol=1e-4)


def test_weights_of_the_model_itself_stay() -> None:
    x, edges = graph()
    model = GCN(D, 3).eval()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    frozen = FrozenModel(model)
    narrowed_by_weights(frozen, x, edges, {})
    frozen(x, edges)  # refused if they had changed
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())


def test_a_model_that_reads_more_than_its_weights_is_asked_as_it_is() -> None:
    x, edges = graph()
    frozen = FrozenModel(Normalised().eval())
    for known in (frozen.logits(x, edges), None):
        assert narrowed_by_weights(frozen, x, edges, {}, known) is None
    found = narrowed_by_gradients(frozen, x, edges, {}, 64)
    assert found is not None and found.passes == 2
    move = 0.1 * torch.randn(found.start.shape)
    expected = frozen.logits(x + move @ found.directions.T, edges)
    torch.testing.assert_close(found.ask(found.start + move)[0], expected, atol=1e-5, rtol=1e-4)


def test_a_function_is_narrowed_by_its_gradients() -> None:
    x, edges = graph()
    weight = torch.randn(D, 3)
    frozen = FrozenModel(lambda x, edge_index: x @ weight)
    found = narrowed_by_gradients(frozen, x, edges, {}, 64)
    assert found is not None
    torch.testing.assert_close(
        found.directions @ (found.directions.T @ weight), weight, atol=1e-4, rtol=1e-4
    )


class Centred(nn.Module):
    """Reads all nodes at once: a part of the graph is answered otherwise."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = GraphSAGE(D, 3)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        found = self.conv(x, edge_index)
        return found - found.mean(dim=0)


def test_a_model_that_reads_all_nodes_is_not_judged_by_a_part() -> None:
    x, edges = graph()
    frozen = FrozenModel(Centred().eval())
    assert narrowed_by_weights(frozen, x, edges, {}) is None
    assert narrowed_by_weights(frozen, x, edges, {}, frozen.logits(x, edges)) is not None
