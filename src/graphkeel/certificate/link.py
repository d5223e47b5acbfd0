"""A certificate tied to real things: a model, and maybe a graph.

The head is taken out of the model again and compared bit by bit, the graph's hash is compared, the
domain D has to hold the model's own logits on that graph, and where something is said of message
passing or of features that ship, its own answers there have to be those of the layers that it was
recognised as."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from graphkeel.certificate.agreement import (
    Comparison,
    Differs,
    RecognisedModel,
    given_array,
    model_layers,
)
from graphkeel.certificate.encoding import decode_array
from graphkeel.certificate.equilibrium import (
    at_most,
    compare_equilibrium,
    node_sentences,
    read_states,
)
from graphkeel.certificate.graph_check import Enclosure, GraphStates
from graphkeel.certificate.layers import is_undirected
from graphkeel.certificate.steering import (
    compare_features,
    compare_linear,
    features_sentence,
    read_shipped,
)
from graphkeel.core.errors import CertificateError, DataError

if TYPE_CHECKING:
    from torch import Tensor, nn

    from graphkeel.models.aggregation import Aggregation
    from graphkeel.models.frozen import FrozenModel

Stored = Path | Mapping[str, Any] | None  # arrays: a file, or by their names


def link(
    content: Mapping[str, Any],
    model: nn.Module,
    data: Any,
    states: Stored = None,
    steering: Stored = None,
) -> tuple[str, ...]:
    """Sentences that are shown to hold of the given graph; none without a graph."""
    frozen = _with_this_head(content, model)
    scores = None if data is None else _on_this_graph(content, frozen, data)
    passes = (content.get("graph") or {}).get("contraction") == "proved"
    if not passes and "steering" not in content:
        return ()
    found = _recognised(content, frozen, data, passes)
    if scores is None:
        return ()
    try:
        pair = RecognisedModel(found, frozen, data.edge_index, len(data.x))
        given = pair.compare_own(data.x, scores)
        words = _equilibrium_shown(content, pair, given, data, states) if passes else ()
        if "steering" in content:
            words += _features_shown(content["steering"], pair, data, steering)
        return words
    except CertificateError as error:
        raise Differs(str(error)) from None


def _with_this_head(content: Mapping[str, Any], model: nn.Module) -> FrozenModel:
    """The model, whose head is the certificate's to the bit."""
    from graphkeel.models.frozen import FrozenModel
    from graphkeel.models.head import extract_head

    stored = content["head"]
    if any(len(layer) != 1 or None in layer[0].values() for layer in stored):
        raise Differs("the certificate's head is no plain chain of layers, as a model's is")
    head = extract_head(model, decode_array(stored[0][0]["weight"]).shape[1])
    if head.unsupported is not None:
        raise Differs(f"the model's head cannot be taken out: {head.unsupported}")
    if len(stored) != len(head.layers):
        count = len(head.layers)
        raise Differs(f"the model's head has {count} layers, the certificate's {len(stored)}")
    for k, (factors, layer) in enumerate(zip(stored, head.layers, strict=True)):
        for name, tensor in zip(("weight", "bias"), layer, strict=True):
            _same_numbers(decode_array(factors[0][name]), tensor.cpu().numpy(), name, k)
    n_classes = int(content["classes"][0]["problem"]["lower"]["shape"][0])
    return FrozenModel(model, n_classes=n_classes)


def _same_numbers(there: np.ndarray, here: np.ndarray, name: str, k: int) -> None:
    if there.shape != here.shape:
        raise Differs(
            f"the model's head has the {name} shape {here.shape} in layer {k},"
            f" the certificate's {there.shape}"
        )
    if not np.array_equal(there, here):
        gap = float(np.abs(there - here).max())
        count = int((there != here).sum())
        raise Differs(
            f"the certificate is about another model: {count} of {here.size} numbers of its"
            f" head's {name} in layer {k} differ, by up to {gap:.3g}"
        )


def _on_this_graph(content: Mapping[str, Any], frozen: FrozenModel, data: Any) -> Tensor:
    """The model's answers on the graph that the certificate names, inside its domain."""
    from graphkeel.graph.task import graph_sha256

    stored, own = content.get("data"), graph_sha256(data.x, data.edge_index)
    if stored is None:
        raise Differs("the certificate names no graph, so it cannot be tied to one")
    if stored != own:
        other = f"its hash is {str(stored)[:12]!a}, not {own[:12]!r}"
        raise Differs(f"the certificate is about another graph: {other}")
    scores = frozen(data.x, data.edge_index)
    states = frozen.as_logits(scores).double().cpu().numpy()
    for entry in content["classes"]:
        lower, upper = (decode_array(entry["problem"][name]) for name in ("lower", "upper"))
        inside = ((states >= lower) & (states <= upper)).all(axis=1)  # NaN is not
        if not inside.all():
            where = f"the logits of {(~inside).sum()} nodes lie outside the domain D"
            raise Differs(f"class {entry['class']}: {where}")
    return scores


def _recognised(
    content: Mapping[str, Any], frozen: FrozenModel, data: Any, passes: bool
) -> Aggregation:
    """The model's layers, which are those that the certificate speaks of, on edges they know."""
    from graphkeel.models.aggregation import recognise

    first = decode_array(content["head"][0][0]["weight"])
    found = recognise(frozen.module, first.shape[1])
    if found.reason:
        raise Differs(f"the model's message passing is not recognised: {found.reason}")
    if passes:
        _same_layers(content["graph"], found)
    edges: Any = None if data is None else data.edge_index.cpu().numpy()
    contraction = (content.get("steering") or {}).get("contraction")
    if contraction is not None:
        compare_linear(first, contraction["hops"], found, edges)
    if data is None:
        return found
    taken = inspect.signature(frozen.module.forward).parameters
    for name in ("edge_weight", "edge_attr"):
        if name in taken and getattr(data, name, None) is not None:
            weighed = f"the graph's {name}, which the loop does not know"
            raise Differs(f"the model may weigh messages by {weighed}")
    if found.undirected and not is_undirected(edges):
        raise Differs("the model's message passing was recognised on undirected graphs only")
    return found


def _same_layers(graph: Mapping[str, Any], found: Aggregation) -> None:
    if (graph["operator"], graph["undirected"]) != (found.operator, found.undirected):
        wrong = f"{found.operator!r}, not {graph['operator']!a}"
        raise Differs(f"the model aggregates otherwise: {wrong}")
    stored = [
        {branch["power"]: decode_array(branch["weight"]) for branch in layer}
        for layer in graph["layers"]
    ]
    own = [{power: weight for power, weight, _ in layer} for layer in model_layers(found)]
    if len(stored) != len(own):
        raise Differs(f"the model has {len(own)} layers with message passing, not {len(stored)}")
    for k, layers in enumerate(zip(stored, own, strict=True)):
        there, here = ({p: w for p, w in layer.items() if w.any()} for layer in layers)
        if there.keys() != here.keys() or not all(np.array_equal(there[p], here[p]) for p in here):
            what = f"the model's weights in layer {k}"
            raise Differs(f"{what} are not those of the certificate's graph part")


# ---- the nodes of one graph


def _equilibrium_shown(
    content: Mapping[str, Any],
    pair: RecognisedModel,
    given: Comparison,
    data: Any,
    states: Stored,
) -> tuple[str, ...]:
    """The count of the graph's nodes, and the model's answers to those features, in words."""
    facts = content["graph"].get("equilibrium")
    if facts is None:
        return (_agreed("the given", given),)
    what = "the certificate counts nodes of the graph, but their states are missing"
    place = _present(states, what)
    stored = read_states(place, given_array(data.x), data.edge_index.cpu().numpy())
    unknown = _unknown_labels(stored, data)
    enclosure = Enclosure(content, pair.layers, stored)
    compare_equilibrium(enclosure)
    written = _with_features(pair, enclosure, given.precision, anchors=True)
    reached = _with_features(pair, enclosure, given.precision, anchors=False)
    words = node_sentences(facts)
    if unknown:
        words.append(f"{unknown} of these labels are as stored: the graph does not know them.")
    largest = max((given, written, reached), key=lambda one: one.gap)
    words.append(_agreed("the given, the anchors' and the equilibrium's", largest))
    best, certain = enclosure.classes(facts["residual"])
    kept, own = (int((certain & (one.classes == best)).sum()) for one in (reached, written))
    words.append(
        f"It gives {kept} of the {facts['certain']} nodes their certain class with the"
        f" equilibrium's features, and {own} with the anchors'."
    )
    return tuple(words)


def _with_features(
    pair: RecognisedModel, enclosure: Enclosure, precision: str, *, anchors: bool
) -> Comparison:
    """With the features that the certificate speaks of: the anchors', or the equilibrium's."""
    from torch import from_numpy

    dtype = np.float64 if precision == "float64" else np.float32
    features = from_numpy(enclosure.features(anchors=anchors, dtype=dtype))
    return pair.run(features, "the anchors'" if anchors else "the equilibrium's")


def _features_shown(
    steering: Mapping[str, Any], pair: RecognisedModel, data: Any, stored: Stored
) -> tuple[str, ...]:
    """The claim about the features that ship, and the model's answers to them, in words."""
    from torch import tensor

    facts = steering["features"]
    if facts is None:
        return ()
    what = "the certificate speaks of features that ship, but these are missing"
    place = _present(stored, what)
    shipped = read_shipped(place, given_array(data.x), data.edge_index.cpu().numpy())
    compare_features(facts, shipped, pair.layers, pair.found.operator)
    own = pair.run(tensor(shipped.features), "the shipped")
    certain = shipped.as_decided(pair.layers, pair.found.operator)
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
        raise Differs(what)
    if isinstance(stored, Path) and not stored.exists():
        raise DataError(
            what,
            got=f"no {stored.name} beside it",
            fix="Keep both files in one folder; a link to one of them is not enough.",
        )
    return stored


def _agreed(which: str, compared: Comparison) -> str:
    return (
        f"The model itself, run on this graph with {which} features, answers like the layers of the"
        f" loop up to the rounding of {compared.precision}: within {at_most(compared.gap)}."
    )


def _unknown_labels(stored: GraphStates, data: Any) -> int:
    """How many labels that the certificate counts the graph does not know (negative ones are
    unknown); it has no others."""
    y, nodes, size = getattr(data, "y", None), stored.nodes, len(stored.x)
    if y is None or y.numel() != size:
        return len(nodes)
    if len(nodes) and not 0 <= nodes.min() <= nodes.max() < size:
        raise CertificateError("the certificate counts labels of nodes that the graph has not")
    own = y.detach().cpu().numpy().reshape(size)[nodes]
    known = own >= 0
    wrong = int((known & (own != stored.labels)).sum())
    if wrong:
        raise Differs(f"{wrong} of {len(nodes)} labels are not those of the graph")
    return int((~known).sum())
