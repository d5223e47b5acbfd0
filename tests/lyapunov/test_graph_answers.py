"""The model on the very graph: a certificate is accepted only for one that answers like its layers
there, and each sentence about the graph is what a plain computation finds."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from graph_forgeries import Shown, bases
from small_models import NODES, D, N, Two
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.nn import GCNConv, SGConv

from graphkeel.certificate import LinkedResult, check_certificate
from graphkeel.certificate.equilibrium import at_most
from graphkeel.lyapunov import LyapunovConfig, certify
from graphkeel.models.aggregation import recognise
from graphkeel.models.frozen import FrozenModel


def checked(shown: Shown, model: nn.Module | None = None) -> LinkedResult:
    return check_certificate(
        shown.certificate, model=model or shown.model, data=shown.data, states=shown.states
    )


class Cousin(nn.Module):
    """A certified model with something around it that no small graph shows."""

    def __init__(self, of: nn.Module, change: Callable[..., Tensor]) -> None:
        super().__init__()
        self.of, self.change = of, change
        self.calls = 0

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        return self.change(self, x, edge_index)


def here(x: Tensor, edge_index: Tensor) -> bool:
    """On the certificate's graph, and on none by which a model is recognised."""
    return len(x) == NODES and edge_index.shape[1] > 2 * NODES


def _on_real_graphs(self: Cousin, x: Tensor, edge_index: Tensor) -> Tensor:
    answer = self.of(x, edge_index)
    return 0.01 * answer.roll(1, dims=1) if here(x, edge_index) else answer


def _at_one_node(self: Cousin, x: Tensor, edge_index: Tensor) -> Tensor:
    answer = self.of(x, edge_index).clone()
    if here(x, edge_index):
        answer[7] += 0.01
    return answer


def _capped(self: Cousin, x: Tensor, edge_index: Tensor) -> Tensor:
    """One neighbour less at the node that has the most."""
    degree = torch.bincount(edge_index[1], minlength=len(x))
    most = int((edge_index[1] == degree.argmax()).nonzero()[-1])
    kept = torch.arange(edge_index.shape[1]) != (most if here(x, edge_index) else -1)
    return self.of(x, edge_index[:, kept])


def _stored_weights(self: Cousin, x: Tensor, edge_index: Tensor) -> Tensor:
    """Weights of the edges it was trained with, used where their number fits."""
    known = edge_index.shape[1] == self.edges
    return self.of(x, edge_index, torch.full((self.edges,), 3.0) if known else None)


def _counting(self: Cousin, x: Tensor, edge_index: Tensor) -> Tensor:
    self.calls += 1
    return self.of(x, edge_index) * (1 if self.calls < 50 else 5)


def _noisy(self: Cousin, x: Tensor, edge_index: Tensor) -> Tensor:
    answer = self.of(x, edge_index)
    return answer + 0.01 * torch.randn_like(answer) if here(x, edge_index) else answer


def _rounded(self: Cousin, x: Tensor, edge_index: Tensor) -> Tensor:
    """In half precision on the way, and in the model's own at the end."""
    answer = self.of(x, edge_index)
    return answer.bfloat16().to(answer.dtype) if here(x, edge_index) else answer


CHANGES = {
    "another class on real graphs": (_on_real_graphs, "at 40 of 40 nodes"),
    "one node": (_at_one_node, "at 1 of 40 nodes"),
    "a cap on neighbours": (_capped, "not those of the layers"),
    "weights in a buffer": (_stored_weights, "not those of the layers"),
    "a counter": (_counting, "calls"),
    "noise": (_noisy, "at 40 of 40 nodes"),
    "half precision on the way": (_rounded, "the rounding of float32 explains"),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_model_that_answers_otherwise_here_is_refused(name: str) -> None:
    change, words = CHANGES[name]
    shown = bases()["sgc, labelled"]
    model = Cousin(shown.model, change)
    model.edges = shown.data.edge_index.shape[1]
    assert recognise(model, D).layers  # the small graph does not tell
    found = checked(shown, model.eval())
    assert not found.accepted and words in found.reason, found.reason
    assert not found.on_graph and not found.classes


class Clipped(nn.Module):
    def __init__(self, of: Two, top: float) -> None:
        super().__init__()
        self.first, self.second, self.top = of.first, of.second, top

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        inner = self.first(x, edge_index)
        top = self.top if here(x, edge_index) else torch.inf
        return self.second(inner.clamp(0, top), edge_index)


@pytest.mark.parametrize("name", ["gcn, labelled", "sage, everywhere"])
def test_a_clipped_activation_is_refused_where_it_clips(name: str) -> None:
    """And accepted where no feature that the certificate speaks of reaches the clip."""
    shown = bases()[name]
    assert checked(shown, Clipped(shown.model, 1e6).eval()).accepted
    found = checked(shown, Clipped(shown.model, 0.1).eval())
    assert not found.accepted and "with the given features" in found.reason


class Elsewhere(nn.Module):
    """Answers otherwise to features that are not the given ones."""

    def __init__(self, of: nn.Module, given: Tensor, other: Tensor | None = None) -> None:
        super().__init__()
        self.of = of
        self.known = [given] if other is None else [given, other]
        self.raises = False

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        answer = self.of(x, edge_index)
        known = not here(x, edge_index) or any(
            bool((x.double() - one.double()).abs().max() < 1e-6) for one in self.known
        )
        if known:
            return answer
        if self.raises:
            raise RuntimeError("no such features")
        return answer.flip(1)


def test_the_features_that_the_certificate_speaks_of_are_compared() -> None:
    from graph_forgeries import plain_features

    shown = bases()["sgc, everywhere"]
    given = Elsewhere(shown.model, shown.data.x)
    assert "with the anchors' features" in checked(shown, given.eval()).reason
    given.raises = True
    assert "does not run" in checked(shown, given).reason
    written = plain_features(shown, at_states=False)
    both = Elsewhere(shown.model, shown.data.x, written)
    assert "with the equilibrium's features" in checked(shown, both.eval()).reason


def certified(model: nn.Module, dtype: torch.dtype = torch.float32) -> Shown:
    """With controllers at every fourth node, in any precision."""
    data = bases()["sgc, labelled"].data.clone()
    data.x = data.x.to(dtype)
    nodes = torch.arange(0, NODES, 4)
    result = certify(
        FrozenModel(model),
        data.x,
        data.edge_index,
        LyapunovConfig(samples=240, seconds=60.0),
        constant=True,
        labelled=(nodes, nodes % N),
    )
    return Shown(result.certificate, model, data, result.states)


def test_in_float64_a_millionth_of_float32s_rounding_is_seen() -> None:
    torch.manual_seed(2)
    shown = certified(SGConv(D, N, K=2).double().eval(), torch.float64)
    found = checked(shown)
    assert found.accepted and "float64" in found.on_graph[-2], found.reason

    def nearly(self: Cousin, x: Tensor, edge_index: Tensor) -> Tensor:
        return self.of(x, edge_index) * (1 + 1e-11 * here(x, edge_index))

    assert "float64 explains" in checked(shown, Cousin(shown.model, nearly).eval()).reason


class Softened(nn.Module):
    def __init__(self, kind: str) -> None:
        super().__init__()
        self.of, self.kind = Two(GCNConv), kind

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        return getattr(torch, self.kind)(self.of(x, edge_index), dim=-1)


@pytest.mark.parametrize("kind", ["log_softmax", "softmax"])
def test_answers_behind_a_softmax_are_compared_behind_it(kind: str) -> None:
    torch.manual_seed(3)
    shown = certified(Softened(kind).eval())
    found = checked(shown)
    assert found.accepted and "answers like" in found.on_graph[-2], found.reason

    def moved(self: Cousin, x: Tensor, edge_index: Tensor) -> Tensor:
        answer = self.of(x, edge_index)
        return answer.roll(1, dims=1) if here(x, edge_index) else answer

    assert not checked(shown, Cousin(shown.model, moved).eval()).accepted


class Cancelling(nn.Module):
    """Two equal large units that cancel: in float32 whatever comes out may be called rounding."""

    def __init__(self, size: float) -> None:
        super().__init__()
        self.first, self.second = GCNConv(D, 6), nn.Linear(6, N)
        with torch.no_grad():
            self.first.lin.weight[1] = self.first.lin.weight[0].abs_()
            self.second.weight[:, 0] = size
            self.second.weight[:, 1] = -size

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        return self.second(self.first(x, edge_index).relu())


def test_where_rounding_explains_everything_nothing_is_said() -> None:
    torch.manual_seed(4)
    model = Cancelling(1e9).eval()
    x, edges = torch.rand(NODES, D), bases()["sgc, labelled"].data.edge_index
    config = LyapunovConfig(samples=240, rounds=1, steps=1, verify_seconds=0.1)
    result = certify(FrozenModel(model), x, edges, config)
    assert result.graph["contraction"] == "unknown"
    # by how the machine sums: already the head is not the model's, or rounding explains anything
    refused = ("cannot be compared", "range", "differ from the model's own response")
    assert any(words in result.graph["reason"] for words in refused)


def test_certify_says_nothing_of_message_passing_that_the_model_does_otherwise() -> None:
    torch.manual_seed(1)
    model = Cousin(SGConv(D, N, K=2), _on_real_graphs).eval()
    data = bases()["sgc, labelled"].data
    nodes = torch.arange(0, NODES, 4)
    config = LyapunovConfig(samples=240)
    labelled = (nodes, nodes % N)
    result = certify(FrozenModel(model), data.x, data.edge_index, config, labelled=labelled)
    assert result.graph["contraction"] == "unknown" and "40 of 40" in result.graph["reason"]
    assert result.sentences() == [f"With message passing: unknown ({result.graph['reason']})."]


# ---- the sentences, each computed plainly


@pytest.mark.parametrize("name", bases())
def test_who_is_controlled_is_said_as_it_is(name: str) -> None:
    shown = bases()[name]
    said = (
        f"The {len(shown.states['nodes'])} labelled nodes are controlled, each for its own class."
    )
    assert checked(shown).on_graph[1] == said


def test_labels_that_the_graph_does_not_know_are_said_to_be_stored_ones() -> None:
    shown = bases()["sgc, labelled"]
    assert not any("as stored" in line for line in checked(shown).on_graph)
    bare = Data(x=shown.data.x, edge_index=shown.data.edge_index)
    found = check_certificate(shown.certificate, model=shown.model, data=bare, states=shown.states)
    assert found.accepted and any("10 of these labels are as stored" in w for w in found.on_graph)


def test_bounds_are_printed_rounded_up() -> None:
    generator = np.random.default_rng(0)
    for value in 10.0 ** generator.uniform(-300, 300, 2000):
        assert value <= float(at_most(value)) <= 1.1 * value
        assert float(at_most(value, digits=3)) <= 1.01 * value
    assert at_most(0.0) == "0" and at_most(0.15001) == "0.16"


def test_the_models_own_classes_are_counted() -> None:
    for name, shown in bases().items():
        facts = shown.certificate["graph"]["equilibrium"]
        found = checked(shown).on_graph[-1]
        words = f"{facts['certain']} of the {facts['certain']} nodes their certain class"
        assert words in found, name
