"""A table that compares rows on the same frozen model, labels and nodes: blocks × columns × rows,
the worst seed beside each mean."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from graphkeel.core.errors import ConfigError
from graphkeel.core.files import write_text
from graphkeel.paper.tables.job import Job, Measurement
from graphkeel.paper.tables.provenance import provenance
from graphkeel.paper.tables.render import aligned, markdown_lines
from graphkeel.paper.tables.statistics import TEST, paired_p, summarise
from graphkeel.paper.tables.store import Store

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
        group: `base`, `ours`, `frozen` (rivals that leave the weights alone) or `trained`.
        method: of the specification.
        keep: what of the source is used, where there is one.
    """

    name: str
    label: str
    group: str
    method: str
    keep: str = "model"


BASE = Row("none", "untouched", "base", "none")


@dataclass(frozen=True)
class Cell:
    """One row's number in one column of one block.

    Attributes:
        row, label, group: of the row.
        block, column: where it stands.
        seeds: how many the means are over.
        mean, std: accuracy in percent.
        gain, worst: over the untouched model on the same seeds: mean, and the worst seed's.
        balanced, balanced_gain, balanced_worst: the same for accuracy averaged over classes.
        refused: seeds in which the model was left alone.
        p_value: of the gain.
        seconds: mean time.
        note: failures.
    """

    row: str
    label: str
    group: str
    block: str
    column: str
    seeds: int = 0
    mean: float | None = None
    std: float | None = None
    gain: float | None = None
    worst: float | None = None
    balanced: float | None = None
    balanced_gain: float | None = None
    balanced_worst: float | None = None
    refused: int = 0
    p_value: float | None = None
    seconds: float | None = None
    note: str = "not run"

    def text(self) -> str:
        """Mean, gain and worst seed, for print."""
        if self.mean is None or self.gain is None or self.worst is None:
            return "–"
        if self.group == BASE.group:
            return f"{self.mean:.2f}"
        return f"{self.mean:.2f} ({self.gain:+.2f}, {self.worst:+.2f})"


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
        name: of its files.
        title: above it.
        rows, blocks, columns: in their order.
        seeds: of every row.
        placed: its jobs.
        sentences: says in words what the filled table shows.
    """

    name: str
    title: str
    rows: list[Row]
    blocks: list[str]
    columns: list[str]
    seeds: list[int]
    placed: list[PlacedJob]
    sentences: Callable[[Filled], list[str]]

    @property
    def jobs(self) -> list[Job]:
        """The jobs in the order in which they are best computed."""
        return [one.job for one in self.placed]

    def filled(self, store: Store, *, any_code: bool = False) -> Filled:
        """The table with what is measured of it.

        Args:
            store: the measurements.
            any_code: also take those of other code.
        """
        found: dict[tuple[str, str, str], list[Measurement]] = {}
        for one in self.placed:
            measurement = store.find(one.job, any_code=any_code)
            if measurement is not None:
                key = (one.job.row, one.block, one.column)
                found.setdefault(key, []).append(measurement)
        cells = []
        for row in self.rows:
            for block in self.blocks:
                for column in self.columns:
                    measured = found.get((row.name, block, column), [])
                    cells.append(cell_of(row, block, column, measured))
        return Filled(self, cells)


@dataclass(frozen=True)
class Filled:
    """A table with its numbers."""

    plan: Plan
    cells: list[Cell]

    def at(self, row: str, block: str) -> dict[str, Cell]:
        """A row's cells in a block, by column.

        Args:
            row: its name.
            block: the block.
        """
        return {c.column: c for c in self.cells if c.row == row and c.block == block}

    def is_above(self, mine: Cell, groups: Iterable[str]) -> bool:
        """Whether a cell's mean is above those of all rows of these groups in its column.

        Args:
            mine: the cell.
            groups: of the other rows.
        """
        wanted = set(groups)
        others = [
            cell.mean
            for cell in self.cells
            if (cell.block, cell.column) == (mine.block, mine.column) and cell.group in wanted
        ]
        known = [mean for mean in others if mean is not None]
        return mine.mean is not None and all(mine.mean > mean for mean in known)

    def render(self, style: str) -> str:
        """The table as a text.

        Args:
            style: one of `STYLES`.
        """
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
        said = self.plan.sentences(self)
        lines += [*(said if text else [f"- {sentence}" for sentence in said]), "", *LEGEND]
        return "\n".join(lines) + "\n"

    def _line(self, row: Row, block: str) -> list[str]:
        cells = self.at(row.name, block)
        return [row.label, *(cells[column].text() for column in self.plan.columns)]

    def payload(self) -> dict[str, Any]:
        """The stable JSON object of `keel table --json`."""
        return {
            "command": "table",
            "table": self.plan.name,
            "rows": [_as_table_row(cell) for cell in self.cells],
            "verdicts": self.plan.sentences(self),
            "seeds": self.plan.seeds,
            "test": TEST,
            "provenance": provenance(),
        }

    def write(self, out: Path) -> None:
        """The table as text, Markdown, CSV and JSON.

        Args:
            out: the folder.
        """
        for style, suffix in STYLES.items():
            write_text(out / f"table-{self.plan.name}.{suffix}", self.render(style))
        content = json.dumps(self.payload(), indent=1, allow_nan=False)
        write_text(out / f"table-{self.plan.name}.json", content + "\n")


def pick_rows(rows: Sequence[Row], only: list[str] | None) -> list[Row]:
    """The rows asked for, the untouched model always among them.

    Args:
        rows: of the table.
        only: their names; all of them when None.
    """
    names = [row.name for row in rows]
    unknown = sorted(set(only or ()) - set(names))
    if unknown:
        raise ConfigError(f"the table has the rows {', '.join(names)}", got=", ".join(unknown))
    return [row for row in rows if only is None or row.name in only or row is BASE]


def cell_of(row: Row, block: str, column: str, found: Sequence[Measurement]) -> Cell:
    """A cell from its measurements.

    Args:
        row: of the table.
        block, column: where it stands.
        found: one a seed.
    """
    place = (row.name, row.label, row.group, block, column)
    failures = sorted({one.message or "" for one in found if not one.done})
    results = [one.result for one in found if one.done]
    if not results:
        return Cell(*place, note="; ".join(failures) or "not run")
    accuracy = summarise([result["accuracy"] for result in results])
    gains = [result["accuracy"] - result["base"] for result in results]
    return Cell(
        *place,
        **_balanced(results),
        seeds=accuracy.n,
        mean=accuracy.mean,
        std=accuracy.std,
        gain=summarise(gains).mean,
        worst=min(gains),
        refused=sum(bool(result.get("kept")) for result in results),
        p_value=paired_p(gains, [0.0] * len(gains)),
        seconds=summarise([one.seconds for one in found]).mean,
        note="; ".join(failures),
    )


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
        "asked": cell.seeds,
    }


def _csv(cells: Sequence[Cell]) -> str:
    buffer = io.StringIO()
    names = [field.name for field in fields(Cell)]
    writer = csv.DictWriter(buffer, fieldnames=names, lineterminator="\n")
    writer.writeheader()
    writer.writerows(asdict(cell) for cell in cells)
    return buffer.getvalue()
