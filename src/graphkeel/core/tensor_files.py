"""Tensors on disk, whole or not there: safetensors with the care of `core.files`."""

from __future__ import annotations

import errno
from collections.abc import Mapping
from pathlib import Path

from safetensors import SafetensorError
from safetensors.torch import save_file
from torch import Tensor

from graphkeel.core.files import replacing


def save_tensors(
    path: Path, tensors: Mapping[str, Tensor], metadata: dict[str, str] | None = None
) -> None:
    """Write a safetensors file; a full disk or a read-only folder is a `StorageError`, and the old
    file stays."""
    with replacing(path) as temporary:
        try:
            save_file(
                {name: tensor.detach().contiguous() for name, tensor in tensors.items()},
                temporary,
                metadata,
            )
        except SafetensorError as error:  # its name for whatever the disk refuses
            raise OSError(errno.EIO, str(error)) from error
