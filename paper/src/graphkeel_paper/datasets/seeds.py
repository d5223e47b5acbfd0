"""The published biased training sets, as JSON: a list of training sets, each a list of node ids,
class by class."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from graphkeel.core.errors import DataError
from graphkeel_paper.datasets.files import data_root

FOLDER = "biased_seeds"


def published_seeds(name: str) -> list[NDArray[np.int64]] | None:
    """The published lists of a dataset, or None where GRAPHKEEL_DATA does not hold them."""
    root = data_root()
    path = None if root is None else root / FOLDER / f"{name}.json"
    return None if path is None or not path.is_file() else read_seed_lists(path)


def read_seed_lists(path: Path) -> list[NDArray[np.int64]]:
    """Read a JSON file of training sets and check its shape."""
    try:
        lists = json.loads(path.read_text())
    except (OSError, ValueError, RecursionError) as error:
        raise DataError(
            f"the seed lists {path} cannot be read", got=str(error), fix="They must be JSON."
        ) from error
    valid = isinstance(lists, list) and lists and all(_is_id_list(entry) for entry in lists)
    if not valid:
        raise DataError(
            f"{path} must hold a list of non-empty lists of distinct, non-negative node ids"
        )
    return [np.array(entry, dtype=np.int64) for entry in lists]


def _is_id_list(entry: object) -> bool:
    if not isinstance(entry, list) or not entry:
        return False
    return all(type(i) is int and 0 <= i < 2**62 for i in entry) and len(set(entry)) == len(entry)
