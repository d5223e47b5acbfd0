"""The head C of a graph model: its logits on a constant feature field, taken out as a ReLU network.

A node whose whole receptive field carries the feature x sees no neighbour that differs from itself,
so message passing drops out: the model's response is that of a graph of one node with one
self-loop. For SGC, GCN, GraphSAGE, GAT and APPNP that is an affine map or a multilayer perceptron.
`extract_head` finds it without knowing the model: it watches the affine layers run on such a field,
names what happens between them by its effect (nothing, ReLU, LeakyReLU), and accepts the result
only if it reproduces the model's own logits."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.nn.functional import linear
from torch_geometric.data import Data
from torch_geometric.nn import MessagePassing

from graphkeel.core.errors import ModelError
from graphkeel.core.tensors import relu_network
from graphkeel.graph.node_graph import graph_edges
from graphkeel.models.calling import CallableModule, placement_of
from graphkeel.models.frozen import FrozenModel, evaluating

Layer = tuple[Tensor, Tensor]  # weight (out, in) and bias (out,), float64


@dataclass(frozen=True)
class Head:
    """C: R^d -> R^n, as affine layers with a ReLU between each two (float64 copies of the model's
    weights).

    When the model cannot be written that way, `layers` is empty, `unsupported` says why, and
    calling the head runs the model itself: anchors can still be computed, but nothing can be
    proved."""

    layers: tuple[Layer, ...]
    n_in: int
    n_out: int
    unsupported: str | None = None
    model_gap: float = 0.0  # the largest relative difference from the float32 model that was seen
    output: str = "logits"  # what the model returns: logits, or log_softmax / softmax of them
    response: Callable[[Tensor], Tensor] | None = field(default=None, repr=False, compare=False)

    @property
    def affine(self) -> bool:
        return len(self.layers) == 1

    @property
    def hidden(self) -> tuple[int, ...]:
        return tuple(int(weight.shape[0]) for weight, _ in self.layers[:-1])

    def __call__(self, x: Tensor) -> Tensor:
        if self.unsupported is not None and self.response is not None:
            answers = self.response(x.reshape(-1, self.n_in)).double()
            return answers.reshape(*x.shape[:-1], self.n_out)
        return relu_network(self.layers, x.double())


@dataclass(frozen=True)
class Branch:
    """Ŝᵖ·H·Wᵀ + Ŝᵖ·1·bᵀ for the model's aggregation Ŝ, which is one on a constant field: a head's
    layers have p = 0 alone.

    Attributes:
        power: p.
        weight: W, float64, shape (out, in).
        bias: b, float64, shape (out,).
    """

    power: int
    weight: Tensor
    bias: Tensor


GraphLayer = tuple[Branch, ...]  # a sum of branches with distinct powers


@dataclass(frozen=True)
class Step:
    """One affine layer as it ran: what went in, what came out."""

    module: nn.Module
    fed: Tensor
    gave: Tensor


class Unsupported(Exception):
    """This model has no exact ReLU form; the message is the reason."""


def extract_head(
    model: nn.Module | FrozenModel, in_dim: int, *, seed: int = 0, **model_kwargs: Any
) -> Head:
    """Take the head out of a trained model; where that cannot be done, the head asks the model.

    Args:
        model: any model; its head can be read off where its response on a constant field is affine
            or a ReLU/LeakyReLU network. A `FrozenModel` that knows its graph can always be asked.
        in_dim: number of input features d.
        seed: of the random fields on which the result is compared with the model.
        model_kwargs: further arguments of the forward, as they are given for its graph.

    >>> from torch_geometric.nn import GCN
    >>> head = extract_head(GCN(8, hidden_channels=4, num_layers=2, out_channels=3), in_dim=8)
    >>> head.n_in, head.hidden, head.n_out, head.unsupported
    (8, (4,), 3, None)
    """
    frozen = model if isinstance(model, FrozenModel) else FrozenModel(model)
    fields = _random_fields(in_dim, seed)
    response, n_out, refusal = _response_of(frozen, fields, model_kwargs)
    try:
        if refusal is not None:
            raise Unsupported(refusal)
        layers, output, gap = _read_off(frozen, fields, model_kwargs)
    except Unsupported as reason:
        return Head((), in_dim, n_out, unsupported=str(reason), response=response)
    except Exception as error:  # the model is untrusted: whatever it raises, it can be asked
        reason_text = f"its layers could not be watched ({type(error).__name__}: {error})"[:300]
        return Head((), in_dim, n_out, unsupported=reason_text, response=response)
    return Head(layers, in_dim, n_out, model_gap=gap, output=output, response=response)


def _random_fields(in_dim: int, seed: int, samples: int = 64) -> Tensor:
    """Small and large ones, so that every activation is seen on both sides of its kink."""
    generator = torch.Generator().manual_seed(seed)
    scales = torch.tensor([0.03, 1.0, 30.0]).view(-1, 1, 1)
    noise = torch.randn(3, samples, in_dim, generator=generator, dtype=torch.float64)
    return (noise * scales).reshape(-1, in_dim)


def chunks(x: Tensor, nodes: int = 512) -> tuple[Tensor, ...]:
    """So many nodes at once, which bounds memory at full feature dimension."""
    return x.split(nodes)


def _read_off(
    frozen: FrozenModel, fields: Tensor, model_kwargs: dict[str, Any], most: float = 1e-4
) -> tuple[tuple[Layer, ...], str, float]:
    """Layers, what the model makes of their output, and how far they are from the model: at the
    most as far as float32 explains."""
    if isinstance(frozen.module, CallableModule):
        raise Unsupported("a plain function has no layers that could be read off")

    def run(module: nn.Module, x: Tensor) -> Tensor:
        return _columns(frozen.run_as(module, x, self_loops(x), **model_kwargs))

    twin = float64_copy(frozen.module)
    with torch.no_grad(), evaluating(twin):
        steps, final = watch(twin, fields, run)
        found, output = assembled(steps, fields, final, affine_layer)
    layers = tuple((only.weight, only.bias) for (only,) in found)
    with torch.no_grad(), evaluating(frozen.module):
        theirs = torch.cat([run(frozen.module, part) for part in chunks(fields)])
    rounded = fields if (place := placement_of(frozen.module)) is None else fields.to(place.dtype)
    gap = _gap(layers, output, rounded.double(), theirs.double())
    if gap > most:
        raise Unsupported(f"the extracted layers differ from the model's own response by {gap:.1e}")
    weight, bias = layers[-1]
    if len(bias) == 1:  # one logit z as the two logits (-z/2, z/2); halving is exact
        two = (torch.cat([-weight / 2, weight / 2]), torch.cat([-bias / 2, bias / 2]))
        layers = (*layers[:-1], two)
    return layers, output, gap


def _columns(scores: Tensor) -> Tensor:
    return scores.unsqueeze(1) if scores.dim() == 1 else scores


def float64_copy(model: nn.Module) -> nn.Module:
    """A copy with exactly these weights; what is watched on it loses nothing to float32."""
    with evaluating(model):  # caches are no part of it
        return copy.deepcopy(model).double()


def watch(
    model: nn.Module, fields: Tensor, run: Callable[[nn.Module, Tensor], Tensor]
) -> tuple[list[Step], Tensor]:
    """Run the model and record its affine layers in the order in which they run."""
    steps: list[Step] = []

    def record(module: nn.Module, args: Any, kwargs: dict[str, Any], output: Any) -> None:
        fed = args[0] if args else next(iter(kwargs.values()))
        if not isinstance(fed, Tensor) or not isinstance(output, Tensor):
            name = type(module).__name__
            raise Unsupported(f"unsupported structure: {name} takes or gives more than one tensor")
        steps.append(Step(module, fed.clone(), output.clone()))  # an activation may be in place

    handles = [
        module.register_forward_hook(record, with_kwargs=True) for module in _affine_modules(model)
    ]
    try:
        final = run(model, fields)
    finally:
        for handle in handles:
            handle.remove()
    return steps, final


def _affine_modules(module: nn.Module) -> Iterator[nn.Module]:
    """The outermost layers that are affine on a constant field; a convolution's inside is its own
    affair."""
    known = MessagePassing | nn.Linear | nn.BatchNorm1d
    if isinstance(module, known) or type(module).__name__ == "Linear":
        yield module
        return
    for child in module.children():
        yield from _affine_modules(child)


def assembled(
    steps: Sequence[Step], x: Tensor, final: Tensor, layer_of: Callable[[Step], GraphLayer]
) -> tuple[list[GraphLayer], str]:
    """The layers that ran on x, a ReLU between each two, and what the model makes of the last."""
    if not steps:
        raise Unsupported(
            "no affine layer (Linear, BatchNorm1d or a PyG convolution) was seen running"
        )
    if not close(steps[0].fed, x):
        raise Unsupported("the features are transformed before the first layer")
    layers: list[GraphLayer] = []
    for i, step in enumerate(steps):
        layer = layer_of(step)
        layers = _joined(layers, layer, _between(steps[i - 1], step)) if i else [layer]
    return layers, _output_kind(steps[-1].gave, final)


def _joined(layers: list[GraphLayer], layer: GraphLayer, slope: float | None) -> list[GraphLayer]:
    """A layer behind others, with nothing or a LeakyReLU in between."""
    before = layers[-1]
    if slope is None:
        return [*layers[:-1], _product(before, layer)]
    if slope == 0.0:
        return [*layers, layer]
    # leaky(t) = relu(t) - s·relu(-t): exact, with twice the units
    doubled = tuple(
        Branch(b.power, torch.cat([b.weight, -b.weight]), torch.cat([b.bias, -b.bias]))
        for b in before
    )
    widened = tuple(
        Branch(b.power, torch.cat([b.weight, -slope * b.weight], dim=1), b.bias) for b in layer
    )
    return [*layers[:-1], doubled, widened]


def _product(first: GraphLayer, second: GraphLayer) -> GraphLayer:
    """Two layers in a row are one, whose polynomial is the product of theirs."""
    found: dict[int, tuple[Any, Any]] = {}
    nothing = first[0].weight.new_zeros(len(second[0].bias), first[0].weight.shape[1])
    pairs = product(first, second)
    terms = [(a.power + b.power, b.weight @ a.weight, b.weight @ a.bias) for a, b in pairs]
    for power, weight, bias in [*terms, *((b.power, nothing, b.bias) for b in second)]:
        before = found.get(power, (0.0, 0.0))
        found[power] = (before[0] + weight, before[1] + bias)
    return tuple(Branch(power, *found[power]) for power in sorted(found))


def _between(before: Step, after: Step) -> float | None:
    """The activation between two layers, by its effect: None for nothing, else a LeakyReLU's slope
    (ReLU: 0)."""
    given, taken = before.gave, after.fed
    if given.shape != taken.shape:
        raise Unsupported(
            "unsupported structure: a layer does not take the output of the one before it"
        )
    if close(given, taken):
        return None
    if close(given.relu(), taken):
        return 0.0
    below = given < -1e-3 * given.abs().max()
    if below.any():
        # the model rounds the slope to its own precision, which also keeps slope·weight exact in
        # float64
        slope = float((taken[below] / given[below]).median().float())
        if 0 < slope < 1 and close(torch.where(given > 0, given, slope * given), taken, 1e-6):
            return slope
    names = f"{type(before.module).__name__} and {type(after.module).__name__}"
    raise Unsupported(
        f"unsupported activation between {names}: only linear, ReLU and LeakyReLU can be proved"
    )


# What a model may make of its logits.
OUTPUTS: dict[str, Callable[[Tensor], Tensor]] = {
    "logits": lambda logits: logits,
    "log_softmax": lambda logits: logits.log_softmax(-1),
    "softmax": lambda logits: logits.softmax(-1),
    "sigmoid": lambda logits: logits.sigmoid(),
}


def _output_kind(last: Tensor, final: Tensor) -> str:
    last = _columns(last)
    for kind, function in OUTPUTS.items():
        of_one = last.shape[-1] == 1  # a softmax of one number is 1; several sigmoids: many labels
        possible = kind == "logits" or (kind == "sigmoid") == of_one
        if possible and last.shape == final.shape and close(function(last), final):
            return kind
    raise Unsupported(
        "unsupported activation after the last layer: "
        "only logits, log_softmax and softmax (one logit: sigmoid) are known"
    )


def affine_layer(step: Step) -> GraphLayer:
    """A layer's weight and bias: read by their usual names, probed otherwise; checked either
    way."""
    fed, gave = step.fed, step.gave
    name = type(step.module).__name__
    try:
        for layer in _candidates(step):
            if layer[0].shape[1] == fed.shape[1] and close(linear(fed, *layer), gave):
                return (Branch(0, *layer),)
    except Exception as error:  # probed alone, a layer that takes more than features fails somehow
        raise Unsupported(
            f"unsupported layer {name}: it cannot be probed with features and edges alone"
        ) from error
    raise Unsupported(f"unsupported layer {name}: it is not affine on a constant field")


def _candidates(step: Step) -> Iterator[Layer]:
    module = step.module
    # GCNConv and SGConv keep their matrix in `lin`, their bias outside
    inner = getattr(module, "lin", module)
    weight = getattr(inner, "weight", None)
    bias = getattr(module, "bias", None)
    bias = bias if bias is not None else getattr(inner, "bias", None)
    if isinstance(weight, Tensor) and weight.ndim == 2:
        zero = weight.new_zeros(weight.shape[0])
        if bias is None or bias.shape == zero.shape:
            yield weight.detach().clone(), zero if bias is None else bias.detach().clone()
    yield _probe(module, step.fed.shape[1])


def _probe(module: nn.Module, in_dim: int) -> Layer:
    """Columns of an affine map as its responses to unit vectors, in float64."""

    def run(x: Tensor) -> Tensor:
        return module(x, self_loops(x)) if isinstance(module, MessagePassing) else module(x)

    bias = run(torch.zeros(2, in_dim, dtype=torch.float64))[0]
    eye = torch.eye(in_dim, dtype=torch.float64)
    return torch.cat([run(part) - bias for part in chunks(eye)]).T.contiguous(), bias


def close(a: Tensor, b: Tensor, tolerance: float = 1e-9) -> bool:
    scale = float(torch.maximum(a.abs().max(), b.abs().max())) or 1.0
    return float((a - b).abs().max()) <= tolerance * scale < math.inf  # infinity is close to none


def _gap(layers: tuple[Layer, ...], output: str, fields: Tensor, theirs: Tensor) -> float:
    """Largest difference between the extracted head and the model, relative to each field's own
    scale."""
    ours = OUTPUTS[output](relu_network(layers, fields))
    scale = ours.abs().amax(dim=-1, keepdim=True).clamp_min(1.0)
    return float(((ours - theirs).abs() / scale).max())


# ---- C by its definition, with no layers to read: the model on constant feature fields, on single
# nodes that see only themselves where it takes such a graph, else on its own graph, every node of
# which carries the same features: embeddings per node, norms over all nodes and graphs that a model
# keeps itself need that


_Response = Callable[[Tensor], Tensor]


def self_loops(x: Tensor) -> Tensor:
    """Edges of a graph in which every node sees itself and nobody else, shape (2, n)."""
    nodes = torch.arange(x.shape[0], device=x.device)
    return torch.stack([nodes, nodes])


def _response_of(
    frozen: FrozenModel, fields: Tensor, model_kwargs: dict[str, Any]
) -> tuple[_Response, int, str | None]:
    """How the model answers fields (B, d), how many logits it gives, and, where it must be asked on
    its own graph, why nothing can be read off."""
    logits, graph = frozen.differentiable_logits, frozen.calling.graph

    def single(x: Tensor) -> Tensor:
        return torch.cat([logits(part, self_loops(part), **model_kwargs) for part in chunks(x)])

    def on_graph(x: Tensor) -> Tensor:
        """Each field on all nodes at once; the mean over the nodes counts."""
        edges = cast(Tensor, graph_edges(cast(Data, graph))).to(x.device)
        rows = (row.expand(len(cast(Data, graph).x), -1) for row in x)
        return torch.stack([logits(row, edges, **model_kwargs).mean(dim=0) for row in rows])

    probes = fields[:3]  # answered together and alone; a norm over all nodes tells them apart
    try:
        together = single(probes).detach()
        alone = torch.cat([single(row).detach() for row in probes.split(1)])
    except Exception as error:  # the model is untrusted, and it may raise anything
        what = f"{type(error).__name__}: {error}"[:300]
        if graph is None:
            raise ModelError(
                "the model could not be run on a constant feature field",
                got=what,
                fix="Give it its graph: FrozenModel(model, graph=data).",
            ) from error
        refusal = f"the model cannot be run on a single node ({what})"
        return on_graph, int(on_graph(probes[:1]).shape[1]), refusal
    scale = max(1.0, float(together.abs().max()))
    if float((together - alone).abs().max()) <= 1e-3 * scale:
        return single, int(together.shape[1]), None
    mixed = "the answer for a node depends on nodes that it has no edge to (a norm over the graph?)"
    return single if graph is None else on_graph, int(together.shape[1]), mixed
