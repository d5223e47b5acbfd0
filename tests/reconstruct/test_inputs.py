"""Mistakes in what a `Reconstructor` is handed get one sentence; threads that share one lose
nothing."""

from __future__ import annotations

import copy
import re

import numpy as np
import pytest
import torch
from sklearn.base import clone
from torch import nn
from torch_geometric.data import Data
from torch_geometric.nn import GCNConv

import graphkeel as gk
from graphkeel.core import locks
from graphkeel.core.errors import ConfigError, DataError, KeelError, ModelError
from graphkeel.graph import make_sbm, make_task
from graphkeel.reconstruct.reconstructor import Reconstructor
from threads import Meeting, WatchedLock, at_once


@pytest.fixture(scope="module")
def task():
    return make_task(make_sbm(300, 900, n_classes=3, n_features=6), split="random")


def one_sentence(error: pytest.ExceptionInfo[KeelError]) -> str:
    message = str(error.value)
    assert "\n" not in message and len(message) < 400
    return message


@pytest.mark.parametrize("call", ["fit", "transform", "predict", "fit_transform"])
@pytest.mark.parametrize("given", [None, "x", 3, {"x": 1}, torch.ones(3, 2)])
def test_what_is_no_graph_is_refused(fitted, call, given) -> None:
    rec = copy.copy(fitted)
    with pytest.raises(DataError) as caught:
        getattr(rec, call)(given)
    message = one_sentence(caught)
    assert "must be a PyG Data object with x and edge_index" in message
    assert f"(got {type(given).__name__})" in message


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"x": None}, "data.x is missing"),
        ({"edge_index": None}, "data.edge_index is missing"),
        ({"x": np.ones((300, 6))}, r"data.x must be a torch tensor \(got ndarray\)"),
        ({"y": np.zeros(300)}, r"data.y must be a torch tensor \(got ndarray\)\. torch.as_tensor"),
        ({"y": ["cat"] * 300}, r"data.y must be a torch tensor \(got list\).*LabelEncoder"),
        ({"x": torch.ones(300)}, "x must have shape"),
        ({"edge_index": torch.ones(2, 4)}, "edge_index must hold integers"),
        ({"edge_index": torch.tensor([[0], [300]])}, r"node ids in 0\.\.299"),
    ],
)
def test_half_a_graph_is_refused(model, data, changes, message) -> None:
    for name, value in changes.items():
        setattr(data, name, value)
    with pytest.raises(DataError, match=message):
        gk.Reconstructor(model).fit(data)


def test_a_class_is_no_model(data) -> None:
    with pytest.raises(ModelError, match=r"\(got the class GCNConv\)\. Build the model"):
        gk.Reconstructor(GCNConv).fit(data)


def test_an_empty_data_object_is_refused(model) -> None:
    with pytest.raises(DataError, match=r"data\.x is missing"):
        gk.Reconstructor(model).fit(Data())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        *(
            ({"risk": value}, r"risk must lie in (0, 1]")
            for value in ("a", None, True, float("nan"), 0.0, 1.5, -1, [0.05], 1j)
        ),
        *(
            ({"seed": value}, "seed must be a whole number from 0 to 4294967295")
            for value in (-1, 2**70, 1.0, "0", None, True, float("inf"))
        ),
        *(({"method": value}, "method must be one of") for value in (None, 3, ["auto"], "hope")),
        *(
            ({"controller": value}, "the controller must be one of")
            for value in (None, 3, ["pid"], "hope")
        ),
        *(
            ({"verifier": value}, "verifier must be the name of an engine")
            for value in (None, 3, ["auto"])
        ),
        ({"verifier": "hope"}, "engine must be one of"),
        *(({"return_type": value}, "return_type must be one of") for value in (None, 3, [])),
        *(({"model": value}, "a model must be a torch module") for value in (3, "gcn", [])),
    ],
)
def test_constructor_arguments_are_checked_by_fit(model, data, options, message) -> None:
    rec = gk.Reconstructor(**{"model": model, **options})
    with pytest.raises((ConfigError, ModelError), match=re.escape(message)) as caught:
        rec.fit(data)
    (given,) = options.values()
    assert repr(given) in one_sentence(caught) or type(given).__name__ in one_sentence(caught)


def test_numbers_of_numpy_are_numbers(model, data) -> None:
    rec = gk.Reconstructor(model, risk=np.float32(0.05), seed=np.int64(1)).fit(data)
    assert rec.guard_.reason


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
def test_scores_that_cannot_be_compared_are_refused(data, value) -> None:
    def broken(x, edge_index):
        scores = x[:, :3].clone()
        scores[7] = value
        return scores

    with pytest.raises(ModelError) as caught:
        gk.Reconstructor(broken).fit(data)
    assert "scores must be finite (got NaN or infinity for 1 of 300 nodes, the first is 7)" in (
        one_sentence(caught)
    )


def test_features_that_are_not_finite_are_blamed_before_the_scores(model, data) -> None:
    data.x[3, 0] = float("nan")
    with pytest.raises(DataError, match="x must be finite"):
        gk.Reconstructor(model).fit(data)


def test_a_lazy_layer_without_weights_is_named(data) -> None:
    class Lazy(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv = GCNConv(-1, 3)

        def forward(self, x, edge_index):
            return self.conv(x, edge_index)

    with pytest.raises(ModelError, match=r"lazy layer without weights \(got 'conv.lin.weight'\)"):
        gk.Reconstructor(Lazy()).fit(data)


def test_a_model_that_cannot_take_the_graph_is_the_named_cause(model, data) -> None:
    data.x = torch.ones(300, 5)
    with pytest.raises(ModelError, match="the model cannot be run on x of shape"):
        gk.Reconstructor(model).fit(data)


@pytest.mark.parametrize(
    ("nodes", "labels", "message"),
    [
        ([4, 9, 4], [0, 1, 2], "node 4 has two labels in one call (got 0 and 2)"),
        ([True, False], [0, 1], "nodes must be integers in 0..299 (got true and false)"),
        (torch.ones(300, dtype=torch.bool), [0] * 300, "mask.nonzero().flatten()"),
        (np.array([True]), [0], "nodes must be integers"),
        (True, 0, "nodes must be integers"),
        ([1], [True], "labels must be integers in 0..2 (got true and false)"),
        ([1], True, "labels must be integers"),
        (None, [0], "nodes must be integers in 0..299 (got None)"),
        ([1], None, "labels must be integers in 0..2 (got None)"),
        ([1, None], [0, 1], "nodes must be integers"),
        ([1.0], [0], "nodes must be integers in 0..299 (got [1.0])"),
        ([1], [0.0], "labels must be integers in 0..2 (got [0.0])"),
        ([1j], [0], "nodes must be integers"),
        ([float("nan")], [0], "nodes must be integers"),
        (["1"], [0], "nodes must be integers"),
        ("12", [0], "nodes must be integers"),
        ([2**70], [0], "nodes must be integers"),
        ([-1], [0], "nodes must be integers"),
        ([300], [0], "nodes must be integers"),
        ([1], [3], "labels must be integers"),
        ([1, 2], [0], "one label per node (got 2 nodes, 1 labels)"),
        ([[1, 2], [3]], [0, 0], "nodes must be integers"),
        ({1: 0}, [0], "nodes must be integers"),
    ],
)
def test_bad_feedback_is_refused_and_changes_nothing(fitted, nodes, labels, message) -> None:
    before = fitted.labels_
    with pytest.raises(DataError, match=re.escape(message)) as caught:
        fitted.feedback(nodes, labels)
    one_sentence(caught)
    assert fitted.labels_ is before


def test_the_same_label_twice_is_no_contradiction_and_a_later_call_may_correct(
    model, task, data
) -> None:
    rec = gk.Reconstructor(model).fit(data)
    node = int(task.test_mask.nonzero()[0])
    known = len(rec.labels_)
    rec.feedback([node, node], np.array([1, 1], dtype=np.uint8))
    assert len(rec.labels_) == known + 1
    rec.feedback(node, 2)
    assert len(rec.labels_) == known + 1
    assert rec.labels_.classes[rec.labels_.nodes == node].tolist() == [2]
    assert len(rec.feedback([], []).labels_) == known + 1


@pytest.mark.parametrize("given", [{"nodes": [1]}, {"labels": [1]}])
def test_fit_takes_nodes_and_labels_together(model, data, given) -> None:
    with pytest.raises(DataError, match=r"must be integers in .* \(got None\)"):
        gk.Reconstructor(model).fit(data, **given)


# ---- threads


def test_threads_that_give_feedback_lose_no_label(model, task, data, monkeypatch) -> None:
    """Each would add its labels to those it found, and the last would win."""
    rec = gk.Reconstructor(model).fit(data)
    known = len(rec.labels_)
    nodes = task.test_mask.nonzero().flatten()[:30].chunk(3)
    meeting = Meeting(parties=3)
    lock = WatchedLock(meeting)
    monkeypatch.setattr(locks, "lock_of", lambda owner: lock)
    choose = Reconstructor._choose

    def slowly(self, *labels):
        meeting.wait()
        return choose(self, *labels)

    monkeypatch.setattr(Reconstructor, "_choose", slowly)
    at_once(*(lambda part=part: rec.feedback(part, task.y[part]) for part in nodes))
    assert len(rec.labels_) == known + 30
    everything = torch.cat(nodes)
    alone = gk.Reconstructor(model).fit(data).feedback(everything, task.y[everything])
    assert torch.equal(rec.labels_.nodes.sort().values, alone.labels_.nodes.sort().values)


def test_threads_that_fit_on_one_model_leave_it_as_it_was(model, data) -> None:
    shared = copy.deepcopy(model).train()
    alone = gk.Reconstructor(model).fit(data)
    together = at_once(*[lambda: gk.Reconstructor(shared).fit(data)] * 4)
    assert shared.training
    assert all(parameter.requires_grad for parameter in shared.parameters())
    assert all(torch.equal(rec.features_, alone.features_) for rec in together)


def test_a_reconstructor_can_be_copied_after_its_lock_was_used(fitted, model, data) -> None:
    assert clone(fitted).model is not None
    rec = gk.Reconstructor(model)
    with pytest.raises(ConfigError, match="not fitted"):
        rec.transform(data)
    assert copy.deepcopy(rec).fit(data).guard_ == fitted.guard_
