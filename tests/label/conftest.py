"""A fitted reconstructor on three digits, made once and copied for every test."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator

import pytest
from torch_geometric.data import Data

from graphkeel import Reconstructor
from graphkeel.graph import GraphTask, load
from graphkeel.label import Session
from graphkeel.models import train_model


@pytest.fixture(scope="session")
def digits() -> GraphTask:
    return load("digits:3,8,9")


@pytest.fixture(scope="session")
def _fitted(digits: GraphTask) -> Reconstructor:
    return Reconstructor(train_model("sgc", digits), seed=0).fit(digits.to_data())


@pytest.fixture
def rec(_fitted: Reconstructor) -> Reconstructor:
    return copy.deepcopy(_fitted)


@pytest.fixture
def data(digits: GraphTask) -> Data:
    return digits.to_data()


@pytest.fixture
def start(rec, data, tmp_path) -> Iterator[Callable[..., Session]]:
    """Starts sessions in one folder, each as a new program would."""
    started = []

    def session(**options: object) -> Session:
        given = {"rec": copy.deepcopy(rec), "data": data, "folder": tmp_path / "label", **options}
        started.append(Session(**given))
        return started[-1]

    yield session
    for one in started:
        one._worker.shutdown(wait=True)
