"""The store: what a key depends on, what survives, who may read it."""

from __future__ import annotations

import sqlite3

import pytest

from graphkeel.core.errors import ConfigError
from graphkeel.paper.tables.cells import CellStore, Measured
from graphkeel.paper.tables.fingerprint import code_fingerprint, method_version
from graphkeel.paper.tables.spec import RunSpec


def test_a_key_changes_with_everything_that_determines_the_number(cell):
    keys = {
        cell().key,
        cell(seed=1).key,
        cell(dataset="cora").key,
        cell(method="t3a").key,
        cell(code="v2").key,
    }
    assert len(keys) == 5
    assert cell(row="another name").key == cell().key  # two rows may share a number
    assert cell(code="v2").subject == cell().subject


def test_what_is_kept_is_found_again(tmp_path, cell, measured):
    store = CellStore(tmp_path / "a" / "cells.sqlite", versions={"torch": "2"})
    assert store.find(cell()) is None
    store.keep(cell(), measured(71.25, classes=[3]))
    again = CellStore(tmp_path / "a" / "cells.sqlite")
    assert again.find(cell()) == measured(71.25, classes=[3])
    assert again.find(cell(seed=1)) is None
    assert again.typical_seconds() == {("sgc", "digits"): 1.5}
    assert len(again) == 1


def test_other_codes_numbers_are_taken_only_when_asked_for(tmp_path, cell, measured):
    store = CellStore(tmp_path / "cells.sqlite")
    store.keep(cell(code="old"), measured(60.0))
    assert store.find(cell(code="new")) is None
    assert store.find(cell(code="new"), any_code=True) == measured(60.0)
    store.keep(cell(code="new"), Measured("error", 1.0, 1.0, {}, "out of luck"))
    assert store.find(cell(code="new")).message == "out of luck"
    assert store.find(cell(code="new"), any_code=True) == measured(60.0)  # a number beats a failure


def test_the_store_is_a_plain_table_with_time_memory_and_versions(tmp_path, cell, measured):
    CellStore(tmp_path / "cells.sqlite", versions={"torch": "2"}).keep(cell(), measured())
    connection = sqlite3.connect(tmp_path / "cells.sqlite")
    query = "SELECT dataset, seed, status, accuracy, base, seconds, peak_mb, versions FROM cells"
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
    assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    connection.close()


def test_a_file_that_is_no_store_is_refused(tmp_path):
    (tmp_path / "cells.sqlite").write_bytes(b"something else, and rather long " * 100)
    with pytest.raises(ConfigError, match="cannot be used as a store"):
        CellStore(tmp_path / "cells.sqlite")


def test_the_version_of_a_method_is_its_code_not_its_comments(tmp_path, monkeypatch):
    package = tmp_path / "graphkeel_probe.py"
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(
        "graphkeel.paper.tables.fingerprint._counts", lambda name: name == "graphkeel_probe"
    )

    def fingerprint(source: str) -> str:
        package.write_text(source)
        code_fingerprint.cache_clear()
        return code_fingerprint(("graphkeel_probe",))

    first = fingerprint('"""Doc."""\ndef f(x):\n    """More."""\n    return x + 1\n')
    assert fingerprint("# why\ndef f(x):\n\n    return x + 1\n") == first
    assert fingerprint("def f(x):\n    return x + 2\n") != first
    code_fingerprint.cache_clear()


def test_methods_have_versions_of_their_own_and_missing_ones_say_so():
    versions = {name: method_version(RunSpec(method=name)) for name in ("none", "auto", "t3a")}
    assert len(set(versions.values())) == 3
    assert method_version(RunSpec(method="no such method")).startswith("not available:")
