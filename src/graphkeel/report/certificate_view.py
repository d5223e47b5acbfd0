"""A certificate as the page shows it: verdicts, conclusions and limits in words, and the loops for
the surface."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from graphkeel.certificate import CheckResult
from graphkeel.certificate.encoding import decode_array
from graphkeel.certificate.equilibrium import at_most, graph_sentences
from graphkeel.certificate.sources import Layer, collapsed, collapsed_loop, source_from_json
from graphkeel.report.charts import loop_chart
from graphkeel.report.sources import PAGE

CONDITIONS = {
    "representative": (
        "C(h*) ≈ Y",
        "the model answers the class's feature h* with its target Y, within δ",
    ),
    "positivity": (
        "V > 0",
        "V grows with the distance from Y, on the whole domain outside the hole",
    ),
    "decrease": ("V falls", "every step of the loop lowers V by the factor ρ, outside the hole"),
    "invariance": ("D is kept", "no step leaves the domain D"),
    "hole": ("the hole", "what happens in the small box around Y that the conditions leave out"),
    "region": (
        "R is kept",
        "a state whose largest logit is the class's is followed by another such state",
    ),
}

_PLACES = ("lower", "upper", "equilibrium")


def certificate_view(certificate: dict[str, Any], checked: CheckResult) -> dict[str, Any]:
    """Everything the template needs, in plain values; a certificate is shown as proof only if it
    was accepted."""
    classes = [_class_row(entry) for entry in certificate["classes"]]
    verdicts = [row["verdict"] for row in classes]
    provenance = certificate.get("provenance") or {}
    return {
        "accepted": checked.accepted,
        "reason": checked.reason,
        "check_seconds": checked.seconds,
        "classes": classes,
        "conditions": [
            {"name": name, "short": short, "long": long}
            for name, (short, long) in CONDITIONS.items()
        ],
        "counts": {
            verdict: verdicts.count(verdict) for verdict in ("proved", "refuted", "unknown")
        },
        "conclusions": _conclusions(classes),
        "graph": _graph_view(certificate),
        "not_covered": [str(sentence) for sentence in certificate.get("not_covered", [])],
        "provenance": {
            key: value for key, value in provenance.items() if isinstance(value, str | int | float)
        },
        "data": certificate.get("data") or "",
        "sha256": certificate.get("sha256", ""),
    }


def _graph_view(certificate: dict[str, Any]) -> dict[str, Any]:
    """The facts that hold with message passing; empty where nobody looked."""
    graph = certificate.get("graph")
    if not graph:
        return {}
    provenance = certificate.get("provenance") or {}
    facts = graph.get("equilibrium") or {}
    steps = provenance.get("graph_steps") or {}
    uncertain = [int(node) for node in facts.get("uncertain", [])]
    drawn = bool(steps) and bool(facts)
    return {
        "sentences": graph_sentences(graph),
        "chart": loop_chart(steps, facts["nodes"], graph["kappa"]) if drawn else "",
        "uncertain": uncertain[: PAGE.named],
        "more": facts["nodes"] - facts["certain"] - len(uncertain[: PAGE.named]) if facts else 0,
        "counted": bool(facts),
    }


def _class_row(entry: dict[str, Any]) -> dict[str, Any]:
    conditions, problem = entry["conditions"], entry["problem"]
    radius = entry["conclusion"].get("radius")
    return {
        "label": entry["class"],
        "verdict": entry["verdict"],
        "conditions": {name: conditions[name]["verdict"] for name in CONDITIONS},
        "engines": sorted(
            {conditions[name]["engine"] for name in ("positivity", "decrease", "invariance")}
        ),
        "distance": at_most(conditions["representative"]["distance"], 3),
        "sentence": entry["conclusion"]["sentence"],
        "radius": "" if radius is None else at_most(radius, 3),
        "rho": problem["rho"],
    }


def _conclusions(classes: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Conclusions, once for all classes of which the same is said but for the radius, which stands
    in their rows: a sentence with the numbers of one class may be false of another."""
    groups: dict[str, list[Any]] = {}
    for row in classes:
        shared = re.sub(r"within [\d.e-]+ of Y", "within the radius below of Y", row["sentence"])
        groups.setdefault(shared, []).append(row["label"])
    return [{"sentence": sentence, "labels": labels} for sentence, labels in groups.items()]


def loop_data(certificate: dict[str, Any]) -> list[dict[str, Any]]:
    """F, V, the box and Y of each class as plain lists: what the page's own evaluation draws."""
    return [
        {
            "label": entry["class"],
            "verdict": entry["verdict"],
            "F": _layers(collapsed_loop(source_from_json(entry["controller"]), head)),
            "V": _layers(collapsed(source_from_json(entry["lyapunov"]))),
            **{name: _drawn(decode_array(entry["problem"][name])) for name in _PLACES},
        }
        for head in [source_from_json(certificate["head"])]
        for entry in certificate["classes"]
    ]


def _layers(layers: tuple[Layer, ...]) -> list[dict[str, Any]]:
    return [{"weight": _drawn(layer.weight), "bias": _drawn(layer.bias)} for layer in layers]


def _drawn(array: np.ndarray) -> list[Any]:
    """Seven digits are enough to draw."""
    drawn: list[Any] = array.astype(np.float32).astype(float).round(7).tolist()
    return drawn
