"""Putting a certificate together from plain arrays and the engines' answers."""

from __future__ import annotations

import platform
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from graphkeel.certificate.collapse import ExactLayer, composed, exact_layers, exact_value, exactly
from graphkeel.certificate.conclusion import NOT_COVERED, conclude, conclude_together
from graphkeel.certificate.dyadic import Dyadic, Floats, square_root_up, up
from graphkeel.certificate.encoding import canonical, digest, encode_array, sealed
from graphkeel.certificate.hole import ExactNetwork, analyse_hole
from graphkeel.certificate.schema import (
    FORMAT,
    SEARCHED,
    VERDICTS,
    VERSION,
    Factor,
    Layer,
    Loop,
    Source,
    loop_of,
    source_to_json,
)
from graphkeel.core.errors import CertificateError
from graphkeel.core.files import write_bytes

Pair = tuple[ArrayLike | None, ArrayLike | None]


@dataclass(frozen=True, eq=False)
class ClassProof:
    """One class: the shipped weights, the collapsed question, and the engines' answers to it."""

    label: int
    form: str  # paper | anchored | homogeneous
    controller: Source  # f: states to features
    lyapunov: Source  # V: states to numbers
    anchor: Floats  # h*, the feature that is written into the graph
    problem: Any  # verify.Problem, or anything with its attributes
    conditions: Mapping[str, Any]  # name -> verify.ConditionReport, or anything with its attributes
    delta: float  # the representative's tolerance
    margin: float = 0.0  # of the class's decision region


def chain(*pairs: Pair) -> tuple[Factor, ...]:
    """One affine layer as the product of its factors, (weight, bias) each, applied from the first
    to the last."""
    return tuple(
        Factor(*(None if part is None else _stored(part) for part in pair)) for pair in pairs
    )


def mlp(layers: Iterable[Pair]) -> Source:
    """A plain ReLU network: one factor a layer (heads, and controller and V of the paper's
    form)."""
    return tuple(chain(layer) for layer in layers)


def anchored_controller(
    A: ArrayLike, a: ArrayLike, B: ArrayLike, h: ArrayLike, equilibrium: ArrayLike
) -> Source:
    """f(y) = h + B(relu(A(y − Y) + a) − relu(a))."""
    shift = np.maximum(np.asarray(a), 0)
    return (chain((None, -np.asarray(equilibrium)), (A, a)), chain((None, -shift), (B, h)))


def anchored_lyapunov(R: ArrayLike, v: ArrayLike, equilibrium: ArrayLike) -> Source:
    """V(y) = vᵀrelu(R(y − Y))."""
    return (
        chain((None, -np.asarray(equilibrium)), (R, None)),
        chain((np.atleast_2d(np.asarray(v)), None)),
    )


def collapsed_loop(controller: Source, head: Source) -> tuple[Layer, ...]:
    """F = C ∘ f: every layer exact, rounded once to float64, with the distance as its error."""
    return collapsed(composed(controller, head))


def collapsed(source: Source) -> tuple[Layer, ...]:
    """A source network with one rounded weight and bias per layer, and their errors."""
    return tuple(_rounded(layer) for layer in exact_layers(source, "a network"))


def build_certificate(
    head: Source,
    classes: Sequence[ClassProof],
    *,
    provenance: Mapping[str, Any] | None = None,
    data_sha256: str | None = None,
) -> dict[str, Any]:
    """The certificate as a JSON object, its hash included."""
    if not classes:
        raise CertificateError("a certificate needs at least one class", got="none")
    head_json = source_to_json(head)
    entries = [class_entry(head, entry) for entry in classes]
    content = {
        "format": FORMAT,
        "version": VERSION,
        "provenance": {**_provenance(), **(provenance or {})},
        "head": head_json,
        "classes": entries,
        "together": together(entries),
        "not_covered": list(NOT_COVERED),
        "hashes": {"head": digest(head_json), "data": data_sha256},
    }
    return sealed(content)


def write_certificate(content: Mapping[str, Any], path: str | Path) -> None:
    """Write the canonical text; the checker accepts no other."""
    write_bytes(Path(path), canonical(dict(content)))


def class_entry(head: Source, proof: ClassProof) -> dict[str, Any]:
    """One class of the certificate, hole and conclusion derived."""
    loop = loop_of(proof.problem)
    weights = {
        "controller": source_to_json(proof.controller),
        "lyapunov": source_to_json(proof.lyapunov),
    }
    problem = loop.to_json()
    conditions = {name: _answer(proof.conditions.get(name)) for name in SEARCHED}
    conditions["representative"] = representative(
        head, proof.controller, proof.anchor, loop, float(proof.delta)
    )
    forward = exact_layers(composed(proof.controller, head), "F")
    region = proof.conditions.get("region")
    conditions["region"] = {**_answer(region), "margin": float(proof.margin)}
    conditions["hole"], conclusion = derived(
        loop, forward, exact_layers(proof.lyapunov, "V"), conditions
    )
    return {
        "class": int(proof.label),
        "form": str(proof.form),
        **weights,
        "anchor": encode_array(_stored(proof.anchor)),
        "problem": problem,
        "conditions": conditions,
        "verdict": overall(conditions),
        "conclusion": conclusion,
        "hashes": {"weights": digest(weights), "domain": digest(domain(problem))},
    }


def domain(problem: Mapping[str, Any]) -> dict[str, Any]:
    """The part of a problem that says where and what, not of which networks."""
    return {key: value for key, value in problem.items() if key not in ("F", "V")}


def derived(
    loop: Loop, forward: ExactNetwork, gauge: ExactNetwork, conditions: Mapping[str, Any]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The hole's entry and the conclusion, from the exact weights and what is proved."""
    proved = frozenset(
        name for name in (*SEARCHED, "region") if conditions[name]["verdict"] == "proved"
    )
    hole = analyse_hole(loop, forward, gauge, proved)
    return hole.to_json(), conclude(
        loop, gauge, hole, proved, conditions["region"]["margin"]
    ).to_json()


def together(entries: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """What the classes give as one controller that is chosen anew at every step."""
    first = domain(entries[0]["problem"])
    one_box = all(
        domain(entry["problem"])[key] == first[key]
        for entry in entries
        for key in ("lower", "upper")
    )
    whole = one_box and sorted(entry["class"] for entry in entries) == list(
        range(first["lower"]["shape"][0])
    )
    return conclude_together(entries, whole=whole)


def representative(
    head: Source, controller: Source, anchor: Any, loop: Loop, delta: float
) -> dict[str, Any]:
    """‖C(h*) − Y‖₂ <= δ, and how far h* is from f(Y); both evaluated exactly."""
    feature = np.asarray(anchor, dtype=np.float64)
    offset = exactly(exact_value(head, feature, "head")) - loop.centre
    square = (offset * offset).sum().fraction()
    at_rest = exact_value(controller, loop.equilibrium, "controller")
    same = not isinstance(at_rest, Dyadic) and np.array_equal(at_rest, feature)
    gap = Fraction(0) if same else abs(Dyadic.of(feature) - exactly(at_rest)).max()
    return {
        "verdict": "proved" if delta >= 0 and square <= Fraction(delta) ** 2 else "refuted",
        "delta": delta,
        "distance": square_root_up(square),
        "anchor_gap": up(gap),
    }


def overall(conditions: Mapping[str, Any]) -> str:
    """One refutation refutes, one gap leaves unknown."""
    verdicts = {entry["verdict"] for entry in conditions.values()}
    return next((worst for worst in ("refuted", "unknown") if worst in verdicts), "proved")


def _answer(report: Any) -> dict[str, Any]:
    if report is None:
        report = _NotAsked()
    verdict = str(getattr(report.verdict, "value", report.verdict))
    if verdict not in VERDICTS:
        raise CertificateError(f"a verdict must be one of {VERDICTS}", got=verdict)
    point = report.counterexample
    return {
        "verdict": verdict,
        "engine": str(report.engine),
        "reason": str(report.reason),
        "seconds": float(report.seconds),
        "nodes": int(report.nodes),
        "proof": report.proof if verdict == "proved" else None,
        "counterexample": encode_array(np.asarray(point, float)) if verdict == "refuted" else None,
    }


class _NotAsked:
    verdict, engine, reason, seconds, nodes = "unknown", "none", "not asked", 0.0, 0
    proof = counterexample = None


def _rounded(layer: ExactLayer) -> Layer:
    parts = []
    for exact in layer:
        values = np.array([f.numerator / f.denominator for f in exact.fractions()]).reshape(
            exact.shape
        )
        errors = [up(f) for f in abs(Dyadic.of(values) - exact).fractions()]
        parts.append((values, np.array(errors).reshape(exact.shape)))
    (weight, weight_error), (bias, bias_error) = parts
    return Layer(weight, bias, weight_error, bias_error)


def _provenance() -> dict[str, Any]:
    return {
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "graphkeel": _own_version(),
    }


def _own_version() -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("graphkeel")
    except PackageNotFoundError:
        return "unknown"


def _stored(values: ArrayLike) -> Floats:
    return np.asarray(values, dtype=np.float64)
