"""The writer: arrays by their bits, one seal, and files that the checker reads back."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graphkeel.certificate import (
    ClassProof,
    build_certificate,
    certificate_bytes,
    check_certificate,
    mlp,
    read_certificate,
    sealed,
    write_certificate,
)
from graphkeel.certificate.encoding import decode_array, encode_array
from graphkeel.certificate.sources import (
    anchored_controller,
    collapsed,
    collapsed_loop,
    source_from_json,
)
from graphkeel.core.errors import CertificateError
from graphkeel.verify import Network, Problem, verify
from hand_networks import anchored_lyapunov


@pytest.fixture(scope="module")
def parts() -> tuple[Any, ClassProof]:
    """A head with nine features in float32, a loop that roughly halves the distance to Y."""
    rng = np.random.default_rng(1)
    Y = np.array([1.0, 0.0])
    W, b = rng.normal(size=(2, 9)).astype(np.float32), rng.normal(size=2).astype(np.float32)
    inverse = np.linalg.pinv(W.astype(float))
    both = np.concatenate([np.eye(2), -np.eye(2)])
    head = mlp([(W, b)])
    h = inverse @ (Y - b)
    controller = anchored_controller(both, 0.3 * np.ones(4), inverse @ (0.25 * both.T), h, Y)
    lyapunov = anchored_lyapunov(both + 0.05 * rng.normal(size=(4, 2)), np.ones(4), Y)
    networks = [
        Network.of(*layers) for layers in (collapsed_loop(controller, head), collapsed(lyapunov))
    ]
    problem = Problem(*networks, Y - 1, Y + 1, Y, hole_radius=0.125, rho=0.95, positivity=0.125)
    conditions = {c.condition: c for c in verify(problem, "branch").conditions}
    return head, ClassProof(0, "anchored", controller, lyapunov, h, problem, conditions, 1e-9)


@pytest.fixture(scope="module")
def good(parts: tuple[Any, ClassProof]) -> dict[str, Any]:
    head, proof = parts
    return build_certificate(head, [proof], provenance={"seed": 0})


def test_what_the_engine_found_is_accepted(good: dict[str, Any], tmp_path: Path) -> None:
    write_certificate(good, tmp_path / "c.json")
    for certificate in (good, tmp_path / "c.json", str(tmp_path / "c.json")):
        result = check_certificate(certificate)
        assert result.accepted, result.reason
        assert not result.model_checked and not result.data_checked
    entry = good["classes"][0]
    shown = {name: entry["conditions"][name]["verdict"] for name in ("positivity", "decrease")}
    assert set(shown.values()) == {"proved"} and result.leaves > 2
    assert entry["conclusion"]["kind"] in ("asymptotic", "practical", "recurrent")
    assert read_certificate(tmp_path / "c.json") == good


def test_every_changed_value_is_refused(good: dict[str, Any]) -> None:
    """Changed with and without a new seal; remarks may be changed."""
    rng = np.random.default_rng(0)
    places = [path for path in leaves(good) if path[0] not in ("provenance", "data", "sha256")]
    remarks = {"engine", "reason", "seconds", "nodes", "form"}
    places = [path for path in places if path[-1] not in remarks]
    for index in rng.choice(len(places), size=min(200, len(places)), replace=False):
        changed = json.loads(json.dumps(good))
        *way, name = places[index]
        holder = changed
        for step in way:
            holder = holder[step]
        old = holder[name]
        holder[name] = spoiled(old)
        assert not check_certificate(changed).accepted  # the seal
        try:
            result = check_certificate(sealed(changed))
        except CertificateError:
            continue
        harmless = name == "side" or places[index][-2:] == ("proof", "kappa")
        assert not result.accepted or harmless, places[index]


def leaves(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    if isinstance(value, dict):
        return [leaf for key, part in value.items() for leaf in leaves(part, (*path, key))]
    if isinstance(value, list):
        return [leaf for key, part in enumerate(value) for leaf in leaves(part, (*path, key))]
    return [path]


def spoiled(value: Any) -> Any:
    if isinstance(value, str):
        return value[1:] if value else "x"
    return None if value is not None else 1


def test_flipped_bits_are_refused(good: dict[str, Any], tmp_path: Path) -> None:
    raw = certificate_bytes(good)
    rng = np.random.default_rng(2)
    for place in rng.choice(len(raw), size=100, replace=False):
        changed = bytearray(raw)
        changed[place] ^= 1 << int(rng.integers(8))
        (tmp_path / "c.json").write_bytes(changed)
        try:
            assert not check_certificate(tmp_path / "c.json").accepted
        except CertificateError:
            continue


def test_the_seal_is_over_all_bytes_after_its_line(good: dict[str, Any]) -> None:
    raw = certificate_bytes(good)
    first, second, rest = raw.split(b"\n", 2)
    assert first == b"{" and json.loads(raw) == good
    assert second == f' "sha256": "{hashlib.sha256(rest).hexdigest()}",'.encode()
    assert sealed({**good, "sha256": "x"}) == good


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_is_no_array(bad: float) -> None:
    with pytest.raises(CertificateError, match="finite"):
        encode_array([1.0, bad])


@pytest.mark.parametrize(
    "values", [[1.0, -0.0], [[1e300, 2.0**-300]], [0.1], np.float32([0.1, 3e38]), []]
)
def test_arrays_come_back_to_the_bit(values: Any) -> None:
    wanted = np.asarray(values, dtype=np.float64)
    stored = encode_array(wanted)
    assert decode_array(stored).tobytes() == wanted.tobytes()
    with np.errstate(over="ignore"):
        short = bool((wanted.astype(np.float32) == wanted).all())
    assert stored["dtype"] == ("<f4" if short else "<f8")


def test_sources_come_back(parts: tuple[Any, ClassProof], good: dict[str, Any]) -> None:
    again = source_from_json(good["classes"][0]["controller"])
    for layer, stored in zip(parts[1].controller, again, strict=True):
        for left, right in zip(layer, stored, strict=True):
            assert (left[0] is None) == (right[0] is None)
            assert left[0] is None or np.array_equal(left[0], right[0])
            assert left[1] is None or np.array_equal(left[1], right[1])


@pytest.mark.parametrize("content", [{"a": {1, 2}}, {"a": float("nan")}, {"a": b"x"}])
def test_what_is_no_json_is_refused(content: dict[str, Any]) -> None:
    with pytest.raises(CertificateError, match="plain JSON"):
        certificate_bytes(content)


def test_without_a_class_there_is_no_certificate(parts: tuple[Any, ClassProof]) -> None:
    with pytest.raises(CertificateError, match="at least one class"):
        build_certificate(parts[0], [])


@pytest.mark.parametrize("raw", [b"", b"{", b"\xff", b"[1]", b"null"])
def test_files_that_are_none(raw: bytes, tmp_path: Path) -> None:
    (tmp_path / "c.json").write_bytes(raw)
    for read in (check_certificate, read_certificate):
        with pytest.raises(CertificateError, match="cannot be read"):
            read(tmp_path / "c.json")
