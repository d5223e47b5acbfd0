"""`Reconstructor.report`: the page of one's own model."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
import torch

from graphkeel.core.errors import DataError
from graphkeel.graph import load
from graphkeel.models import train_model
from graphkeel.reconstruct.reconstructor import Reconstructor

pytestmark = pytest.mark.usefixtures("small_pool")


@pytest.fixture(scope="module")
def fitted():
    task = load("digits")
    data = task.to_data()
    return Reconstructor(train_model("sgc", task)).fit(data), data


def test_a_page_with_test_labels(fitted, tmp_path) -> None:
    rec, data = fitted
    path = rec.report(tmp_path / "page.html", data)
    page = path.read_text()
    accuracy = 100 * float((rec.predict(data) == data.y)[data.test_mask].float().mean())
    assert f'id="after">{accuracy:.2f}<' in page
    assert "SGC on 1,797 nodes" in page
    assert rec.guard_.chosen[0].replace(">", "&gt;") in page
    assert not re.findall(r"https?://", page)


def test_many_candidates_are_counted_and_marked_in_the_list(fitted, tmp_path, monkeypatch) -> None:
    rec, data = fitted
    scores = tuple(replace(rec.guard_.scores[0], name=f"candidate {i}") for i in range(20))
    chosen = tuple(score.name for score in scores[:7])
    monkeypatch.setattr(rec, "guard_", replace(rec.guard_, scores=scores, chosen=chosen))
    page = rec.report(tmp_path / "page.html", data).read_text()
    assert "and 4 others (marked below), averaged." in page
    assert page.count("<td>yes</td>") == 7
    assert "<details><summary>All 20" in page, "a long list does not push the classes away"


def test_a_page_without_any_uses_the_guards_estimate(fitted, tmp_path) -> None:
    rec, _ = fitted
    page = rec.report(tmp_path / "page.html").read_text()
    statement = rec.guard_.statement
    assert f'id="gain" class="up">{statement.gain:+.1f}<' in page
    assert f"estimated on {statement.n_labels} held-back labels" in page
    assert "points of accuracy on" not in page


def test_a_page_with_a_certificate(fitted, tmp_path) -> None:
    rec, data = fitted
    rec.certify()
    page = rec.report(tmp_path / "page.html", data).read_text()
    assert 'id="proved">10 of 10<' in page


def test_another_graph_is_refused(fitted, tmp_path) -> None:
    rec, data = fitted
    other = data.clone()
    other.x = torch.zeros_like(data.x)
    with pytest.raises(DataError, match="not the graph"):
        rec.report(tmp_path / "page.html", other)
