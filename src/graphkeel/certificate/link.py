"""A certificate tied to real things: a model, and maybe a graph.

The head is taken out of the model again and compared bit by bit, the graph's hash is compared, the
domain D has to hold the model's own logits on that graph, and where something is said of message
passing or of features that ship, its own answers there have to be those of the layers that it was
recognised as."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from graphkeel.certificate.agreement import (
    Comparison,
    RecognisedModel,
    given_array,
    model_layers,
)
from graphkeel.certificate.encoding import decode_array
from graphkeel.certificate.equilibrium import (
    at_most,
    equilibrium_difference,
    node_sentences,
    read_states,
)
from graphkeel.certificate.graph_check import Enclosure, GraphStates
from graphkeel.certificate.layers import is_undirected
from graphkeel.certificate.steering import (
    features_difference,
    features_sentence,
    linear_difference,
    read_shipped,
)
from graphkeel.core.errors import CertificateError, DataError

if TYPE_CHECKING:
    from torch import Tensor, nn

    from graphkeel.models.aggregation import Aggregation
    from graphkeel.models.frozen import FrozenModel
    from graphkeel.models.head import Head

Stored = Path | Mapping[str, Any] | None  # arrays: a file, or by their names


@dataclass(frozen=True)
class Link:
    """How a certificate is tied to a model, and maybe to a graph.

    Attributes:
        difference: from what the certificate speaks of, in words; None if there is none.
        on_graph: what was shown to hold of the given graph, in words.
    """

    difference: str | None = None
    on_graph: tuple[str, ...] = ()


class _Differs(Exception):
    """How the model, or the graph, differs from what the certificate speaks of, in words."""


def _same(difference: str | None) -> None:
    if difference is not None:
        raise _Differs(difference)


def link(
    content: Mapping[str, Any],
    model: nn.Module,
    data: Any | None,
    states: Stored = None,
    steering: Stored = None,
) -> Link:
    try:
        return Link(None, _linked(content, model, data, states, steering))
    except _Differs as difference:
        return Link(str(difference))


def _linked(
    content: Mapping[str, Any],
    model: nn.Module,
    data: Any | None,
    states: Stored,
    steering: Stored,
) -> tuple[str, ...]:
    frozen = _with_this_head(content, model)
    scores = None if data is None else _on_this_graph(content, frozen, data)
    passes = (content.get("graph") or {}).get("contraction") == "proved"
    if not passes and "steering" not in content:
        return ()
    found = _recognised(content, frozen, data, passes)
    if data is None or scores is None:
        return ()
    try:
        pair = RecognisedModel.of(found, frozen, data.edge_index, len(data.x))
        given = pair.compare_own(data.x, scores)
        _same(given.difference)
        words = _equilibrium_shown(content, pair, given, data, states) if passes else ()
        if "steering" in content:
            words += _features_shown(content["steering"], pair, found.operator, data, steering)
        return words
    except CertificateError as error:
        raise _Differs(str(error)) from None


def _with_this_head(content: Mapping[str, Any], model: nn.Module) -> FrozenModel:
    """The model, whose head is the certificate's to the bit."""
    from graphkeel.models.frozen import FrozenModel
    from graphkeel.models.head import extract_head

    stored = content["head"]
    plain = all(len(layer) == 1 and None not in layer[0].values() for layer in stored)
    if not plain:
        raise _Differs("the certificate's head is no plain chain of layers, as a model's is")
    _same(_head_difference(stored, extract_head(model, _width(content))))
    n_classes = int(content["classes"][0]["problem"]["lower"]["shape"][0])
    return FrozenModel(model, n_classes=n_classes)


def _on_this_graph(content: Mapping[str, Any], frozen: FrozenModel, data: Any) -> Tensor:
    """The model's answers on the graph that the certificate names, inside its domain."""
    from graphkeel.graph.task import graph_sha256

    own = graph_sha256(data.x, data.edge_index)
    if content.get("data") != own:
        raise _Differs(_other_graph(content.get("data"), own))
    scores = frozen(data.x, data.edge_index)
    _same(_domain_difference(content, frozen.as_logits(scores)))
    return scores


def _width(content: Mapping[str, Any]) -> int:
    return int(content["head"][0][0]["weight"]["shape"][1])


def _recognised(
    content: Mapping[str, Any], frozen: FrozenModel, data: Any | None, passes: bool
) -> Aggregation:
    """The model's layers, which are those that the certificate speaks of, on edges they know."""
    from graphkeel.models.aggregation import recognise

    found = recognise(frozen.module, _width(content))
    if found.reason:
        raise _Differs(f"the model's message passing is not recognised: {found.reason}")
    if passes:
        _same(_layers_difference(content["graph"], found))
    contraction = (content.get("steering") or {}).get("contraction")
    if contraction is not None:
        weight = decode_array(content["head"][0][0]["weight"])
        edges = None if data is None else data.edge_index.cpu().numpy()
        _same(linear_difference(weight, contraction["hops"], found, edges))
    if data is not None:
        _same(_edges_difference(found.undirected, frozen, data))
    return found


def _head_difference(stored: list[list[dict[str, Any]]], head: Head) -> str | None:
    if head.unsupported is not None:
        return f"the model's head cannot be taken out: {head.unsupported}"
    if len(stored) != len(head.layers):
        return f"the model's head has {len(head.layers)} layers, the certificate's {len(stored)}"
    for k, (factors, layer) in enumerate(zip(stored, head.layers, strict=True)):
        for name, tensor in zip(("weight", "bias"), layer, strict=True):
            there = decode_array(factors[0][name])
            here = tensor.detach().double().cpu().numpy()
            if there.shape != here.shape:
                return (
                    f"the model's head has the {name} shape {here.shape} in layer {k},"
                    f" the certificate's {there.shape}"
                )
            if not np.array_equal(there, here):
                gap = float(np.abs(there - here).max())
                count = int((there != here).sum())
                return (
                    f"the certificate is about another model: {count} of {here.size} numbers of its"
                    f" head's {name} in layer {k} differ, by up to {gap:.3g}"
                )
    return None


def _other_graph(stored: Any, own: str) -> str:
    if stored is None:
        return "the certificate names no graph, so it cannot be tied to one"
    other = str(stored)[:12]
    return f"the certificate is about another graph: its hash is {other!a}, not {own[:12]!r}"


def _domain_difference(content: Mapping[str, Any], logits: Tensor) -> str | None:
    states = logits.double().cpu().numpy()
    for entry in content["classes"]:
        lower = decode_array(entry["problem"]["lower"])
        upper = decode_array(entry["problem"]["upper"])
        inside = ((states >= lower) & (states <= upper)).all(axis=1)  # NaN is not
        outside = len(states) - int(inside.sum())
        if outside:
            return f"class {entry['class']}: the logits of {outside} nodes lie outside the domain D"
    return None


def _layers_difference(graph: Mapping[str, Any], found: Aggregation) -> str | None:
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


def _edges_difference(undirected: bool, frozen: FrozenModel, data: Any) -> str | None:
    """How the graph's edges are others than the recognised model knows; None if not."""
    weighed = _weights_of(frozen.module, data)
    if weighed is not None:
        return (
            f"the model may weigh messages by the graph's {weighed}, which the loop does not know"
        )
    if undirected and not is_undirected(data.edge_index.cpu().numpy()):
        return "the model's message passing was recognised on undirected graphs only"
    return None


def _weights_of(model: nn.Module, data: Any) -> str | None:
    """The name of what the graph has and the model's forward takes to weigh messages by."""
    taken = inspect.signature(model.forward).parameters
    names = [name for name in ("edge_weight", "edge_attr") if name in taken]
    return next((name for name in names if getattr(data, name, None) is not None), None)


# ---- the nodes of one graph


def _equilibrium_shown(
    content: Mapping[str, Any],
    pair: RecognisedModel,
    given: Comparison,
    data: Any,
    states: Stored,
) -> tuple[str, ...]:
    """The count of the graph's nodes, and the model's answers to those features, in words."""
    if "equilibrium" not in content["graph"]:
        return (_agreed("the given", given),)
    what = "the certificate counts nodes of the graph, but their states are missing"
    place = _present(states, what)
    stored = read_states(place, given_array(data.x), data.edge_index.cpu().numpy())
    wrong, unknown = _compared_labels(stored, data)
    if wrong:
        raise _Differs(f"{wrong} of {len(stored.nodes)} labels are not those of the graph")
    enclosure = Enclosure(content, pair.layers, stored)
    _same(equilibrium_difference(enclosure))
    written, reached = _made_features(pair, enclosure, given.precision)
    _same(written.difference)
    _same(reached.difference)
    return _shown(enclosure, (given, written, reached), unknown)


def _features_shown(
    steering: Mapping[str, Any],
    pair: RecognisedModel,
    operator: str,
    data: Any,
    stored: Stored,
) -> tuple[str, ...]:
    """The claim about the features that ship, and the model's answers to them, in words."""
    from torch import tensor

    facts = steering["features"]
    if facts is None:
        return ()
    what = "the certificate speaks of features that ship, but these are missing"
    place = _present(stored, what)
    shipped = read_shipped(place, given_array(data.x), data.edge_index.cpu().numpy())
    _same(features_difference(facts, shipped, pair.layers, operator))
    own = pair.run(tensor(shipped.features), "the shipped")
    _same(own.difference)
    certain = shipped.as_decided(pair.layers, operator)
    kept = int((certain & (own.classes == shipped.wanted)).sum())
    agreed = (
        f"The model itself, run with them, answers like its layers up to the rounding of"
        f" {own.precision}, within {at_most(own.gap)}, and gives {kept} of these"
        f" {int(certain.sum())} nodes the decided class."
    )
    return (features_sentence(facts), agreed)


def _present(stored: Stored, what: str) -> Path | Mapping[str, Any]:
    """The arrays behind a certificate, where there are any."""
    if stored is None:
        raise _Differs(what)
    if isinstance(stored, Path) and not stored.exists():
        raise DataError(
            what,
            got=f"no {stored.name} beside it",
            fix="Keep both files in one folder; a link to one of them is not enough.",
        )
    return stored


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
