"""Tensors on disk, whole or not there, and JSON values that belong to them in a folder: safetensors
beside JSON, nothing pickled.

The JSON file is the one that counts: it holds the checksum of its tensors, which is also in their
file's name. A save that is killed at any moment leaves the old pair or the new one."""

from __future__ import annotations

import errno
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor
from torch.nn.functional import linear

from graphkeel.core.digests import file_sha256
from graphkeel.core.errors import DataError
from graphkeel.core.files import cannot_write, locked, replacing, write_text

Contents = tuple[dict[str, Tensor], dict[str, Any]]


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


def relu_network(layers: Iterable[tuple[Tensor, Tensor]], x: Tensor) -> Tensor:
    """The value at x (..., d) of affine layers with a ReLU between each two."""
    for i, (weight, bias) in enumerate(layers):
        x = linear(x.relu() if i else x, weight, bias)
    return x


@dataclass(frozen=True)
class TensorFolder:
    """A kind of folder.

    Attributes:
        name: of what is stored; its files begin with it.
        format: version; another one is refused.
    """

    name: str
    format: int

    def save(self, folder: Path, tensors: dict[str, Tensor], facts: dict[str, Any]) -> None:
        """Store both; whatever was in the folder before stays valid until the last moment."""
        with locked(folder):
            part = folder / f"{self.name}.part"
            save_tensors(part, tensors)
            sha256 = file_sha256(part)
            whole = {"format": self.format, "sha256": sha256, **facts}
            try:
                part.replace(folder / self._tensors(sha256))
                write_text(folder / f"{self.name}.json", json.dumps(whole, indent=1) + "\n")
                self._forget_all_but(folder, sha256)
            except OSError as error:
                raise cannot_write(folder, error) from error

    def load(self, folder: Path) -> Contents:
        path = folder / f"{self.name}.json"
        try:
            if not path.is_file():
                raise ValueError(f"no {path.name}")
            with locked(folder):
                facts = json.loads(path.read_text(encoding="utf-8"))
                known = facts["format"] == self.format
                tensors = self._checked_tensors(folder, facts["sha256"]) if known else {}
        except (OSError, SafetensorError, ValueError, KeyError, TypeError, RecursionError) as error:
            raise DataError(
                f"{folder} holds no stored {self.name}",
                got=str(error)[:200],
                fix="Write it with save().",
            ) from error
        if not known:
            raise DataError(
                f"{folder} was written by another version",
                got=repr(facts["format"])[:80],
                fix="Fit and save again.",
            )
        return tensors, {k: v for k, v in facts.items() if k not in ("format", "sha256")}

    def _tensors(self, sha256: str) -> str:
        return f"{self.name}-{sha256[:16]}.safetensors"

    def _checked_tensors(self, folder: Path, sha256: object) -> dict[str, Tensor]:
        if not isinstance(sha256, str) or re.fullmatch("[0-9a-f]{64}", sha256) is None:
            raise ValueError("no checksum of the tensors")
        path = folder / self._tensors(sha256)
        if file_sha256(path) != sha256:
            raise ValueError(f"{path.name} is damaged: its SHA-256 is another")
        return load_file(path)

    def _forget_all_but(self, folder: Path, sha256: str) -> None:
        """Tensors that no JSON file names any more."""
        for path in folder.glob(f"{self.name}-*.safetensors"):
            if path.name != self._tensors(sha256):
                path.unlink(missing_ok=True)
