"""A table that compares rows on the same frozen model, labels and nodes: blocks × columns × rows,
the worst seed beside each mean."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

from graphkeel.core.errors import ConfigError
from graphkeel.core.files import write_text
from graphkeel.store.job import Job, Measurement
from graphkeel.store.provenance import provenance
from graphkeel.store.statistics import TEST, paired_p, summarise
from graphkeel.store.store import Store
from graphkeel_paper.results.records import Record, dump, record_of, settings_of
from graphkeel_paper.tables.render import aligned, markdown_lines
from graphkeel_paper.tables.statistics import CORRECTION, gain_interval, holm_by
from graphkeel_paper.tables.table import Limits, cost_remark, over_budget, source_remark

LEGEND = (
    "Each number: mean accuracy in percent (mean gain over the untouched model, worst seed's).",
    "The frozen model, the labels and the scored nodes are the same in all rows of a column.",
)
STYLES = {"text": "txt", "md": "md", "csv": "csv"}


@dataclass(frozen=True)
class Row:
    """One row.

    Attributes:
        name: what --only calls it.
        label: what the table calls it.
        group: `base`, `ours`, `control` (what of ours does not need the trained model), `frozen`
            (rivals that leave the weights alone) or `trained`.
        method: of the specification.
        keep: what of the source is used, where there is one.
        model: the frozen model, where it is not the table's.
        features: of that model, where they are not the table's.
    """

    name: str
    label: str
    group: str
    method: str
    keep: str = "model"
    model: str | None = None
    features: str | None = None


BASE = Row("none", "untouched", "base", "none")
CONTROLS = (
    Row("no-model", "auto without the model's evidence", "control", "no-model"),
    Row("random-weights", "auto on random weights", "control", "random-weights"),
)


@dataclass(frozen=True)
class Cell:
    """One row's number in one column of one block.

    Attributes:
        row, label, group: of the row.
        block, column: where it stands.
        asked, seeds: how many seeds were asked for, and how many the means are over.
        mean, std: accuracy in percent.
        gain, worst: over the untouched model on the same seeds: mean, and the worst seed's.
        gain_low, gain_high: Student's 95 % interval of the mean gain.
        balanced, balanced_gain, balanced_worst: the same for accuracy averaged over classes.
        refused: seeds in which the model was left alone.
        p_value, p_holm: of the gain, alone and corrected over the rows of its group.
        seconds: mean time.
        note: failures, or why the cell is empty.
    """

    row: str
    label: str
    group: str
    block: str
    column: str
    asked: int = 0
    seeds: int = 0
    mean: float | None = None
    std: float | None = None
    gain: float | None = None
    worst: float | None = None
    gain_low: float | None = None
    gain_high: float | None = None
    balanced: float | None = None
    balanced_gain: float | None = None
    balanced_worst: float | None = None
    refused: int = 0
    p_value: float | None = None
    p_holm: float | None = None
    seconds: float | None = None
    note: str = "not run"

    def text(self) -> str:
        """Mean, gain and worst seed, for print."""
        if self.mean is None or self.gain is None or self.worst is None:
            return f"– ({self.note})" if self.note.startswith("over ") else "–"
        few = f", n={self.seeds}" if self.seeds < self.asked else ""
        if self.group == BASE.group:
            return f"{self.mean:.2f}{few}"
        return f"{self.mean:.2f} ({self.gain:+.2f}, {self.worst:+.2f}{few})"


@dataclass(frozen=True)
class PlacedJob:
    """A job, and the cell that it belongs to."""

    job: Job
    block: str
    column: str


@dataclass(frozen=True)
class Plan:
    """A table that is to be measured.

    Attributes:
        name: which table it is.
        title: above it.
        rows, blocks, columns: in their order.
        seeds: of every row.
        placed: its jobs; none of a table that comes from a file.
        sentences: says in words what the filled table shows.
        row_budget: processor seconds a job may take.
        variant: which part of that table it is, where a part has files of its own.
    """

    name: str
    title: str
    rows: list[Row]
    blocks: list[str]
    columns: list[str]
    seeds: list[int]
    placed: list[PlacedJob]
    sentences: Callable[[Filled], list[str]]
    row_budget: float | None = None
    variant: str | None = None

    @property
    def file(self) -> str:
        """The name of its files, without a suffix."""
        return f"table-{self.name}" if self.variant is None else f"table-{self.name}-{self.variant}"

    @property
    def jobs(self) -> list[Job]:
        """The jobs in the order in which they are best computed."""
        return [one.job for one in self.placed]

    def filled(self, store: Store, *, any_code: bool = False) -> Filled:
        """The table with what is measured of it."""
        records = []
        for one in self.placed:
            measurement = store.find(one.job, any_code=any_code)
            if measurement is not None:
                records.append(record_of(one.job, measurement, one.block, one.column))
        return self.with_records(records)

    def with_records(self, records: list[Record]) -> Filled:
        """The table with these measurements."""
        found: dict[tuple[str, str, str], dict[int, Measurement]] = {}
        for record in records:
            key = (record.row, record.block, record.column)
            found.setdefault(key, {})[record.seed] = record.measurement
        limits = Limits(len(self.seeds), self.row_budget)
        cells = []
        for row in self.rows:
            for block in self.blocks:
                for column in self.columns:
                    measured = found.get((row.name, block, column), {})
                    base = found.get((BASE.name, block, column), {})
                    cells.append(cell_of(row, block, column, measured, base, limits))
        return Filled(self, _corrected(cells), records)


@dataclass(frozen=True)
class Filled:
    """A table with its numbers."""

    plan: Plan
    cells: list[Cell]
    records: list[Record]

    def at(self, row: str, block: str) -> dict[str, Cell]:
        """A row's cells in a block, by column."""
        return {c.column: c for c in self.cells if c.row == row and c.block == block}

    def is_above(self, mine: Cell, groups: Iterable[str]) -> bool:
        """Whether a cell's mean is above those of all rows of these groups in its column."""
        wanted = set(groups)
        others = [
            cell.mean
            for cell in self.cells
            if (cell.block, cell.column) == (mine.block, mine.column) and cell.group in wanted
        ]
        known = [mean for mean in others if mean is not None]
        return mine.mean is not None and all(mine.mean > mean for mean in known)

    def render(self, style: str) -> str:
        """The table as a text."""
        if style not in STYLES:
            raise ConfigError(f"this table is rendered as {', '.join(STYLES)}", got=style)
        if style == "csv":
            return _csv(self.cells)
        text = style == "text"
        lines = [self.plan.title if text else f"### {self.plan.title}", ""]
        for block in self.plan.blocks:
            head = ["", *self.plan.columns]
            body = [self._line(row, block) for row in self.plan.rows]
            lines += [block if text else f"#### {block}", ""]
            if text:
                lines += aligned([head, *body], left=[0])
            else:
                lines += markdown_lines(head, body, range(1, len(head)))
            lines.append("")
        said = self._said()
        lines += [*(said if text else [f"- {sentence}" for sentence in said]), "", *LEGEND]
        return "\n".join(lines) + "\n"

    def _said(self) -> list[str]:
        said = self.plan.sentences(self)
        return [*said, *cost_remark(self.records), *source_remark(self.records)]

    def _line(self, row: Row, block: str) -> list[str]:
        cells = self.at(row.name, block)
        return [row.label, *(cells[column].text() for column in self.plan.columns)]

    def payload(self) -> dict[str, Any]:
        """The stable JSON object of `keel table --json`."""
        return {
            "command": "table",
            "table": self.plan.name,
            "variant": self.plan.variant,
            "rows": [_as_table_row(cell) for cell in self.cells],
            "verdicts": self._said(),
            "seeds": self.plan.seeds,
            "row_budget": self.plan.row_budget,
            "test": TEST,
            "correction": CORRECTION,
            "provenance": provenance(),
        }

    def write(self, out: Path) -> None:
        """The table as text, Markdown and CSV; as JSON with all measurements behind it."""
        for style, suffix in STYLES.items():
            write_text(out / f"{self.plan.file}.{suffix}", self.render(style))
        stored = {
            **self.payload(),
            "plan": {
                "title": self.plan.title,
                "rows": [asdict(row) for row in self.plan.rows],
                "blocks": self.plan.blocks,
                "columns": self.plan.columns,
            },
            "settings": settings_of(self.records),
        }
        write_text(out / f"{self.plan.file}.json", dump(stored, self.records))


def pick_rows(rows: Sequence[Row], only: list[str] | None) -> list[Row]:
    """The rows asked for, the untouched model always among them."""
    names = [row.name for row in rows]
    unknown = sorted(set(only or ()) - set(names))
    if unknown:
        raise ConfigError(f"the table has the rows {', '.join(names)}", got=", ".join(unknown))
    return [row for row in rows if only is None or row.name in only or row is BASE]


def cell_of(
    row: Row,
    block: str,
    column: str,
    found: Mapping[int, Measurement],
    base: Mapping[int, Measurement],
    limits: Limits,
) -> Cell:
    """A cell from its measurements."""
    place = (row.name, row.label, row.group, block, column, limits.asked)
    failures = sorted({one.message or "" for one in found.values() if not one.done})
    results = {seed: one.result for seed, one in found.items() if one.done}
    too_long = over_budget(dict(found), limits)
    if too_long or not results:
        return Cell(*place, note=too_long or "; ".join(failures) or "not run")
    untouched = {
        seed: base[seed].result["accuracy"] if seed in base and base[seed].done else one["base"]
        for seed, one in results.items()
    }
    accuracy = summarise([result["accuracy"] for result in results.values()])
    gains = [result["accuracy"] - untouched[seed] for seed, result in results.items()]
    nothing = [0.0] * len(gains)
    low, high = gain_interval(gains, nothing)
    return Cell(
        *place,
        **_balanced(list(results.values())),
        seeds=accuracy.n,
        mean=accuracy.mean,
        std=accuracy.std,
        gain=summarise(gains).mean,
        worst=min(gains),
        gain_low=low,
        gain_high=high,
        refused=sum(bool(result.get("kept")) for result in results.values()),
        p_value=None if row.group == BASE.group else paired_p(gains, nothing),
        seconds=summarise([one.seconds for one in found.values()]).mean,
        note="; ".join(failures),
    )


def _corrected(cells: Sequence[Cell]) -> list[Cell]:
    """The cells with Holm's correction: a family is the rows of one group in a column."""
    families = [(cell.block, cell.column, cell.group) for cell in cells]
    corrected = holm_by(families, [cell.p_value for cell in cells])
    return [replace(cell, p_holm=value) for cell, value in zip(cells, corrected, strict=True)]


def _balanced(results: Sequence[dict[str, Any]]) -> dict[str, Any]:
    if not all("balanced" in result for result in results):
        return {}
    gains = [result["balanced"] - result["balanced_base"] for result in results]
    return {
        "balanced": summarise([result["balanced"] for result in results]).mean,
        "balanced_gain": summarise(gains).mean,
        "balanced_worst": min(gains),
    }


def _as_table_row(cell: Cell) -> dict[str, Any]:
    """The cell with the names that every table's rows have."""
    return {
        **asdict(cell),
        "method": cell.row,
        "dataset": f"{cell.column}, {cell.block}",
        "paper": None,
    }


def _csv(cells: Sequence[Cell]) -> str:
    buffer = io.StringIO()
    names = [field.name for field in fields(Cell)]
    writer = csv.DictWriter(buffer, fieldnames=names, lineterminator="\n")
    writer.writeheader()
    writer.writerows(asdict(cell) for cell in cells)
    return buffer.getvalue()
