"""The store: what a key depends on, what survives, who may read it."""

from __future__ import annotations

import sqlite3
from dataclasses import replace

import pytest

from graphkeel.core.digests import sha256_of
from graphkeel.core.errors import ConfigError
from graphkeel.store.job import Measurement
from graphkeel.store.store import FILE, Store, read_run
from graphkeel_paper.fingerprint import code_version, sources
from graphkeel_paper.specs import RunSpec


def test_a_key_changes_with_everything_that_determines_the_number(job):
    keys = {
        job().key,
        job(seed=1).key,
        job(dataset="cora").key,
        job(method="t3a").key,
        job(code="v2").key,
    }
    assert len(keys) == 5
    assert job(row="another name").key == job().key  # two rows may share a number
    assert job(code="v2").subject == job().subject


def test_what_is_kept_is_found_again(tmp_path, job, measured):
    store = Store(tmp_path / "a" / FILE, versions={"torch": "2"})
    assert store.find(job()) is None
    store.keep(job(), measured(71.25, classes=[3]))
    again = Store(tmp_path / "a" / FILE)
    assert again.find(job()) == measured(71.25, classes=[3])
    assert again.find(job(seed=1)) is None
    assert again.typical_seconds() == {("sgc", "digits"): 1.5}
    assert len(again) == 1


def test_the_commit_that_computed_a_number_is_kept_with_it(tmp_path, job, measured):
    store = Store(tmp_path / FILE)
    store.keep(job(), replace(measured(), commit="abc"))
    found = store.find(job())
    assert (found.commit, found.code) == ("abc", job().code)
    connection = sqlite3.connect(tmp_path / FILE)
    with connection:
        connection.execute("UPDATE measurements SET commit_hash = 'another'")
    connection.close()
    assert store.find(job()) is None  # the seal covers it


def test_a_store_of_before_commits_is_read_and_continued(tmp_path, job, measured):
    store = Store(tmp_path / FILE)
    store.keep(job(), measured(61.0))
    store.claim({"spec": {"method": "none"}})
    connection = sqlite3.connect(tmp_path / FILE)
    with connection:
        connection.execute("ALTER TABLE measurements DROP COLUMN commit_hash")
    connection.close()
    assert [row["accuracy"] for row in read_run(tmp_path)[1]] == [61.0]
    later = Store(tmp_path / FILE)
    assert later.find(job()).commit is None
    later.keep(job(seed=1), replace(measured(), commit="abc"))
    assert later.find(job(seed=1)).commit == "abc"


def test_other_codes_numbers_are_taken_only_when_asked_for(tmp_path, job, measured):
    store = Store(tmp_path / FILE)
    store.keep(job(code="old"), measured(60.0))
    assert store.find(job(code="new")) is None
    assert store.find(job(code="new"), any_code=True) == measured(60.0)
    store.keep(job(code="new"), Measurement("error", 1.0, 1.0, {}, "out of luck"))
    assert store.find(job(code="new")).message == "out of luck"
    assert store.find(job(code="new"), any_code=True) == measured(60.0)  # a number beats a failure


def test_the_store_is_a_plain_table_with_time_memory_and_versions(tmp_path, job, measured):
    Store(tmp_path / FILE, versions={"torch": "2"}).keep(job(), measured())
    connection = sqlite3.connect(tmp_path / FILE)
    query = (
        "SELECT dataset, seed, status, accuracy, base, seconds, peak_mb, versions FROM measurements"
    )
    assert connection.execute(query).fetchone() == (
        "digits",
        0,
        "done",
        70.0,
        65.0,
        1.5,
        100.0,
        '{"torch": "2"}',
    )
    connection.close()
    assert [path.name for path in tmp_path.iterdir()] == [FILE]  # nothing beside it


def test_a_damaged_measurement_counts_as_missing(tmp_path, job, measured):
    store = Store(tmp_path / FILE)
    store.keep(job(), measured(70.0))
    connection = sqlite3.connect(tmp_path / FILE)
    with connection:
        connection.execute("UPDATE measurements SET result = replace(result, '70.0', '79.0')")
    connection.close()
    assert store.find(job()) is None


def test_a_run_is_read_without_writing(tmp_path, job, measured):
    assert read_run(tmp_path) is None
    store = Store(tmp_path / FILE)
    store.keep(job(seed=1), measured(70.0))
    store.keep(job(seed=0), measured(60.0))
    assert read_run(tmp_path) is None  # a table's store holds no run
    store.claim({"spec": {"method": "none"}, "torch": "2"})
    store.keep(job(seed=1, code="newer"), measured(71.0))
    before = (tmp_path / FILE).read_bytes()
    manifest, rows = read_run(tmp_path)
    assert manifest == {"spec": {"method": "none"}, "torch": "2"}
    assert [row["accuracy"] for row in rows] == [60.0, 71.0]
    assert (tmp_path / FILE).read_bytes() == before


def test_a_file_that_is_no_store_is_refused(tmp_path):
    (tmp_path / FILE).write_bytes(b"something else, and rather long " * 100)
    with pytest.raises(ConfigError, match="cannot be used as a store"):
        Store(tmp_path / FILE)


def test_the_version_of_the_code_is_that_of_what_may_decide_a_number(tmp_path):
    def version() -> str:
        return sha256_of(sources([tmp_path]))

    for folder in ("tables", "models"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "a.py").write_text("x = 1")
    first = version()
    (tmp_path / "tables" / "a.py").write_text("x = 2")
    (tmp_path / "models" / "notes.txt").write_text("of no account")
    assert version() == first
    (tmp_path / "models" / "a.py").write_text("x = 2")
    second = version()
    (tmp_path / "models" / "prior.json").write_text("{}")
    assert len({first, second, version()}) == 3
    assert RunSpec().code_version() == code_version()
