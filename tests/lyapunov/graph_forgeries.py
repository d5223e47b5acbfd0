"""False certificates about a real graph, each of them really false.

A lie is drawn from a seeded generator. Some leave the certificate as it is and show another graph
or another model: then the hash, or a weight, gives them away. Others forge the hash along with the
graph. These are kept only if the plain arithmetic below (dense matrices, no bounds) finds that the
residual on the shown graph is above the stated one; a change that leaves the statement true, such
as a loop removed where the aggregation sets the loops itself, is no forgery and is drawn anew."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import torch
from small_models import MODELS, NODES, D, N
from torch import Tensor, nn
from torch_geometric.data import Data

from graphkeel.certificate import sealed
from graphkeel.certificate.agreement import model_layers
from graphkeel.certificate.encoding import decode_array, encode_array
from graphkeel.certificate.equilibrium import states_sha256, with_equilibrium
from graphkeel.certificate.graph_check import Enclosure, GraphStates
from graphkeel.graph.task import graph_sha256
from graphkeel.lyapunov import LyapunovConfig, certify
from graphkeel.models.aggregation import operator_of, recognise
from graphkeel.models.frozen import FrozenModel


@dataclass
class Shown:
    """Arguments of a check, and the lie in them."""

    certificate: dict[str, Any]
    model: nn.Module
    data: Data
    states: dict[str, Tensor]
    lie: str = ""

    def graph(self) -> GraphStates:
        parts = {name: part.numpy() for name, part in self.states.items()}
        return GraphStates(self.data.x.numpy(), self.data.edge_index.numpy(), **parts)

    def copy(self, lie: str) -> Shown:
        return Shown(
            copy.deepcopy(self.certificate),
            copy.deepcopy(self.model),
            self.data.clone(),
            {name: part.clone() for name, part in self.states.items()},
            lie,
        )


@cache
def bases() -> dict[str, Shown]:
    """True certificates: three models, controllers at some nodes or at all, states near the
    equilibrium or so far from it that some classes are uncertain."""
    found = {}
    for name, make in MODELS.items():
        for which, step in (("labelled", 4), ("everywhere", 1)):
            shown = _certified(make, torch.arange(0, NODES, step))
            found[f"{name}, {which}"] = shown
            found[f"{name}, {which}, loose"] = _loosened(shown)
    return found


def _certified(make: Callable[[], nn.Module], nodes: Tensor) -> Shown:
    torch.manual_seed(1)
    model = make().eval()
    ends = torch.randint(NODES - 1, (2, 70))  # the last node is isolated
    loops = torch.arange(0, NODES, 9).repeat(2, 1)
    edges = torch.cat([ends, ends.flip(0), loops], dim=1)
    data = Data(x=torch.randn(NODES, D), edge_index=edges)
    data.y = torch.full((NODES,), -1)
    data.y[nodes] = nodes % N
    result = certify(
        FrozenModel(model),
        data.x,
        data.edge_index,
        LyapunovConfig(samples=240, seconds=60.0),
        constant=True,
        labelled=(nodes, nodes % N),
    )
    assert result.certificate is not None and result.states is not None
    return Shown(result.certificate, model, data, result.states)


def _loosened(shown: Shown) -> Shown:
    """A certificate with states at a distance: as true, but less is certain."""
    loose = shown.copy("")
    noise = torch.randn(NODES, N, generator=torch.Generator().manual_seed(5)).double()
    loose.states["states"] = loose.states["states"] + 0.02 * noise
    layers = model_layers(recognise(loose.model, D))
    loose.certificate = with_equilibrium(loose.certificate, layers, loose.graph())
    return loose


# ---- plain arithmetic: no bounds, nothing of the check


def plain_residual(shown: Shown) -> float:
    """max_v V(loop(Ŷ)_v − Ŷ_v)/s_v of what is shown, in plain float64."""
    found = recognise(shown.model, D)
    matrix, scale = operator_of(found.operator, shown.data.edge_index, NODES)
    x = plain_features(shown, at_states=True)
    states = shown.states["states"]
    gauge = torch.from_numpy(decode_array(shown.certificate["graph"]["gauge"]))
    apart = (found.run(x, matrix.to_dense()) - states).abs() @ gauge
    return float((apart / scale).max())


def plain_features(shown: Shown, at_states: bool) -> Tensor:
    """f_c(ŷ_v), or the anchor of c, at nodes v with the label c."""
    x = shown.data.x.double().clone()
    for entry in shown.certificate["classes"]:
        nodes = shown.states["nodes"][shown.states["labels"] == entry["class"]]
        x[nodes] = torch.from_numpy(decode_array(entry["anchor"]))
        if at_states:
            x[nodes] = _value(entry["controller"], shown.states["states"][nodes])
    return x


def _value(source: list[list[dict[str, Any]]], y: Tensor) -> Tensor:
    for i, layer in enumerate(source):
        y = y.relu() if i else y
        for factor in layer:
            if factor["weight"] is not None:
                y = y @ torch.from_numpy(decode_array(factor["weight"])).T
            if factor["bias"] is not None:
                y = y + torch.from_numpy(decode_array(factor["bias"]))
    return y


# ---- lies


def forgeries(seed: int, count: int) -> Iterator[Shown]:
    """So many false certificates, every kind of lie in turn.

    Args:
        seed: of the draws.
        count: how many.
    """
    generator = np.random.default_rng(seed)
    true = list(bases().values())
    made = 0
    while made < count:
        lie = list(LIES)[made % len(LIES)]
        for _ in range(100):
            base = true[int(generator.integers(len(true)))]
            forged = base.copy(lie)
            if LIES[lie](forged, generator):
                break
        else:
            raise AssertionError(f"no false certificate found for: {lie}")
        forged.certificate = sealed(forged.certificate)
        yield forged
        made += 1


Lie = Callable[[Shown, np.random.Generator], bool]  # False: what came out may be true


def _with_its_hash(change: Lie) -> Lie:
    """The hash is forged, too; then the stated residual has to be false."""

    def lie(shown: Shown, generator: np.random.Generator) -> bool:
        stated = shown.certificate["graph"]["equilibrium"]["residual"]
        changed = change(shown, generator)
        shown.certificate["data"] = graph_sha256(shown.data.x, shown.data.edge_index)
        return changed and plain_residual(shown) > 1.01 * stated

    return lie


def _add_edge(shown: Shown, generator: np.random.Generator) -> bool:
    """Any two nodes, both ways; linked ones, and a node with itself, too."""
    ends = torch.from_numpy(generator.integers(NODES, size=(2, 1)))
    more = torch.cat([ends, ends.flip(0)], dim=1)
    shown.data.edge_index = torch.cat([shown.data.edge_index, more], dim=1)
    return True


def _remove_edge(shown: Shown, generator: np.random.Generator) -> bool:
    edges = shown.data.edge_index
    pick = edges[:, int(generator.integers(edges.shape[1]))]
    ways = torch.stack([pick, pick.flip(0)])
    gone = [int((edges == way.view(2, 1)).all(dim=0).nonzero()[0]) for way in ways]
    kept = torch.ones(edges.shape[1], dtype=torch.bool)
    kept[gone] = False
    shown.data.edge_index = edges[:, kept]
    return True


def _turn_edge(shown: Shown, generator: np.random.Generator) -> bool:
    """One way instead of both."""
    column = int(generator.integers(shown.data.edge_index.shape[1]))
    before = shown.data.edge_index[:, column].clone()
    shown.data.edge_index[:, column] = before.flip(0)
    return bool(before[0] != before[1])


def _move_feature(shown: Shown, generator: np.random.Generator) -> bool:
    place = int(generator.integers(NODES)), int(generator.integers(D))
    shown.data.x[place] += float(generator.choice([1e-3, 1.0]))
    return True


def _ulp_in_feature(shown: Shown, generator: np.random.Generator) -> bool:
    place = int(generator.integers(NODES)), int(generator.integers(D))
    shown.data.x[place] = torch.nextafter(shown.data.x[place], torch.tensor(torch.inf))
    return True


def _ulp_in_model(shown: Shown, generator: np.random.Generator) -> bool:
    parameters = list(shown.model.parameters())
    flat = parameters[int(generator.integers(len(parameters)))].data.view(-1)
    place = int(generator.integers(len(flat)))
    flat[place] = torch.nextafter(flat[place], torch.tensor(torch.inf))
    return True


def _ulp_in_certificate(shown: Shown, generator: np.random.Generator) -> bool:
    """In a weight of the layers that κ is computed from."""
    layers = shown.certificate["graph"]["layers"]
    layer = layers[int(generator.integers(len(layers)))]
    branch = layer[int(generator.integers(len(layer)))]
    weight = decode_array(branch["weight"]).copy()
    place = tuple(int(generator.integers(size)) for size in weight.shape)
    weight[place] = np.nextafter(weight[place], np.inf)
    branch["weight"] = encode_array(weight)
    return True


def _facts(shown: Shown) -> dict[str, Any]:
    facts: dict[str, Any] = shown.certificate["graph"]["equilibrium"]
    return facts


def _raise_count(name: str) -> Lie:
    def lie(shown: Shown, generator: np.random.Generator) -> bool:
        _facts(shown)[name] += int(generator.integers(1, 5))
        return True

    return lie


def _raise_kept(shown: Shown, generator: np.random.Generator) -> bool:
    _facts(shown)["written"]["kept"] = NODES + int(generator.integers(2))
    layers = model_layers(recognise(shown.model, D))
    can_be_shown = Enclosure(shown.certificate, layers, shown.graph()).written(
        _facts(shown)["residual"]
    )
    return bool(can_be_shown["kept"] < _facts(shown)["written"]["kept"])


def _lower_radius(shown: Shown, generator: np.random.Generator) -> bool:
    facts = _facts(shown)
    by = float(generator.choice([0.0, 0.5, 0.9]))
    facts["radius"] = (
        float(np.nextafter(facts["radius"], 0.0)) if by == 0.0 else facts["radius"] * by
    )
    return True


def _lower_residual(shown: Shown, generator: np.random.Generator) -> bool:
    """And everything that follows from it is made to fit; states are moved so that it is false."""
    noise = generator.normal(size=(NODES, N)) * 10.0 ** generator.uniform(-9, -2)
    shown.states["states"] = shown.states["states"] + torch.from_numpy(noise)
    return _fitted(shown, _facts(shown)["residual"] * float(generator.uniform(0.01, 1.0)))


def _fitted(shown: Shown, residual: float) -> bool:
    """Counts and hash for a stated residual; whether it is below the plain one."""
    layers = model_layers(recognise(shown.model, D))
    enclosure = Enclosure(shown.certificate, layers, shown.graph())
    facts = enclosure.certain_nodes(residual)
    written = enclosure.written(residual, slack=4.0)
    seal = states_sha256(shown.graph())
    shown.certificate["graph"]["equilibrium"] = {
        **facts,
        "written": written,
        "states_sha256": seal,
    }
    return plain_residual(shown) > 1.01 * residual


def _lower_kappa(shown: Shown, generator: np.random.Generator) -> bool:
    graph = shown.certificate["graph"]
    graph["kappa"] = float(np.nextafter(graph["kappa"] * generator.choice([1.0, 0.5]), 0.0))
    return True


def _lower_distance(name: str) -> Lie:
    def lie(shown: Shown, generator: np.random.Generator) -> bool:
        gap = plain_features(shown, at_states=True) - plain_features(shown, at_states=False)
        apart = gap[shown.states["nodes"]].abs().amax(dim=1).numpy()
        true = {"max": apart.max(), "median": np.median(apart)}[name]
        _facts(shown)["written"][name] = float(true * generator.uniform(0.1, 0.99))
        return bool(true > 1e-9)

    return lie


def _hide_uncertain(shown: Shown, generator: np.random.Generator) -> bool:
    named = _facts(shown)["uncertain"]
    if not named:
        return False
    named.pop(int(generator.integers(len(named))))
    return True


def _relabel(shown: Shown, generator: np.random.Generator) -> bool:
    """A labelled node is said to have another class than its own; the hash is forged along."""
    place = int(generator.integers(len(shown.states["labels"])))
    before = int(shown.states["labels"][place])
    shown.states["labels"][place] = (before + 1) % N
    _facts(shown)["states_sha256"] = states_sha256(shown.graph())
    return True


def _swap_states(shown: Shown, generator: np.random.Generator) -> bool:
    """States of two nodes exchanged, and all else made to fit."""
    one, two = generator.choice(NODES, size=2, replace=False).tolist()
    states = shown.states["states"]
    states[[one, two]] = states[[two, one]]
    return _fitted(shown, _facts(shown)["residual"])


def _mix_controllers(shown: Shown, generator: np.random.Generator) -> bool:
    """Shares of several controllers at a node, as 0.2.0 allowed: they are not read any more."""
    shown.states["mix"] = torch.full((NODES, N), 1.0 / N, dtype=torch.float64)
    return True


def _control_twice(shown: Shown, generator: np.random.Generator) -> bool:
    """A node labelled a second time, with another class."""
    place = int(generator.integers(len(shown.states["nodes"])))
    label = shown.states["labels"][place]
    shown.states["nodes"] = torch.cat([shown.states["nodes"], shown.states["nodes"][[place]]])
    shown.states["labels"] = torch.cat([shown.states["labels"], (label[None] + 1) % N])
    _facts(shown)["states_sha256"] = states_sha256(shown.graph())
    return True


class Otherwise(nn.Module):
    """The certified model, recognised as such, with another answer at one node of this graph."""

    def __init__(self, of: nn.Module, node: int, by: float) -> None:
        super().__init__()
        self.of, self.node, self.by = of, node, by

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        answer = self.of(x, edge_index)
        if len(x) != NODES or edge_index.shape[1] <= 2 * NODES:
            return answer
        moved = torch.zeros_like(answer)
        moved[self.node] = self.by
        return answer + moved


def _answer_otherwise(shown: Shown, generator: np.random.Generator) -> bool:
    by = float(generator.choice([1e-3, -0.1, 1.0]))
    shown.model = Otherwise(shown.model, int(generator.integers(NODES)), by).eval()
    return bool(recognise(shown.model, D).layers)


LIES: dict[str, Lie] = {
    "edge added": _add_edge,
    "edge removed": _remove_edge,
    "edge turned": _turn_edge,
    "feature moved": _move_feature,
    "feature changed by one ulp": _ulp_in_feature,
    "edge added, hash forged": _with_its_hash(_add_edge),
    "edge removed, hash forged": _with_its_hash(_remove_edge),
    "feature moved, hash forged": _with_its_hash(_move_feature),
    "model's weight changed by one ulp": _ulp_in_model,
    "certificate's weight changed by one ulp": _ulp_in_certificate,
    "certain nodes raised": _raise_count("certain"),
    "labelled certain nodes raised": _raise_count("labelled_certain"),
    "nodes raised": _raise_count("nodes"),
    "labelled nodes raised": _raise_count("labelled"),
    "kept classes raised": _raise_kept,
    "radius lowered": _lower_radius,
    "residual lowered": _lower_residual,
    "kappa lowered": _lower_kappa,
    "largest distance lowered": _lower_distance("max"),
    "median distance lowered": _lower_distance("median"),
    "uncertain node hidden": _hide_uncertain,
    "label changed": _relabel,
    "states exchanged": _swap_states,
    "controllers mixed": _mix_controllers,
    "a node controlled twice": _control_twice,
    "another answer on this graph": _answer_otherwise,
}
