"""Tables from known jobs: means, tests, notes, and how they are written."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from torch import nn

from graphkeel.core.errors import ConfigError
from graphkeel.runs.methods import OURS, reconstructor_of
from graphkeel.store.statistics import paired_p, summarise
from graphkeel_paper.tables.cells import gain_interval, holm, holm_by, record_of
from graphkeel_paper.tables.filled import TABLES, Filled
from graphkeel_paper.tables.papers import under
from graphkeel_paper.tables.plan import PlacedJob, Plan, Request
from graphkeel_paper.tables.published import base_note, gain_note, reading_note


def test_spread_is_the_sample_standard_deviation():
    summary = summarise([60.0, 62.0, 67.0])
    assert (summary.n, summary.mean) == (3, 63.0)
    assert summary.std == pytest.approx(np.sqrt((9 + 1 + 16) / 2))
    assert summarise([60.0]).std is None


def test_the_paired_test_is_wilcoxons():
    base = [60.0, 61.0, 62.0, 63.0, 64.0, 65.0]
    better = [value + 1 + 0.1 * i for i, value in enumerate(base)]
    smallest = 2 * 0.5**6  # all six signs agree
    assert paired_p(better, base) == pytest.approx(smallest)
    assert paired_p(base, base) == 1.0
    assert paired_p([1.0], [0.0]) is None
    assert paired_p([61, 60.0, 63, 62], [60.0, 61, 62, 63]) > 0.5


def test_the_interval_is_students():
    low, high = gain_interval([61.0, 63.0, 65.0], [60.0, 61.0, 62.0])  # gains 1, 2, 3
    assert (low + high) / 2 == pytest.approx(2.0)
    assert (high - low) / 2 == pytest.approx(4.302653 / np.sqrt(3))
    assert gain_interval([1.0], [0.0]) == (None, None)


def test_holms_correction_is_stepwise_and_keeps_to_its_family():
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([0.6, 0.7]) == [1.0, 1.0]
    assert holm_by(["a", "b", "a"], [0.02, 0.02, None]) == [0.02, 0.02, None]


def _table(
    job, measured, values, *, asked=3, table=1, rows=("sgc", "neural", "auto"), row_budget=None
):
    """A table on Cora whose jobs have these accuracies, and a base of 64, 65 and 66."""
    rows = [row for row in TABLES[table].pick(list(rows)) if row.name in set(rows)]
    known = {"sgc": [64.0, 65.0, 66.0], **values}
    records = [
        record_of(
            PlacedJob(job(row.name, seed, "cora", method=row.name), "", "cora"),
            measured(accuracy, residual=1e-8),
        )
        for row in rows
        for seed, accuracy in enumerate(known.get(row.name, []))
    ]
    seeds = list(range(asked))
    plan = Plan(TABLES[table], rows, [""], ["cora"], seeds, row_budget, None, "title")
    return Filled.of(plan, records)


def test_a_cell_holds_mean_spread_gain_and_the_published_number(job, measured):
    table = _table(job, measured, {"neural": [64.1, 65.1, 66.1], "auto": [70.0, 72.0, 74.0]})
    base, neural, auto = table.cells
    assert (base.mean, base.paper, base.gain, base.p_value) == (65.0, 64.36, None, None)
    assert base.note == "reproduced within a point"
    assert (neural.paper, neural.paper_std) == (67.22, 2.27)
    assert neural.gain == pytest.approx(0.1)
    assert neural.difference == pytest.approx(65.1 - 67.22)
    assert neural.note.startswith(
        "not reproduced: gain +0.10, published +2.86: for SGC the test logits see h*"
    )
    assert (auto.paper, auto.note) == (None, "")
    assert auto.std == 2.0
    assert auto.gain == 7.0
    assert auto.p_value == 0.25


def test_fewer_seeds_failures_and_gaps_are_said(job, measured):
    table = _table(job, measured, {"auto": [70.0]})
    _, neural, auto = table.cells
    assert (neural.mean, neural.note) == (None, "not run")
    text = table.render("text")
    assert "70.00 (n=1)" in text
    assert "–" in text
    assert auto.seeds == 1


def test_a_row_over_its_budget_leaves_its_cell_empty_and_says_what_was_measured(job, measured):
    values = {"auto": [70.0], "neural": [64.0, 65.0, 66.0]}
    table = _table(job, measured, values, row_budget=1.0)  # a measurement takes 1.5 s
    _, neural, auto = table.cells
    assert auto.mean is None
    assert auto.note == "over 1 s a seed: measured 2 s on seed 0"
    assert neural.mean == 65.0  # all its seeds are there
    assert "70.00" not in table.render("text")


def test_rows_are_compared_with_both_bases_and_with_ours(job, measured):
    values = {"sgc-tuned": [66.0, 67.0, 68.0], "auto": [70.0, 72.0, 74.0], "t3a": [69.0, 70.0, 71]}
    table = _table(job, measured, values, rows=["sgc", "sgc-tuned", "auto", "t3a"])
    _, tuned, auto, t3a = table.cells
    assert (tuned.gain, tuned.gain_tuned, tuned.behind_auto) == (2.0, None, 5.0)
    assert (auto.gain, auto.gain_tuned, auto.behind_auto) == (7.0, 5.0, None)
    assert (t3a.gain, t3a.gain_tuned, t3a.behind_auto) == (5.0, 3.0, 2.0)
    assert t3a.p_auto == 0.25


def test_our_row_is_judged_aloud(job, measured):
    table = _table(job, measured, {"neural": [60.0, 60, 60], "auto": [70.0, 72.0, 74.0]})
    assert table.plan.table.sentences(table) == [
        "cora: auto (72.00) is above the best other row that leaves the model alone, "
        "SGC, untouched (65.00, +7.00) "
        "and above the best number the paper published (67.22, +4.78)."
    ]
    table = _table(job, measured, {"neural": [90.0, 90, 90], "auto": [66.0, 66.0, 66.0]})
    sentence = table.plan.table.sentences(table)[0]
    best = "the best other row that leaves the model alone, neural controller, one class (90.00"
    assert f"NOT above {best}" in sentence
    assert "NOT above the best number the paper published (67.22, -1.22)" in sentence


def test_formats_agree_on_the_numbers(job, measured):
    table = _table(job, measured, {"neural": [64.1, 65.1, 66.1], "auto": [70.0, 72.0, 74.0]})
    for style in ("text", "md"):
        text = table.render(style)
        assert "72.00 ± 2.00" in text
        assert "64.36" in text
        assert "cost: 9 jobs" in text


def test_controllers_show_how_near_they_came(job, measured):
    table = _table(job, measured, {"lqr": [64.0, 65.0, 66.0]}, table=3, rows=["sgc", "lqr"])
    assert table.cells[1].residual == 1e-8
    text = table.render("text")
    assert "65.00 ± 1.00, 1e-08" in text
    assert "‖C(h*)−Y‖" in text
    assert "1.0e-08" in text


def test_notes_say_what_is_reproduced_and_what_is_not():
    assert base_note("pubmed", 5.1).startswith("not reproduced (+5.10): the configuration")
    assert (
        gain_note("frgnn-sgc", 0.1, 0.53, error=0.01) == "gain reproduced (+0.10, published +0.53)"
    )
    assert gain_note("neural", 0.0, 2.86, error=2.0).startswith(
        "gain reproduced"
    )  # too noisy to tell them apart
    assert gain_note("neural", 0.0, 2.86, error=0.1).startswith("not reproduced")


def test_readings_are_weighed_against_the_published_gain(job, measured):
    assert (
        reading_note("m10", 2.6, 2.86, error=0.1)
        == "this reading comes near the published gain (+2.60, +2.86)"
    )
    assert reading_note("neural-paper", -1.0, 2.86, error=0.1).endswith(
        "the free form ends with C(h*) far from Y"
    )
    table = _table(job, measured, {"m10": [66.9, 67.9, 68.9]}, rows=["sgc", "m10"])
    assert table.cells[1].note == "this reading comes near the published gain (+2.90, +2.86)"


def test_tables_have_the_papers_rows_and_only_takes_known_ones():
    names = [row.name for row in TABLES[1].rows]
    assert [names[0], *names[2:7]] == ["sgc", "mh-aug", "kdga", "frgnn-sgc", "frgnn-gcn", "neural"]
    assert len(set(names)) == len(names)
    assert [row.name for row in TABLES[1].pick(["auto"])] == ["sgc", "sgc-tuned", "auto"]
    own_base = [row.name for row in TABLES[1].pick(["neural-one-split"])]
    assert own_base == ["sgc", "sgc-tuned", "sgc-one-split", "neural-one-split"]
    with pytest.raises(ConfigError, match="got nope"):
        TABLES[3].pick(["nope"])


def test_rows_say_what_this_commit_computed_and_what_it_inherited(job, measured):
    table = _table(job, measured, {"auto": [70.0, 71.0], "neural": [65.0]})
    here, before = "a" * 40, "b" * 40
    commits = [here] * (len(table.records) - 1) + [before]
    records = [
        replace(one, measurement=replace(one.measurement, commit=commit))
        for one, commit in zip(table.records, commits, strict=True)
    ]
    known = Filled.of(table.plan, records, {"commit": here})
    assert known.remarks[-2:] == [
        "computed at this commit (aaaaaaaaaa): sgc, neural.",
        "inherited: auto (aaaaaaaaaa, bbbbbbbbbb).",
    ]
    others = Filled.of(table.plan, records, {"commit": "c" * 40})
    assert not any("computed at" in line for line in others.remarks)


def test_every_table_has_the_controls():
    for name in (1, "ingraph", "adapt", "examination"):
        controls = {row.method for row in TABLES[name].rows if row.group == "control"}
        assert controls == {"no-model", "random-weights", "posterior-alone"}


def test_rows_of_ours_are_reconstructors():
    for name in OURS:
        rec = reconstructor_of(name, nn.Linear(3, 2), seed=1)
        assert (rec.class_weight == "balanced") == name.endswith("balanced")
        assert ("model" in rec._without) == (name == "no-model")
    with pytest.raises(ConfigError, match="the method must be one of"):
        reconstructor_of("replace-one", None, seed=0)


def test_heavy_rows_come_last_and_rows_keep_to_their_columns(monkeypatch):
    monkeypatch.setattr("graphkeel_paper.tables.plan._split_hash", lambda *key: f"{key}")
    only = ["kdga", "auto", "sgc-lr0.01"]
    plan = TABLES[1].plan(Request(range(3), only=only, datasets=["cora", "pubmed"]))
    places = [(job.row, job.spec.dataset, job.seed) for job in plan.jobs]
    assert places[-4:] == [
        ("kdga", "cora", 1),
        ("kdga", "pubmed", 1),
        ("kdga", "cora", 2),
        ("kdga", "pubmed", 2),
    ]
    assert places[0] == ("sgc", "cora", 0)
    assert {dataset for row, dataset, _ in places if row == "sgc-lr0.01"} == {"pubmed"}


def test_other_labels_and_models_change_every_row_but_the_labels_of_the_base():
    rows = TABLES[1].pick(["auto", "t3a"])
    assert under(rows, labels="train", model="sgc", features="auto") == rows
    base, tuned, *others = under(rows, labels="train+half-val", model="gcn", features="rownorm")
    assert (base.label, base.labels, base.paper) == ("GCN, untouched", "train", None)
    assert (tuned.model, tuned.labels) == ("gcn-tuned", "train")
    assert {(row.model, row.labels, row.features) for row in others} == {
        ("gcn", "train+half-val", "rownorm")
    }


def test_rows_with_a_model_of_their_own_keep_it_and_other_protocols_go():
    rows = TABLES[1].pick(["gcn-words", "auto-tuned", "sgc-one-split"])
    changed = under(rows, labels="train+val", model="gcn", features="raw")
    by_name = {row.name: row for row in changed}
    assert "sgc-one-split" not in by_name
    words = by_name["gcn-words"]
    assert (words.model, words.features, words.labels) == ("sgc", "rownorm", "train+val")
    assert by_name["auto-tuned"].model == "sgc-tuned"


def test_readings_give_their_share_of_the_published_gain(job, measured):
    table = _table(
        job, measured, {"leak": [65.43, 66.43, 67.43]}, table="reach", rows=["sgc", "leak"]
    )
    assert table.plan.table.sentences(table) == [
        "test nodes of the class replaced too: +1.43 to +1.43, 50 to 50 % of the published gain."
    ]
