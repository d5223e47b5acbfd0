"""A graph, its model and a fit, for whole modules; a module that needs another graph or model has a
fixture of that name of its own."""

from __future__ import annotations

import pytest
from torch import nn
from torch_geometric.data import Data

from graphkeel.graph import GraphTask, make_sbm, make_task
from graphkeel.models import train_model
from graphkeel.reconstruct.reconstructor import Reconstructor


@pytest.fixture(scope="module")
def task() -> GraphTask:
    graph = make_sbm(600, 1800, n_classes=3, n_features=8, homophily=0.6, signal=1.0, seed=3)
    return make_task(graph, split="random")


@pytest.fixture(scope="module")
def model(task: GraphTask) -> nn.Module:
    return train_model("sgc", task, seed=0)


@pytest.fixture
def data(task: GraphTask) -> Data:
    return task.to_data()


@pytest.fixture(scope="module")
def fitted(task: GraphTask, model: nn.Module) -> Reconstructor:
    return Reconstructor(model).fit(task.to_data())
