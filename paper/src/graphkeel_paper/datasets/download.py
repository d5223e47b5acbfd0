"""PyG's own download of the raw files into the user cache; nothing it fetches is trusted before its
checksum is."""

from __future__ import annotations

import logging
from pathlib import Path

from graphkeel.core.errors import DataError
from graphkeel_paper.datasets.files import ENVIRONMENT_VARIABLE, raw_folders, user_cache

logger = logging.getLogger(__name__)


def fetch_planetoid(folder: str, names: list[str]) -> Path:
    """Download the files of a Planetoid graph."""
    from torch_geometric.datasets import Planetoid

    return _fetch(folder, [f"{Planetoid.url}/{name}" for name in names])


def fetch_amazon(folder: str, name: str) -> Path:
    """Download the file of an Amazon graph."""
    from torch_geometric.datasets import Amazon

    return _fetch(folder, [f"{Amazon.url.rstrip('/')}/{name}"])


def _fetch(folder: str, urls: list[str]) -> Path:
    """Download every url into the cache's raw folder and return that folder."""
    from torch_geometric.data import download_url

    target = user_cache() / "datasets" / folder / "raw"
    try:
        target.mkdir(parents=True, exist_ok=True)
        for url in urls:
            logger.info("downloading %s", url)
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
