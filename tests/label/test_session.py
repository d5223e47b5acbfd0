"""The session: what is asked, what is kept, what is told."""

from __future__ import annotations

import copy
import dataclasses
from functools import partial

import pytest
import torch
from labeller import give, skip, undo

import graphkeel
from graphkeel.core.errors import ConfigError, DataError, StorageError
from graphkeel.label import LabelSettings, Session, read_labels
from graphkeel.label import session as module
from graphkeel.label.estimate import Change, advice, estimates
from graphkeel.label.session import Stale
from graphkeel.label.view import Row
from threads import at_once


def on_disk(session: Session) -> dict[int, int]:
    batch = read_labels(session.path)
    return dict(zip(batch.nodes.tolist(), batch.labels.tolist(), strict=True))


def test_suggested_nodes_come_first_and_every_third_is_random(start, rec, data):
    tasks = give(start(), data.y, 9, wait=False)
    assert [task["why"] for task in tasks] == ["suggested", "suggested", "random"] * 3
    wanted = rec.suggest(6).tolist()
    assert [task["node"] for task in tasks if task["why"] == "suggested"] == wanted
    assert len({task["node"] for task in tasks}) == 9


def test_random_nodes_are_drawn_from_all_without_a_label(start, data):
    """Over many seeds, the first random node falls anywhere among them, and nowhere else."""
    known = set((data.train_mask | data.val_mask).nonzero().flatten().tolist())
    free = data.num_nodes - len(known)
    drawn = []
    for seed in range(60):
        rng_order = start(seed=seed)._drawn
        assert len(rng_order) == free and not known & set(rng_order)
        drawn.append(rng_order[0])
    middle = sorted(set(range(data.num_nodes)) - known)[free // 2]
    assert 15 < sum(node < middle for node in drawn) < 45  # a fair coin, 60 times


def test_labels_that_nobody_gave_are_not_looked_at(start, data):
    hidden = data.clone()
    hidden.y[~(data.train_mask | data.val_mask)] = 0
    assert start(data=hidden).state()["task"] == start().state()["task"]


def test_every_answer_is_on_disk_at_once_and_the_next_start_goes_on(start, data):
    session = start()
    for count in range(1, 13):
        give(session, data.y, 1)
        assert on_disk(session) == session._answers()
        assert len(on_disk(session)) == count
    again = start()
    assert again._rows == session._rows
    assert again.state()["labels"] == 12
    assert again.state()["estimates"] == session.state()["estimates"]
    assert set(on_disk(session)) <= set(again._rec.labels_.nodes.tolist())  # taken in
    asked = {task["node"] for task in give(again, data.y, 6)}
    assert not asked & set(session._answers())
    assert len(on_disk(again)) == 18


def test_labels_are_taken_in_after_every_round(start, data):
    session = start()
    before = len(session._rec.labels_)
    give(session, data.y, 9)
    assert len(session._rec.labels_) == before
    give(session, data.y, 1)
    assert len(session._rec.labels_) == before + 10
    assert len(session._changes) == 1
    seen = set(session._answers())
    assert not seen & set(session._suggested)


def test_undo_asks_the_same_node_again(start, data):
    session = start()
    tasks = give(session, data.y, 3)
    undo(session)
    assert session.state()["task"]["node"] == tasks[-1]["node"]
    assert session.state()["task"]["why"] == "random"
    assert len(on_disk(session)) == 2
    give(session, data.y, 1)
    assert [row.node for row in session._rows] == [task["node"] for task in tasks]
    for _ in range(3):
        undo(session)
    assert session.state()["task"]["node"] == tasks[0]["node"]
    with pytest.raises(ConfigError, match="no answer to take back"):
        undo(session)


def test_a_label_taken_back_leaves_the_reconstructor(start, data):
    session = start()
    gone = give(session, data.y, 10)[-1]["node"]
    undo(session)
    assert skip(session) == gone
    give(session, data.y, 10)
    assert gone not in session._rec.labels_.nodes.tolist()
    assert len(session._rec.labels_) == len(session._base) + 19


def test_a_label_corrected_is_the_one_in_use(start, data):
    session = start()
    node = give(session, data.y, 10)[-1]["node"]
    undo(session)
    other = (int(data.y[node]) + 1) % 3
    session.answer(session.state()["version"], node, other)
    session.finish()
    known = session._rec.labels_
    assert known.classes[known.nodes == node].tolist() == [other]


def test_skipped_nodes_have_no_label_and_do_not_come_back(start, data):
    session = start()
    skipped = {skip(session) for _ in range(4)}
    give(session, data.y, 12)
    asked = {row.node for row in session._rows if row.label is not None}
    assert len(skipped) == 4 and not asked & skipped
    assert session.state()["skipped"] == 4 and len(on_disk(session)) == 12
    again = start()
    assert not skipped & {task["node"] for task in give(again, data.y, 12)}


def test_skipping_all_suggestions_brings_new_ones(start):
    session = start(settings=LabelSettings(ahead=3))
    for _ in range(8):
        skip(session)
        session.wait()
    assert {row.why for row in session._rows[-3:]} == {"suggested", "random"}


def test_of_two_tabs_the_first_counts(start, data):
    session = start()
    seen = session.state()
    node = seen["task"]["node"]
    session.answer(seen["version"], node, 0)
    for late in (0, 1, None):
        with pytest.raises(Stale):
            session.answer(seen["version"], node, late)
    with pytest.raises(Stale):
        session.undo(seen["version"])
    with pytest.raises(Stale):  # the right state, another node
        session.answer(session.state()["version"], node, 1)
    assert len(session._rows) == 1


def test_of_two_tabs_at_once_one_counts(start, data):
    session = start()
    for _ in range(20):
        state = session.state()
        task = state["task"]["node"]

        def counts(label: int, state=state, task=task) -> bool:
            try:
                session.answer(state["version"], task, label)
            except Stale:
                return False
            return True

        assert sorted(at_once(partial(counts, 0), partial(counts, 1))) == [False, True]
    assert len(session._rows) == len(on_disk(session)) == 20


@pytest.mark.parametrize("label", [-1, 3, 10**30])
def test_classes_that_do_not_exist(start, label):
    session = start()
    state = session.state()
    with pytest.raises(DataError, match="the class must lie in"):
        session.answer(state["version"], state["task"]["node"], label)
    assert not session.path.exists()


def test_what_cannot_be_written_was_not_answered(start, monkeypatch):
    session = start()
    state = session.state()

    def full(*_: object) -> None:
        raise StorageError("the disk is full")

    monkeypatch.setattr(module, "write_rows", full)
    with pytest.raises(StorageError):
        session.answer(state["version"], state["task"]["node"], 0)
    assert session.state() == state


def test_a_file_that_another_program_changed_is_not_overwritten(start, data):
    session = start()
    give(session, data.y, 2)
    other = start()
    give(other, data.y, 1)
    with pytest.raises(ConfigError, match="changed by another program"):
        give(session, data.y, 1)
    assert len(on_disk(other)) == 3


def test_trouble_is_told_and_the_answers_are_kept(start, data, monkeypatch):
    session = start()

    def fails(*_: object) -> None:
        raise MemoryError("too little")

    monkeypatch.setattr(session._rec, "feedback", fails)
    give(session, data.y, 11)
    assert "were not taken in: too little" in session.state()["trouble"]
    assert len(on_disk(session)) == 11
    monkeypatch.undo()
    give(session, data.y, 1)
    assert session.state()["trouble"] is None
    assert len(session._taken) == 12


def test_when_every_node_is_answered_nothing_is_asked(rec, data, tmp_path):
    few = data.clone()
    known = data.train_mask | data.val_mask
    few.val_mask = torch.ones_like(known)
    few.val_mask[(~known).nonzero().flatten()[:4]] = False
    few.val_mask &= ~data.train_mask
    few.test_mask = torch.zeros_like(known)
    session = Session(copy.deepcopy(rec).fit(few), few, tmp_path / "label")
    give(session, data.y, 4)
    assert session.state()["task"] is None
    undo(session)
    assert session.state()["task"] is not None
    session.finish()


def test_the_end_leaves_a_reconstruction_and_both_files(start, data):
    session = start()
    give(session, data.y, 13)
    skip(session)
    session.finish()
    kept = graphkeel.load(session.folder)
    assert len(kept.labels_) == len(session._base) + 13
    from_json = read_labels(session.folder / "labels.json")
    assert dict(zip(from_json.nodes.tolist(), from_json.labels.tolist(), strict=True)) == on_disk(
        session
    )


@pytest.mark.parametrize(
    "line",
    [
        "99999,0,random,1,,,",
        "3,7,random,1,,,",
        "x,0,random,1,,,",
        "3,0,chosen,1,,,",
        "3,0",
        "-1,0,random,1,,,",
    ],
)
def test_a_file_of_something_else_is_refused(start, line):
    session = start()
    session.folder.mkdir()
    session.path.write_text(f"node,label,why,predicted,likeliest,neighbours,known_nearby\n{line}\n")
    with pytest.raises(DataError, match=r"Move it away"):
        start()


# ---- what is told


def row(why: str, label: int | None, predicted: int = 0) -> Row:
    return Row(node=0, label=label, why=why, predicted=predicted)


def test_only_random_nodes_count_as_they_were_predicted_before():
    settings = LabelSettings(round=4)
    rows = [
        row("random", 0),
        row("suggested", 1),  # wrong, but a hard one
        row("random", 1),  # wrong
        row("random", None),  # skipped
        row("suggested", 1),
        row("random", 0),  # comes after the round
    ]
    (told,) = estimates(rows, settings)
    assert (told.labels, told.right, told.of, told.skipped) == (4, 1, 2, 1)
    assert told.accuracy == 50.0
    # Clopper and Pearson at 90 %: (1 − low)² = 0.95, and high = 1 − low
    assert told.low == pytest.approx(100 * (1 - 0.95**0.5))
    assert told.high == pytest.approx(100 * 0.95**0.5)
    assert estimates([row("suggested", 1)] * 8, settings) == []


def test_what_was_predicted_is_what_was_predicted_before_the_answer(start, rec, data):
    session = start()
    before = rec.predict(data)
    give(session, data.y, 10)
    for one in session._rows:
        assert one.predicted == int(before[one.node])


def test_when_to_stop():
    settings = LabelSettings()
    assert "10 more labels" in advice(0, [], settings)
    moving, still = Change(10, 57, 1000, 0.93), Change(10, 1, 1000, 0.999)
    assert advice(10, [moving], settings).startswith("Go on: the last 10 labels changed")
    assert advice(30, [moving, still, still], settings).startswith("Go on")
    assert advice(40, [moving, still, still, still], settings).startswith("You can stop")
    assert "57 of 1,000" in advice(50, [still, still, moving], settings)


def test_change_between_predictions():
    before = torch.tensor([0, 0, 1, 1]).numpy()
    assert Change.between(before, before, 12) == Change(12, 0, 4, 1.0)
    after = torch.tensor([0, 1, 1, 1]).numpy()
    found = Change.between(before, after, 10)
    assert (found.changed, found.of) == (1, 4)
    assert found.agreement == pytest.approx(0.5)  # (3/4 − 1/2) / (1 − 1/2)


def test_settings_are_documented():
    fields = {field.name for field in dataclasses.fields(LabelSettings)}
    assert all(f"{name}:" in (LabelSettings.__doc__ or "") for name in fields)
