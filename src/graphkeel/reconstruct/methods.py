"""The methods by name: `replace`, `replace-one`, `diffuse`, `prototype` and the guarded `auto`."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from graphkeel.core.errors import ConfigError
from graphkeel.graph import GraphTask
from graphkeel.models.frozen import FrozenModel
from graphkeel.reconstruct.candidates import Builder, Replace
from graphkeel.reconstruct.chooser import Chooser
from graphkeel.reconstruct.context import Context
from graphkeel.reconstruct.guard import SIGNIFICANCE
from graphkeel.reconstruct.labels import known_labels
from graphkeel.reconstruct.method import Method, MethodResult, check_nodes


@dataclass
class Reconstruction:
    """Candidates of one kind, or of all, chosen by the guard.

    `auto` asks for significance. The single kinds are rows of an ablation: they take what
    validation prefers, so that the table shows what the kind itself does."""

    name: str
    significance: float = 1.0
    retrains: bool = False

    def fit_predict(
        self,
        frozen: FrozenModel,
        task: GraphTask,
        labelled: Tensor,
        validation: Tensor,
        seed: int = 0,
    ) -> MethodResult:
        check_nodes(task, labelled, validation)
        context = Context(frozen, task.x, task.edge_index, seed=seed)
        chooser = Chooser(context, self.name, self.significance, task.train_mask, seed)
        decision = chooser.choose(known_labels(task, labelled), known_labels(task, validation))
        if decision.left_alone:
            return MethodResult(None, None, decision.to_dict())
        features = chooser.features()
        return MethodResult(context.logits_for(features), features, decision.to_dict())


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
    "auto": Reconstruction("auto", SIGNIFICANCE),
}


def get_method(name: str) -> Method:
    """One of our own methods; those we are compared with are in `graphkeel.paper.baselines`."""
    if name not in METHODS:
        raise ConfigError(f"the method must be one of none, {', '.join(METHODS)}", got=repr(name))
    return METHODS[name]
