"""Steps: logged, shown on stderr if asked, passed to callbacks, with their progress."""

from __future__ import annotations

import logging

import pytest
import torch

import graphkeel as gk
from graphkeel.core import steps
from graphkeel.core.errors import ConfigError
from graphkeel.graph import make_sbm, make_task
from graphkeel.models import train_model


@pytest.fixture(scope="module")
def fitted():
    graph = make_sbm(300, 900, n_classes=3, n_features=8, homophily=0.6, signal=1.0, seed=3)
    task = make_task(graph, split="random")
    heard: list[steps.Step] = []
    rec = gk.Reconstructor(train_model("sgc", task), callbacks=[heard.append])
    data = task.to_data()
    return rec.fit(data), data, heard


def test_every_step_is_told(fitted):
    rec, data, heard = fitted
    nodes = rec.suggest(5)
    rec.feedback(nodes, data.y[nodes])
    rec.update(data)
    rec.adapt(data)
    rec.certify()
    names = [step.name for step in heard]
    assert names == ["fit", "suggest", "feedback", "update", "adapt", "certify"]
    first = heard[0]
    assert first.numbers["accuracy"] - first.numbers["untouched"] == first.numbers["gain"]
    assert first.seconds > 0
    assert heard[-1].values == {"proved": 3, "classes": 3}


def test_a_step_that_fails_is_not_told(fitted):
    rec, _, heard = fitted
    before = len(heard)
    with pytest.raises(gk.core.errors.DataError):
        rec.feedback(torch.tensor([10**6]), torch.tensor([0]))
    assert len(heard) == before


def test_logging_hears_it_and_verbose_shows_it(fitted, caplog, capsys):
    rec, _, _ = fitted
    with caplog.at_level(logging.INFO, logger="graphkeel"):
        rec.suggest(3)
    assert any("suggest: nodes 3" in record.getMessage() for record in caplog.records)
    assert capsys.readouterr().err == ""
    rec.set_params(verbose=True)
    rec.suggest(3)
    rec.set_params(verbose=False)
    assert "graphkeel: suggest: nodes 3" in capsys.readouterr().err


def test_progress_hands_over_every_item_and_says_how_far_it_is(monkeypatch, caplog):
    clock = iter([0.0, 9.0, 10.5, 11.0])
    monkeypatch.setattr(steps.time, "monotonic", lambda: next(clock))
    monkeypatch.setattr("sys.stderr.isatty", lambda: False)
    with caplog.at_level(logging.INFO, logger="graphkeel"):
        assert list(steps.progress("abc", "counting", 3)) == ["a", "b", "c"]
    assert [record.getMessage() for record in caplog.records] == [
        "counting: 1 of 3",
        "counting: 2 of 3",
    ]


@pytest.mark.parametrize("callbacks", ["print", [3], None])
def test_callbacks_that_are_none(fitted, callbacks):
    rec, data, _ = fitted
    with pytest.raises(ConfigError, match="callbacks must be a list"):
        gk.Reconstructor(rec.model, callbacks=callbacks).fit(data)


def test_a_long_step_says_what_it_is_at(monkeypatch, caplog):
    """On a terminal and to the logger, without being asked; a short one says nothing."""
    lines = []

    class Line:
        def start(self):
            lines.append("start")

        def update(self, text):
            lines.append(text)

        def stop(self):
            lines.append("stop")

    clock = iter([0.0, 9.0, 10.5, 11.0])
    monkeypatch.setattr(steps.time, "monotonic", lambda: next(clock))
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    monkeypatch.setattr(steps, "_line", Line)
    with caplog.at_level(logging.INFO, logger="graphkeel"), steps.step("fit"):
        for what in ("one", "two", "three"):
            steps.stage(what)
    assert lines == ["start", "graphkeel fit: two", "graphkeel fit: three", "stop"]
    assert [record.getMessage() for record in caplog.records][:2] == ["fit: two", "fit: three"]
    steps.stage("outside of all steps")
    assert lines[-1] == "stop"
