"""The methods by name, as tables compare them: `auto`, the paper's `replace` and `diffuse`, and two
controls that show what the frozen model contributes."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from graphkeel.core.names import check_name
from graphkeel.graph import UNLABELLED, GraphTask
from graphkeel.reconstruct.inputs import ClassWeight, MethodName
from graphkeel.reconstruct.reconstructor import Reconstructor
from graphkeel.report.fit_facts import shares_by_kind
from graphkeel.runs.method import CheckedMethod, Given, Method, MethodResult


@dataclass
class Reconstruction(CheckedMethod):
    """A `Reconstructor` on the labels that a table allows.

    The paper's methods take what validation prefers, so that the table shows what the method itself
    does."""

    name: str  # of the row
    method: MethodName | None = None  # the Reconstructor's; None: the name
    risk: float = 0.5  # up to which a change is kept
    class_weight: ClassWeight = None  # None, or `balanced`
    without: tuple[str, ...] = ()  # sources of evidence that are left out
    random_weights: bool = False  # the model keeps its form and loses what it has learned

    @property
    def needs_labels(self) -> bool:  # type: ignore[override]
        return bool(self.without)

    def _fit_predict(self, given: Given) -> MethodResult:
        return result_of(*self.fitted(given), given.frozen.model)

    def fitted(self, given: Given) -> tuple[Reconstructor, Data]:
        """The reconstructor on the labels that a table allows, and the graph with these alone."""
        frozen, task, labelled = given.frozen, given.task, given.labelled
        kind = frozen.return_type.value
        rec = self.reconstructor(
            frozen.model, given.seed, risk=self.risk, labels="train", return_type=kind
        )
        trained_on = task.train_mask[labelled]
        data = _visible(task, labelled[trained_on], given.validation)
        fresh = labelled[~trained_on]
        return rec.fit(data, nodes=fresh, labels=task.y[fresh]), data

    def reconstructor(self, model: Any, seed: int, **settings: Any) -> Reconstructor:
        """The reconstructor behind the row; what is not set is a user's default."""
        rec = Reconstructor(
            untrained(model, seed) if self.random_weights else model,
            method=self.method or cast(MethodName, self.name),
            class_weight=self.class_weight,
            seed=seed,
            **settings,
        )
        rec._without = self.without
        return rec


def result_of(rec: Reconstructor, data: Data, model: Any) -> MethodResult:
    """The answers of a reconstructor; its features are for the model that was handed over, and mean
    nothing to it where another one was asked."""
    facts = {"change": float(rec.change_.median()), "evidence": shares_by_kind(rec.evidence_)}
    decision = {**rec.guard_.to_dict(), **facts}
    same = rec.model is model
    if rec.guard_.left_alone and same:
        return MethodResult(decision=decision)
    return MethodResult(rec.scores(data), rec.features_ if same else None, decision)


def untrained(model: nn.Module, seed: int) -> nn.Module:
    """A copy with weights as before training."""
    twin = copy.deepcopy(model)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        for part in twin.modules():
            if hasattr(part, "reset_parameters"):
                part.reset_parameters()  # type: ignore[operator]
    return twin


def _visible(task: GraphTask, train: Tensor, validation: Tensor) -> Data:
    masks = torch.zeros(2, task.n_nodes, dtype=torch.bool)
    masks[0, train] = True
    masks[1, validation] = True
    y = torch.where(masks.any(dim=0), task.y, torch.full_like(task.y, UNLABELLED))
    return Data(x=task.x, edge_index=task.edge_index, y=y, train_mask=masks[0], val_mask=masks[1])


METHODS: dict[str, Method] = {
    "replace": Reconstruction("replace", risk=1.0),
    "diffuse": Reconstruction("diffuse", risk=1.0),
    "auto": Reconstruction("auto"),
    "auto-balanced": Reconstruction("auto-balanced", method="auto", class_weight="balanced"),
    "no-model": Reconstruction("no-model", method="auto", without=("model", "model~")),
    "random-weights": Reconstruction("random-weights", method="auto", random_weights=True),
}
OURS = {name: row for name, row in METHODS.items() if isinstance(row, Reconstruction)}


def get_method(name: str) -> Method:
    """One of our own methods; those we are compared with are in `graphkeel_paper.baselines`.

    Args:
        name: one of `METHODS`.
    """
    check_name("the method", name, ("none", *METHODS))
    return METHODS[name]


def check_ours(name: str) -> None:
    """Refuse a name that is not a `Reconstructor`'s, where a table's other methods cannot serve:
    labels that arrive, another graph."""
    check_name("the method", name, OURS)


def reconstructor_of(name: str, model: Any, seed: int) -> Reconstructor:
    """The reconstructor behind a row of ours, with a user's defaults."""
    check_ours(name)
    return OURS[name].reconstructor(model, seed)
