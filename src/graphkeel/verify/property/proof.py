"""The proof of a property that holds, as JSON (docs/formats.md, 7); the caller seals the
file."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from graphkeel.verify.problem import Array
from graphkeel.verify.proof import VERSION, Json, encode
from graphkeel.verify.property.network import BlockNetwork
from graphkeel.verify.property.question import Case, Property
from graphkeel.verify.property.squares import Rewritten

if TYPE_CHECKING:
    from graphkeel.verify.tree import Piece

FORMAT = "graphkeel-proof"


def _question_entry(network: BlockNetwork, prop: Property) -> Json:
    """The question: the network, and every case without its tree."""
    blocks = []
    for block in network.blocks:
        terms = [{"source": source, "weight": _floats(weight)} for source, weight in block.terms]
        entry = {"terms": terms, "bias": _floats(block.bias), "relu": block.relu}
        blocks.append(entry | ({"square": True} if block.square else {}))
    cases = [_case_entry(case) for case in prop.cases]
    return {"network": {"inputs": network.inputs, "blocks": blocks}, "cases": cases}


def proof_entry(
    network: BlockNetwork, prop: Property, trees: list[Piece], forms: list[Rewritten]
) -> Json:
    """The whole proof; the forms are those of the cases."""
    entry = _question_entry(network, prop)
    for case, tree, form in zip(entry["cases"], trees, forms, strict=True):
        if form.squares is not None and form.outputs is not None:
            case["squares"], case["outputs"] = encode(form.squares), encode(form.outputs)
        case["tree"] = {
            "axis": encode(tree.axis),
            "cut": encode(tree.cut),
            "slopes": encode(tree.lines.slopes),
            "multipliers": encode(tree.lines.weights),
        }
    return {"format": FORMAT, "version": VERSION, **entry}


def difference(content: Json, network: BlockNetwork, prop: Property) -> str | None:
    """How a proof's question differs from that of two files, or None."""
    wanted = _question_entry(network, prop)
    if as_text(content["network"]) != as_text(wanted["network"]):
        return "the proof is about another network than the file's"
    choices = ("tree", "squares", "outputs")
    stored = [{key: c[key] for key in c if key not in choices} for c in content["cases"]]
    if as_text(stored) != as_text(wanted["cases"]):
        return "the proof is about other cases than the property's"
    return None


def as_text(value: object) -> str:
    """JSON for comparing: to Python, 1, 1.0 and True are the same."""
    return json.dumps(value, sort_keys=True)


def _case_entry(case: Case) -> Json:
    arrays = {
        "lower": case.lower,
        "upper": case.upper,
        "weight": case.weight,
        "constant": case.constant,
    }
    return {name: _floats(values) for name, values in arrays.items()}


def _floats(values: Array) -> Json:
    """In half the space where every number is a float32, too."""
    with np.errstate(over="ignore"):
        short: NDArray[np.float32] = values.astype(np.float32)
    return encode(short if (short == values).all() else values)
