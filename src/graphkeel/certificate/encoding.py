"""The certificate's bytes: arrays by their bits, one text, one seal."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from graphkeel.checker.reading import Unreadable, parse, read_bytes, seal
from graphkeel.core.errors import CertificateError
from graphkeel.core.files import write_bytes

_COMPARED = {  # how `keel check` ties each kind of file to what it is about
    "graphkeel-certificate": "Compare a certificate with --model and --data.",
    "graphkeel-proof": "Compare a proof with --network and --property, or with --problem.",
}
_FLOATS = {name: np.dtype(name) for name in ("<f8", "<f4")}


def encode_array(values: ArrayLike) -> dict[str, Any]:
    """A float array by its bits; in half the space where every number is a float32, too."""
    numbers = np.asarray(values, dtype=np.float64)
    if not np.isfinite(numbers).all():
        raise CertificateError("a certificate holds finite numbers only", got="NaN or infinity")
    with np.errstate(over="ignore"):
        dtype = "<f4" if (numbers.astype(np.float32) == numbers).all() else "<f8"
    raw = np.ascontiguousarray(numbers, dtype=dtype).tobytes()
    text = base64.b64encode(raw).decode("ascii")
    return {"dtype": dtype, "shape": list(numbers.shape), "base64": text}


def decode_array(value: Mapping[str, Any]) -> NDArray[np.float64]:
    """The float64 array of one that `encode_array` encoded."""
    try:
        raw = base64.b64decode(value["base64"], validate=True)
        numbers = np.frombuffer(raw, _FLOATS[value["dtype"]]).reshape(value["shape"])
    except (KeyError, TypeError, ValueError) as error:
        raise CertificateError("an array cannot be read", got=str(error)) from None
    return numbers.astype(np.float64)


def read_arrays(
    stored: Path | Mapping[str, Any], name: str, keys: tuple[str, ...]
) -> list[NDArray[Any]]:
    """The arrays with these keys in a safetensors file or a mapping; others are refused."""
    from safetensors import SafetensorError
    from safetensors.numpy import load_file

    name = stored.name if isinstance(stored, Path) else name
    try:
        if isinstance(stored, Path):
            arrays = load_file(stored)
        else:
            arrays = {key: np.asarray(value) for key, value in stored.items()}
        found = [arrays[key] for key in keys]
    except (OSError, SafetensorError, KeyError, TypeError, ValueError) as error:
        raise CertificateError(f"{name} cannot be read", got=str(error)) from None
    if len(found) != len(arrays):
        raise CertificateError(f"{name} holds other arrays than it should", got=sorted(arrays))
    return found


def sealed(content: Mapping[str, Any]) -> dict[str, Any]:
    """The content with its SHA-256, which is the first line of the file.

    Args:
        content: a certificate's JSON object, with or without an earlier seal.
    """
    digest = certificate_bytes(content).split(b'"', 4)[3].decode("ascii")
    rest = {key: value for key, value in content.items() if key != "sha256"}
    return {"sha256": digest, **rest}


def certificate_bytes(content: Mapping[str, Any]) -> bytes:
    """The bytes of the file: the seal of the rest, and the rest.

    Args:
        content: a certificate's JSON object; an earlier seal in it is not used.
    """
    rest = {key: value for key, value in content.items() if key != "sha256"}
    try:
        text = json.dumps(rest, indent=1, sort_keys=True, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise CertificateError("a certificate holds plain JSON values", got=str(error)) from None
    body = text.removeprefix("{\n").encode("ascii") + b"\n"
    return seal(body) + body


def write_certificate(content: Mapping[str, Any], path: str | Path) -> None:
    """Write a certificate file.

    Args:
        content: the JSON object of `build_certificate`.
        path: of the file.
    """
    write_bytes(Path(path), certificate_bytes(content))


def read_certificate(path: str | Path, kind: str = "graphkeel-certificate") -> dict[str, Any]:
    """The JSON object of a certificate file whose seal holds; nothing else of it is checked.

    Args:
        path: of the file.
        kind: its format: a certificate, or "graphkeel-proof" for the proof of a property.
    """
    from graphkeel.checker import Rejected

    try:
        content = parse(read_bytes(str(path)))
    except (Unreadable, Rejected) as error:
        raise CertificateError("the certificate cannot be read", got=str(error)) from None
    if content["format"] != kind:
        raise CertificateError(
            f"the file is no {kind}", got=content["format"], fix=_COMPARED[content["format"]]
        )
    return content
