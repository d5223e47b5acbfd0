"""Cases of another graph: what methods see, what is scored, and what the tables say."""

from __future__ import annotations

import argparse
import re
from dataclasses import replace

import numpy as np
import pytest
import torch

from graphkeel.core.errors import ConfigError
from graphkeel.graph import UNLABELLED, make_sbm
from graphkeel.runs.adapt_case import data_hash, make_case
from graphkeel.store.job import Measurement
from graphkeel_paper.adapt_methods import adapted, union
from graphkeel_paper.cli.table import _pairs
from graphkeel_paper.specs import AdaptSpec, CentredSpec
from graphkeel_paper.tables.adapt import CITATION_PAIRS, FAMILIES
from graphkeel_paper.tables.cells import Cell, Record, record_of
from graphkeel_paper.tables.filled import TABLES, Filled, read_table, recomputed
from graphkeel_paper.tables.ingraph import features_for
from graphkeel_paper.tables.layout import with_worst
from graphkeel_paper.tables.plan import PlacedJob, Plan, Request, Row

ADAPT = TABLES["adapt"]
BASE, OURS, *_ = ADAPT.rows


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
    task, mine = union(known.case)
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


def test_centred_components_are_about_each_graphs_own_mean(pair):
    """However far all of the target has moved, the model is asked the same."""
    spec = CentredSpec(*pair, features="raw", components=3)
    known = make_case(spec, seed=0)
    assert known.case.source.n_features == 3
    torch.testing.assert_close(known.case.target.x.norm(dim=1), torch.ones(300))
    moved = dict(np.load(pair[1]))
    moved["x"] = moved["x"] + 7.0
    path = pair[1].replace("g1", "g2")
    np.savez(path, **moved)
    again = make_case(replace(spec, target=path), seed=0)
    torch.testing.assert_close(again.base, known.base, atol=1e-3, rtol=1e-3)


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


def _filled(
    rows: list[Row], columns: list[str], found: dict[str, list[Measurement]], seeds: int = 2
) -> Filled:
    """A table in which every column has these measurements of each row."""
    plan = Plan(ADAPT, rows, ["b"], columns, list(range(seeds)), None, None, "t")
    records = [
        Record(row, column, seed, measurement, "b")
        for row, measurements in found.items()
        for column in columns
        for seed, measurement in enumerate(measurements)
    ]
    return Filled.of(plan, records)


def _cell(found: list[Measurement]) -> Cell:
    (cell,) = _filled([OURS], ["c"], {OURS.name: found}).cells
    return cell


def test_a_cell_has_the_worst_seed_beside_the_mean():
    cell = _cell([_measured(70, 65), _measured(71, 72, kept=True)])
    assert (cell.mean, cell.gain, cell.worst, cell.refused) == (70.5, 2.0, -1.0, 1)
    assert (cell.balanced_gain, cell.balanced_worst) == (1.0, -2.0)
    assert with_worst(cell) == "70.50 (+2.00, -1.00)"
    assert with_worst(_cell([])) == "–"
    failed = _cell([Measurement("error", 1.0, 1.0, {}, "out of luck")])
    assert (failed.mean, failed.note) == (None, "1 failed: out of luck")


def test_sentences_count_where_ours_is_first():
    columns = [AdaptSpec(*pair).dataset for pair in CITATION_PAIRS[:2]]
    rows = [BASE, OURS, Row("t3a", "T3A", "frozen", "t3a"), Row("r", "R", "trained", "retrain")]
    values = {"none": 60.0, "auto": 66.0, "t3a": 65.0, "r": 70.0}
    found = {row: [_measured(value, 60.0)] for row, value in values.items()}
    (said,) = ADAPT.sentences(_filled(rows, columns, found, seeds=1))
    assert "mean gain +6.00, least +6.00" in said
    assert "first among frozen rows on 2 of 2" in said
    assert "above every trained row on 0 of 2" in said
    (said,) = ADAPT.sentences(_filled(rows[:2], columns, found, seeds=1))
    assert "row on" not in said  # nobody to be compared with


def test_every_format_shows_the_blocks():
    table = _filled([BASE, OURS], ["a → b"], {OURS.name: [_measured(70, 65)]}, seeds=1)
    assert "70.00 (+5.00, +5.00)" in table.render("text")
    assert "#### b\n\n|  | a → b |" in table.render("md")


def test_unknown_rows_are_refused_and_the_base_always_stays():
    assert [row.name for row in ADAPT.pick(["t3a"])] == ["none", "t3a"]
    pick = TABLES["citations"].pick
    assert [row.name for row in pick(["udagcn"])] == ["none-sgc", "udagcn"]
    assert [row.name for row in pick(["auto-gcn"])] == ["none-gcn", "auto-gcn"]
    with pytest.raises(ConfigError, match="got nope"):
        ADAPT.pick(["nope"])


def test_ingraph_features_follow_the_model():
    assert features_for("sgc", "cora") == "pca"
    assert features_for("gcn", "cora") == "rownorm"
    assert features_for("gcn", "digits") == "raw"


def test_a_part_of_a_table_has_files_of_its_own(tmp_path):
    asked = Request([0], only=["auto"], datasets=["digits"], model="sgc")
    plan = TABLES["ingraph"].plan(asked)
    assert plan.file == "table-ingraph-sgc"
    Filled.of(plan, []).write(tmp_path)
    stored = read_table(tmp_path / "table-ingraph-sgc.json")
    assert recomputed(stored).plan.file == plan.file
    assert TABLES["ingraph"].plan(replace(asked, model=None)).file == "table-ingraph"


@pytest.mark.parametrize("name", FAMILIES)
def test_a_family_of_pairs_is_named_by_one_word(name, monkeypatch):
    monkeypatch.setattr("graphkeel_paper.tables.plan._pair_hash", lambda *_: "")
    monkeypatch.setattr(AdaptSpec, "code_version", lambda _: "")
    pairs = _pairs(name)
    assert pairs == [*FAMILIES[name]]
    assert ADAPT.plan(Request([0], pairs=pairs)).file == f"table-adapt-{name}"
    assert ADAPT.plan(Request([0], pairs=pairs[1:])).file == "table-adapt"
    assert _pairs(f"a:b,{name}") == [("a", "b"), *pairs]
    assert len(ADAPT.plan(Request([0])).columns) == 12


@pytest.mark.parametrize("text", ["a", ":", "a:b:c", "a:", ","])
def test_what_names_no_pair_is_refused(text):
    with pytest.raises(argparse.ArgumentTypeError, match=r"pair|source:target"):
        _pairs(text)


def test_the_citation_pairs_quote_what_is_published_and_state_the_gap(job, measured):
    column, block = "acmv9 → citationv1", "0 target labels"
    accuracies = {"none-sgc": 67.0, "auto-sgc": 80.5, "a2gnn": 81.0, "auto-gcn": 78.0}
    records = [
        record_of(PlacedJob(job(row, 0, column, method=row), block, column), measured(accuracy))
        for row, accuracy in accuracies.items()
    ]
    table = TABLES["citations"]
    rows = [row for row in table.rows if row.name in {*accuracies, "A2GNN (2024)"}]
    filled = Filled.of(Plan(table, rows, [block], [column], [0], None, None, "title"), records)
    cells = {cell.row: cell for cell in filled.cells}
    assert cells["auto-sgc"].gain == pytest.approx(13.5)
    assert (cells["A2GNN (2024)"].paper, cells["A2GNN (2024)"].mean) == (80.9, None)
    assert re.search(r"A2GNN \(2024\), quoted +80\.9\n", filled.render("text"))
    sgc, gcn = (line for line in filled.remarks if "minus A2GNN" in line)
    assert sgc.endswith("acmv9 → citationv1 -0.50; within a point or above on 1 of 1.")
    assert gcn.endswith("acmv9 → citationv1 -3.00; within a point or above on 0 of 1.")
