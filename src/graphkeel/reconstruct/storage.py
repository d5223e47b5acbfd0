"""A reconstruction in a folder: tensors as safetensors, everything else as JSON, nothing pickled.

The two files belong together, so the JSON file is the one that counts: it holds the checksum of its
tensors, which is also in their file's name. A save that is killed at any moment leaves the old pair
or the new one."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor

from graphkeel.core.digests import file_sha256
from graphkeel.core.errors import DataError
from graphkeel.core.files import cannot_write, locked, write_text
from graphkeel.core.tensor_files import save_tensors

FACTS = "reconstruction.json"
FORMAT = 4


def save_folder(folder: Path, tensors: dict[str, Tensor], facts: dict[str, Any]) -> None:
    """Store both; whatever was in the folder before stays valid until the last moment."""
    with locked(folder):
        part = folder / "reconstruction.part"
        save_tensors(part, tensors)
        sha256 = file_sha256(part)
        try:
            part.replace(folder / _tensors(sha256))
            write_text(
                folder / FACTS,
                json.dumps({"format": FORMAT, "sha256": sha256, **facts}, indent=1) + "\n",
            )
            _forget_all_but(folder, sha256)
        except OSError as error:
            raise cannot_write(folder, error) from error


def load_folder(folder: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Tensors and JSON values that `save_folder` stored."""
    if not (folder / FACTS).is_file():
        raise DataError(
            f"{folder} holds no stored reconstruction",
            got=f"no {FACTS}",
            fix="Write it with save().",
        )
    try:
        with locked(folder):
            facts = json.loads((folder / FACTS).read_text(encoding="utf-8"))
            known = facts["format"] == FORMAT
            tensors = _checked_tensors(folder, facts["sha256"]) if known else {}
    except (OSError, SafetensorError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise DataError(
            f"{folder} holds no stored reconstruction",
            got=str(error)[:200],
            fix="Write it with save().",
        ) from error
    if not known:
        raise DataError(
            f"{folder} was written by another version",
            got=repr(facts["format"])[:80],
            fix="Fit and save again.",
        )
    return tensors, {key: value for key, value in facts.items() if key not in ("format", "sha256")}


def _tensors(sha256: str) -> str:
    return f"reconstruction-{sha256[:16]}.safetensors"


def _checked_tensors(folder: Path, sha256: object) -> dict[str, Tensor]:
    if not isinstance(sha256, str) or re.fullmatch("[0-9a-f]{64}", sha256) is None:
        raise ValueError("no checksum of the tensors")
    path = folder / _tensors(sha256)
    if file_sha256(path) != sha256:
        raise ValueError(f"{path.name} is damaged: its SHA-256 is another")
    return load_file(path)


def _forget_all_but(folder: Path, sha256: str) -> None:
    """Tensors that no JSON file names any more."""
    for path in folder.glob("reconstruction-*.safetensors"):
        if path.name != _tensors(sha256):
            path.unlink(missing_ok=True)
