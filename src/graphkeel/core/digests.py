"""SHA-256 of texts, files, JSON values, arrays and tensors: the one home of digests.

The checker has a digest of its own, as it shares nothing. Standard library only."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from torch import Tensor


def sha256_of(parts: Iterable[str | bytes | memoryview]) -> str:
    """Hex digits of the parts one after the other, texts in UTF-8.

    >>> sha256_of(["a", b"b"])[:8]
    'fb8e20fc'
    """
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part.encode() if isinstance(part, str) else part)
    return digest.hexdigest()


def file_sha256(path: Path, block: int = 2**20) -> str:
    """Digest of a file, read block by block."""
    with path.open("rb") as file:
        return sha256_of(iter(lambda: file.read(block), b""))


def json_sha256(value: Any) -> str:
    """Digest of plain values, whatever the order of their keys."""
    return sha256_of([json.dumps(value, sort_keys=True)])


def arrays_sha256(arrays: Iterable[tuple[NDArray[Any], str]]) -> str:
    """Digest of dtype, shape and bytes of arrays, each taken as the dtype named beside it."""
    return sha256_of(
        part
        for values, dtype in arrays
        for part in (f"{dtype} {values.shape}", values.astype(dtype).tobytes())
    )


def tensors_sha256(tensors: Mapping[str, Tensor]) -> str:
    """Digest of named tensors; a safetensors file carries no checksum of its own."""
    return sha256_of(
        part
        for name, tensor in sorted(tensors.items())
        for part in (
            f"{name} {tensor.dtype} {tuple(tensor.shape)}",
            tensor.detach().cpu().contiguous().numpy().tobytes(),
        )
    )
