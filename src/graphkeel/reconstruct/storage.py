"""A reconstruction in a folder: tensors as safetensors, everything else as JSON, nothing pickled."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from graphkeel.errors import DataError

TENSORS, FACTS = "reconstruction.safetensors", "reconstruction.json"
FORMAT = 1


def save_folder(folder: Path, tensors: dict[str, Tensor], facts: dict[str, Any]) -> None:
    """Both files are written aside first, so an interrupted save leaves the old ones."""
    text = json.dumps({"format": FORMAT, **facts}, indent=1) + "\n"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        save_file({name: tensor.contiguous() for name, tensor in tensors.items()}, folder / f"{TENSORS}.part")
        (folder / f"{FACTS}.part").write_text(text, encoding="utf-8")
        for name in (TENSORS, FACTS):
            (folder / f"{name}.part").replace(folder / name)
    except OSError as error:
        raise DataError(f"{folder} cannot be written", got=error.strerror) from error


def load_folder(folder: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    try:
        facts = json.loads((folder / FACTS).read_text(encoding="utf-8"))
        tensors = load_file(folder / TENSORS)
        known = facts["format"] == FORMAT and {"features", "anchors"} <= tensors.keys()
    except (OSError, SafetensorError, ValueError, KeyError, TypeError) as error:
        raise DataError(
            f"{folder} holds no stored reconstruction", got=str(error), fix="Write it with save()."
        ) from error
    if not known:
        raise DataError(f"{folder} was written by another version", got=facts["format"], fix="Fit and save again.")
    facts.pop("format")
    return tensors, facts
