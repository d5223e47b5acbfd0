"""Where dataset files are looked for, their download, and the check that they are the right
ones."""

from __future__ import annotations

import logging
import os
from pathlib import Path

from graphkeel.core.digests import sha256_of
from graphkeel.core.errors import DataError
from graphkeel.core.files import user_cache

ENVIRONMENT_VARIABLE = "GRAPHKEEL_DATA"
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


def verify_checksum(path: Path, expected: str) -> bytes:
    """The bytes of `path`, if they are the published ones."""
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
