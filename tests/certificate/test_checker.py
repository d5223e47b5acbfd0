"""The checker accepts what is proved, and refuses everything else with its reason."""

from __future__ import annotations

import base64
import copy
import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from graphkeel.certificate.schema import loop_of
from graphkeel.certificate.trees import Refused
from loops import Answer, Shipped, answers, certificate, class_proof, pack, prove, shipped

from graphkeel.certificate import (
    build_certificate,
    check_certificate,
    check_content,
    encoding,
    write_certificate,
)
from graphkeel.certificate.encoding import canonical, digest, encode_array, sealed
from graphkeel.core.errors import CertificateError


def test_a_proved_certificate_is_accepted(good: dict[str, Any], tmp_path: Path) -> None:
    write_certificate(good, tmp_path / "c.json")
    result = check_certificate(tmp_path / "c.json")
    assert result.accepted, result.reason
    assert result.classes[0]["verdict"] == "proved"
    assert result.classes[0]["leaves"] > 20
    assert set(result.classes[0]["conditions"].values()) == {"proved"}


def test_it_needs_neither_torch_nor_solvers_nor_the_engine(
    good: dict[str, Any], tmp_path: Path
) -> None:
    write_certificate(good, tmp_path / "c.json")
    code = (
        "import sys\nfrom graphkeel.certificate import check_certificate\n"
        f"assert check_certificate({str(tmp_path / 'c.json')!r}).accepted\n"
        "heavy = ('torch', 'scipy', 'numba', 'highspy', 'z3', 'sklearn', 'onnx', 'graphkeel.verify')\n"
        "print([m for m in sys.modules if m.startswith(heavy)])"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"


def test_several_classes_and_float32_weights(ship: Shipped, proofs: dict[str, Answer]) -> None:
    proof = class_proof(ship, proofs)
    strange = replace(
        proof, label=3, conditions={**proofs, "region": Answer("unknown")}
    )  # no coordinate of a state
    content = build_certificate(ship.head, [proof, strange])
    assert [entry["class"] for entry in check_content(content)] == [0, 3]
    with pytest.raises(Refused, match="twice"):
        check_content(build_certificate(ship.head, [proof, proof]))


# ---- corruptions
# ------------------------------------------------------------------------------------------


def leaves_of(content: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The paths of all scalars of a JSON value."""
    if isinstance(content, dict):
        return [p for key in sorted(content) for p in leaves_of(content[key], (*path, key))]
    if isinstance(content, list):
        return [p for i, value in enumerate(content) for p in leaves_of(value, (*path, i))]
    return [path]


def changed(value: Any, rng: np.random.Generator) -> Any:
    if isinstance(value, bool) or value is None:
        return not value
    if isinstance(value, int):
        return value + int(rng.integers(1, 5))
    if isinstance(value, float):
        return float(np.nextafter(value, np.inf)) if rng.random() < 0.5 else value + 1.0
    where = int(rng.integers(len(value))) if value else 0
    letter = "A" if not value or value[where] != "A" else "B"
    return value[:where] + letter + value[where + 1 :]


def test_200_changed_values_are_200_refusals(good: dict[str, Any], tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    paths = leaves_of(good)
    for i in range(200):
        content = copy.deepcopy(good)
        *parents, key = (
            paths[i % len(paths)] if i < len(paths) else paths[int(rng.integers(len(paths)))]
        )
        place: Any = content
        for step in parents:
            place = place[step]
        place[key] = changed(place[key], rng)
        write_certificate(content, tmp_path / "c.json")
        assert refused(tmp_path / "c.json"), (parents, key)


def test_200_flipped_bits_are_200_refusals(good: dict[str, Any], tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    whole = canonical(good)
    for _ in range(200):
        raw = bytearray(whole)
        raw[int(rng.integers(len(raw)))] ^= 1 << int(rng.integers(8))
        (tmp_path / "c.json").write_bytes(bytes(raw))
        assert refused(tmp_path / "c.json")


def refused(path: Path) -> bool:
    try:
        return not check_certificate(path).accepted
    except CertificateError:
        return True


# ---- corruptions by someone who recomputes every hash
# -----------------------------------------------------


def resealed(content: dict[str, Any]) -> dict[str, Any]:
    content["hashes"]["head"] = digest(content["head"])
    for entry in content["classes"]:
        entry["hashes"]["weights"] = digest({key: entry[key] for key in ("controller", "lyapunov")})
        domain = {key: value for key, value in entry["problem"].items() if key not in ("F", "V")}
        entry["hashes"]["domain"] = digest(domain)
    return sealed(content)


def scale(entry: dict[str, Any], factor: float) -> None:
    array = np.frombuffer(base64.b64decode(entry["base64"]), dtype=entry["dtype"]).astype(
        np.float64
    )
    entry.update(encode_array((array * factor).reshape(entry["shape"])))


def change(path: str, value: Any) -> Callable[[dict[str, Any]], None]:
    def apply(entry: dict[str, Any]) -> None:
        *parents, key = path.split(".")
        place: Any = entry
        for step in parents:
            place = place[int(step)] if isinstance(place, list) else place[step]
        place[key] = value(place[key]) if callable(value) else value

    return apply


def scaled(path: str, factor: float) -> Callable[[dict[str, Any]], None]:
    def apply(entry: dict[str, Any]) -> None:
        place: Any = entry
        for step in path.split("."):
            place = place[int(step)] if isinstance(place, list) else place[step]
        scale(place, factor)

    return apply


def drop_tree(entry: dict[str, Any]) -> None:
    entry["conditions"]["decrease"]["proof"]["trees"][0].update(
        axis=pack(np.array([-2]), "<i1"), cut=pack(np.zeros(0), "<f8")
    )


def hole_everywhere(entry: dict[str, Any]) -> None:
    entry["conditions"]["decrease"]["proof"]["trees"][0].update(
        axis=pack(np.array([-1]), "<i1"), cut=pack(np.zeros(0), "<f8")
    )


def smaller_root(entry: dict[str, Any]) -> None:
    tree = entry["conditions"]["decrease"]["proof"]["trees"][0]
    tree["lower"] = [0.5 * v for v in tree["lower"]]


def outer_cut(entry: dict[str, Any]) -> None:
    tree = entry["conditions"]["decrease"]["proof"]["trees"][0]
    tree["cut"] = pack(np.full(tree["cut"]["shape"], 0.99), "<f8")


FALSE_CLAIMS: dict[str, tuple[Callable[[dict[str, Any]], None], str]] = {
    "another rho": (change("problem.rho", 0.1), "not proved"),
    "another positivity constant": (change("problem.positivity", 50.0), "not proved"),
    "another box": (scaled("problem.upper", 1.5), "root box"),
    "another hole": (change("problem.hole_radius", 0.01), "hole|region|follows"),
    "another equilibrium": (scaled("problem.equilibrium", 0.5), "follows|hole|region|leaf"),
    "weights of F": (scaled("problem.F.1.weight", 1.001), "collapse"),
    "bias of F": (scaled("problem.F.0.bias", 1.001), "collapse"),
    "weights of V": (scaled("problem.V.0.weight", 1.001), "collapse"),
    "shipped controller": (scaled("controller.1.1.weight", 0.999), "collapse"),
    "shipped V": (scaled("lyapunov.1.0.weight", 1.001), "collapse"),
    "anchor": (scaled("anchor", 1.1), "representative"),
    "delta": (change("conditions.representative.delta", 1e-30), "representative"),
    "distance": (change("conditions.representative.distance", 0.0), "representative"),
    "leaf bounds": (drop_tree, "not proved"),
    "hole leaf": (hole_everywhere, "inside the hole"),
    "root of a tree": (smaller_root, "root box"),
    "cuts": (outer_cut, "cut lies outside|not proved|inside the hole"),
    "proof of another condition": (
        change("conditions.decrease.proof", lambda p: {**p, "condition": "positivity"}),
        "proof",
    ),
    "missing row": (change("conditions.invariance.proof.trees", lambda t: t[:-1]), "trees"),
    "rows out of order": (change("conditions.invariance.proof.trees", lambda t: t[::-1]), "order"),
    "claimed empty": (
        change(
            "conditions.positivity.proof.trees", lambda t: [{"row": "+0", "empty": True}, *t[1:]]
        ),
        "empty",
    ),
    "hole closed": (change("conditions.hole.kind", "exact"), "hole"),
    "hole's radius": (change("conditions.hole.radius", 0.0), "hole"),
    "sentence": (change("conclusion.sentence", "All is well."), "conclusion"),
    "steps": (change("conclusion.steps", 1), "conclusion"),
    "verdict": (change("verdict", "refuted"), "verdict"),
    "proof removed": (change("conditions.decrease.proof", None), "without what shows it"),
    "refuted without a point": (
        change("conditions.decrease.verdict", "refuted"),
        "without what shows it",
    ),
}


@pytest.mark.parametrize("name", sorted(FALSE_CLAIMS))
def test_a_false_claim_with_fresh_hashes_is_refused(good: dict[str, Any], name: str) -> None:
    apply, reason = FALSE_CLAIMS[name]
    content = copy.deepcopy(good)
    apply(content["classes"][0])
    with pytest.raises(Refused, match=reason):
        check_content(resealed(content))


def test_what_is_not_covered_cannot_be_dropped(good: dict[str, Any]) -> None:
    content = copy.deepcopy(good)
    content["not_covered"] = []
    with pytest.raises(Refused, match="does not cover"):
        check_content(resealed(content))


def test_random_weight_changes_with_fresh_hashes(good: dict[str, Any]) -> None:
    """Flip single bits of stored float arrays, reseal: accepted only if no proved claim became
    false."""
    rng = np.random.default_rng(7)
    arrays = [
        p
        for p in leaves_of(good["classes"][0])
        if p[-1] == "base64" and p[0] in ("problem", "controller")
    ]
    refusals = 0
    for _ in range(60):
        content = copy.deepcopy(good)
        place: Any = content["classes"][0]
        for step in arrays[int(rng.integers(len(arrays)))][:-1]:
            place = place[step]
        raw = base64.b64decode(place["base64"])
        values = np.frombuffer(raw, dtype=place["dtype"]).astype(np.float64)
        bits = values.view(np.uint64)
        bits[int(rng.integers(values.size))] ^= np.uint64(1) << np.uint64(rng.integers(40, 64))
        if not np.isfinite(values).all():
            continue
        place.update(encode_array(values.reshape(place["shape"])))
        try:
            check_content(resealed(content))
        except (Refused, CertificateError):
            refusals += 1
    assert refusals >= 40  # the rest are changes of zero's sign and the like, which change no claim


STRANGE = [None, True, -1, 0, 3, 1e308, 10**400, "", "x", [], {}, [1, 2], {"a": 1}, [[]], -0.0]


def nodes_of(content: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The paths of all values but the whole."""
    if isinstance(content, dict):
        inner = [p for key in sorted(content) for p in nodes_of(content[key], (*path, key))]
    elif isinstance(content, list):
        inner = [p for i, value in enumerate(content) for p in nodes_of(value, (*path, i))]
    else:
        inner = []
    return [*([path] if path else []), *inner]


def test_strange_values_with_fresh_hashes_end_in_a_refusal_or_an_error(
    good: dict[str, Any],
) -> None:
    """No value of the wrong kind anywhere may end in a traceback."""
    rng = np.random.default_rng(3)
    paths = nodes_of(good)
    for _ in range(300):
        content = copy.deepcopy(good)
        *parents, key = paths[int(rng.integers(len(paths)))]
        place: Any = content
        for step in parents:
            place = place[step]
        strange = STRANGE[int(rng.integers(len(STRANGE)))]
        if strange == place[key]:
            continue
        place[key] = strange
        try:
            content = resealed(content)
        except (KeyError, TypeError, AttributeError):
            content = sealed(content)
        try:
            check_content(content)
        except (Refused, CertificateError):
            continue
        # What is left is no statement: remarks, the shape of an empty array, hashes that were
        # formed anew.
        remarks = {
            "provenance",
            "seconds",
            "nodes",
            "reason",
            "engine",
            "form",
            "data",
            "class",
            "shape",
            "hashes",
        }
        assert remarks & {*parents, key}, (parents, key)


def test_deep_nesting_is_an_error(good: dict[str, Any], tmp_path: Path) -> None:
    raw = canonical({**good, "provenance": 0}).replace(
        b'"provenance": 0', b'"provenance": ' + b"[" * 700 + b"]" * 700
    )
    (tmp_path / "c.json").write_bytes(raw)
    assert refused(tmp_path / "c.json")


# ---- refutations
# ------------------------------------------------------------------------------------------


def test_a_counterexample_is_replayed() -> None:
    ship = shipped(speed=1.5)
    loop = loop_of(ship.loop)
    bad = loop.equilibrium + np.array([1.0, 0.5])
    known = {"positivity": Answer("proved", prove(loop, "positivity"))}
    content = certificate(ship, {**known, "decrease": Answer("refuted", counterexample=bad)})
    assert check_content(content)[0]["verdict"] == "refuted"
    for point, reason in (
        (loop.equilibrium, "inside the hole"),
        (loop.equilibrium + 3, "outside the domain"),
        (loop.equilibrium + 0.06, "inside the hole"),
    ):
        wrong = certificate(ship, {"decrease": Answer("refuted", counterexample=point)})
        with pytest.raises(Refused, match=reason):
            check_content(wrong)


def test_a_point_that_refutes_nothing(ship: Shipped) -> None:
    for condition in ("positivity", "decrease", "invariance"):
        wrong = certificate(ship, {condition: Answer("refuted", counterexample=ship.loop.upper)})
        with pytest.raises(Refused, match="satisfies the condition"):
            check_content(wrong)


# ---- unreadable files
# -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "raw", [b"", b"{", b"[]", b"\xff\xfe", b'{"format": NaN}', b"[" * 100_000, b"{}", b'"x"']
)
def test_unreadable_files_are_errors(tmp_path: Path, raw: bytes) -> None:
    (tmp_path / "c.json").write_bytes(raw)
    with pytest.raises(CertificateError):
        check_certificate(tmp_path / "c.json")


def test_truncated_missing_and_huge_files(
    good: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "c.json"
    whole = canonical(good)
    for cut in range(0, len(whole) - 2, len(whole) // 20):
        path.write_bytes(whole[:cut])
        with pytest.raises(CertificateError):
            check_certificate(path)
    with pytest.raises(CertificateError, match="cannot be read"):
        check_certificate(tmp_path / "none.json")
    monkeypatch.setattr(encoding, "MAX_BYTES", 10)
    with pytest.raises(CertificateError, match="MiB"):
        check_certificate(path)


def test_a_small_file_cannot_fill_the_memory(good: dict[str, Any]) -> None:
    content = copy.deepcopy(good)
    tree = content["classes"][0]["conditions"]["decrease"]["proof"]["trees"][0]
    tree["axis"] = {**pack(np.zeros(10**7), "<i1"), "shape": [5]}
    with pytest.raises(CertificateError, match="size"):
        check_content(resealed(content))


def test_other_spellings_of_the_same_content_are_refused(
    good: dict[str, Any], tmp_path: Path
) -> None:
    (tmp_path / "c.json").write_text(json.dumps(good))
    result = check_certificate(tmp_path / "c.json")
    assert not result.accepted and "canonical" in result.reason


def test_unknown_verdicts_are_accepted_as_such(ship: Shipped, proofs: dict[str, Answer]) -> None:
    content = certificate(ship, {**proofs, "decrease": Answer("unknown", reason="time")})
    summary = check_content(content)[0]
    assert summary["verdict"] == "unknown" and summary["sentence"].startswith("Nothing follows")


def test_the_l2_hole_and_the_paper_condition() -> None:
    ship = shipped(seed=2, hole_norm="2", rho=1.0, positivity=0.0)
    summary = check_content(certificate(ship, answers(loop_of(ship.loop))))[0]
    assert summary["conditions"]["decrease"] == summary["conditions"]["positivity"] == "proved"
