"""The head taken out of a model is the model, on a constant field."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn
from torch_geometric.nn import APPNP, GATConv, GCNConv, Linear, SAGEConv, SGConv, SSGConv

from graphkeel.core.errors import ModelError
from graphkeel.models.head import extract_head

D, N = 7, 4


class Stack(nn.Module):
    """Layers with an activation between them; convolutions get the edges."""

    def __init__(
        self, *layers: nn.Module, between: nn.Module | None = None, last: nn.Module | None = None
    ) -> None:
        super().__init__()
        self.layers = nn.ModuleList(layers)
        self.between, self.last = between or nn.ReLU(), last or nn.Identity()

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        for i, layer in enumerate(self.layers):
            x = layer(x) if isinstance(layer, nn.Linear | nn.BatchNorm1d) else layer(x, edge_index)
            if i + 1 < len(self.layers):
                x = self.between(x)
        return self.last(x)


def trained_norm(width: int) -> nn.BatchNorm1d:
    norm = nn.BatchNorm1d(width)
    norm.running_mean, norm.running_var = torch.randn(width), torch.rand(width) + 0.5
    return norm


MODELS = {
    "sgc": (lambda: Stack(SGConv(D, N, K=3)), ()),
    "gcn2": (lambda: Stack(GCNConv(D, 16), GCNConv(16, N)), (16,)),
    "gcn3": (lambda: Stack(GCNConv(D, 9), GCNConv(9, 8), GCNConv(8, N)), (9, 8)),
    "sage": (lambda: Stack(SAGEConv(D, 8), SAGEConv(8, N)), (8,)),
    "gat-heads": (lambda: Stack(GATConv(D, 4, heads=3), GATConv(12, N)), (12,)),
    "leaky": (lambda: Stack(GCNConv(D, 8), GCNConv(8, N), between=nn.LeakyReLU(0.2)), (16,)),
    "linear-between": (lambda: Stack(GCNConv(D, 8), GCNConv(8, N), between=nn.Dropout(0.5)), ()),
    "mlp-norm": (
        lambda: Stack(nn.Linear(D, 8), trained_norm(8), nn.Linear(8, N), between=nn.Identity()),
        (),
    ),
    "log-softmax": (lambda: Stack(GCNConv(D, 8), GCNConv(8, N), last=nn.LogSoftmax(dim=-1)), (8,)),
}


@pytest.mark.parametrize("name", MODELS)
def test_extracted_head_reproduces_the_model(name: str) -> None:
    torch.manual_seed(3)
    make, hidden = MODELS[name]
    model = make().train()
    head = extract_head(model, D)
    assert head.unsupported is None
    assert head.hidden == hidden
    x = torch.randn(50, D)
    ours = head(x)
    if name == "log-softmax":
        assert head.output == "log_softmax"
        ours = ours.log_softmax(-1)
    torch.testing.assert_close(ours.float(), head.response(x), rtol=1e-4, atol=1e-5)
    assert model.training, "extraction must not change the model's mode"


def test_single_linear_map_is_copied_bit_for_bit() -> None:
    model = Stack(SGConv(D, N, K=3))
    (weight, bias) = extract_head(model, D).layers[0]
    assert torch.equal(weight.float(), model.layers[0].lin.weight)
    assert torch.equal(bias.float(), model.layers[0].lin.bias)


def test_appnp_is_its_multilayer_perceptron() -> None:
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a, self.b, self.spread = Linear(D, 8), Linear(8, N), APPNP(K=10, alpha=0.1)

        def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
            return self.spread(self.b(self.a(x).relu()), edge_index)

    net = Net()
    head = extract_head(net, D)
    assert head.hidden == (8,)
    x = torch.randn(20, D)
    torch.testing.assert_close(head(x).float(), head.response(x), rtol=1e-4, atol=1e-5)


def test_other_activations_are_named_and_still_answer() -> None:
    model = Stack(GATConv(D, 6), GATConv(6, N), between=nn.ELU())
    head = extract_head(model, D)
    assert head.layers == ()
    assert "unsupported activation" in (head.unsupported or "")
    x = torch.randn(3, D)
    torch.testing.assert_close(head(x).float(), head.response(x))


def test_a_skip_connection_is_not_mistaken_for_a_chain() -> None:
    class Skip(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a, self.b = nn.Linear(D, N), nn.Linear(D, N)

        def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
            return self.a(x) + self.b(x)

    assert extract_head(Skip(), D).unsupported is not None


CACHED = {
    "_cached_x": lambda: SGConv(D, N, K=2, cached=True),
    "_cached_h": lambda: SSGConv(D, N, alpha=0.1, K=2, cached=True),
    "_cached_edge_index": lambda: GCNConv(D, N, cached=True),
}


@pytest.mark.parametrize("slot", CACHED)
def test_a_filled_cache_neither_misleads_nor_gets_lost(slot: str) -> None:
    torch.manual_seed(0)
    model = Stack(CACHED[slot]()).eval()
    cold = extract_head(model, D)
    ring = torch.tensor([[0, 1, 2], [1, 2, 0]])
    model(torch.randn(3, D), ring)
    kept = getattr(model.layers[0], slot)
    assert kept is not None
    head = extract_head(model, D)
    x = torch.randn(5, D)
    assert torch.equal(head(x), cold(x))
    torch.testing.assert_close(head(x).float(), head.response(x), rtol=1e-4, atol=1e-5)
    assert getattr(model.layers[0], slot) is kept
    assert model.layers[0].cached is True


def test_a_model_with_a_memory_has_no_head() -> None:
    class Counting(Stack):
        def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
            self.count += 1
            return super().forward(x, edge_index) * self.count

    model = Counting(GCNConv(D, N))
    model.register_buffer("count", torch.zeros(1), persistent=False)
    with pytest.raises(ModelError, match="buffers have changed during its own forward"):
        extract_head(model, D)


def test_wrong_dimension_is_a_model_error() -> None:
    with pytest.raises(ModelError, match="constant feature field"):
        extract_head(Stack(SGConv(D, N)), D + 1)
