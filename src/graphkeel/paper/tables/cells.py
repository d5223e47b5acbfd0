"""The cells of a grid and where they are kept: one SQLite file, one transaction per finished cell.

A cell's key is a SHA-256 over everything that determines its number. A grid that was killed, at any
moment, holds whole cells only; started again it computes the others."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from graphkeel.core.errors import ConfigError
from graphkeel.core.files import cannot_write
from graphkeel.paper.tables.spec import RunSpec

FILE = "cells.sqlite"
DONE, FAILED = "done", "error"

_SCHEMA = """
CREATE TABLE IF NOT EXISTS cells (
    key TEXT PRIMARY KEY, subject TEXT NOT NULL, row TEXT NOT NULL, dataset TEXT NOT NULL, seed INTEGER NOT NULL,
    status TEXT NOT NULL, accuracy REAL, base REAL, seconds REAL NOT NULL, peak_mb REAL NOT NULL,
    message TEXT, result TEXT NOT NULL, spec TEXT NOT NULL, data TEXT NOT NULL, code TEXT NOT NULL,
    versions TEXT NOT NULL, finished TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%SZ', 'now'))
);
CREATE INDEX IF NOT EXISTS by_subject ON cells (subject);
"""


@dataclass(frozen=True)
class Cell:
    """One number to be had: a row of a table, on one split of one dataset."""

    row: str  # the table row's name; not part of the key, as two rows may share a number
    spec: RunSpec
    seed: int
    data: str  # SHA-256 of the task's arrays
    code: str  # SHA-256 of the code that computes it

    @cached_property
    def subject(self) -> str:
        """What is measured, whoever's code measures it."""
        return _sha256({"spec": asdict(self.spec), "seed": self.seed, "data": self.data})

    @cached_property
    def key(self) -> str:
        return _sha256({"subject": self.subject, "code": self.code})


@dataclass(frozen=True)
class Measured:
    """What became of a cell; `peak_mb` is the worker's peak memory while it worked on it."""

    status: str
    seconds: float
    peak_mb: float
    result: dict[str, Any]
    message: str | None = None

    @property
    def done(self) -> bool:
        return self.status == DONE


class CellStore:
    """Finished cells in an SQLite file; several processes may read and write it at once."""

    def __init__(self, path: Path, *, versions: dict[str, str] | None = None) -> None:
        self.path, self.versions = path, json.dumps(versions or {}, sort_keys=True)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise cannot_write(path, error) from error
        with self._open() as connection:
            connection.execute("PRAGMA journal_mode=WAL")
            connection.executescript(_SCHEMA)

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        """A connection for one piece of work: committed at its end, undone if it fails."""
        try:
            connection = sqlite3.connect(self.path, timeout=60.0)
            try:
                connection.execute("PRAGMA synchronous=FULL")
                with connection:
                    yield connection
            finally:
                connection.close()
        except (
            sqlite3.DatabaseError,
            UnicodeDecodeError,
        ) as error:  # the latter over names in a damaged schema
            raise ConfigError(
                f"{self.path} cannot be used as a store of cells",
                got=str(error),
                fix="Free some space or choose another --out; finished cells are kept.",
            ) from error

    def keep(self, cell: Cell, measured: Measured) -> None:
        """Store a finished cell, in one transaction."""
        row = (
            *(cell.key, cell.subject, cell.row, cell.spec.dataset, cell.seed, measured.status),
            *(
                measured.result.get("accuracy"),
                measured.result.get("base"),
                measured.seconds,
                measured.peak_mb,
            ),
            *(measured.message, json.dumps(measured.result), json.dumps(asdict(cell.spec))),
            *(cell.data, cell.code, self.versions),
        )
        columns = (
            "key, subject, row, dataset, seed, status, accuracy, base, seconds, peak_mb, "
            "message, result, spec, data, code, versions"
        )
        marks = ", ".join("?" * len(row))
        with self._open() as connection:
            connection.execute(f"INSERT OR REPLACE INTO cells ({columns}) VALUES ({marks})", row)

    def find(self, cell: Cell, *, any_code: bool = False) -> Measured | None:
        """The cell's measurement; with `any_code` also the newest one that other code made of the
        same subject."""
        column, value = ("subject", cell.subject) if any_code else ("key", cell.key)
        query = (
            f"SELECT status, seconds, peak_mb, result, message FROM cells WHERE {column} = ? "
            # not by `finished`: clocks jump
            "ORDER BY status = 'done' DESC, key = ? DESC, rowid DESC LIMIT 1"
        )
        with self._open() as connection:
            found = connection.execute(query, (value, cell.key)).fetchone()
        if found is None:
            return None
        return _measured(*found)

    def typical_seconds(self) -> dict[tuple[str, str], float]:
        """Mean time of the finished cells of each (row, dataset)."""
        with self._open() as connection:
            found = connection.execute(
                "SELECT row, dataset, AVG(seconds) FROM cells GROUP BY row, dataset"
            )
            return {(row, dataset): seconds for row, dataset, seconds in found.fetchall()}

    def __len__(self) -> int:
        with self._open() as connection:
            return int(connection.execute("SELECT COUNT(*) FROM cells").fetchone()[0])


def _measured(status: Any, seconds: Any, peak: Any, result: Any, message: Any) -> Measured | None:
    """What a row of the file says; None, so that it is computed again, if no grid can have written
    that."""
    try:
        facts = json.loads(result)
    except (TypeError, ValueError, RecursionError):
        return None
    if (
        not isinstance(facts, dict)
        or status not in (DONE, FAILED)
        or not isinstance(message, str | None)
    ):
        return None
    scores = [facts.get(key) for key in ("accuracy", "base")] if status == DONE else []
    decision = facts.get("decision", {})
    if not isinstance(decision, dict) or not all(
        isinstance(value, int | float)
        for value in (seconds, peak, decision.get("residual", 0.0), *scores)
    ):
        return None
    return Measured(status, seconds, peak, facts, message)


def _sha256(content: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
