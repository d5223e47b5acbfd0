"""A small shifted graph for the baselines, and the contract that each of them has to keep."""

from __future__ import annotations

from dataclasses import replace

import torch

from graphkeel.graph import GraphTask, make_sbm, make_task
from graphkeel.models import train_model
from graphkeel.models.frozen import FrozenModel
from graphkeel.runs.method import Method, MethodResult


def small_task(n_nodes: int = 300, seed: int = 0) -> GraphTask:
    graph = make_sbm(
        n_nodes, 4 * n_nodes, n_classes=3, n_features=8, homophily=0.8, signal=1.5, seed=seed
    )
    return make_task(graph, seed=seed, split="random", features="raw")


def frozen_sgc(task: GraphTask) -> FrozenModel:
    return FrozenModel(train_model("sgc", task, seed=0), n_classes=task.n_classes)


def apply(
    method: Method, task: GraphTask, frozen: FrozenModel | None = None, seed: int = 0
) -> MethodResult:
    labelled, validation = task.train_mask.nonzero().flatten(), task.val_mask.nonzero().flatten()
    return method.fit_predict(frozen or frozen_sgc(task), task, labelled, validation, seed)


def scrambled(task: GraphTask) -> GraphTask:
    """A copy of a task with other labels on every node that is neither for training nor for
    validation."""
    seen = task.train_mask | task.val_mask
    return replace(task, y=torch.where(seen, task.y, (task.y + 1) % task.n_classes))


def check_contract(
    method: Method, task: GraphTask, frozen: FrozenModel | None = None
) -> MethodResult:
    """Hidden labels do not matter, the seed decides, the global generator and the frozen weights
    stay as they were."""
    frozen = frozen or frozen_sgc(task)
    state = torch.random.get_rng_state()
    first = apply(method, task, frozen)
    assert torch.equal(torch.random.get_rng_state(), state)
    again = apply(method, scrambled(task), frozen)
    assert first.scores is not None and again.scores is not None
    assert first.scores.shape == (task.n_nodes, task.n_classes)
    assert torch.isfinite(first.scores).all()
    assert torch.equal(first.scores, again.scores)
    frozen(task.x, task.edge_index)  # refused if its weights had changed
    return first


def share_right(result: MethodResult, task: GraphTask) -> float:
    assert result.scores is not None
    return float((result.scores.argmax(dim=1) == task.y)[task.test_mask].float().mean())
