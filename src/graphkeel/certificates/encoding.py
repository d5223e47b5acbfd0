"""The certificate's bytes: exact arrays, one canonical text, one hash, and a reader that trusts nothing."""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import math
from json.encoder import encode_basestring_ascii as encode_string
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphkeel.errors import CertificateError

MAX_BYTES = 2**30
_DTYPES = ("<f8", "<f4")


def encode_array(values: Any) -> dict[str, Any]:
    """A float array by its bits; in half the space where every number is a float32, too."""
    array = np.asarray(values, dtype=np.float64)
    if not np.isfinite(array).all():
        raise CertificateError("a certificate holds finite numbers only", got="NaN or infinity")
    with np.errstate(over="ignore"):
        dtype = "<f4" if (array.astype(np.float32) == array).all() else "<f8"
    raw = np.ascontiguousarray(array, dtype=dtype).tobytes()
    return {"dtype": dtype, "shape": list(array.shape), "base64": base64.b64encode(raw).decode("ascii")}


def decode_array(value: Any, where: str, ndim: int) -> NDArray[np.float64]:
    """The float64 array of an encoded one."""
    if not isinstance(value, dict) or set(value) != {"dtype", "shape", "base64"} or value["dtype"] not in _DTYPES:
        raise CertificateError(f"{where} is not an encoded array", got=repr(value)[:80])
    shape = value["shape"]
    if not isinstance(shape, list) or len(shape) != ndim or not all(type(k) is int and 0 <= k < 2**31 for k in shape):
        raise CertificateError(f"{where} must have {ndim} dimension(s)", got=repr(shape)[:80])
    dtype = np.dtype(value["dtype"])
    raw = decode_bytes(value["base64"], where)
    if len(raw) != dtype.itemsize * math.prod(shape):
        raise CertificateError(f"{where} has another size than its shape {shape}", got=f"{len(raw)} bytes")
    array = np.frombuffer(raw, dtype=dtype).reshape(shape).astype(np.float64)
    if not np.isfinite(array).all():
        raise CertificateError(f"{where} must be finite", got="NaN or infinity")
    return array


def decode_bytes(text: Any, where: str) -> bytes:
    """Strict base64: one text for one byte string."""
    if not isinstance(text, str):
        raise CertificateError(f"{where} is not base64 text", got=type(text).__name__)
    try:
        raw = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as error:
        raise CertificateError(f"{where} is not base64", got=str(error)) from error
    if base64.b64encode(raw).decode("ascii") != text:
        raise CertificateError(f"{where} is not canonical base64", got="stray bits at its end")
    return raw


def canonical(content: Any) -> bytes:
    """The one text of a JSON value: sorted keys, one space of indent, ASCII, no NaN."""
    try:
        pieces: list[str] = []
        _write(content, "\n", pieces)
        return "".join([*pieces, "\n"]).encode("ascii")
    except RecursionError as error:
        raise CertificateError("a certificate is not nested that deeply", got="too many levels") from error


def _write(value: Any, line: str, out: list[str]) -> None:
    """What json.dumps writes with an indent of one, several times as fast: its own way there is pure Python."""
    kind = type(value)
    if kind is str:
        out.append(encode_string(value))
    elif kind is int or (kind is float and math.isfinite(value)):
        out.append(repr(value))
    elif kind is dict and value and all(type(key) is str for key in value):
        parts = [(f"{encode_string(key)}: ", value[key]) for key in sorted(value)]
        _write_parts("{}", parts, line, out)
    elif kind is list and value:
        _write_parts("[]", [("", part) for part in value], line, out)
    else:
        whole = json.dumps(value, sort_keys=True, indent=1, ensure_ascii=True, allow_nan=False)
        out.append(whole.replace("\n", line))  # a line break in JSON text is never part of a string


def _write_parts(brackets: str, parts: list[tuple[str, Any]], line: str, out: list[str]) -> None:
    inner, before = line + " ", brackets[0]
    for name, value in parts:
        out.append(f"{before}{inner}{name}")
        _write(value, inner, out)
        before = ","
    out.append(line + brackets[1])


def digest(content: Any) -> str:
    """SHA-256 of a part: of its JSON text with sorted keys and no white space."""
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
    return hashlib.sha256(text.encode("ascii")).hexdigest()


def sealed(content: dict[str, Any]) -> dict[str, Any]:
    """The content with the hash over all of the rest."""
    text = unsealed_text(content)
    return {**content, "sha256": hashlib.sha256(text).hexdigest()}


def unsealed_text(content: dict[str, Any]) -> bytes:
    """The canonical text of everything but the hash; the file has one line more."""
    return canonical({key: value for key, value in content.items() if key != "sha256"})


def without_hash_line(raw: bytes, sha256: str) -> bytes:
    """The file's bytes without the line of the outermost hash (the only line that is indented by one and has it)."""
    return raw.replace(f'\n "sha256": "{sha256}",\n'.encode(), b"\n", 1)


def read_text(path: str | Path) -> tuple[dict[str, Any], bytes]:
    """One JSON object and the bytes it came from; whatever cannot be read is a `CertificateError`."""
    path = Path(path)
    try:
        size = path.stat().st_size
        if size > MAX_BYTES:
            raise CertificateError(f"a certificate may have {MAX_BYTES >> 20} MiB", got=f"{size >> 20} MiB")
        raw = path.read_bytes()
        content = json.loads(raw.decode("ascii"), parse_constant=_refuse, object_pairs_hook=_unique)
    except OSError as error:
        raise CertificateError("the certificate cannot be read", got=f"{path}: {error.strerror}") from error
    except (UnicodeDecodeError, ValueError, RecursionError, MemoryError) as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0][:200]
        raise CertificateError("the certificate is not a JSON file, or not a whole one", got=reason) from error
    if not isinstance(content, dict):
        raise CertificateError("a certificate is one JSON object", got=type(content).__name__)
    return content, raw


def _refuse(word: str) -> float:
    raise CertificateError("a certificate holds finite numbers only", got=word)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    content = dict(pairs)
    if len(content) != len(pairs):
        raise CertificateError("a key stands twice in one JSON object", got=f"{len(pairs)} keys")
    return content
