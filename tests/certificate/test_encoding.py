"""The certificate's bytes: each shortcut against the standard library's own way."""

from __future__ import annotations

import base64
import hashlib
import json

import numpy as np
import pytest

from graphkeel.certificate.encoding import (
    canonical,
    decode_array,
    decode_bytes,
    digest,
    encode_array,
    seal,
    sealed,
)
from graphkeel.core.errors import CertificateError

LENGTHS = [0, 1, 2, 3, 10, 2990, 3000, 3001, 3002, 3003, 3011, 3012, 3013, 30_000]


@pytest.mark.parametrize("length", LENGTHS)
def test_base64_is_decoded_as_by_the_standard_library(length: int) -> None:
    raw = np.random.default_rng(length).bytes(length)
    assert decode_bytes(base64.b64encode(raw).decode("ascii"), "here") == raw


@pytest.mark.parametrize("length", [7, 4001])
def test_every_other_text_is_no_base64(length: int) -> None:
    text = base64.b64encode(np.random.default_rng(0).bytes(length)).decode("ascii")
    rng = np.random.default_rng(1)
    for wrong in ("=", " ", "\n", "-", "_", "é", "\x00", '"', "\x7f"):
        for place in (0, int(rng.integers(1, len(text) - 5)), len(text) - 5):
            with pytest.raises(CertificateError):
                decode_bytes(text[:place] + wrong + text[place + 1 :], "here")
    for other in (text[:-1], text + "=", text + "A", text + "AAAA", text[4:-4] + "\n", " " + text):
        with pytest.raises(CertificateError):
            decode_bytes(other, "here")


@pytest.mark.parametrize(
    "length", [1, 2, 4000, 4001]
)  # none a multiple of three: the last character has bits to spare
def test_stray_bits_at_the_end_are_refused(length: int) -> None:
    text = base64.b64encode(bytes(length)).decode("ascii")
    padding = len(text) - len(text.rstrip("="))
    stray = text[: -padding - 1] + "B" + "=" * padding
    assert base64.b64decode(stray) == bytes(length)
    with pytest.raises(CertificateError, match="canonical"):
        decode_bytes(stray, "here")


@pytest.mark.parametrize(
    "special", ["", '"', "\\", "\n", "\x00", "\x1f", " ", "~", "\x7f", "\x80", "é", "\ud800", "𝄞"]
)
@pytest.mark.parametrize("length", [3, 5000])
def test_long_texts_are_written_as_by_the_json_module(special: str, length: int) -> None:
    value = {
        "text": "x" * length + special + "y" * length,
        "list": [None, True, 1, -0.0, {"a": []}],
        "shape": [3, 4],
    }
    whole = json.dumps(value, sort_keys=True, indent=1, ensure_ascii=True) + "\n"
    compact = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    assert canonical(value) == whole.encode("ascii")
    assert digest(value) == hashlib.sha256(compact.encode("ascii")).hexdigest()


def test_the_seal_is_over_all_but_its_own_line() -> None:
    content = sealed(
        {"head": encode_array(np.arange(3000) / 3), "together": {"sha256": "x"}, "version": 2}
    )
    rest = {key: value for key, value in content.items() if key != "sha256"}
    text = canonical(content).decode("ascii")
    assert content["sha256"] == hashlib.sha256(canonical(rest)).hexdigest()
    assert seal(content, text) == (content["sha256"], True)
    for other in (text + "\n", text[:-1], text.replace("\n  ", "\n   ", 1), " " + text, None):
        assert seal(content, other) == (content["sha256"], False)
    assert seal({**content, "version": 3}, text)[0] != content["sha256"]
    assert seal({**content, "sha256": ""}, text)[0] != ""


def test_no_hash_seals_a_content_without_one() -> None:
    for content in ({"version": 2}, {"head": 1}, {"a": 1, "sha256": "b"}):
        assert seal(content, None)[0] not in (None, "None", content.get("sha256"))


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("dtype", ["<f4", "<f8"])
def test_what_is_not_finite_is_no_array(bad: float, dtype: str) -> None:
    raw = np.array([1.0, bad], dtype=dtype).tobytes()
    value = {"dtype": dtype, "shape": [2], "base64": base64.b64encode(raw).decode("ascii")}
    with pytest.raises(CertificateError, match="finite"):
        decode_array(value, "here", 1)
