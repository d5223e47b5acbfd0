"""Retraining: the same architecture on the same labels, from scratch or from the given weights.

What a team does that may retrain. Weight decay (from scratch) or learning rate (from the given
weights) are chosen by the labels, as every rival's settings are."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from graphkeel.models import RECIPES, TrainingConfig
from graphkeel.models.networks import SGC
from graphkeel.models.zoo import train
from graphkeel.runs.method import Given
from graphkeel_paper.baselines.retrained.copies import fresh_copy, module_of, scores_of
from graphkeel_paper.baselines.rival import Candidate, Rival, left_alone, scored
from graphkeel_paper.baselines.training import as_split, seeded


@dataclass(frozen=True)
class Retrain(Rival):
    """The given model's architecture, trained from scratch on all labels.

    A weight decay of None is the architecture's own."""

    name = "retrain"
    retrains = True
    weight_decays: tuple[float | None, ...] = (None, 5e-4, 5e-3)

    def candidates(self, given: Given) -> Iterator[Candidate]:
        if not len(given.labelled):
            yield left_alone("there is no label to train on")
            return
        recipe = _recipe_of(module_of(given.frozen))
        for decay in self.weight_decays:
            config = recipe if decay is None else replace(recipe, weight_decay=decay)
            model = fresh_copy(module_of(given.frozen), given.seed)
            setting = {"weight_decay": config.weight_decay}
            yield scored(setting, _trained(model, given, given.labelled, config))


@dataclass(frozen=True)
class FineTune(Rival):
    """The given model, trained on from its weights on the labels it has not seen."""

    name = "finetune"
    retrains = True
    rates: tuple[float, ...] = (0.01, 0.1, 0.001)
    epochs: int = 100

    def candidates(self, given: Given) -> Iterator[Candidate]:
        unseen = given.labelled[~given.task.train_mask[given.labelled]]
        if not len(unseen):
            yield left_alone("there is no label to train on")
            return
        recipe = _recipe_of(module_of(given.frozen))
        for rate in self.rates:
            config = replace(recipe, lr=rate, epochs=self.epochs, patience=None)
            model = copy.deepcopy(module_of(given.frozen)).requires_grad_(True)
            yield scored({"lr": rate}, _trained(model, given, unseen, config))


def _recipe_of(model: nn.Module) -> TrainingConfig:
    """How a network is trained: as its kind is in the zoo, else as a GCN."""
    kinds = {recipe.build: recipe.training for recipe in RECIPES.values()}
    return kinds.get(type(model), RECIPES["gcn"].training)


def _trained(model: nn.Module, given: Given, labelled: Tensor, config: TrainingConfig) -> Tensor:
    task, nobody = given.task, labelled[:0]
    with seeded(given.seed):
        trained = train(model, as_split(task, labelled, nobody), config)
    with torch.no_grad():
        if isinstance(trained, SGC):
            return scores_of(trained, task.x, task.edge_index)
        return trained(task.x, task.edge_index)
