"""GraphTask accepts what is right and refuses each kind of bad input with what / got / how to
fix."""

from __future__ import annotations

from dataclasses import FrozenInstanceError

import pytest
import torch
from torch_geometric.data import Data

from graphkeel.core.errors import DataError
from graphkeel.graph import UNLABELLED, GraphTask


def mask(*nodes: int, n: int = 6) -> torch.Tensor:
    out = torch.zeros(n, dtype=torch.bool)
    out[list(nodes)] = True
    return out


BAD_INPUT = {
    "nan features": (
        {"x": torch.tensor([[float("nan"), 0.0]] + [[0.0, 0.0]] * 5)},
        "finite.*row 0",
    ),
    "infinite features": (
        {"x": torch.tensor([[0.0, 0.0]] * 5 + [[float("inf"), 0.0]])},
        "finite.*row 5",
    ),
    "no features": ({"x": torch.zeros(6, 0)}, "at least 1"),
    "edge id too large": ({"edge_index": torch.tensor([[0], [6]])}, r"0\.\.5.*from 0 to 6"),
    "edge id negative": ({"edge_index": torch.tensor([[-1], [0]])}, "from -1 to 0"),
    "edges of the wrong shape": (
        {"edge_index": torch.zeros(3, 4, dtype=torch.long)},
        r"\(2, edges\).*\(3, 4\)",
    ),
    "float edges": ({"edge_index": torch.zeros(2, 4)}, "integers.*float32"),
    "mask of the wrong length": ({"val_mask": mask(1, n=5)}, "val_mask.*one entry per node"),
    "mask of ids": ({"train_mask": torch.tensor([0, 5])}, "boolean mask"),
    "train and val overlap": ({"val_mask": mask(0, 1)}, "train_mask and val_mask overlap.*1 nodes"),
    "train and test overlap": ({"test_mask": mask(0, 3)}, "train_mask and test_mask overlap"),
    "val and test overlap": ({"test_mask": mask(1, 3)}, "val_mask and test_mask overlap"),
    "label out of range": ({"y": torch.tensor([0, 0, 0, 1, 1, 2])}, r"0\.\.1"),
    "labels of the wrong length": ({"y": torch.zeros(5, dtype=torch.long)}, "one label per node"),
    "split holds an unlabelled node": (
        {"y": torch.tensor([0, 0, UNLABELLED, 1, 1, 1])},
        "without a label",
    ),
    "one class": ({"y": torch.zeros(6, dtype=torch.long), "n_classes": 1}, "two classes"),
    "not a tensor": ({"x": [[1.0, 2.0]] * 6}, "torch tensor.*list"),
}


@pytest.mark.parametrize("case", BAD_INPUT)
def test_bad_input_is_refused_with_a_clear_message(make_task, case):
    changes, message = BAD_INPUT[case]
    with pytest.raises(DataError, match=message):
        make_task(**changes)


def test_unsorted_edges_are_fine(make_task):
    task = make_task()
    assert make_task(edge_index=task.edge_index.flip(1)).n_edges == 10


def test_is_immutable_and_independent_of_the_callers_tensors(make_task):
    x = torch.ones(6, 2)
    task = make_task(x=x)
    x.zero_()
    assert task.x.eq(1).all()
    with pytest.raises(FrozenInstanceError):
        task.x = x


def test_hash_names_the_content(make_task):
    assert make_task().hash == make_task().hash
    assert make_task(train_mask=mask(0, 4), val_mask=mask(1)).hash != make_task().hash
    changed = make_task().x.clone()
    changed[0, 0] += 1e-6
    assert make_task(x=changed).hash != make_task().hash


def test_round_trip_through_pyg_data(make_task):
    task = make_task()
    assert GraphTask.from_data(task.to_data()).hash == task.hash


def test_from_data_takes_column_labels_and_missing_masks(make_task):
    data = make_task().to_data()
    data.y = data.y.view(-1, 1)
    del data.val_mask, data.test_mask
    task = GraphTask.from_data(data)
    assert task.y.shape == (6,)
    assert not task.val_mask.any()
    assert not task.test_mask.any()


def test_from_data_names_the_missing_field(make_task):
    data = make_task().to_data()
    del data.edge_index
    with pytest.raises(DataError, match=r"data\.edge_index is missing"):
        GraphTask.from_data(data)


def test_from_data_needs_neither_labels_nor_masks(make_task):
    bare = Data(x=make_task().x, edge_index=make_task().edge_index)
    task = GraphTask.from_data(bare, n_classes=2)
    assert task.y.tolist() == [UNLABELLED] * task.n_nodes
    assert not (task.train_mask | task.val_mask | task.test_mask).any()


def test_without_test_labels_leaves_nothing_of_them(make_task):
    hidden = make_task().without_test_labels()
    assert hidden.y.tolist() == [0, 0, UNLABELLED, UNLABELLED, 1, 1]
    assert not hidden.test_mask.any()
