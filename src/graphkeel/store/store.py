"""The store of finished measurements: one SQLite file, one transaction a measurement.

Runs and tables keep their numbers here. A command that is killed, at any
moment, leaves whole measurements only; started again it computes the others. Each row carries a
checksum, so that a damaged one counts as missing."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from graphkeel.core.digests import json_sha256
from graphkeel.core.errors import ConfigError
from graphkeel.core.files import cannot_write
from graphkeel.store.job import Job, Measurement

FILE = "measurements.sqlite"

_SCHEMA = """
CREATE TABLE IF NOT EXISTS measurements (
    key TEXT PRIMARY KEY,
    subject TEXT NOT NULL,
    row TEXT NOT NULL,
    dataset TEXT NOT NULL,
    seed INTEGER NOT NULL,
    status TEXT NOT NULL,
    accuracy REAL,
    base REAL,
    seconds REAL NOT NULL,
    peak_mb REAL NOT NULL,
    message TEXT,
    result TEXT NOT NULL,
    spec TEXT NOT NULL,
    data TEXT NOT NULL,
    code TEXT NOT NULL,
    versions TEXT NOT NULL,
    commit_hash TEXT,
    sha256 TEXT NOT NULL,
    finished TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%SZ', 'now'))
);
CREATE INDEX IF NOT EXISTS by_subject ON measurements (subject);
CREATE TABLE IF NOT EXISTS manifest (
    name TEXT PRIMARY KEY,
    content TEXT NOT NULL,
    sha256 TEXT NOT NULL
);
"""
_MEASURED = "status, seconds, peak_mb, result, message, commit_hash, code, key, sha256"
_WITHOUT_COMMIT = _MEASURED.replace("commit_hash", "NULL")  # stores of before that column
_RUN = "run"  # the manifest's name


class Store:
    """Measurements in an SQLite file. Reads and writes that file alone; several processes may use
    it at once. The versions of packages are stored beside each measurement."""

    def __init__(self, path: Path, *, versions: dict[str, str] | None = None) -> None:
        self.path = path
        self.versions = json.dumps(versions or {}, sort_keys=True)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise cannot_write(path, error) from error
        with self._open() as connection:
            connection.executescript(_SCHEMA)
            if not _has_commits(connection):
                connection.execute("ALTER TABLE measurements ADD COLUMN commit_hash TEXT")

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        """A connection for one transaction: committed at its end, undone if it fails."""
        try:
            connection = sqlite3.connect(self.path, timeout=60.0)
            try:
                connection.execute("PRAGMA synchronous=FULL")
                with connection:
                    yield connection
            finally:
                connection.close()
        # a damaged schema may hold names that are no text
        except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
            raise ConfigError(
                f"{self.path} cannot be used as a store of measurements",
                got=str(error),
                fix="Free some space or choose another --out; what is finished is kept.",
            ) from error

    def keep(self, job: Job, measurement: Measurement) -> None:
        """Store a measurement, in one transaction."""
        result = json.dumps(measurement.result)
        row = {
            "key": job.key,
            "subject": job.subject,
            "row": job.row,
            "dataset": job.spec.dataset,
            "seed": job.seed,
            "status": measurement.status,
            "accuracy": measurement.result.get("accuracy"),
            "base": measurement.result.get("base"),
            "seconds": measurement.seconds,
            "peak_mb": measurement.peak_mb,
            "message": measurement.message,
            "result": result,
            "spec": json.dumps(asdict(job.spec)),
            "data": job.data,
            "code": job.code,
            "versions": self.versions,
            "commit_hash": measurement.commit,
            "sha256": _seal(job.key, measurement, result),
        }
        columns = ", ".join(row)
        marks = ", ".join("?" * len(row))
        statement = f"INSERT OR REPLACE INTO measurements ({columns}) VALUES ({marks})"
        with self._open() as connection:
            connection.execute(statement, tuple(row.values()))

    def find(self, job: Job, *, any_code: bool = False) -> Measurement | None:
        """The measurement of a job; None where there is none, or a damaged one."""
        column = "subject" if any_code else "key"
        value = job.subject if any_code else job.key
        query = (
            f"SELECT {_MEASURED} FROM measurements WHERE {column} = ? "
            # not by `finished`: clocks jump
            "ORDER BY status = 'done' DESC, key = ? DESC, rowid DESC LIMIT 1"
        )
        with self._open() as connection:
            found = connection.execute(query, (value, job.key)).fetchone()
        return None if found is None else _measurement(found)

    def typical_seconds(self) -> dict[tuple[str, str], float]:
        """Mean time of the finished jobs of each (row, dataset)."""
        query = "SELECT row, dataset, AVG(seconds) FROM measurements GROUP BY row, dataset"
        with self._open() as connection:
            found = connection.execute(query).fetchall()
        return {(row, dataset): seconds for row, dataset, seconds in found}

    def claim(self, manifest: dict[str, Any]) -> None:
        """Make this the store of one run, or continue that run; refuse another one."""
        content = json.dumps(manifest, sort_keys=True, allow_nan=False)
        with self._open() as connection:
            connection.execute(
                "INSERT OR IGNORE INTO manifest (name, content, sha256) VALUES (?, ?, ?)",
                (_RUN, content, json_sha256(content)),
            )
            known = _manifest(connection)
        spec = json.loads(content)["spec"]
        if known is None or known.get("spec") != spec:
            got = "a damaged manifest"
            if known is not None:
                got = _difference(known.get("spec", {}), spec)
            raise ConfigError(
                f"{self.path.parent} holds another run",
                got=got,
                fix="Choose another --out, or delete the folder.",
            )

    def __len__(self) -> int:
        with self._open() as connection:
            return int(connection.execute("SELECT COUNT(*) FROM measurements").fetchone()[0])


def read_run(folder: Path) -> tuple[dict[str, Any], list[dict[str, Any]]] | None:
    """The manifest of the run in a folder and its newest result a seed, in the order of the seeds;
    None where there is no run. Writes nothing."""
    path = folder / FILE
    if not path.is_file():
        return None
    try:
        connection = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, timeout=60.0)
        try:
            manifest = _manifest(connection)
            columns = _MEASURED if _has_commits(connection) else _WITHOUT_COMMIT
            query = f"SELECT seed, {columns} FROM measurements WHERE status = 'done' ORDER BY rowid"
            rows = connection.execute(query).fetchall()
        finally:
            connection.close()
    except (sqlite3.DatabaseError, UnicodeDecodeError):
        return None
    if manifest is None or not isinstance(manifest.get("spec"), dict):
        return None
    results: dict[int, dict[str, Any]] = {}
    for seed, *row in rows:
        measurement = _measurement(row)
        if measurement is not None and isinstance(seed, int):
            results[seed] = measurement.result
    return manifest, [results[seed] for seed in sorted(results)]


def _has_commits(connection: sqlite3.Connection) -> bool:
    columns = connection.execute("PRAGMA table_info(measurements)").fetchall()
    return any(column[1] == "commit_hash" for column in columns)


def _manifest(connection: sqlite3.Connection) -> dict[str, Any] | None:
    found = connection.execute(
        "SELECT content, sha256 FROM manifest WHERE name = ?", (_RUN,)
    ).fetchone()
    if found is None or not isinstance(found[0], str) or json_sha256(found[0]) != found[1]:
        return None
    content = _json(found[0])
    return content if isinstance(content, dict) else None


def _measurement(row: Sequence[Any]) -> Measurement | None:
    """The content of a row, `_MEASURED`; None, so that it is computed again, where its seal does
    not hold."""
    status, seconds, peak, result, *others, key, seal = row
    facts = _json(result)
    measurement = Measurement(status, seconds, peak, facts, *others)
    try:
        is_whole = isinstance(facts, dict) and _seal(key, measurement, result) == seal
    except (TypeError, ValueError):  # of other kinds than were written
        return None
    return measurement if is_whole else None


def _seal(key: str, measurement: Measurement, result: str) -> str:
    """The checksum of a row."""
    seconds = float(measurement.seconds)
    peak = float(measurement.peak_mb)
    sealed = [key, measurement.status, seconds, peak, measurement.message, result]
    if measurement.commit is not None:  # rows of before commits were stored have none
        sealed.append(measurement.commit)
    return json_sha256(sealed)


def _json(text: Any) -> Any:
    try:
        return json.loads(text)
    except (TypeError, ValueError, RecursionError):
        return None


def _difference(old: dict[str, Any], new: dict[str, Any]) -> str:
    keys = sorted(key for key in {*old, *new} if old.get(key) != new.get(key))
    return ", ".join(f"{key}: {old.get(key)!r} there, {new.get(key)!r} now" for key in keys)
