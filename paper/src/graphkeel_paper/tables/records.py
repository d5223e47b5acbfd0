"""A table's measurements as its JSON file keeps them: one record a seed, from which means,
intervals and tests can be computed again without data or models."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from graphkeel.core.errors import DataError
from graphkeel.runs.specs import split_number
from graphkeel.store.job import CPU_SECONDS, DONE, FAILED, Measurement
from graphkeel.store.store import Store
from graphkeel_paper.tables.plan import PlacedJob

UNKNOWN = "unknown"
RUNS = "runs"  # the records' name in the file
_ID_LENGTH = 16  # hex digits of a hash that the file keeps
_RESULT = ("accuracy", "base", "balanced", "balanced_base", "kept", CPU_SECONDS)
_DECISION = ("residual", "chosen", "proofs")


@dataclass(frozen=True)
class Record:
    """One measurement, and the cell of the table that it belongs to."""

    row: str
    column: str
    seed: int
    measurement: Measurement
    block: str = ""
    split: str = ""  # its kind and number
    data: str = ""  # SHA-256 of the split and its features
    settings: str = "{}"  # of the specification: model, features, labels, method

    @property
    def place(self) -> str:
        """Of its cell: "row, block, column"."""
        return ", ".join(filter(None, (self.row, self.block, self.column)))

    def as_dict(self) -> dict[str, Any]:
        """Plain values for the file; what is empty is left out."""
        found = self.measurement
        decision = found.result.get("decision", {})
        kept: dict[str, Any] = {name: found.result.get(name) for name in _RESULT}
        kept |= {name: decision.get(name) for name in _DECISION}
        values = {
            "row": self.row,
            "block": self.block or None,
            "column": self.column,
            "seed": self.seed,
            "split": self.split,
            "status": found.status,
            **kept,
            "seconds": found.seconds,
            "peak_mb": found.peak_mb,
            "data": self.data[:_ID_LENGTH],
            "code": (found.code or UNKNOWN)[:_ID_LENGTH],
            "commit": found.commit or UNKNOWN,
            "message": found.message,
        }
        return {name: value for name, value in values.items() if value is not None}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Record:
        """The record that `as_dict` gave."""
        try:
            result = {name: values[name] for name in _RESULT if name in values}
            result["decision"] = {name: values[name] for name in _DECISION if name in values}
            status = values["status"]
            if status not in (DONE, FAILED):
                raise ValueError(f"status {status!r}")
            if status == DONE:
                result |= {name: float(values[name]) for name in ("accuracy", "base")}
            measurement = Measurement(
                status,
                float(values["seconds"]),
                float(values["peak_mb"]),
                result,
                values.get("message"),
                values["commit"],
                values["code"],
            )
            return cls(
                str(values["row"]),
                str(values["column"]),
                int(values["seed"]),
                measurement,
                str(values.get("block", "")),
                values["split"],
                values["data"],
            )
        except (KeyError, TypeError, ValueError) as error:
            raise DataError(
                "a run in the stored table is damaged",
                got=f"{type(error).__name__}: {error}",
                fix="Write the table again with keel-paper table.",
            ) from error


def found_records(
    placed: Iterable[PlacedJob], store: Store, *, any_code: bool = False
) -> list[Record]:
    """The records of all jobs that are measured."""
    found = [(one, store.find(one.job, any_code=any_code)) for one in placed]
    return [record_of(one, measurement) for one, measurement in found if measurement is not None]


def record_of(placed: PlacedJob, measurement: Measurement) -> Record:
    """The record of a finished job."""
    job = placed.job
    spec = asdict(job.spec)
    kind, number = split_number(str(spec.get("split", "")), job.seed)
    return Record(
        row=job.row,
        column=placed.column,
        seed=job.seed,
        measurement=measurement,
        block=placed.block,
        split=f"{kind} {number}",
        data=job.data,
        settings=json.dumps(spec, sort_keys=True),
    )


def settings_of(records: Sequence[Record]) -> dict[str, Any]:
    """The specification of each cell, by its place."""
    known = {record.place: record.settings for record in records if record.settings != "{}"}
    return {place: json.loads(settings) for place, settings in known.items()}


def dump(content: dict[str, Any], records: Sequence[Record]) -> str:
    """The text of a table's JSON file: the table first, then one line a record."""
    head = json.dumps(content, indent=1, allow_nan=False).removesuffix("\n}")
    lines = [json.dumps(record.as_dict(), allow_nan=False) for record in records]
    runs = ",\n  ".join(lines)
    return f'{head},\n "{RUNS}": [\n  {runs}\n ]\n}}\n'
