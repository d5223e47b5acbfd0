"""The methods by name: `replace`, `replace-one`, `diffuse`, `prototype` and the guarded `auto`."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch_geometric.data import Data

from graphkeel.core.errors import ConfigError
from graphkeel.graph import UNLABELLED, GraphTask
from graphkeel.models.frozen import FrozenModel
from graphkeel.reconstruct.candidates.builder import Builder, Replace
from graphkeel.reconstruct.context import Context
from graphkeel.reconstruct.guard.decision import PAPERS_RISK, RISK
from graphkeel.reconstruct.labels import known_labels
from graphkeel.reconstruct.method import Method, MethodResult, check_nodes
from graphkeel.reconstruct.reconstructor import Reconstructor


@dataclass
class Reconstruction:
    """Candidates of one kind, or of all, chosen by the guard.

    `auto` asks for a significant gain where validation labels only judge, and follows the guard's
    usual rule where every label serves. The single kinds are rows of an ablation: they take what
    validation prefers, so that the table shows what the kind itself does."""

    name: str
    risk: float = 1.0
    retrains: bool = False
    kind: str | None = None  # the grid of candidates, where that is not the name
    class_shares: str | None = None

    def fit_predict(
        self,
        frozen: FrozenModel,
        task: GraphTask,
        labelled: Tensor,
        validation: Tensor,
        seed: int = 0,
    ) -> MethodResult:
        """Class scores of every node, or the untouched model.

        Args:
            frozen: the model.
            task: graph, features, labels and split.
            labelled: ids of nodes whose label may be used, int64.
            validation: ids of nodes that may be used to select, int64.
            seed: of everything random.
        """
        check_nodes(task, labelled, validation)
        rec = Reconstructor(
            frozen.model,
            method=self.kind or self.name,
            risk=self.risk if len(validation) else max(self.risk, RISK),
            labels="train",
            class_shares=self.class_shares,
            return_type=frozen.return_type.value,
            seed=seed,
        )
        trained_on = task.train_mask[labelled]
        data = _visible(task, labelled[trained_on], validation)
        fresh = labelled[~trained_on]
        rec.fit(data, nodes=fresh, labels=task.y[fresh])
        decision = rec.guard_.to_dict()
        if rec.guard_.left_alone:
            return MethodResult(None, None, decision)
        scores = frozen.logits(rec.features_, task.edge_index)
        return MethodResult(scores, rec.features_, decision)


def _visible(task: GraphTask, train: Tensor, validation: Tensor) -> Data:
    """The graph with these labels and no others."""
    masks = torch.zeros(2, task.n_nodes, dtype=torch.bool)
    masks[0, train] = True
    masks[1, validation] = True
    y = torch.where(masks.any(dim=0), task.y, torch.full_like(task.y, UNLABELLED))
    return Data(x=task.x, edge_index=task.edge_index, y=y, train_mask=masks[0], val_mask=masks[1])


@dataclass
class ReplaceOne:
    """The paper's protocol: the class of a randomly drawn training node is replaced, with m = 1; no
    selection."""

    name: str = "replace-one"
    retrains: bool = False

    def fit_predict(
        self,
        frozen: FrozenModel,
        task: GraphTask,
        labelled: Tensor,
        validation: Tensor,
        seed: int = 0,
    ) -> MethodResult:
        """Class scores of every node, or the untouched model.

        Args:
            frozen: the model.
            task: graph, features, labels and split.
            labelled: ids of nodes whose label may be used, int64.
            validation: ids of nodes that may be used to select, int64.
            seed: of everything random.
        """
        check_nodes(task, labelled, validation, needs_labels=True)
        context = Context(frozen, task.x, task.edge_index, seed=seed)
        labels = known_labels(task, labelled)
        drawn = torch.randint(len(labels), (1,), generator=torch.Generator().manual_seed(seed))
        candidate = Replace(1.0, only=int(labels.classes[drawn]))
        features = Builder(context, labels).features((candidate,))
        decision = {"chosen": [candidate.name], "residual": context.anchors(1.0).relative_residual}
        return MethodResult(context.logits_for(features), features, decision)


METHODS: dict[str, Method] = {
    "replace": Reconstruction("replace"),
    "replace-one": ReplaceOne(),
    "diffuse": Reconstruction("diffuse"),
    "prototype": Reconstruction("prototype"),
    "auto": Reconstruction("auto", PAPERS_RISK),
    "auto-shares": Reconstruction("auto-shares", PAPERS_RISK, kind="auto", class_shares="labels"),
}


def get_method(name: str) -> Method:
    """One of our own methods; those we are compared with are in `graphkeel.paper.baselines`.

    Args:
        name: one of `METHODS`.
    """
    if name not in METHODS:
        raise ConfigError(f"the method must be one of none, {', '.join(METHODS)}", got=repr(name))
    return METHODS[name]
