"""`Reconstructor.monitor`: what has drifted, how right answers are, what to do."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

import graphkeel as gk
from graphkeel.core.errors import DataError
from graphkeel.graph import load
from graphkeel.models import train_model
from graphkeel.monitor import ACTIONS, read_history
from graphkeel.monitor.history import HISTORY
from graphkeel.monitor.profile import row_digests

N_OLD = 1400


@pytest.fixture(scope="module")
def whole():
    return load("digits", split="random").to_data()


@pytest.fixture(scope="module")
def early(whole):
    """The graph before its last nodes came."""
    old = torch.arange(N_OLD)
    return whole.subgraph(old)


@pytest.fixture(scope="module")
def rec(early):
    model = train_model("sgc", gk.GraphTask.from_data(early, n_classes=10))
    return gk.Reconstructor(model).fit(early)


def moved(data: Data) -> Data:
    later = data.clone()
    scale = torch.linspace(0.2, 3.0, data.x.shape[1])
    later.x = data.x * scale + 0.5
    return later


def rewired(data: Data) -> Data:
    later = data.clone()
    generator = torch.Generator().manual_seed(0)
    size = (data.edge_index.shape[1],)
    later.edge_index = data.edge_index.clone()
    later.edge_index[1] = torch.randint(0, len(data.x), size, generator=generator)
    return later


def test_the_same_graph_needs_nothing(rec, early) -> None:
    found = rec.monitor(early)
    assert (found.new, found.changed, found.far) == (0, 0, 0)
    assert found.action == "nothing"
    assert found.drifted == ()
    assert found.homophily == found.homophily_fitted
    assert found.expected == pytest.approx(found.expected_fitted)
    assert found.low < found.expected < found.high


def test_a_graph_that_has_grown(rec, whole) -> None:
    found = rec.monitor(whole)
    assert (found.nodes, found.new, found.changed) == (1797, 397, 0)
    assert found.drifted == ()
    assert sum(found.shares) == pytest.approx(100)
    assert len(found.suggested) == 20


def test_what_drifts_is_named(rec, whole, early) -> None:
    found = rec.monitor(moved(early))
    assert "features" in found.drifted
    assert found.changed == N_OLD
    assert found.expected > found.after["nothing"] + 1
    assert found.action != "nothing"
    found = rec.monitor(rewired(early))
    assert {"homophily", "confidence"} <= set(found.drifted)
    assert "features" not in found.drifted
    assert found.homophily < found.homophily_fitted - 20
    assert found.action in ("update", "label")  # rewiring breaks the model; labels are still near
    assert found.after["update"] > found.after["nothing"] + 50
    rare = whole.subgraph(torch.cat([torch.arange(N_OLD), _of_class(whole, 3)]))
    assert "class shares" in rec.monitor(rare).drifted


def _of_class(whole: Data, label: int) -> torch.Tensor:
    late = torch.arange(N_OLD, len(whole.x))
    return late[whole.y[late] == label]


def test_labels_are_expected_to_help_where_answers_are_unsure(rec, early) -> None:
    known, unsure = rec.monitor(early).after, rec.monitor(rewired(early)).after
    assert known["label"] - known["update"] < 0.2
    assert unsure["label"] - unsure["update"] > 1
    assert unsure["retrain"] > unsure["label"], "more labels bring more"


def test_a_method_without_a_decision_expects_nothing_of_labels(rec, early) -> None:
    found = gk.Reconstructor(rec.model, method="replace").fit(early).monitor(early)
    assert found.after["label"] == found.after["retrain"] == pytest.approx(found.after["update"])


def test_no_label_is_looked_at(rec, whole) -> None:
    bare = Data(x=whole.x, edge_index=whole.edge_index)
    wrong = whole.clone()
    wrong.y = (whole.y + 1) % 10
    first, second = rec.monitor(bare).to_dict(), rec.monitor(wrong).to_dict()
    del first["time"], second["time"]
    assert first == second


def test_it_changes_nothing(rec, early, whole) -> None:
    before = (rec.features_.clone(), rec.posterior_.clone(), rec.guard_, len(rec.labels_))
    seen = []
    rec.set_params(callbacks=[seen.append])
    rec.monitor(whole)
    rec.set_params(callbacks=())
    assert torch.equal(rec.features_, before[0]) and torch.equal(rec.posterior_, before[1])
    assert (rec.guard_, len(rec.labels_)) == before[2:]
    assert torch.equal(rec.predict(early), rec.predict(early))
    assert seen == []


def test_a_week_later_the_old_graph_is_not_needed(rec, whole, tmp_path) -> None:
    rec.save(tmp_path)
    back = gk.load(tmp_path, rec.model)
    first, second = rec.monitor(whole).to_dict(), back.monitor(whole).to_dict()
    del first["time"], second["time"]
    assert first == second
    later = back.update(whole)
    assert torch.equal(later.features_, gk.load(tmp_path, rec.model).update(whole).features_)


def test_an_update_leaves_what_is_compared_with(rec, early, whole) -> None:
    later = gk.Reconstructor(rec.model).fit(early)
    first = later.monitor(moved(whole))
    later.update(moved(whole))
    again = later.monitor(moved(whole))
    assert again.tests[0] == first.tests[0]
    assert again.expected_fitted == first.expected_fitted
    later.update(moved(whole), rechoose=True)  # decided anew: compared with this graph from now on
    assert later.monitor(moved(whole)).drifted == ()


def test_another_graph(rec, whole) -> None:
    some = whole.subgraph(torch.arange(300, 900))
    with pytest.raises(DataError, match="keeps the ids of all 1400 nodes"):
        rec.monitor(some)
    found = rec.monitor(some, another=True)
    assert (found.nodes, found.new, found.far) == (600, 600, 600)
    with pytest.raises(DataError, match="features"):
        rec.monitor(Data(x=whole.x[:, :5], edge_index=whole.edge_index))


def test_new_nodes_without_a_label_near(rec, early) -> None:
    """A chain of seven new nodes hangs on a labelled one: three are within three hops."""
    later = early.clone()
    later.x = torch.cat([early.x, early.x[:7]])
    chain = torch.tensor([int(rec.labels_.nodes[0]), *range(N_OLD, N_OLD + 7)])
    pairs = torch.stack([chain[:-1], chain[1:]])
    later.edge_index = torch.cat([early.edge_index, pairs, pairs.flip(0)], dim=1)
    assert rec.monitor(Data(x=later.x, edge_index=later.edge_index)).far == 4


def joined(data: Data, count: int, columns: torch.Tensor) -> Data:
    """Copies of some nodes and of the edges among them, with features in other columns."""
    copied = data.subgraph(torch.arange(count))
    edges = torch.cat([data.edge_index, copied.edge_index + len(data.x)], dim=1)
    return Data(x=torch.cat([data.x, copied.x[:, columns]]), edge_index=edges)


def test_new_nodes_unlike_all_labelled_ones(rec, early) -> None:
    mixed = torch.randperm(64, generator=torch.Generator().manual_seed(0))
    apart, alike = (rec.monitor(joined(early, 500, order)) for order in (mixed, torch.arange(64)))
    assert (alike.far, alike.apart, apart.far, apart.apart) == (500, 0, 500, 500)
    assert apart.expected < alike.expected - 20, "answers there are guesses"
    assert apart.action in ("label", "retrain")
    assert apart.after["update"] + 10 < apart.after["label"] <= apart.after["retrain"]


def test_digests_tell_rows_apart() -> None:
    x = torch.randn(50, 7, generator=torch.Generator().manual_seed(0))
    assert len(row_digests(x).unique()) == 50
    other = x.clone()
    other[3, 2] += 1e-6
    assert (row_digests(x) != row_digests(other)).nonzero().flatten().tolist() == [3]
    assert torch.equal(row_digests(x.double()), row_digests(x))


# ---- the history and its page


def test_history_and_page(rec, early, whole, tmp_path) -> None:
    pytest.importorskip("jinja2")
    reports = [rec.monitor(graph, tmp_path) for graph in (early, whole, moved(whole))]
    assert [one["action"] for one in read_history(tmp_path)] == [one.action for one in reports]
    lines = (tmp_path / HISTORY).read_text().splitlines()
    assert json.loads(lines[-1])["suggested"] == list(reports[-1].suggested)
    page = (tmp_path / "monitor.html").read_text()
    assert f'id="action">{ACTIONS[reports[-1].action]}<' in page
    assert len(re.findall(r'<circle class="now"', page)) == 2 * 3
    assert not re.findall(r"https?://|<script", page)


@pytest.mark.parametrize("line", ["{", "[]", "{}", '{"action": "<b>", "nodes": 1}'])
def test_a_history_that_somebody_else_wrote(rec, early, tmp_path, line) -> None:
    (tmp_path / HISTORY).write_text(line + "\n")
    with pytest.raises(DataError, match=r"histor|monitor"):
        rec.monitor(early, tmp_path)


def test_reports_are_json(rec, whole) -> None:
    text = json.dumps(rec.monitor(moved(whole)).to_dict(), allow_nan=False)
    assert json.loads(text)["action"] in ACTIONS
    assert np.isfinite(json.loads(text)["expected"])
