"""Fixtures of both suites: real datasets where they are at hand, small graphs with known answers
everywhere."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import numba
import pytest
import torch

from graphkeel.core.files import user_cache
from graphkeel.graph import GraphTask

torch.set_num_threads(1)  # many small tensors: threads only cost


@pytest.fixture(scope="session", autouse=True)
def _private_cache(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Tests neither read nor fill the user's own cache, but for kernels: these take half a minute
    to compile."""
    os.environ.setdefault("NUMBA_CACHE_DIR", str(user_cache() / "kernels"))
    numba.config.reload_config()  # it reads its environment once, and is imported already
    os.environ["XDG_CACHE_HOME"] = str(tmp_path_factory.mktemp("cache"))


@pytest.fixture(scope="session")
def data_folder() -> Path:
    """The folder of real dataset files, or a skip that says how to get one."""
    root = os.environ.get("GRAPHKEEL_DATA")
    if not root or not (Path(root) / "Cora" / "raw").is_dir():
        pytest.skip("GRAPHKEEL_DATA is not set to a folder with the raw dataset files (Cora/raw/…)")
    return Path(root)


@pytest.fixture
def make_task() -> Callable[..., GraphTask]:
    """A six-node path graph 0-1-2-3-4-5 with two classes; any field can be overridden."""

    def build(**changes: object) -> GraphTask:
        one_way = torch.tensor([[0, 1, 2, 3, 4], [1, 2, 3, 4, 5]])
        fields: dict[str, object] = {
            "x": torch.tensor(
                [[1.0, 0.0], [1.0, 0.1], [0.9, 0.2], [0.1, 1.0], [0.0, 1.0], [0.2, 0.8]]
            ),
            "edge_index": torch.cat([one_way, one_way.flip(0)], dim=1),
            "y": torch.tensor([0, 0, 0, 1, 1, 1]),
            "train_mask": torch.tensor([True, False, False, False, False, True]),
            "val_mask": torch.tensor([False, True, False, False, True, False]),
            "test_mask": torch.tensor([False, False, True, True, False, False]),
            "n_classes": 2,
        }
        return GraphTask(**{**fields, **changes})  # type: ignore[arg-type]

    return build
