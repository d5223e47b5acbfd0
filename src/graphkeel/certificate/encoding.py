"""The certificate's bytes: exact arrays, one canonical text, one hash, and a reader that trusts
nothing."""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from json.encoder import encode_basestring_ascii as encode_string
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphkeel.core.errors import CertificateError

MAX_BYTES = 2**30
_DTYPES = ("<f8", "<f4")
_ALPHABET = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
_SIX_BITS = bytes(_ALPHABET.find(code) % 256 for code in range(256))  # 255 is none of them
_WORDS = {None: "null", True: "true", False: "false"}
_STRINGS, _INTEGERS = frozenset({str}), frozenset({int})
_LONG = 4000  # characters from which on numpy's calls pay


def encode_array(values: Any) -> dict[str, Any]:
    """A float array by its bits; in half the space where every number is a float32, too."""
    array = np.asarray(values, dtype=np.float64)
    if not np.isfinite(array).all():
        raise CertificateError("a certificate holds finite numbers only", got="NaN or infinity")
    with np.errstate(over="ignore"):
        dtype = "<f4" if (array.astype(np.float32) == array).all() else "<f8"
    raw = np.ascontiguousarray(array, dtype=dtype).tobytes()
    return {
        "dtype": dtype,
        "shape": list(array.shape),
        "base64": base64.b64encode(raw).decode("ascii"),
    }


def decode_array(value: Any, where: str, ndim: int) -> NDArray[np.float64]:
    """The float64 array of an encoded one."""
    if (
        not isinstance(value, dict)
        or set(value) != {"dtype", "shape", "base64"}
        or value["dtype"] not in _DTYPES
    ):
        raise CertificateError(f"{where} is not an encoded array", got=repr(value)[:80])
    shape = value["shape"]
    if (
        not isinstance(shape, list)
        or len(shape) != ndim
        or not all(type(k) is int and 0 <= k < 2**31 for k in shape)
    ):
        raise CertificateError(f"{where} must have {ndim} dimension(s)", got=repr(shape)[:80])
    dtype = np.dtype(value["dtype"])
    raw = decode_bytes(value["base64"], where)
    if len(raw) != dtype.itemsize * math.prod(shape):
        raise CertificateError(
            f"{where} has another size than its shape {shape}", got=f"{len(raw)} bytes"
        )
    array = np.frombuffer(raw, dtype=dtype).reshape(shape)
    if not np.isfinite(array).all():
        raise CertificateError(f"{where} must be finite", got="NaN or infinity")
    return array.astype(np.float64)


def decode_bytes(text: Any, where: str) -> bytes:
    """Strict base64: one text for one byte string."""
    if not isinstance(text, str):
        raise CertificateError(f"{where} is not base64 text", got=type(text).__name__)
    try:
        raw = _decoded(text)
    except (binascii.Error, ValueError) as error:
        raise CertificateError(f"{where} is not base64", got=str(error)) from error
    # In strict mode every four characters before the last four are of the alphabet and stand for
    # three bytes of their own; only the last four can hold stray bits, so only they are written
    # again.
    tail = (len(raw) - 1) // 3 if text.endswith("=") else len(raw) // 3
    if binascii.b2a_base64(raw[3 * tail :], newline=False).decode("ascii") != text[4 * tail :]:
        raise CertificateError(f"{where} is not canonical base64", got="stray bits at its end")
    return raw


def _decoded(text: str) -> bytes:
    """binascii's strict decoding; the most of a long text by whole arrays, sixteen characters to
    twelve bytes."""
    whole = (len(text) - 4) // 16 * 16
    if whole < _LONG:
        return binascii.a2b_base64(text, strict_mode=True)
    raw = text.encode("ascii")
    codes = np.frombuffer(raw[:whole].translate(_SIX_BITS), dtype="<u4")
    if (codes & 0xC0C0C0C0).any():  # something is not of the alphabet; binascii says what
        return binascii.a2b_base64(text, strict_mode=True)
    pairs = (codes & 0x3F003F) << 6 | (codes >> 8) & 0x3F003F
    triples = (
        (pairs & 0xFFF) << 12 | pairs >> 16
    ).byteswap() >> 8  # three bytes each, the first one lowest
    a, b, c, d = triples.reshape(-1, 4).T
    words = np.stack([a | b << 24, b >> 8 | c << 16, c >> 16 | d << 8], axis=1)
    return words.astype("<u4", copy=False).tobytes() + binascii.a2b_base64(
        raw[whole:], strict_mode=True
    )


@dataclass(frozen=True)
class _Style:
    """How JSON text is set: what starts a line, what a level adds to it, and what parts a name from
    its value."""

    line: str
    step: str
    colon: str
    dumps: Callable[[Any], str]  # the same by the standard library, for what is rare


_PLAIN_JSON: dict[str, Any] = {"sort_keys": True, "ensure_ascii": True, "allow_nan": False}
_INDENTED = _Style("\n", " ", ": ", partial(json.dumps, indent=1, **_PLAIN_JSON))
_COMPACT = _Style("", "", ":", partial(json.dumps, separators=(",", ":"), **_PLAIN_JSON))


def canonical(content: Any) -> bytes:
    """The one text of a JSON value: sorted keys, one space of indent, ASCII, no NaN."""
    return "".join([*_runs(content, _INDENTED), "\n"]).encode("ascii")


def digest(content: Any) -> str:
    """SHA-256 of a part: of its JSON text with sorted keys and no white space."""
    sha256 = hashlib.sha256()
    for run in _runs(content, _COMPACT):
        sha256.update(run.encode("ascii"))
    return sha256.hexdigest()


def sealed(content: dict[str, Any]) -> dict[str, Any]:
    """The content with the hash over all of the rest."""
    rest = {key: value for key, value in content.items() if key != "sha256"}
    return {**content, "sha256": hashlib.sha256(canonical(rest)).hexdigest()}


def seal(content: dict[str, Any], text: str | None) -> tuple[str, bool]:
    """The hash that a sealed content should have, and whether a text is the canonical one of that
    content.

    The hash is over the canonical text without the line of the outermost hash, the only one that is
    indented by one and begins so. All of it is looked at part by part, as copies of the whole cost
    more than what is done with them."""
    line = f'\n "sha256": {encode_string(str(content.get("sha256")))},'
    sha256, position, same = hashlib.sha256(), 0, True
    for run in _runs(content, _INDENTED):
        same = same and text is not None and text.startswith(run, position)
        position += len(run)
        rest = (
            run.replace(line, "", 1) if "\n" in run else run
        )  # a string, and most are long, holds no line break
        sha256.update(rest.encode("ascii"))
    sha256.update(b"\n")
    return sha256.hexdigest(), same and text is not None and text[position:] == "\n"


def _runs(content: Any, style: _Style) -> Iterator[str]:
    """What json.dumps writes, in parts and several times as fast: its own way is pure Python where
    text is indented, and a long string, which is base64, is taken as it is instead of character by
    character."""
    pieces: list[str] = []
    try:
        _write(content, style.line, style, pieces)
    except RecursionError as error:
        raise CertificateError(
            "a certificate is not nested that deeply", got="too many levels"
        ) from error
    start = 0
    for i in [i for i, length in enumerate(map(len, pieces)) if length >= _LONG]:
        yield "".join(pieces[start:i])
        yield pieces[i]
        start = i + 1
    yield "".join(pieces[start:])


def _write(value: Any, line: str, style: _Style, out: list[str]) -> None:
    kind = type(value)
    if kind is str:
        out.extend(('"', value, '"') if _needs_no_escape(value) else (encode_string(value),))
    elif kind is int or (kind is float and math.isfinite(value)):
        out.append(repr(value))
    elif value is None or kind is bool:
        out.append(_WORDS[value])
    elif kind is dict and value and _STRINGS.issuperset(map(type, value)):
        _write_members(value, line, style, out)
    elif kind is list and value:
        _write_items(value, line, style, out)
    else:
        out.append(
            style.dumps(value).replace("\n", line)
        )  # a line break in JSON text is never part of a string


def _write_members(members: dict[str, Any], line: str, style: _Style, out: list[str]) -> None:
    inner = line + style.step
    before, between = "{" + inner, "," + inner
    for key in sorted(members):
        value, name = members[key], f"{before}{encode_string(key)}{style.colon}"
        if type(value) is str and len(value) < _LONG:
            out.append(name + encode_string(value))
        else:
            out.append(name)
            _write(value, inner, style, out)
        before = between
    out.append(line + "}")


def _write_items(items: list[Any], line: str, style: _Style, out: list[str]) -> None:
    inner = line + style.step
    before, between = "[" + inner, "," + inner
    if _INTEGERS.issuperset(map(type, items)):  # the shape of an array
        out.append(f"{before}{between.join(map(repr, items))}{line}]")
        return
    for item in items:
        out.append(before)
        _write(item, inner, style, out)
        before = between
    out.append(line + "]")


def _needs_no_escape(text: str) -> bool:
    """Whether a long text, as base64 is, stands in JSON as it is; short ones are not worth the
    question."""
    if len(text) < _LONG or not text.isascii() or '"' in text or "\\" in text:
        return False
    codes = np.frombuffer(text.encode("ascii"), dtype=np.uint8)
    return bool(
        (codes - np.uint8(32) < 95).all()
    )  # from the space to the tilde; what is below wraps around


def read_text(path: str | Path) -> tuple[dict[str, Any], str]:
    """One JSON object and the text it came from; whatever cannot be read is a
    `CertificateError`."""
    path = Path(path)
    try:
        size = path.stat().st_size
        if size > MAX_BYTES:
            raise CertificateError(
                f"a certificate may have {MAX_BYTES >> 20} MiB", got=f"{size >> 20} MiB"
            )
        text = path.read_bytes().decode("ascii")
        content = json.loads(text, parse_constant=_refuse, object_pairs_hook=_unique)
    except OSError as error:
        raise CertificateError(
            "the certificate cannot be read", got=f"{path}: {error.strerror}"
        ) from error
    except (UnicodeDecodeError, ValueError, RecursionError, MemoryError) as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0][:200]
        raise CertificateError(
            "the certificate is not a JSON file, or not a whole one", got=reason
        ) from error
    if not isinstance(content, dict):
        raise CertificateError("a certificate is one JSON object", got=type(content).__name__)
    return content, text


def _refuse(word: str) -> float:
    raise CertificateError("a certificate holds finite numbers only", got=word)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    content = dict(pairs)
    if len(content) != len(pairs):
        raise CertificateError("a key stands twice in one JSON object", got=f"{len(pairs)} keys")
    return content
