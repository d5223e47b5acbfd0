"""How a table is laid out: as in the paper with every detail below, or block by block with the
worst seed beside each mean."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby

from graphkeel.core.statistics import plus_minus
from graphkeel.store.statistics import TEST
from graphkeel_paper.tables.cells import Cell
from graphkeel_paper.tables.plan import BASE, Plan
from graphkeel_paper.tables.statistics import CORRECTION

PUBLISHED_LINE = "  (paper)"  # begins the line of published figures


@dataclass(frozen=True)
class Section:
    """A part of a table.

    Attributes:
        heading: above it; "" for none.
        lines: its texts, the heads of the columns first.
        detailed: whether the last column holds notes.
    """

    heading: str
    lines: list[list[str]]
    detailed: bool = False


@dataclass(frozen=True)
class Layout:
    """The figures, parts and legend of a kind of table.

    Attributes:
        figures: names of a cell's figures in JSON and CSV, in their order.
        sections: the parts of the printed table.
        legend: the meaning of the columns.
    """

    figures: str
    sections: Callable[[Plan, Sequence[Cell]], list[Section]]
    legend: tuple[str, ...]

    @property
    def fields(self) -> list[str]:
        """The names, one by one."""
        return self.figures.split()


# ---- block by block


def _blocks(plan: Plan, cells: Sequence[Cell]) -> list[Section]:
    sections = []
    for block in plan.blocks:
        rows = _rows([cell for cell in cells if cell.block == block])
        lines = [[row[0].label, *map(with_worst, row)] for row in rows]
        sections.append(Section(block, [["", *plan.columns], *lines]))
    return sections


def with_worst(cell: Cell) -> str:
    """Mean, gain and worst seed; the figure alone where it is quoted."""
    if cell.group == "published":
        return "–" if cell.paper is None else f"{cell.paper:.1f}"
    if cell.mean is None or cell.gain is None or cell.worst is None:
        return f"– ({cell.note})" if cell.note.startswith("over ") else "–"
    few = f", n={cell.seeds}" if cell.seeds < cell.asked else ""
    if cell.group == BASE:
        return f"{cell.mean:.2f}{few}"
    return f"{cell.mean:.2f} ({cell.gain:+.2f}, {cell.worst:+.2f}{few})"


COMPARISON = Layout(
    "row label group block column asked seeds mean std gain worst gain_low gain_high balanced "
    "balanced_gain balanced_worst refused p_value p_holm seconds note method dataset paper",
    _blocks,
    (
        "Each number: mean accuracy in percent (mean gain over the untouched model, worst seed's).",
        "The frozen model, the labels and the scored nodes are the same in all rows of a column.",
    ),
)


# ---- as in the paper


def _paper_sections(plan: Plan, cells: Sequence[Cell], *, controllers: bool) -> list[Section]:
    summary = [["", *plan.columns]]
    for row in _rows(cells):
        summary.append([row[0].label, *(_summary_cell(cell, controllers) for cell in row)])
        if row[0].group in (BASE, "paper", "protocol") and any(c.paper is not None for c in row):
            summary.append([PUBLISHED_LINE, *map(_published, row)])
    details = [
        Section(column, _details([c for c in cells if c.column == column], controllers), True)
        for column in plan.columns
    ]
    return [Section("", summary), *details]


def _summary_cell(cell: Cell, controllers: bool) -> str:
    if controllers and cell.residual is not None:
        return f"{_ours(cell)}, {cell.residual:.0e}"
    return _ours(cell)


def _details(cells: Sequence[Cell], controllers: bool) -> list[list[str]]:
    """One dataset's lines; controllers also say how near each came to its target."""
    last = ["‖C(h*)−Y‖"] if controllers else ["over tuned", "auto has", "p auto"]
    head = ["method", "ours", "paper", "difference", "gain", "95 %", "p", "p Holm", *last, "note"]
    return [head, *(_detail(cell, controllers) for cell in cells if not _is_blank(cell))]


def _detail(cell: Cell, controllers: bool) -> list[str]:
    last = [_signed(cell.gain_tuned), _signed(cell.behind_auto), _p(cell.p_auto)]
    if controllers:
        last = ["" if cell.residual is None else f"{cell.residual:.1e}"]
    return [
        cell.label,
        _ours(cell),
        "" if cell.paper is None else _spread(cell.paper, cell.paper_std),
        _signed(cell.difference),
        _signed(cell.gain),
        _interval(cell),
        _p(cell.p_value),
        _p(cell.p_holm),
        *last,
        cell.note,
    ]


def _rows(cells: Sequence[Cell]) -> list[list[Cell]]:
    return [list(row) for _, row in groupby(cells, key=lambda cell: cell.row)]


def _is_blank(cell: Cell) -> bool:
    """Whether the row does not have the column at all."""
    return cell.mean is None and not cell.note


def _spread(mean: float | None, std: float | None) -> str:
    return "–" if mean is None else plus_minus(mean, std)


def _ours(cell: Cell) -> str:
    """Mean ± std; the number of seeds where fewer were run than asked for; nothing where the row
    does not have the column."""
    if _is_blank(cell):
        return ""
    text = _spread(cell.mean, cell.std)
    return f"{text} (n={cell.seeds})" if 0 < cell.seeds < cell.asked else text


def _published(cell: Cell) -> str:
    return "" if _is_blank(cell) else _spread(cell.paper, cell.paper_std)


def _signed(value: float | None) -> str:
    return "" if value is None else f"{value:+.2f}"


def _p(value: float | None) -> str:
    if value is None:
        return ""
    return "<0.001" if value < 0.001 else f"{value:.3f}"


def _interval(cell: Cell) -> str:
    if cell.gain_low is None or cell.gain_high is None:
        return ""
    return f"{cell.gain_low:+.2f} to {cell.gain_high:+.2f}"


_PAPER_FIGURES = (
    "method label group dataset frozen asked seeds mean std paper paper_std difference gain "
    "gain_low gain_high p_value p_holm gain_tuned behind_auto p_auto residual seconds peak_mb "
    "note"
)
_PAPER_LEGEND = (
    "ours: mean ± sample standard deviation over seeds; paper: as published; difference: ours "
    "minus paper;",
    "gain: over the untouched SGC (protocol rows: their own) on the same seeds, with Student's "
    "95 % interval;",
    f"p: of that gain ({TEST}); p Holm: corrected ({CORRECTION});",
    "over tuned: gain over the SGC tuned on validation; auto has: what auto has more, on the "
    "same seeds, and p auto: of that, corrected.",
)


def _paper_layout(*, controllers: bool) -> Layout:
    def sections(plan: Plan, cells: Sequence[Cell]) -> list[Section]:
        return _paper_sections(plan, cells, controllers=controllers)

    return Layout(_PAPER_FIGURES, sections, _PAPER_LEGEND)


METHODS = _paper_layout(controllers=False)
CONTROLLERS = _paper_layout(controllers=True)
