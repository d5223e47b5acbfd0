"""The writer: gathers what the engines found, derives the sentence, seals the file.

What follows from weights and verdicts is derived by the checker's own code, which believes nothing
of it when it reads the file again.
"""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np

from graphkeel import __version__
from graphkeel.certificate.encoding import encode_array, sealed
from graphkeel.certificate.sources import Floats, Source, WriterSettings, source_to_json
from graphkeel.checker import Rejected, Unreadable
from graphkeel.checker.certificate import ASKED, class_problem, derive
from graphkeel.checker.conclusion import all_together
from graphkeel.checker.graph import derive_graph, not_covered
from graphkeel.checker.networks import read_source
from graphkeel.checker.reading import VERSION
from graphkeel.core.errors import CertificateError
from graphkeel.core.names import check_name

FORMAT = "graphkeel-certificate"
_VERDICTS = ("proved", "refuted", "unknown")


@dataclass(frozen=True, eq=False)
class ClassProof:
    """One class: the shipped weights, the question about them, and the engines' answers.

    Attributes:
        label: the class, a coordinate of the state.
        form: paper, anchored or homogeneous.
        controller: f, from states to features.
        lyapunov: V, from states to numbers.
        anchor: h*, the feature that is written into the graph, shape (d,).
        problem: a `verify.Problem`, or anything with its attributes; its box, equilibrium, hole
            radius, ρ and c are taken, its networks are not: they are composed from the weights.
        conditions: name to `verify.ConditionReport`, or to anything with its attributes.
        delta: δ, the representative's tolerance.
        margin: γ, of the states in the class's region.
    """

    label: int
    form: str
    controller: Source
    lyapunov: Source
    anchor: Floats
    problem: Any
    conditions: Mapping[str, Any]
    delta: float
    margin: float = 0.0


@dataclass(frozen=True, eq=False)
class GraphProof:
    """The model with its message passing, and one gauge for all classes.

    Attributes:
        layers: for each layer its branches (power p of Ŝ, weight of shape (out, in)).
        gauge: r of V(z) = Σ rᵢ|zᵢ|, shape (n,).
        operator: the name of Ŝ.
        undirected: the model was recognised on graphs only whose edges go both ways.
        reason: why nothing is claimed; the other attributes are not used then.
    """

    layers: Sequence[Sequence[tuple[int, Floats]]] = ()
    gauge: Floats | None = None
    operator: str = ""
    undirected: bool = False
    reason: str = ""


def build_certificate(
    head: Source,
    classes: Sequence[ClassProof],
    *,
    provenance: Mapping[str, Any] | None = None,
    data_sha256: str | None = None,
    graph: GraphProof | None = None,
) -> dict[str, Any]:
    """The certificate as a JSON object, its seal included.

    Args:
        head: C, from features to states.
        classes: one proof per class.
        provenance: what the writer wants to say of itself; nothing in the file can prove it.
        data_sha256: `graph_sha256` of the graph that the domain was taken from.
        graph: the model with its message passing, where that was analysed.
    """
    if not classes:
        raise CertificateError("a certificate needs at least one class", got="none")
    head_json = source_to_json(head)
    entries = [_class_entry(head_json, proof) for proof in classes]
    passing = {} if graph is None else {"graph": _graph_entry(graph, entries)}
    content = {
        "format": FORMAT,
        "version": VERSION,
        "provenance": {**_provenance(), **(provenance or {})},
        "head": head_json,
        "classes": entries,
        "together": all_together(entries),
        "not_covered": not_covered(passing.get("graph")),
        "data": data_sha256,
        **passing,
    }
    return sealed(content)


def _class_entry(head_json: list[list[dict[str, Any]]], proof: ClassProof) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "class": int(proof.label),
        "form": str(proof.form),
        "controller": source_to_json(proof.controller),
        "lyapunov": source_to_json(proof.lyapunov),
        "anchor": encode_array(proof.anchor),
        "problem": _question(proof),
        "conditions": {name: _answer(proof.conditions.get(name)) for name in ASKED},
    }
    where = f"class {proof.label}"
    try:
        head = read_source(head_json, "the head")
        problem = class_problem(head, entry, where, WriterSettings().work())
        derived = derive(head, problem, entry)
    except (Unreadable, Rejected, ArithmeticError) as error:
        raise CertificateError(f"{where} cannot be certified", got=str(error)) from None
    return {
        **entry,
        **derived,
        "conditions": {**entry["conditions"], **derived["conditions"]},
    }


def _graph_entry(graph: GraphProof, entries: list[dict[str, Any]]) -> dict[str, Any]:
    """The claim about message passing; `unknown` where the weights do not give a factor below one,
    as nothing is claimed then."""
    if graph.reason or graph.gauge is None:
        return {"contraction": "unknown", "reason": graph.reason}
    content = {
        "layers": [
            [{"power": power, "weight": encode_array(weight)} for power, weight in layer]
            for layer in graph.layers
        ],
        "gauge": encode_array(graph.gauge),
        "operator": graph.operator,
        "undirected": graph.undirected,
    }
    try:
        derived = derive_graph(content, entries, WriterSettings().work())
    except (Unreadable, Rejected, ArithmeticError) as error:
        return {"contraction": "unknown", "reason": f"the graph's loop cannot be bounded: {error}"}
    if derived["contraction"] != "proved":
        factor = f"the factor {derived['kappa']:.3g} in a common norm is not below one"
        return {"contraction": "unknown", "reason": factor}
    return {**content, **derived}


def _question(proof: ClassProof) -> dict[str, Any]:
    """Where and what is claimed. A hole that is a ball is stated as the box around it."""
    problem = proof.problem
    arrays = ("lower", "upper", "equilibrium")
    numbers = ("hole_radius", "rho", "positivity")
    return {
        **{name: encode_array(getattr(problem, name)) for name in arrays},
        **{name: float(getattr(problem, name)) for name in numbers},
        "delta": float(proof.delta),
        "margin": float(proof.margin),
    }


def _answer(report: Any) -> dict[str, Any]:
    """An engine's answer; what was not asked is unknown."""
    if report is None:
        remarks = {"engine": "none", "reason": "not asked", "seconds": 0.0, "nodes": 0}
        return {"verdict": "unknown", **remarks, "proof": None, "counterexample": None}
    verdict = str(getattr(report.verdict, "value", report.verdict))
    check_name("a verdict", verdict, _VERDICTS, CertificateError)
    point = report.counterexample
    return {
        "verdict": verdict,
        "engine": str(report.engine),
        "reason": str(report.reason),
        "seconds": float(report.seconds),
        "nodes": int(report.nodes),
        "proof": report.proof if verdict == "proved" else None,
        "counterexample": encode_array(point) if verdict == "refuted" else None,
    }


def _provenance() -> dict[str, Any]:
    return {
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "graphkeel": __version__,
    }
