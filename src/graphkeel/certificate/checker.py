"""The independent check: nothing in the file is believed that was not recomputed here.

Imports the standard library and numpy only; shares no code with the engines that find proofs.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

from graphkeel.certificate.box_proof import check_invariance_box
from graphkeel.certificate.branch_proof import check_branch, check_homogeneous
from graphkeel.certificate.build import derived, domain, overall, representative
from graphkeel.certificate.build import together as together_of
from graphkeel.certificate.collapse import ExactLayer, composed, exact_layers, mismatch, value_at
from graphkeel.certificate.conclusion import NOT_COVERED
from graphkeel.certificate.contraction_proof import check_contraction
from graphkeel.certificate.dyadic import Dyadic, Floats
from graphkeel.certificate.encoding import decode_array, digest, read_text, seal
from graphkeel.certificate.geometry import outside_hole
from graphkeel.certificate.region_proof import check_region, check_region_counterexample
from graphkeel.certificate.schema import (
    CONDITIONS,
    FORMAT,
    SEARCHED,
    VERDICTS,
    VERSION,
    Loop,
    Source,
    items,
    mapping,
    number,
    source_from_json,
    text,
)
from graphkeel.certificate.trees import Refused
from graphkeel.core.errors import CertificateError

_TOP = {
    "format",
    "version",
    "provenance",
    "head",
    "classes",
    "together",
    "not_covered",
    "hashes",
    "sha256",
}
_CLASS = {
    "class",
    "form",
    "controller",
    "lyapunov",
    "anchor",
    "problem",
    "conditions",
    "verdict",
    "conclusion",
    "hashes",
}
_ANSWER = {"verdict", "engine", "reason", "seconds", "nodes", "proof", "counterexample"}


@dataclass(frozen=True)
class CheckResult:
    """What a check found; `reason` is a sentence in both cases."""

    accepted: bool
    reason: str
    seconds: float
    classes: tuple[dict[str, Any], ...] = field(default=())
    together: str = ""  # what holds of all classes with the controller chosen anew at every step


def check_certificate(path: str | Path) -> CheckResult:
    """Check a certificate file. Unreadable files raise `CertificateError`; wrong ones are rejected
    with the reason."""
    start = time.perf_counter()
    content, file = read_text(path)
    try:
        _check_format(content)
        _check_seal(content, file)
        classes = _check_statements(content)
    except Refused as refusal:
        return CheckResult(False, str(refusal), time.perf_counter() - start)
    leaves = sum(entry["leaves"] for entry in classes)
    reason = f"everything stated about {len(classes)} class(es) holds, {leaves} leaves re-proved"
    together = str(content["together"]["sentence"])
    return CheckResult(True, reason, time.perf_counter() - start, tuple(classes), together)


def check_content(content: dict[str, Any]) -> list[dict[str, Any]]:
    """Check the JSON object of a certificate; a summary per class, or Refused."""
    _check_format(content)
    _check_seal(content, None)
    return _check_statements(content)


def _check_format(content: dict[str, Any]) -> None:
    if content.get("format") != FORMAT:
        raise CertificateError(
            f"the file's format must be {FORMAT!r}", got=repr(content.get("format"))[:80]
        )


def _check_seal(content: dict[str, Any], file: str | None) -> None:
    """That the hash is that of the content, and the file, if there is one, the canonical text of
    both."""
    sha256, canonical = seal(content, file)
    if content.get("sha256") != sha256:
        raise Refused("the SHA-256 over the certificate does not match its content")
    if file is not None and not canonical:
        raise Refused(
            "the file is not in its canonical form, so it was changed after it was written"
        )


def _check_statements(content: dict[str, Any]) -> list[dict[str, Any]]:
    try:
        return _check_all(content)
    except (
        TypeError,
        ValueError,
        LookupError,
        ArithmeticError,
        MemoryError,
        RecursionError,
    ) as error:
        # The readers name what is wrong; this is for what they did not foresee in a file from a
        # stranger.
        raise CertificateError(
            "the certificate is malformed", got=f"{type(error).__name__}: {error}"[:200]
        ) from error


def _check_all(content: dict[str, Any]) -> list[dict[str, Any]]:
    mapping(content, "the certificate", need=_TOP)
    if content["version"] != VERSION:
        raise CertificateError(
            f"this program checks version {VERSION} certificates", got=repr(content["version"])[:80]
        )
    mapping(content["hashes"], "hashes", need={"head", "data"})
    if content["hashes"]["head"] != digest(content["head"]):
        raise Refused("the SHA-256 of the head does not match the head")
    if content["not_covered"] != list(NOT_COVERED):
        raise Refused("the list of what the certificate does not cover was changed")
    head = source_from_json(content["head"], "head")
    classes = items(content["classes"], "classes", limit=100_000)
    labels = [entry.get("class") if isinstance(entry, dict) else None for entry in classes]
    if len(set(map(repr, labels))) != len(labels):
        raise Refused("a class stands twice in the certificate")
    summaries = [_check_class(head, entry) for entry in classes]
    _same(content["together"], together_of(classes), "what is said of all classes together")
    return summaries


def _check_class(head: Source, entry: Any) -> dict[str, Any]:
    where = f"class {entry.get('class') if isinstance(entry, dict) else '?'}"
    try:
        return _check_entry(head, entry, where)
    except Refused as refusal:
        raise Refused(f"{where}: {refusal}") from None


def _check_entry(head: Source, entry: Any, where: str) -> dict[str, Any]:
    mapping(entry, where, need=_CLASS)
    if type(entry["class"]) is not int:
        raise CertificateError(f"{where} must be a whole number", got=repr(entry["class"])[:80])
    text(entry["form"], f"{where}.form")
    _check_hashes(entry, where)
    controller = source_from_json(entry["controller"], f"{where}.controller")
    lyapunov = source_from_json(entry["lyapunov"], f"{where}.lyapunov")
    anchor = decode_array(entry["anchor"], f"{where}.anchor", 1)
    loop = Loop.from_json(entry["problem"], f"{where}.problem")
    forward, gauge = exact_layers(composed(controller, head), "F"), exact_layers(lyapunov, "V")
    for wrong in (mismatch(loop.closed_loop, forward, "F"), mismatch(loop.lyapunov, gauge, "V")):
        if wrong is not None:
            raise Refused(wrong)
    conditions = mapping(entry["conditions"], f"{where}.conditions", need=set(CONDITIONS))
    leaves = sum(_check_answer(loop, forward, gauge, name, conditions[name]) for name in SEARCHED)
    leaves += _check_region(loop, forward, entry["class"], conditions["region"])
    _check_representative(head, controller, anchor, loop, conditions["representative"], where)
    hole, conclusion = derived(loop, forward, gauge, conditions)
    _same(conditions["hole"], hole, "the hole's entry")
    _same(entry["conclusion"], conclusion, "the conclusion")
    _same(entry["verdict"], overall(conditions), "the class's verdict")
    return {
        "class": entry["class"],
        "verdict": entry["verdict"],
        "leaves": leaves,
        "conditions": {name: conditions[name]["verdict"] for name in CONDITIONS},
        "sentence": conclusion["sentence"],
    }


def _check_hashes(entry: dict[str, Any], where: str) -> None:
    hashes = mapping(entry["hashes"], f"{where}.hashes", need={"weights", "domain"})
    if hashes["weights"] != digest({key: entry[key] for key in ("controller", "lyapunov")}):
        raise Refused("the SHA-256 of the weights does not match the weights")
    if not isinstance(entry["problem"], dict) or hashes["domain"] != digest(
        domain(entry["problem"])
    ):
        raise Refused("the SHA-256 of the domain does not match the domain")


def _check_representative(
    head: Source, controller: Source, anchor: Floats, loop: Loop, entry: Any, where: str
) -> None:
    mapping(entry, f"{where}.representative", need={"verdict", "delta", "distance", "anchor_gap"})
    delta = number(entry["delta"], f"{where}.representative.delta")
    _same(
        entry, representative(head, controller, anchor, loop, delta), "the representative's entry"
    )


def _same(stored: Any, truth: Any, what: str) -> None:
    if stored != truth or type(stored) is not type(truth):
        raise Refused(f"{what} is not what follows from the weights and the proofs")


def _check_answer(
    loop: Loop,
    forward: tuple[ExactLayer, ...],
    gauge: tuple[ExactLayer, ...],
    condition: str,
    entry: Any,
) -> int:
    """Re-prove or replay one condition; the number of leaves it took."""
    mapping(entry, condition, need=_ANSWER)
    verdict = _verdict(entry, condition)
    if verdict == "proved":
        return _check_proof(loop, condition, entry["proof"])
    if verdict == "refuted":
        point = decode_array(entry["counterexample"], f"{condition}.counterexample", 1)
        _check_counterexample(loop, forward, gauge, condition, point)
    return 0


def _verdict(entry: dict[str, Any], condition: str) -> str:
    """An answer's verdict, once it comes with what a verdict of its kind needs."""
    verdict = entry["verdict"]
    if verdict not in VERDICTS:
        raise CertificateError(
            f"{condition}: a verdict must be one of {VERDICTS}", got=repr(verdict)[:80]
        )
    if (entry["proof"] is not None) != (verdict == "proved") or (
        entry["counterexample"] is not None
    ) != (verdict == "refuted"):
        raise Refused(f"{condition} is called {verdict} without what shows it")
    for key in ("seconds", "nodes"):
        number(entry[key], f"{condition}.{key}")
    for key in ("engine", "reason"):
        text(entry[key], f"{condition}.{key}")
    return str(verdict)


def _check_region(loop: Loop, forward: tuple[ExactLayer, ...], label: int, entry: Any) -> int:
    """Re-prove or replay that the class keeps its own states; the number of leaves it took."""
    mapping(entry, "region", need={*_ANSWER, "margin"})
    verdict, margin = _verdict(entry, "region"), number(entry["margin"], "region.margin")
    if verdict == "unknown":
        return 0
    if not 0 <= label < loop.n or margin < 0:
        raise Refused("region: the class is no coordinate of the state, or the margin is negative")
    if verdict == "refuted":
        point = decode_array(entry["counterexample"], "region.counterexample", 1)
        check_region_counterexample(loop, forward, label, margin, point)
        return 0
    return check_region(loop, label, margin, _read_proof("region", entry["proof"]))


def _read_proof(condition: str, proof: Any) -> dict[str, Any]:
    if not isinstance(proof, dict) or proof.get("version") != 1:
        raise CertificateError(f"{condition}: a proof of version 1 is needed", got=repr(proof)[:80])
    if proof.get("condition") != condition:
        raise Refused(f"{condition}: its proof is one of {proof.get('condition')!r}")
    return proof


def _check_proof(loop: Loop, condition: str, proof: Any) -> int:
    kind = _read_proof(condition, proof).get("kind")
    if kind == "branch":
        return check_branch(loop, condition, proof)
    if kind == "homogeneous":
        return check_homogeneous(loop, condition, proof)
    if kind == "box" and condition == "invariance":
        return check_invariance_box(loop)
    if kind == "contraction":
        check_contraction(loop, condition)
        return 0
    raise CertificateError(f"{condition}: unknown kind of proof", got=repr(kind)[:80])


def _check_counterexample(
    loop: Loop,
    forward: tuple[ExactLayer, ...],
    gauge: tuple[ExactLayer, ...],
    condition: str,
    point: Floats,
) -> None:
    """Replay a counterexample with the exact weights."""
    if point.shape != (loop.n,) or (point < loop.lower).any() or (point > loop.upper).any():
        raise Refused(f"{condition}: the counterexample lies outside the domain")
    if condition != "invariance" and not outside_hole(loop, point):
        raise Refused(f"{condition}: the counterexample lies inside the hole")
    state = Dyadic.of(point)
    if not _violates(loop, forward, gauge, condition, state):
        raise Refused(f"{condition}: the counterexample satisfies the condition")


def _violates(
    loop: Loop,
    forward: tuple[ExactLayer, ...],
    gauge: tuple[ExactLayer, ...],
    condition: str,
    state: Dyadic,
) -> bool:
    if condition == "invariance":
        image = value_at(forward, state)
        return not (
            (Dyadic.of(loop.lower) <= image).all() and (image <= Dyadic.of(loop.upper)).all()
        )
    here = value_at(gauge, state).fraction()
    if condition == "positivity":
        offset = max(abs(state - loop.centre).fractions())
        return here <= 0 if loop.positivity == 0 else here < Fraction(loop.positivity) * offset
    after = value_at(gauge, value_at(forward, state)).fraction()
    return after >= here if loop.rho == 1 else after > Fraction(loop.rho) * here
