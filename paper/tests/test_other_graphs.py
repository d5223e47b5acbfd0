"""Cases of another graph: what methods see, what is scored, and what the tables say."""

from __future__ import annotations

import argparse

import numpy as np
import pytest
import torch

from graphkeel.core.errors import ConfigError
from graphkeel.graph import UNLABELLED, make_sbm
from graphkeel.runs.adapt_case import data_hash, make_case
from graphkeel.store.job import Measurement
from graphkeel_paper.adapt import table
from graphkeel_paper.adapt.comparison import BASE, Cell, Filled, Plan, Row, cell_of, pick_rows
from graphkeel_paper.adapt.ingraph import features_for, plan_ingraph_table
from graphkeel_paper.adapt.methods import adapted
from graphkeel_paper.adapt.table import CITATION_PAIRS, FAMILIES, ROWS, sentences
from graphkeel_paper.cli.table import _pairs
from graphkeel_paper.results.stored import read_table, recomputed
from graphkeel_paper.specs import AdaptSpec
from graphkeel_paper.tables.table import Limits


@pytest.fixture(scope="module")
def pair(tmp_path_factory):
    folder = tmp_path_factory.mktemp("graphs")
    names = []
    for seed in (0, 1):
        graph = make_sbm(300, 1500, n_classes=3, n_features=8, signal=1.5, seed=seed)
        path = folder / f"g{seed}.npz"
        np.savez(path, x=graph.x, edge_index=graph.edge_index, y=graph.y)
        names.append(str(path))
    return names


def test_methods_see_the_known_labels_and_no_others(pair):
    known = make_case(AdaptSpec(*pair, target_labels=20, reserve=50), seed=0)
    target = known.case.target
    assert len(known.case.nodes) == 20
    assert int((target.y != UNLABELLED).sum()) == 20
    assert not (target.train_mask | target.val_mask | target.test_mask).any()
    assert int(known.scored.sum()) == 300 - 50
    assert not known.scored[known.case.nodes].any()


def test_fewer_labels_are_the_first_of_more_and_scored_on_the_same_nodes(pair):
    few, more = (
        make_case(AdaptSpec(*pair, target_labels=count, reserve=60), seed=3) for count in (10, 60)
    )
    assert torch.equal(few.case.nodes, more.case.nodes[:10])
    assert torch.equal(few.scored, more.scored)
    assert few.case.frozen is more.case.frozen  # trained once
    assert torch.equal(few.base, more.base)


def test_source_and_target_as_one_graph(pair):
    known = make_case(AdaptSpec(*pair, target_labels=20), seed=0)
    task, mine = known.case.union()
    assert task.n_nodes == 600
    assert torch.equal(task.x[mine], known.case.target.x)
    assert torch.equal(task.train_mask[:300], known.case.source.train_mask)
    assert not task.train_mask[300:].any()
    crossing = (task.edge_index[0] < 300) != (task.edge_index[1] < 300)
    assert not crossing.any()


def test_components_are_fitted_on_the_source(pair):
    known = make_case(AdaptSpec(*pair, components=3), seed=0)
    assert known.case.source.n_features == known.case.target.n_features == 3
    torch.testing.assert_close(known.case.source.x.mean(dim=0), torch.zeros(3), atol=1e-4, rtol=0)
    assert known.case.target.x.mean(dim=0).abs().max() > 1e-3  # not centred on itself


def test_the_hash_is_of_both_graphs_and_the_split(pair):
    spec = AdaptSpec(*pair)
    hashes = {
        data_hash(spec, 0),
        data_hash(spec, 1),
        data_hash(AdaptSpec(*reversed(pair)), 0),
    }
    assert len(hashes) == 3
    assert data_hash(spec, 0) == data_hash(AdaptSpec(*pair, method="t3a", target_labels=5), 0)


@pytest.mark.parametrize("method", ["retrain", "pool", "target-only", "tsa"])
def test_rows_score_the_targets_nodes(pair, method):
    spec = AdaptSpec(*pair, method=method, target_labels=30)
    result = adapted(spec, make_case(spec, 0).case)
    assert result.scores.shape == (300, 3)


def _measured(accuracy: float, base: float, kept: bool = False) -> Measurement:
    balanced = {"balanced": accuracy - 1, "balanced_base": base}
    return Measurement(
        "done", 1.0, 1.0, {"accuracy": accuracy, "base": base, "kept": kept, **balanced}
    )


def _cell(row: Row, column: str, found: list[Measurement]) -> Cell:
    return cell_of(row, "b", column, dict(enumerate(found)), {}, Limits(len(found)))


def test_a_cell_has_the_worst_seed_beside_the_mean():
    cell = _cell(ROWS[1], "c", [_measured(70, 65), _measured(71, 72, kept=True)])
    assert (cell.mean, cell.gain, cell.worst, cell.refused) == (70.5, 2.0, -1.0, 1)
    assert (cell.balanced_gain, cell.balanced_worst) == (1.0, -2.0)
    assert cell.text() == "70.50 (+2.00, -1.00)"
    assert _cell(ROWS[1], "c", []).text() == "–"
    failed = _cell(ROWS[1], "c", [Measurement("error", 1.0, 1.0, {}, "out of luck")])
    assert (failed.mean, failed.note) == (None, "out of luck")


def test_sentences_count_where_ours_is_first():
    columns = [AdaptSpec(*pair).dataset for pair in CITATION_PAIRS[:2]]
    rows = [BASE, ROWS[1], Row("t3a", "T3A", "frozen", "t3a"), Row("r", "R", "trained", "retrain")]
    plan = Plan("adapt", "t", rows, ["b"], columns, [0], [], sentences)
    values = {"none": 60.0, "auto": 66.0, "t3a": 65.0, "r": 70.0}

    cells = [
        _cell(row, column, [_measured(values[row.name], 60.0)])
        for row in rows
        for column in columns
    ]
    (said,) = sentences(Filled(plan, cells, []))
    assert "mean gain +6.00, least +6.00" in said
    assert "first among frozen rows on 2 of 2" in said
    assert "above every trained row on 0 of 2" in said
    alone = Plan("adapt", "t", rows[:2], ["b"], columns, [0], [], sentences)
    (said,) = sentences(Filled(alone, cells[:4], []))
    assert "row on" not in said  # nobody to be compared with


def test_unknown_rows_are_refused_and_the_base_always_stays():
    assert [row.name for row in pick_rows(ROWS, ["t3a"])] == ["none", "t3a"]
    with pytest.raises(ConfigError, match="got nope"):
        pick_rows(ROWS, ["nope"])


def test_ingraph_features_follow_the_model():
    assert features_for("sgc", "cora") == "pca"
    assert features_for("gcn", "cora") == "rownorm"
    assert features_for("gcn", "digits") == "raw"


def test_a_part_of_a_table_has_files_of_its_own(tmp_path):
    plan = plan_ingraph_table([0], only=["auto"], datasets=["digits"], models=["sgc"])
    assert plan.file == "table-ingraph-sgc"
    plan.with_records([]).write(tmp_path)
    stored = read_table(tmp_path / "table-ingraph-sgc.json")
    assert recomputed(stored).plan.file == plan.file
    both = plan_ingraph_table([0], only=["auto"], datasets=["digits"])
    assert both.file == "table-ingraph"


@pytest.mark.parametrize("name", FAMILIES)
def test_a_family_of_pairs_is_named_by_one_word(name, monkeypatch):
    monkeypatch.setattr(table, "_data_hash", lambda *_: "")
    monkeypatch.setattr(AdaptSpec, "code_version", lambda _: "")
    pairs = _pairs(name)
    assert pairs == [*FAMILIES[name]]
    assert table.plan_adapt_table([0], pairs=pairs).file == f"table-adapt-{name}"
    assert table.plan_adapt_table([0], pairs=pairs[1:]).file == "table-adapt"
    assert _pairs(f"a:b,{name}") == [("a", "b"), *pairs]
    assert len(table.plan_adapt_table([0]).columns) == 12


@pytest.mark.parametrize("text", ["a", ":", "a:b:c", "a:", ","])
def test_what_names_no_pair_is_refused(text):
    with pytest.raises(argparse.ArgumentTypeError, match=r"pair|source:target"):
        _pairs(text)
