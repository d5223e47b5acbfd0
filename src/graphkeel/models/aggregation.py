"""A graph model as layers with one fixed aggregation Ŝ, found by asking the model itself.

Many models are, between two activations, a polynomial of one non-negative operator:

    Z = Σ_p Ŝᵖ·H·W_pᵀ + Σ_p Ŝᵖ·1·b_pᵀ.

SGC, GCN, GraphSAGE (mean), TAG, Chebyshev and APPNP are; attention is not, as its weights depend on
the features. `recognise` knows none of them by name. It watches the model run on a graph, answers
impulses on a path to find each layer's operator, degree and weights, and believes the result only
if it repeats every layer, and the whole model, on a random graph with loops, double and one-way
edges and isolated nodes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor, nn
from torch_geometric.nn import MessagePassing
from torch_geometric.utils import remove_self_loops

from graphkeel.graph.propagate import normalise_as_given
from graphkeel.graph.propagate.local import as_tensor
from graphkeel.models.frozen import evaluating
from graphkeel.models.head import (
    Branch,
    GraphLayer,
    Step,
    Unsupported,
    affine_layer,
    assembled,
    chunks,
    close,
    float64_copy,
    watch,
)
from graphkeel.models.outputs import first_of


@dataclass(frozen=True)
class Aggregation:
    """The model with its message passing: layers with a ReLU between each two.

    Attributes:
        operator: the name of Ŝ, a key of `OPERATORS`.
        layers: the layers; empty where the model was not recognised.
        reason: why it was not, or an empty text.
        output: logits, log_softmax or softmax of the last layer's values.
        undirected: recognised on graphs only in which every edge goes both ways.
    """

    operator: str = ""
    layers: tuple[GraphLayer, ...] = ()
    reason: str = ""
    output: str = "logits"
    undirected: bool = False

    def __call__(self, x: Tensor, edge_index: Tensor) -> Tensor:
        """The last layer's values, float64, shape (N, n)."""
        return self.run(x, operator_of(self.operator, edge_index, len(x))[0])

    def run(self, x: Tensor, matrix: Tensor) -> Tensor:
        """The last layer's values with the sparse operator Ŝ (N, N) at hand."""
        value = x.double()
        for i, layer in enumerate(self.layers):
            value = run_layer(layer, value if i == 0 else value.relu(), matrix)
        return value


def run_layer(layer: GraphLayer, value: Tensor, matrix: Tensor) -> Tensor:
    """One layer's values, shape (N, out), of an input (N, in) and the sparse Ŝ (N, N)."""
    total = torch.zeros(len(value), len(layer[0].bias), dtype=torch.float64)
    for branch in layer:
        total = total + spread(value @ branch.weight.T + branch.bias, matrix, branch.power)
    return total


def spread(value: Tensor, matrix: Tensor, power: int) -> Tensor:
    """Ŝᵖ·H of H (N, width) and the sparse Ŝ (N, N)."""
    for _ in range(power):
        value = matrix @ value
    return value


# ---- the operators


# By name: how loops are read, and the normalisation.
OPERATORS: dict[str, tuple[str, str]] = {
    "symmetric, loops added": ("one", "sym"),
    "symmetric": ("as given", "sym"),
    "symmetric, loops removed": ("none", "sym"),
    "mean": ("as given", "row"),
    "mean, loops added": ("one", "row"),
    "mean, loops removed": ("none", "row"),
}


def operator_of(name: str, edge_index: Tensor, n: int) -> tuple[Tensor, Tensor]:
    """Ŝ ≥ 0, sparse, shape (n, n), and s > 0 with Ŝs ≤ s, shape (n,): √degree, or 1 for means.
    Edges go from the first row's nodes to the second row's."""
    loops, norm = OPERATORS[name]
    matrix = normalise_as_given(edge_index.numpy(), n, norm, loops=loops, dtype=np.float64)
    degrees = np.diff(matrix.indptr)
    matrix.sum_duplicates()
    s = np.sqrt(np.maximum(degrees, 1.0)) if norm == "sym" else np.ones(n)
    return as_tensor(matrix), torch.from_numpy(s)


# ---- recognising a model


def recognise(model: nn.Module, n_features: int, *, seed: int = 0) -> Aggregation:
    """The model's layers with one operator, or the reason why there are none."""
    found = _tried(model, n_features, seed, directed=True)
    return found if found.layers else _tried(model, n_features, seed, directed=False)


def _tried(model: nn.Module, n_features: int, seed: int, *, directed: bool) -> Aggregation:
    generator = torch.Generator().manual_seed(seed)
    nodes = 24
    edges = _random_graph(nodes, generator, directed)
    x = torch.randn(nodes, n_features, generator=generator, dtype=torch.float64)
    try:
        twin = float64_copy(model)
        with torch.no_grad(), evaluating(twin):
            steps, final = watch(twin, x, lambda module, x: first_of(module(x, edges)))
            found = _recognised(steps, x, edges, final, generator)
            return replace(found, undirected=not directed)
    except Unsupported as reason:
        return Aggregation(reason=str(reason))
    except Exception as error:  # the model is untrusted: whatever it raises, nothing is claimed
        return Aggregation(reason=f"the model does not run on a small random graph: {error}")


def _random_graph(nodes: int, generator: torch.Generator, directed: bool) -> Tensor:
    """Both ways, one way if `directed`, double, looped: whatever may make one operator differ from
    another; the last node has no edge."""
    ends = torch.randint(nodes - 1, (2, 3 * nodes), generator=generator)
    one_way = torch.randint(nodes - 1, (2, 6 if directed else 0), generator=generator)
    loops = torch.arange(0, nodes - 1, 5).repeat(2, 1)
    plain = torch.cat([ends, ends.flip(0), one_way], dim=1)
    return torch.cat([remove_self_loops(plain)[0], loops], dim=1)


def _recognised(
    steps: Sequence[Step], x: Tensor, edges: Tensor, final: Tensor, generator: torch.Generator
) -> Aggregation:
    names: set[str] = set()

    def layer_of(step: Step) -> GraphLayer:
        if not isinstance(step.module, MessagePassing):
            return affine_layer(step)
        name, layer = _layer_of(step, edges, names, generator)
        names.update({name} if name else ())
        return layer

    layers, output = assembled(steps, x, final, layer_of)
    found = Aggregation(next(iter(names), "mean"), tuple(layers), output=output)
    if not _same(found(x, edges), steps[-1].gave):
        raise Unsupported("the layers found do not repeat the model on a random graph")
    return found


def _layer_of(
    step: Step, edges: Tensor, names: set[str], generator: torch.Generator
) -> tuple[str, GraphLayer]:
    """A layer's operator (none where it does not look at neighbours) and branches; an operator seen
    before is the only one that is tried."""
    kinds = names or set(OPERATORS)
    for degree in (0, 1, 2, 3, 4, 5, 6, 8, 10, 12):
        for name in [key for key in OPERATORS if key in kinds]:
            if not _may_be(step, name, degree, generator):
                continue
            layer = _read(step, name, degree)
            if _repeats(layer, step, name, edges):
                return name if any(branch.power for branch in layer) else "", layer
    raise Unsupported(
        f"{type(step.module).__name__}: no fixed non-negative aggregation"
        f"{' shared by all layers' if names else ''} repeats it; message weights that depend on"
        " the features are not covered"
    )


def _repeats(layer: GraphLayer, step: Step, name: str, edges: Tensor) -> bool:
    matrix, _ = operator_of(name, edges, len(step.fed))
    return _same(run_layer(layer, step.fed, matrix), step.gave)


def _same(found: Tensor, wanted: Tensor, tolerance: float = 1e-7) -> bool:
    """Up to rounding: all that is probed here runs in float64."""
    return close(found, wanted, tolerance)


# ---- answering impulses


def _path(nodes: int, copies: int) -> Tensor:
    """Disjoint paths, each edge both ways."""
    ahead = torch.stack([torch.arange(nodes - 1), torch.arange(1, nodes)])
    both = torch.cat([ahead, ahead.flip(0)], dim=1)
    starts = nodes * torch.arange(copies).view(-1, 1, 1)
    return (both.unsqueeze(0) + starts).permute(1, 0, 2).reshape(2, -1)


def _answers(module: nn.Module, directions: Tensor, nodes: int) -> Tensor:
    """The layer's answers on a path whose first node carries a direction: (B, nodes, out)."""
    copies, width = directions.shape
    x = torch.zeros(copies, nodes, width, dtype=torch.float64)
    x[:, 0] = directions
    flat = x.reshape(copies * nodes, width)
    return module(flat, _path(nodes, copies)).reshape(copies, nodes, -1)


def _basis(name: str, degree: int) -> tuple[Tensor, Tensor]:
    """Ŝᵖ·e₀ and Ŝᵖ·1 on a path, for p = 0 … degree: (nodes, degree + 1) each."""
    nodes = _nodes(degree)
    matrix, _ = operator_of(name, _path(nodes, 1), nodes)
    both = torch.ones(nodes, 2, dtype=torch.float64)
    both[1:, 0] = 0.0
    powers = torch.stack([spread(both, matrix, power) for power in range(degree + 1)], dim=1)
    return powers[:, :, 0], powers[:, :, 1]


def _nodes(degree: int) -> int:
    return degree + 3


def _may_be(step: Step, name: str, degree: int, generator: torch.Generator) -> bool:
    """Whether a polynomial of this degree explains the answers to a few random directions."""
    nodes = _nodes(degree)
    width = step.fed.shape[1]
    directions = torch.randn(6, width, generator=generator, dtype=torch.float64)
    zero = torch.zeros(1, width, dtype=torch.float64)
    rest = _answers(step.module, zero, nodes)
    moved = _answers(step.module, directions, nodes) - rest
    impulses, constants = _basis(name, degree)
    return _explains(impulses, moved) and _explains(constants, rest)


def _explains(basis: Tensor, answers: Tensor) -> bool:
    flat = answers.permute(1, 0, 2).reshape(len(basis), -1)
    return _same(basis @ torch.linalg.pinv(basis) @ flat, flat)


def _read(step: Step, name: str, degree: int) -> GraphLayer:
    """All weights and biases, as the answers to every unit direction."""
    nodes = _nodes(degree)
    width = step.fed.shape[1]
    impulses, constants = _basis(name, degree)
    rest = _answers(step.module, torch.zeros(1, width, dtype=torch.float64), nodes)[0]
    solve = torch.linalg.pinv(impulses)
    weights = torch.einsum("pv,vob->pob", solve, _slopes(step.module, width, nodes, rest))
    biases = _biases(constants, rest)
    scale = float(weights.abs().max()) or 1.0
    bias_scale = float(biases.abs().max()) or 1.0
    known = [p.detach().double() for p in step.module.parameters()]
    kept = []
    for power in range(degree + 1):
        weight = _snapped(weights[power], known, scale)
        bias = _snapped(biases[power], known, bias_scale)
        kept.append(Branch(power, weight, bias))
    used = tuple(one for one in kept if bool(one.weight.any()) or bool(one.bias.any()))
    return used or (kept[0],)


def _slopes(module: nn.Module, width: int, nodes: int, rest: Tensor) -> Tensor:
    """How each output on the path follows the first node's feature, shape (nodes, out, width): by
    the answers to all unit directions, or by gradients where these are fewer. A layer that is not
    affine does not repeat what is read here."""
    if rest.numel() < width:
        return _gradients(module, width, nodes)
    columns = []
    for part in chunks(torch.eye(width, dtype=torch.float64)):
        moved = _answers(module, part, nodes) - rest
        columns.append(moved.permute(1, 2, 0))
    return torch.cat(columns, dim=2)


def _gradients(module: nn.Module, width: int, nodes: int) -> Tensor:
    x = torch.zeros(nodes, width, dtype=torch.float64, requires_grad=True)
    with torch.enable_grad():
        flat = module(x, _path(nodes, 1)).reshape(-1)
        rows = [torch.autograd.grad(one, x, retain_graph=True)[0][0] for one in flat]
    return torch.stack(rows).detach().reshape(nodes, -1, width)


def _biases(constants: Tensor, rest: Tensor) -> Tensor:
    """b_p of every power; all of it at p = 0 where the layer adds the same at every node."""
    if close(rest, rest[:1].expand_as(rest)):
        biases = torch.zeros(constants.shape[1], rest.shape[1], dtype=torch.float64)
        biases[0] = rest[0]
        return biases
    return torch.linalg.pinv(constants) @ rest


def _snapped(value: Tensor, known: Sequence[Tensor], scale: float) -> Tensor:
    """The very parameter of the layer where the value is one up to rounding, zero likewise."""
    if float(value.abs().max()) <= 1e-7 * scale:
        return torch.zeros_like(value)
    for parameter in known:
        for candidate in (parameter, parameter.T if parameter.ndim == 2 else parameter):
            if candidate.shape == value.shape and _same(candidate, value):
                return candidate.clone()
    return value.contiguous()
