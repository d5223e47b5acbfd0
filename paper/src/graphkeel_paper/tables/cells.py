"""The cells of a table from its measurements: means, gains, tests, and a note beside each.

Its JSON file keeps one record a seed, from which all of it can be computed again without data or
models."""

from __future__ import annotations

import json
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from graphkeel.core.errors import DataError
from graphkeel.runs.specs import split_number
from graphkeel.store.job import CPU_SECONDS, DONE, FAILED, Measurement
from graphkeel.store.statistics import gains, paired_p, summarise
from graphkeel.store.store import Store
from graphkeel_paper.tables.plan import BASE, PlacedJob, Plan, Row
from graphkeel_paper.tables.published import (
    Published,
    base_note,
    gain_note,
    protocol_note,
    reading_note,
)

UNKNOWN = "unknown"
RUNS = "runs"  # the records' name in the file
_ID_LENGTH = 16  # hex digits of a hash that the file keeps
_RESULT = (
    *("accuracy", "base", "balanced", "balanced_base", "auc", "auc_base"),
    *("kept", CPU_SECONDS),
)
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


# ---- The cells of a table from its measurements: means, gains, tests, and a note beside each.


OURS = "auto"
TUNED_BASE = "sgc-tuned"

_Seeds = dict[int, Measurement]
_Found = dict[tuple[str, str, str], _Seeds]  # by row, block and column
_Pairs = Sequence[tuple[float, float]]


@dataclass(frozen=True)
class Cell:
    """One row's number in one column of one block; `mean` is None where nothing is measured, and
    `note` then says why. Accuracies are in percent."""

    row: str
    label: str
    group: str
    block: str
    column: str
    frozen: bool
    asked: int  # seeds asked for
    seeds: int = 0  # that the mean is over
    mean: float | None = None
    std: float | None = None
    paper: float | None = None  # the published figure
    paper_std: float | None = None
    difference: float | None = None  # of our mean from the paper's
    gain: float | None = None  # over the row's base on the same seeds
    worst: float | None = None  # the worst seed's
    gain_low: float | None = None
    gain_high: float | None = None
    p_value: float | None = None  # of that gain, alone
    p_holm: float | None = None  # corrected over the rows of its group
    gain_tuned: float | None = None  # over the base that is tuned on validation
    behind_auto: float | None = None  # what `auto` has more on the same seeds
    p_auto: float | None = None  # its corrected test
    balanced: float | None = None  # accuracy averaged over classes
    balanced_gain: float | None = None
    balanced_worst: float | None = None
    auc: float | None = None  # area under the ROC curve of two classes
    auc_gain: float | None = None
    auc_worst: float | None = None
    refused: int = 0  # seeds in which the model was left alone
    residual: float | None = None  # ‖C(h*) − Y‖ of the worst seed, for controllers
    seconds: float | None = None  # mean of a job
    peak_mb: float | None = None
    note: str = ""

    @property
    def method(self) -> str:
        """The row, by the name that files give it."""
        return self.row

    @property
    def dataset(self) -> str:
        """The place, by the name that files give it."""
        return ", ".join(filter(None, (self.column, self.block)))

    def as_dict(self, names: Iterable[str]) -> dict[str, Any]:
        """The named figures."""
        return {name: getattr(self, name) for name in names}


def fill(plan: Plan, records: Iterable[Record]) -> list[Cell]:
    """The cells of a table, row by row."""
    found: _Found = {}
    for record in records:
        key = (record.row, record.block, record.column)
        found.setdefault(key, {})[record.seed] = record.measurement
    cells = [
        _cell(plan, row, block, column, found)
        for row in plan.rows
        for block in plan.blocks
        for column in plan.columns
    ]
    return _corrected(cells)


def _corrected(cells: Sequence[Cell]) -> list[Cell]:
    """The cells with Holm's correction: a family is the rows of one group in a column."""
    families = [(cell.block, cell.column, cell.group) for cell in cells]
    over_base = holm_by(families, [cell.p_value for cell in cells])
    below_auto = holm_by(families, [cell.p_auto for cell in cells])
    tests = zip(cells, over_base, below_auto, strict=True)
    return [replace(cell, p_holm=base, p_auto=auto) for cell, base, auto in tests]


def _cell(plan: Plan, row: Row, block: str, column: str, all_found: _Found) -> Cell:
    asked = len(plan.seeds)
    empty = Cell(row.name, row.label, row.group, block, column, row.frozen, asked)
    if not row.has(column):
        return empty
    published = _published(plan, row, column)
    if published:
        empty = replace(empty, paper=published.mean, paper_std=published.std)
    found = all_found.get((row.name, block, column), {})
    if found:
        seconds = float(np.mean([one.seconds for one in found.values()]))
        empty = replace(empty, seconds=seconds, peak_mb=max(one.peak_mb for one in found.values()))
    results = [one.result for one in found.values() if one.done]
    too_long = _over_budget(found, asked, plan.row_budget)
    if too_long or not results:
        return replace(empty, note=too_long or _failures(found) or "not run")
    summary = summarise([result["accuracy"] for result in results])
    measured = replace(empty, seeds=summary.n, mean=summary.mean, std=summary.std)
    others = {
        name: all_found.get((name, block, column), {})
        for name in (plan.table.base_of(row), TUNED_BASE, OURS)
    }
    fill_in = _beside_the_paper if plan.table.rows[0].paper else _with_its_worst
    return replace(measured, **fill_in(plan, measured, row, found, others))


def _published(plan: Plan, row: Row, column: str) -> Published | None:
    return (plan.table.published or {}).get(row.paper or "", {}).get(column)


def _over_budget(found: _Seeds, asked: int, row_budget: float | None) -> str:
    """Why a cell stays empty though a seed is measured: the others would take too long; else ""."""
    if row_budget is None or not 0 < len(found) < asked:
        return ""
    first = min(found)
    seconds = found[first].processor_seconds
    if seconds <= row_budget:
        return ""
    what = "stopped after" if found[first].stopped else "measured"
    return f"over {row_budget:.0f} s a seed: {what} {seconds:.0f} s on seed {first}"


def _failures(found: _Seeds) -> str:
    messages = [one.message or "" for one in found.values() if not one.done]
    return f"{len(messages)} failed: {'; '.join(sorted(set(messages)))}" if messages else ""


# ---- a table without published figures: the worst seed beside each mean


def _with_its_worst(
    plan: Plan, _: Cell, row: Row, found: _Seeds, others: dict[str, _Seeds]
) -> dict[str, Any]:
    """Gains are over the base row, or over the base that the run itself measured."""
    base = others[plan.table.base_of(row)]
    results = {seed: one.result for seed, one in found.items() if one.done}
    pairs = [
        (one["accuracy"], base[seed].result["accuracy"])
        if seed in base and base[seed].done
        else (one["accuracy"], one["base"])
        for seed, one in results.items()
    ]
    figures = _gain(pairs)
    if row.group == BASE:
        del figures["p_value"]
    return {
        **figures,
        **_beside("balanced", list(results.values())),
        **_beside("auc", list(results.values())),
        "refused": sum(bool(result.get("kept")) for result in results.values()),
        "note": _failures(found),
    }


def _gain(pairs: _Pairs) -> dict[str, Any]:
    if not pairs:
        return {}
    ours, theirs = zip(*pairs, strict=True)
    low, high = gain_interval(ours, theirs)
    return {
        "gain": _mean_gain(pairs),
        "worst": float(gains(ours, theirs).min()),
        "gain_low": low,
        "gain_high": high,
        "p_value": paired_p(ours, theirs),
    }


def _mean_gain(pairs: _Pairs) -> float:
    return float(gains(*zip(*pairs, strict=True)).mean())


def _beside(name: str, results: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Another measure: its mean, its mean gain and its worst seed's."""
    if not all(name in result for result in results):
        return {}
    differences = [result[name] - result[f"{name}_base"] for result in results]
    return {
        name: summarise([result[name] for result in results]).mean,
        f"{name}_gain": summarise(differences).mean,
        f"{name}_worst": min(differences),
    }


# ---- a table of the paper: the published figure beside each mean


def _beside_the_paper(
    plan: Plan, cell: Cell, row: Row, found: _Seeds, others: dict[str, _Seeds]
) -> dict[str, Any]:
    base = plan.table.base_of(row)
    pairs = _pairs(found, others[base])
    decisions = [one.result.get("decision", {}) for one in found.values() if one.done]
    residuals = [decision["residual"] for decision in decisions if "residual" in decision]
    figures: dict[str, Any] = _gain(pairs) if row.name != base else {}
    if row.group != "protocol":  # rows of another protocol are compared with neither
        tuned, auto = (_pairs(found, others[name]) for name in (TUNED_BASE, OURS))
        if tuned and row.name != TUNED_BASE:
            figures["gain_tuned"] = _mean_gain(tuned)
        if auto and row.name != OURS:
            figures["behind_auto"] = -_mean_gain(auto)
            figures["p_auto"] = paired_p(*zip(*auto, strict=True))
    published = _published(plan, row, cell.column)
    mean = float(cell.mean or 0.0)
    notes = [_failures(found), _note(plan, row, cell.column, mean, pairs)]
    return {
        **figures,
        "difference": mean - published.mean if published else None,
        "residual": max(residuals) if residuals else None,
        "note": "; ".join(filter(None, notes)),
    }


def _pairs(ours: _Seeds, theirs: _Seeds) -> _Pairs:
    """The accuracies of both on the seeds that both have."""
    seeds = [seed for seed, one in ours.items() if one.done and seed in theirs]
    both = [(ours[seed], theirs[seed]) for seed in seeds if theirs[seed].done]
    return [(one.result["accuracy"], other.result["accuracy"]) for one, other in both]


def _note(plan: Plan, row: Row, column: str, mean: float, pairs: _Pairs) -> str:
    figures = plan.table.published or {}
    first = plan.table.rows[0]
    base = figures[first.name].get(column)
    published = _published(plan, row, column)
    if base is None or row.paper is None:
        return ""
    if published is None:
        return "out of memory in the paper" if row.paper == "kdga" else "no number in the paper"
    if row.name == first.name:
        return base_note(column, mean - published.mean)
    if row.name == plan.table.base_of(row):
        return protocol_note(mean - published.mean)
    if not pairs:
        return ""
    error = gain_error(*zip(*pairs, strict=True))
    numbers = (_mean_gain(pairs), published.mean - base.mean, error)
    if row.group == "reading":
        return reading_note(row.name, *numbers)
    return gain_note(row.paper, *numbers)


# ---- Intervals and corrections beside the paired test; every number of a table comes from here.


CORRECTION = "Holm, over the rows of the same group in a column"


def gain_error(values: Sequence[float], base: Sequence[float]) -> float:
    """Standard error of the mean paired difference; 0 for a single pair."""
    summary = summarise(gains(values, base).tolist())
    return 0.0 if summary.std is None else summary.std / float(np.sqrt(summary.n))


def gain_interval(
    values: Sequence[float], base: Sequence[float], confidence: float = 0.95
) -> tuple[float, float] | tuple[None, None]:
    """Student's interval of the mean paired difference at a confidence; None for a single pair."""
    from scipy.stats import t

    differences = gains(values, base)
    if len(differences) < 2:
        return None, None
    quantile = float(t.ppf(0.5 + confidence / 2, len(differences) - 1))
    margin = quantile * gain_error(values, base)
    mean = float(differences.mean())
    return mean - margin, mean + margin


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm's step-down correction: what each p-value is worth among all of them, in their order.

    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]"""
    corrected = [1.0] * len(p_values)
    largest = 0.0
    for rank, i in enumerate(np.argsort(p_values, kind="stable")):
        largest = max(largest, min(1.0, (len(p_values) - rank) * p_values[i]))
        corrected[i] = largest
    return corrected


def holm_by(families: Sequence[Hashable], p_values: Sequence[float | None]) -> list[float | None]:
    """Holm's correction within each family; where there is no test there is no value."""
    corrected: list[float | None] = [None] * len(p_values)
    members: dict[Hashable, list[int]] = {}
    for i, family in enumerate(families):
        if p_values[i] is not None:
            members.setdefault(family, []).append(i)
    for places in members.values():
        known = [value for value in (p_values[i] for i in places) if value is not None]
        for i, value in zip(places, holm(known), strict=True):
            corrected[i] = value
    return corrected
