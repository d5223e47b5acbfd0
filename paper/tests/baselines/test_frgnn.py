"""FRGNN and the readings of the paper's row: what is replaced, by what, and by whose choice."""

from __future__ import annotations

import pytest
import torch
from shifted_graph import apply, check_contract, frozen_sgc, small_task

from graphkeel.graph import GraphTask
from graphkeel.models import SGC
from graphkeel.models.frozen import FrozenModel
from graphkeel.runs.method import Method
from graphkeel_paper.baselines import get_baseline
from graphkeel_paper.baselines.frozen.frgnn import FRGNN
from graphkeel_paper.baselines.frozen.readings import PaperReading
from graphkeel_paper.baselines.rival import drawn_class

TASK = small_task()
FROZEN = frozen_sgc(TASK)


def edgeless_plant() -> tuple[FrozenModel, GraphTask]:
    """Without edges SGC is its head: logits (2 x₁ + 1, x₂ − x₁)."""
    model = SGC(2, 2)
    with torch.no_grad():
        model.conv.lin.weight.copy_(torch.tensor([[2.0, 0.0], [-1.0, 1.0]]))
        model.conv.lin.bias.copy_(torch.tensor([1.0, 0.0]))
    x = torch.randn(400, 2, generator=torch.Generator().manual_seed(0))
    mask = torch.zeros(400, dtype=torch.bool)
    train = mask.clone()
    train[:20] = True
    task = GraphTask(
        x, torch.empty(2, 0, dtype=torch.long), torch.arange(400) % 2, train, mask, mask, 2
    )
    return FrozenModel(model), task


def test_one_class_replaces_the_training_nodes_of_a_drawn_nodes_class():
    result = check_contract(FRGNN(epochs=30), TASK, FROZEN)
    labelled = TASK.train_mask.nonzero().flatten()
    drawn = drawn_class(TASK, labelled, seed=0)
    changed = (result.features != TASK.x).any(dim=1)
    assert torch.equal(changed, TASK.train_mask & (TASK.y == drawn))
    assert result.decision["class"] == drawn
    assert torch.equal(result.scores, FROZEN.logits(result.features, TASK.edge_index))
    head = FROZEN.model.conv.lin
    written = result.features[TASK.train_mask & (TASK.y == drawn)][0]
    distance = (head(written) - torch.eye(3)[drawn]).norm().item()
    assert result.decision["residual"] == pytest.approx(distance, rel=1e-4)


def test_all_classes_replace_every_training_node():
    result = check_contract(FRGNN(classes="all", epochs=30), TASK, FROZEN)
    assert torch.equal((result.features != TASK.x).any(dim=1), TASK.train_mask)
    assert result.decision["class"] is None


def test_training_brings_the_embedding_nearer_to_its_class():
    """The head answers probabilities here that features determine."""
    frozen, task = edgeless_plant()
    few, many = (
        frozen.logits(
            FRGNN(epochs=epochs).representatives(frozen, task, seed=0), task.edge_index
        ).softmax(dim=1)
        for epochs in (5, 500)
    )
    wanted = torch.eye(2)
    assert (many - wanted).abs().max() < 0.5 < 1.0 and (many - wanted).norm() < (
        few - wanted
    ).norm()


def test_a_gcn_base_is_trained_on_the_labels_at_hand_and_leaves_the_given_model_alone():
    method = FRGNN(name="frgnn-gcn", base="gcn", epochs=30)
    result = check_contract(method, TASK, FROZEN)
    assert method.retrains and result.features is None
    assert not torch.equal(result.scores, FROZEN.logits(TASK.x, TASK.edge_index))


def test_seeds_draw_different_classes():
    labelled = TASK.train_mask.nonzero().flatten()
    drawn = {drawn_class(TASK, labelled, seed) for seed in range(20)}
    assert drawn == {0, 1, 2}


def test_the_reading_with_validation_labels_replaces_those_nodes_too():
    result = check_contract(PaperReading("reading", with_validation=True), TASK, FROZEN)
    changed = (result.features != TASK.x).any(dim=1)
    assert torch.equal(
        changed, (TASK.train_mask | TASK.val_mask) & (TASK.y == result.decision["class"])
    )


def test_picking_class_and_strength_on_validation_is_no_worse_there():
    def right_on_validation(method: Method) -> int:
        scores = check_contract(method, TASK, FROZEN).scores
        return int((scores.argmax(dim=1) == TASK.y)[TASK.val_mask].sum())

    fixed = right_on_validation(PaperReading("fixed"))
    picked = right_on_validation(PaperReading("picked", pick_class=True))
    assert fixed <= picked <= right_on_validation(get_baseline("replace-one-picked-m"))


def test_a_larger_strength_is_reached_by_the_head():
    """On an affine head the anchor answers m·e_c exactly."""
    result = apply(PaperReading("strong", strengths=(10.0,)), TASK, FROZEN)
    label = result.decision["class"]
    replaced = result.features[TASK.train_mask & (TASK.y == label)][0]
    lin = FROZEN.model.conv.lin
    reached = lin.weight @ replaced + lin.bias
    assert torch.allclose(reached, 10.0 * torch.eye(3)[label], atol=1e-4)
