"""The certificate's part about message passing, tied to a model and to a graph."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from graphkeel.certificate.agreement import Comparison, RecognisedModel, plain_state
from graphkeel.certificate.encoding import decode_array
from graphkeel.certificate.equilibrium import (
    at_most,
    equilibrium_difference,
    node_sentences,
    read_states,
)
from graphkeel.certificate.graph_check import Enclosure, GraphStates
from graphkeel.certificate.layers import Branches, Operator
from graphkeel.core.errors import CertificateError, DataError

if TYPE_CHECKING:
    from torch import Tensor, nn

    from graphkeel.models.aggregation import Aggregation
    from graphkeel.models.frozen import FrozenModel


@dataclass(frozen=True)
class Link:
    """How a certificate is tied to a model, and maybe to a graph.

    Attributes:
        difference: from what the certificate speaks of, in words; None if there is none.
        on_graph: what was shown to hold of the given graph, in words.
    """

    difference: str | None = None
    on_graph: tuple[str, ...] = ()


def graph_link(
    content: Mapping[str, Any],
    found: Aggregation,
    frozen: FrozenModel,
    data: Any | None,
    scores: Tensor | None,
    states: Path | Mapping[str, Any] | None,
) -> Link:
    """The part about message passing, tied to model, graph and states.

    Args:
        scores: what the model answers on that graph, shape (N, n), where that is known.
    """
    graph = content["graph"]
    difference = _layers_difference(graph, found)
    if difference is None and data is not None:
        difference = edges_difference(graph["undirected"], frozen, data)
    if difference is not None or data is None:
        return Link(difference)
    if scores is None:
        scores = frozen(data.x, data.edge_index)
    try:
        pair = recognised_on(found, frozen, data.edge_index, len(data.x))
        return _on_this_graph(content, pair, data, scores, states)
    except CertificateError as error:
        return Link(str(error))


def edges_difference(undirected: bool, frozen: FrozenModel, data: Any) -> str | None:
    """How the graph's edges are others than the recognised model knows; None if not."""
    weighed = _weights_of(frozen.module, data)
    if weighed is not None:
        return (
            f"the model may weigh messages by the graph's {weighed}, which the loop does not know"
        )
    if undirected and not is_undirected(data.edge_index.cpu().numpy()):
        return "the model's message passing was recognised on undirected graphs only"
    return None


def answers_difference(
    found: Aggregation,
    frozen: FrozenModel,
    x: Tensor,
    edge_index: Tensor,
    which: str = "the given",
) -> str | None:
    """How the model's answers on a graph differ from those of its recognised layers; None if only
    by rounding.

    Args:
        x: features, shape (N, d).
        edge_index: shape (2, E).
    """
    try:
        return recognised_on(found, frozen, edge_index, len(x)).run(x, which).difference
    except CertificateError as error:
        return str(error)


def recognised_on(
    found: Aggregation, frozen: FrozenModel, edge_index: Tensor, nodes: int
) -> RecognisedModel:
    """A model beside its layers, on one graph.

    Args:
        edge_index: shape (2, E).
    """
    operator = Operator.of(found.operator, edge_index.cpu().numpy(), nodes)
    return RecognisedModel(frozen, edge_index, model_layers(found), operator, found.output)


def _on_this_graph(
    content: Mapping[str, Any],
    pair: RecognisedModel,
    data: Any,
    scores: Tensor,
    states: Path | Mapping[str, Any] | None,
) -> Link:
    """The model's own answers first; then what is counted, and its answers to those features."""
    given = own_answers(pair, data.x, scores)
    if given.difference is not None:
        return Link(given.difference)
    if "equilibrium" not in content["graph"]:
        return Link(None, (_agreed("the given", given),))
    what = "the certificate counts nodes of the graph, but their states are missing"
    if states is None:
        return Link(what)
    check_present(states, what)
    stored = read_states(states, given_array(data.x), data.edge_index.cpu().numpy())
    wrong, unknown = _compared_labels(stored, data)
    if wrong:
        return Link(f"{wrong} of {len(stored.nodes)} labels are not those of the graph")
    enclosure = Enclosure(content, pair.layers, stored)
    difference = equilibrium_difference(enclosure)
    if difference is not None:
        return Link(difference)
    written, reached = _made_features(pair, enclosure, given.precision)
    difference = written.difference or reached.difference
    if difference is not None:
        return Link(difference)
    return Link(None, _shown(enclosure, (given, written, reached), unknown))


def check_present(stored: Path | Mapping[str, Any], what: str) -> None:
    """Refuse a certificate whose file of arrays is missing."""
    if isinstance(stored, Path) and not stored.exists():
        raise DataError(
            what,
            got=f"no {stored.name} beside it",
            fix="Keep both files in one folder; a link to one of them is not enough.",
        )


def own_answers(pair: RecognisedModel, x: Tensor, scores: Tensor) -> Comparison:
    """The model's answers to the given features, beside those of its layers.

    Args:
        x: the given features, shape (N, d).
        scores: what the model answered to them, shape (N, n).
    """
    counter = _counter(pair, x)
    if counter is None:
        return pair.compare(x, scores, "the given")
    return Comparison(
        f"the model's answers may depend on the calls before: {counter!a} counts them"
    )


def _counter(pair: RecognisedModel, x: Tensor) -> str | None:
    """The name of what two equal calls, on a single node with a loop, leave with two values."""
    loop = pair.edge_index.new_zeros(2, 1)
    pair.frozen(x[:1], loop)
    before = plain_state(pair.frozen.module)
    pair.frozen(x[:1], loop)
    after = plain_state(pair.frozen.module)
    return next((name for name in after if before.get(name) != after[name]), None)


def _made_features(
    pair: RecognisedModel, enclosure: Enclosure, precision: str
) -> tuple[Comparison, Comparison]:
    """With the features that the certificate speaks of: the anchors', and the equilibrium's."""
    from torch import from_numpy

    dtype = np.float64 if precision == "float64" else np.float32
    written = from_numpy(enclosure.features(anchors=True, dtype=dtype))
    reached = from_numpy(enclosure.features(anchors=False, dtype=dtype))
    return pair.run(written, "the anchors'"), pair.run(reached, "the equilibrium's")


def _shown(
    enclosure: Enclosure, compared: tuple[Comparison, Comparison, Comparison], unknown: int
) -> tuple[str, ...]:
    """Everything that was shown of the graph's nodes, in words."""
    facts = enclosure.certificate["graph"]["equilibrium"]
    words = node_sentences(facts)
    if unknown:
        words.append(f"{unknown} of these labels are as stored: the graph does not know them.")
    largest = max(compared, key=lambda one: one.gap)
    words.append(_agreed("the given, the anchors' and the equilibrium's", largest))
    best, certain = enclosure.classes(facts["residual"])
    anchored, reached = [int((certain & (one.classes == best)).sum()) for one in compared[1:]]
    words.append(
        f"It gives {reached} of the {facts['certain']} nodes their certain class with the"
        f" equilibrium's features, and {anchored} with the anchors'."
    )
    return tuple(words)


def _agreed(which: str, compared: Comparison) -> str:
    return (
        f"The model itself, run on this graph with {which} features, answers like the layers of the"
        f" loop up to the rounding of {compared.precision}: within {at_most(compared.gap)}."
    )


def given_array(x: Any) -> np.ndarray:
    """Features as they are; numpy knows no bfloat16, and each is a float32.

    Args:
        x: shape (N, d).
    """
    plain = x.detach().cpu()
    return np.asarray((plain.float() if str(plain.dtype) == "torch.bfloat16" else plain).numpy())


def _weights_of(model: nn.Module, data: Any) -> str | None:
    """The name of what the graph has and the model's forward takes to weigh messages by."""
    taken = inspect.signature(model.forward).parameters
    names = [name for name in ("edge_weight", "edge_attr") if name in taken]
    return next((name for name in names if getattr(data, name, None) is not None), None)


def _compared_labels(stored: GraphStates, data: Any) -> tuple[int, int]:
    """How many labels that the certificate counts are others than the graph's, and how many the
    graph does not know; negative ones are unknown."""
    y = getattr(data, "y", None)
    size = len(stored.x)
    if y is None or y.numel() != size:
        return 0, len(stored.nodes)
    if len(stored.nodes) and not 0 <= stored.nodes.min() <= stored.nodes.max() < size:
        raise CertificateError("the certificate counts labels of nodes that the graph has not")
    own = y.detach().cpu().numpy().reshape(size)[stored.nodes]
    wrong = (own >= 0) & (own != stored.labels)
    return int(wrong.sum()), int((~(own >= 0)).sum())


def model_layers(found: Aggregation) -> list[Branches]:
    """The layers of a recognised model as arrays: power, weight and bias of each branch."""
    return [
        [(branch.power, branch.weight.numpy(), branch.bias.numpy()) for branch in layer]
        for layer in found.layers
    ]


def is_undirected(edges: np.ndarray) -> bool:
    """Whether every edge goes both ways, as often one way as the other.

    Args:
        edges: shape (2, E).
    """
    there = edges[:, np.lexsort(edges)]
    back = edges[::-1]
    return bool(np.array_equal(there, back[:, np.lexsort(back)]))


def _layers_difference(graph: Mapping[str, Any], found: Aggregation) -> str | None:
    if found.reason:
        return f"the model's message passing is not recognised: {found.reason}"
    if (graph["operator"], graph["undirected"]) != (found.operator, found.undirected):
        return f"the model aggregates otherwise: {found.operator!r}, not {graph['operator']!a}"
    stored = [
        {branch["power"]: decode_array(branch["weight"]) for branch in layer}
        for layer in graph["layers"]
    ]
    own = [
        {power: weight for power, weight, _ in layer if weight.any()}
        for layer in model_layers(found)
    ]
    if len(stored) != len(own):
        return f"the model has {len(own)} layers with message passing, not {len(stored)}"
    for k, (there, here) in enumerate(zip(stored, own, strict=True)):
        used = {power: weight for power, weight in there.items() if weight.any()}
        same = used.keys() == here.keys() and all(
            np.array_equal(used[power], here[power]) for power in here
        )
        if not same:
            return f"the model's weights in layer {k} are not those of the certificate's graph part"
    return None
