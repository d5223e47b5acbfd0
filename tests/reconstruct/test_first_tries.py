"""Surprises of a first try: an interrupted fit, labels in the wrong mask, a log, a type
checker, scikit-learn's other methods."""

from __future__ import annotations

import logging
import subprocess
import sys
import warnings

import numpy as np
import pytest
import torch
from sklearn.exceptions import NotFittedError
from torch_geometric.data import HeteroData

import graphkeel as gk
from graphkeel.core.errors import DataError
from graphkeel.graph import load
from graphkeel.models import train_model


def test_an_interrupted_fit_is_no_fit(model, data, monkeypatch) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    rec = gk.Reconstructor(model)
    again = gk.Reconstructor(model).fit(data)
    monkeypatch.setattr("graphkeel.reconstruct.reconstructor.correct", interrupted)
    for one in (rec, again):
        with pytest.raises(KeyboardInterrupt):
            one.fit(data)
        for use in (one.predict, one.transform, one.score, lambda _, one=one: one.suggest(3)):
            with pytest.raises(NotFittedError, match="not fitted"):
                use(data)


def test_a_fit_that_is_refused_leaves_the_one_before(model, data) -> None:
    rec = gk.Reconstructor(model).fit(data)
    before = rec.predict(data)
    with pytest.raises(gk.KeelError):
        rec.fit("no graph")
    assert torch.equal(rec.predict(data), before)


def test_the_log_of_a_fit_is_one_short_line(model, data, caplog) -> None:
    with caplog.at_level(logging.INFO, logger="graphkeel"):
        gk.Reconstructor(model).fit(data)
    (line,) = [record.getMessage() for record in caplog.records if "fit" in record.getMessage()]
    assert len(line) < 400
    assert "\n" not in line


def test_a_certify_result_shows_itself_in_one_line(model, data) -> None:
    result = gk.Reconstructor(model).fit(data).certify(budget=5)
    proved = len(result.verdicts) - len(result.reasons)
    assert repr(result).startswith(f"CertifyResult({proved} of 3 classes proved, ")
    assert len(repr(result)) < 80


def test_decision_function_and_fit_predict(model, data) -> None:
    rec = gk.Reconstructor(model)
    assert torch.equal(rec.fit_predict(data), rec.predict(data))
    logits = rec.decision_function(data)
    assert logits.shape == (len(data.x), 3)
    assert torch.equal(logits.argmax(dim=1), rec.predict(data))
    assert torch.allclose(logits.softmax(dim=1), rec.predict_proba(data))


def test_labels_without_a_mask_are_told_of(model, data) -> None:
    bare = data.clone()
    for name in ("train_mask", "val_mask", "test_mask"):
        del bare[name]
    with pytest.warns(gk.KeelWarning, match=r"no mask selects any of them.*set train_mask"):
        gk.Reconstructor(model).fit(bare)
    del bare.y
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        gk.Reconstructor(model).fit(bare)


@pytest.mark.parametrize("name", ["sgc", "gcn"])
def test_labels_that_the_model_was_not_trained_on(name) -> None:
    task = load("digits")
    model = train_model(name, task)
    data = task.to_data()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        gk.Reconstructor(model).fit(data)
    hard = (model(data.x, data.edge_index).argmax(dim=1) != data.y) & ~data.train_mask
    moved = data.clone()
    moved.train_mask = data.train_mask | hard
    moved.val_mask = data.val_mask & ~hard
    moved.test_mask = data.test_mask & ~hard
    with pytest.warns(gk.KeelWarning, match=r"hardly trained on these labels.*val_mask or"):
        gk.Reconstructor(model).fit(moved)


def test_the_hint_for_several_node_types_names_one_that_is_there(model) -> None:
    graph = HeteroData()
    graph["user"].x = torch.zeros(3, 2)
    graph["item"].x = torch.zeros(2, 2)
    graph["item"].y = torch.tensor([0, 1])
    with pytest.raises(DataError, match=r"for_node_type\(model, data, 'item'\)"):
        gk.Reconstructor(model).fit(graph)


TYPED = """
import numpy as np, torch
import graphkeel as gk
rec = gk.Reconstructor(torch.nn.Linear(2, 2), method="auto", guard="holdout")
rec.feedback([1], [2]).feedback(np.array([1]), torch.tensor([2]))
gk.Reconstructor(torch.nn.Linear(2, 2), method="replase")
"""


def test_types_as_people_call_it(tmp_path) -> None:
    pytest.importorskip("mypy")
    path = tmp_path / "typed.py"
    path.write_text(TYPED)
    words = [sys.executable, "-m", "mypy", "--ignore-missing-imports", "--follow-imports=silent"]
    done = subprocess.run(
        [*words, f"--cache-dir={tmp_path}", str(path)], capture_output=True, text=True
    )
    errors = [line for line in done.stdout.splitlines() if "error" in line and "typed.py" in line]
    assert len(errors) == 1, done.stdout
    assert "replase" in errors[0]


def test_feedback_of_lists_arrays_and_tensors(model, data) -> None:
    found = []
    for kind in (list, np.array, torch.tensor):
        rec = gk.Reconstructor(model).fit(data).feedback(kind([5, 7]), kind([0, 1]))
        found.append(rec.labels_.nodes.tolist())
    assert found[0] == found[1] == found[2]
