"""Small tasks for reconstruction methods: an ordinary one, odd ones, and the same one with its
nodes renamed."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

import torch
from torch import Tensor

from graphkeel.graph import GraphTask, make_sbm, make_task
from graphkeel.graph.task import UNLABELLED
from graphkeel.models import train_model
from graphkeel.models.frozen import FrozenModel

_PER_NODE = ("x", "y", "train_mask", "val_mask", "test_mask")


@dataclass(frozen=True, eq=False)
class Case:
    """A method's arguments: a frozen model, a task, and the nodes whose labels it may use or
    select on."""

    frozen: FrozenModel
    task: GraphTask
    labelled: Tensor
    validation: Tensor

    @property
    def hidden(self) -> Tensor:
        """A mask over the nodes whose labels a method must not see."""
        seen = torch.zeros(self.task.n_nodes, dtype=torch.bool)
        seen[self.labelled] = True
        seen[self.validation] = True
        return ~seen

    def erased(self) -> Case:
        """Without the hidden labels: the task as a method gets it."""
        hidden, task = self.hidden, self.task
        seen = replace(
            task,
            y=task.y.masked_fill(hidden, UNLABELLED),
            train_mask=task.train_mask & ~hidden,
            val_mask=task.val_mask & ~hidden,
            test_mask=torch.zeros_like(hidden),
        )
        return replace(self, task=seen)

    def poisoned(self) -> Case:
        """With wrong labels on all hidden nodes."""
        wrong = (self.task.y + 1) % self.task.n_classes
        return replace(
            self, task=replace(self.task, y=torch.where(self.hidden, wrong, self.task.y))
        )

    def renamed(self, seed: int = 0) -> tuple[Case, Tensor]:
        """Node v is called names[v], and the edges come in another order."""
        generator = torch.Generator().manual_seed(seed)
        names = torch.randperm(self.task.n_nodes, generator=generator)
        order = torch.randperm(self.task.n_edges, generator=generator)
        back = names.argsort()
        by_node = {field: getattr(self.task, field)[back] for field in _PER_NODE}
        task = replace(self.task, edge_index=names[self.task.edge_index][:, order], **by_node)
        return Case(self.frozen, task, names[self.labelled], names[self.validation]), names


@lru_cache(maxsize=4)
def ordinary(model: str = "sgc", seed: int = 0) -> Case:
    """A block model of 240 nodes in three classes, and a model trained on it."""
    graph = make_sbm(240, 900, n_classes=3, n_features=8, homophily=0.8, signal=1.5, seed=seed)
    return _case(make_task(graph, seed=seed, split="random", features="raw"), model)


def _case(task: GraphTask, model: str = "sgc") -> Case:
    frozen = FrozenModel(train_model(model, task, seed=0), n_classes=task.n_classes)
    return Case(
        frozen, task, task.train_mask.nonzero().flatten(), task.val_mask.nonzero().flatten()
    )


def odd_graphs() -> dict[str, Case]:
    """Graphs at the edge of what is allowed, each for the ordinary case's model."""
    case = ordinary()
    edges, n = case.task.edge_index, case.task.n_nodes
    few = (edges < n // 2).all(dim=0)
    loops = torch.arange(n).repeat(2, 1)
    changed = {
        "no edge": edges[:, :0],
        "isolated nodes": edges[:, few],
        "one-way edges": edges[:, edges[0] < edges[1]],
        "self-loops and repeated edges": torch.cat([edges, edges[:, :200], loops], dim=1),
    }
    return {
        name: replace(case, task=replace(case.task, edge_index=given))
        for name, given in changed.items()
    }


def few_labels() -> Case:
    """One label a class, and three validation nodes."""
    case = ordinary()
    first = [
        case.labelled[case.task.y[case.labelled] == label][:1]
        for label in range(case.task.n_classes)
    ]
    train = torch.zeros_like(case.task.train_mask)
    train[torch.cat(first)] = True
    task = replace(case.task, train_mask=train)
    return replace(case, task=task, labelled=torch.cat(first), validation=case.validation[:3])
