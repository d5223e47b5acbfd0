"""Tensors on disk, whole or not there: safetensors with the care of `core.files`."""

from __future__ import annotations

import errno
import hashlib
from collections.abc import Mapping
from pathlib import Path

from safetensors import SafetensorError
from safetensors.torch import save_file
from torch import Tensor

from graphkeel.core.files import replacing

_BLOCK = 2**20


def save_tensors(
    path: Path, tensors: Mapping[str, Tensor], metadata: dict[str, str] | None = None
) -> None:
    """Write a safetensors file; a full disk or a read-only folder is a `StorageError`, and the old
    file stays."""
    with replacing(path) as aside:
        try:
            save_file(
                {name: tensor.detach().contiguous() for name, tensor in tensors.items()},
                aside,
                metadata,
            )
        except SafetensorError as error:  # its name for whatever the disk refuses
            raise OSError(errno.EIO, str(error)) from error


def tensors_sha256(tensors: Mapping[str, Tensor]) -> str:
    """SHA-256 of named tensors; a safetensors file carries no checksum of its own."""
    digest = hashlib.sha256()
    for name, tensor in sorted(tensors.items()):
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
        digest.update(tensor.detach().cpu().contiguous().numpy().tobytes())
    return digest.hexdigest()


def file_sha256(path: Path) -> str:
    """SHA-256 of a file, read block by block."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(_BLOCK):
            digest.update(block)
    return digest.hexdigest()
