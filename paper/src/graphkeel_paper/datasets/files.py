"""Where dataset files are looked for, their download, and the check that they are the right ones:
checksums.json has the SHA-256 of every raw file as its source repository published it."""

from __future__ import annotations

import json
import logging
import os
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from graphkeel.core.digests import sha256_of
from graphkeel.core.errors import DataError
from graphkeel.core.files import user_cache

ENVIRONMENT_VARIABLE = "GRAPHKEEL_DATA"
_CHECKSUMS = Path(__file__).with_name("checksums.json")
_LOGGER = logging.getLogger(__name__)


def data_root() -> Path | None:
    """The folder named by GRAPHKEEL_DATA, or None when it is not set."""
    value = os.environ.get(ENVIRONMENT_VARIABLE)
    if not value:
        return None
    root = Path(value).expanduser()
    if not root.is_dir():
        raise DataError(
            f"{ENVIRONMENT_VARIABLE} must name a folder",
            got=value,
            fix="Unset it to download into the user cache.",
        )
    return root


def raw_folders(folder: str) -> list[Path]:
    """The places where `folder`/raw may lie, in the order they are tried."""
    root = data_root()
    return [base / folder / "raw" for base in (root, user_cache() / "datasets") if base is not None]


def find_raw(folder: str, names: list[str]) -> Path | None:
    """The first place that holds every file of `names`, or None."""
    for place in raw_folders(folder):
        if all((place / name).is_file() for name in names):
            return place
    return None


def verified(path: Path) -> bytes:
    """The bytes of a raw file, if they are the published ones."""
    expected = json.loads(_CHECKSUMS.read_text(encoding="utf-8"))[path.name]
    content = path.read_bytes()
    found = sha256_of([content])
    if found != expected:
        raise DataError(
            f"the dataset file {path} is not the published one: its SHA-256 should begin with "
            f"{expected[:12]}",
            got=f"{found[:12]}…, {len(content)} bytes",
            fix="It is damaged or another version: delete it and fetch it again.",
        )
    return content


def fetch(kind: str, folder: str, names: list[str]) -> Path:
    """Download files from where PyG's class of that kind has them, into the cache's raw folder, and
    return that folder; nothing of them is trusted before its checksum is."""
    from torch_geometric import datasets
    from torch_geometric.data import download_url

    target = user_cache() / "datasets" / folder / "raw"
    try:
        target.mkdir(parents=True, exist_ok=True)
        for name in names:
            url = f"{getattr(datasets, kind).url.rstrip('/')}/{name}"
            _LOGGER.info("downloading %s", url)
            download_url(url, str(target), log=False)
    except Exception as error:
        looked = ", ".join(str(place) for place in raw_folders(folder))
        raise DataError(
            f"the files of {folder} were not found and could not be downloaded",
            got=f"{type(error).__name__}: {error}; looked in {looked}",
            fix=f"Put the raw files into FOLDER/{folder}/raw and set "
            f"{ENVIRONMENT_VARIABLE}=FOLDER.",
        ) from error
    return target


# ---- The published biased training sets, as JSON: a list of training sets, each a list of node
# ids, class by class.


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
