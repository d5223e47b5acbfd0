"""The part of a certificate that is about one graph: written here, and compared here again."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import ROUND_CEILING, Context
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphkeel.certificate.agreement import Differs
from graphkeel.certificate.encoding import read_arrays, sealed
from graphkeel.certificate.graph_check import Enclosure, GraphStates
from graphkeel.certificate.layers import Branches
from graphkeel.certificate.sources import WriterSettings
from graphkeel.core.digests import arrays_sha256
from graphkeel.core.errors import CertificateError

STATES = "equilibrium.safetensors"  # beside certificate.json


def with_equilibrium(
    certificate: Mapping[str, Any],
    layers: list[Branches],
    graph: GraphStates,
) -> dict[str, Any]:
    slack = WriterSettings().rounding
    enclosure = Enclosure(certificate, layers, graph)
    residual = slack * enclosure.residual_bound()
    facts = enclosure.certain_nodes(residual)
    written = enclosure.written(residual, slack=slack)
    stated = {**facts, "written": written, "states_sha256": states_sha256(graph)}
    return sealed({**certificate, "graph": {**certificate["graph"], "equilibrium": stated}})


def compare_equilibrium(enclosure: Enclosure) -> None:
    """The states have to show all that is stated of the graph's nodes."""
    graph = enclosure.graph
    stated = enclosure.certificate["graph"]["equilibrium"]
    if not isinstance(stated, dict) or stated.get("states_sha256") != states_sha256(graph):
        raise Differs("the stored states of the graph are not those that the certificate names")
    residual = stated.get("residual")
    if type(residual) is not float or not 0 < residual < np.inf:
        raise Differs("the residual on the graph is no positive number")
    measured = enclosure.residual_bound()
    if measured > residual:
        found = f"up to {measured:.3g}, not {residual:.3g} as stated"
        raise Differs(f"the residual on the graph is {found}")
    facts = enclosure.certain_nodes(residual)
    facts |= {"written": stated.get("written"), "states_sha256": states_sha256(graph)}
    if stated != facts or any(type(stated[name]) is not type(facts[name]) for name in facts):
        wrong = ", ".join(sorted(key for key in facts if stated.get(key) != facts[key]))
        what = "what is stated of the graph's nodes"
        raise Differs(f"{what} does not follow from their states: {wrong}")
    _compare_written(stated["written"], enclosure.written(residual))


def _compare_written(stated: Any, found: dict[str, Any]) -> None:
    """Distances are stated as upper bounds, the count of kept classes as a lower one."""
    kinds = {name: type(value) for name, value in found.items()}
    if not isinstance(stated, dict) or {k: type(v) for k, v in stated.items()} != kinds:
        raise Differs("what is stated of the written features has another form than it should")
    for name in ("max", "median"):
        if not found[name] <= stated[name] < np.inf:
            raise Differs(
                f"the {name} distance of the written features from the equilibrium's is up to"
                f" {found[name]:.3g}, not {stated[name]:.3g} as stated"
            )
    if (stated["norm"], stated["size"]) != (found["norm"], found["size"]):
        raise Differs("the norm or the size of the written features is not as stated")
    if not 0 <= stated["kept"] <= found["kept"]:
        shown = f"{found['kept']} nodes, not {stated['kept']!a}"
        raise Differs(f"the class is shown to be kept at {shown}")


def states_sha256(graph: GraphStates) -> str:
    """SHA-256 of states, labelled nodes and their labels."""
    return arrays_sha256([(graph.states, "<f8"), (graph.nodes, "<i8"), (graph.labels, "<i8")])


def read_states(
    states: Path | Mapping[str, Any], x: NDArray[Any], edges: NDArray[np.int64]
) -> GraphStates:
    arrays = read_arrays(states, "states", ("states", "nodes", "labels"))
    kinds = [(array.dtype.name, array.ndim) for array in arrays]
    if kinds != [("float64", 2), ("int64", 1), ("int64", 1)]:
        raise CertificateError("the states are other arrays than they should be", got=kinds)
    return GraphStates(x, edges, *arrays)


def without_equilibrium(certificate: Mapping[str, Any]) -> dict[str, Any]:
    """The certificate without what it says of one graph's nodes; what holds on every graph
    stays."""
    graph = {key: value for key, value in certificate["graph"].items() if key != "equilibrium"}
    remarks = certificate["provenance"]
    kept = {key: remarks[key] for key in remarks if key != "graph_steps"}
    return sealed({**certificate, "graph": graph, "provenance": kept})


def graph_sentences(graph: Mapping[str, Any]) -> list[str]:
    if graph["contraction"] != "proved":
        return [f"With message passing: unknown ({graph['reason']})."]
    every = "every undirected graph" if graph.get("undirected") else "every graph"
    factor = at_most(graph["kappa"], digits=3)
    words = [f"With message passing: one equilibrium on {every}, factor {factor}."]
    facts = graph.get("equilibrium")
    if facts:
        words += node_sentences(facts)
        words.append("That is stated of this graph; keel check --model --data computes it again.")
    return words


def node_sentences(facts: Mapping[str, Any]) -> list[str]:
    """Sentences about one graph's nodes; upper bounds are rounded up."""
    written = facts["written"]
    return [
        f"On this graph {facts['certain']} of {facts['nodes']} nodes have a certain class there; of"
        f" {facts['labelled']} labelled nodes {facts['labelled_certain']} their own.",
        f"The {facts['labelled']} labelled nodes are controlled, each for its own class.",
        f"The anchors' features are within {at_most(written['max'])} of the equilibrium's (median"
        f" at most {at_most(written['median'])}; the largest number in an anchor is"
        f" {written['size']:.2g}), and lead at least {written['kept']} nodes to the same class.",
    ]


def at_most(value: float, digits: int = 2) -> str:
    """A few digits, rounded up."""
    context = Context(prec=digits, rounding=ROUND_CEILING)
    return f"{float(context.create_decimal(value)):.{digits}g}"
