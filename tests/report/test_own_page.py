"""`Reconstructor.report`: the page of one's own model."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
import torch

from graphkeel.core.errors import ConfigError, DataError
from graphkeel.graph import load
from graphkeel.models import train_model
from graphkeel.reconstruct.reconstructor import Reconstructor


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
    assert f"{rec.guard_.wins} won, {rec.guard_.losses} lost" in page
    assert f"the median change is {100 * float(rec.change_.median()):.1f} %" in page
    assert f"{rec.guard_.expected:.1f} % of all nodes are right" in page
    assert not re.findall(r"https?://", page)


def test_what_the_answers_rest_on_is_one_chart(fitted, tmp_path) -> None:
    rec, data = fitted
    page = rec.report(tmp_path / "page.html", data).read_text()
    shares: dict[str, float] = {}
    for source in rec.evidence_:
        shares[source.kind] = shares.get(source.kind, 0.0) + source.share
    drawn = re.findall(r'class="bar" style="width: ([\d.]+)%"', page)
    assert len(drawn) == 4
    expected = sorted((100 * share for share in shares.values()), reverse=True)
    assert list(map(float, drawn)) == pytest.approx(expected, abs=0.06)


def test_features_left_alone_are_said_to_be(fitted, tmp_path, monkeypatch) -> None:
    rec, data = fitted
    monkeypatch.setattr(rec, "guard_", replace(rec.guard_, kept=False))
    page = rec.report(tmp_path / "page.html", data).read_text()
    assert "The features are left as they were, to the last bit." in page
    assert "of the answers that were not taken" in page


def test_a_method_by_name_rests_on_no_sum(fitted, tmp_path) -> None:
    rec, data = fitted
    page = Reconstructor(rec.model, method="replace").fit(data).report(tmp_path / "page.html")
    assert "What the answers rest on" not in page.read_text()


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


def text_of(page: str) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", "", page))


def test_the_verdict_and_what_it_rests_on_come_first(fitted, tmp_path) -> None:
    rec, data = fitted
    page = rec.report(tmp_path / "page.html", data).read_text()
    assert 'id="verdict">features rewritten<' in page
    lead = text_of(re.search(r'<p class="lead" id="decided">(.*?)</p>', page, re.S)[1])
    kinds = {source.kind for source in rec.evidence_ if source.share > 0.02}
    assert len(re.findall(r"\(\d+ %\)", lead)) >= len(kinds)


def test_names_of_classes_stand_for_their_numbers(fitted, tmp_path) -> None:
    rec, data = fitted
    names = [f"digit <{i}>" for i in range(10)]
    page = rec.report(tmp_path / "page.html", data, classes=names).read_text()
    table = re.search(r'id="class-table">(.*?)</table>', page, re.S)[1]
    assert table.count("<td>digit &lt;3&gt;</td>") == 1
    assert '"digit \\u003c3\\u003e"' in page, "the list of nodes"
    assert "class 3</text>" not in page
    with pytest.raises(ConfigError, match="10 classes need as many names"):
        rec.report(tmp_path / "page.html", data, classes=names[:3])


def test_nodes_to_label_are_those_of_suggest(fitted, tmp_path) -> None:
    rec, data = fitted
    page = rec.report(tmp_path / "page.html", data).read_text()
    table = re.search(r'id="suggested-table">.*?<tbody>(.*?)</tbody>', page, re.S)[1]
    assert [int(node) for node in re.findall(r"<tr><td>(\d+)</td>", table)] == rec.suggest(
        20
    ).tolist()


def test_versions_and_hashes_are_folded_away(fitted, tmp_path) -> None:
    rec, data = fitted
    rec.certify()
    page = rec.report(tmp_path / "page.html", data).read_text()
    shown = re.sub(r"<details>.*?</details>|<script.*?</script>", "", page, flags=re.S)
    hashes = re.findall(r"[0-9a-f]{64}", shown)
    assert len(hashes) <= 1, "the certificate's own, which people compare"
