"""How a table is laid out, and written as text or Markdown."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby

from graphkeel.core.statistics import plus_minus
from graphkeel.store.statistics import TEST
from graphkeel_paper.tables.cells import CORRECTION, Cell
from graphkeel_paper.tables.plan import BASE, Plan

PUBLISHED_LINE = "  (paper)"  # begins the line of published figures


@dataclass(frozen=True)
class Section:
    """A part of a table; in a detailed one the last column holds notes."""

    heading: str
    lines: list[list[str]]  # the heads of the columns first
    detailed: bool = False


@dataclass(frozen=True)
class Layout:
    """The figures, parts and legend of a kind of table."""

    figures: str  # names of a cell's figures in JSON, in their order
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
    "balanced_gain balanced_worst auc auc_gain auc_worst refused p_value p_holm seconds note "
    "method dataset paper",
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


# ---- A table as text or Markdown.


FORMATS = {"text": "txt", "md": "md"}


def render(
    plan: Plan, layout: Layout, cells: Sequence[Cell], remarks: Sequence[str], style: str
) -> str:
    """The table as a text."""
    write = _text if style == "text" else _markdown
    return write(plan.title, layout.sections(plan, cells), remarks, layout.legend)


def aligned(lines: Sequence[Sequence[str]], *, left: Sequence[int]) -> list[str]:
    """Lines whose columns stand below each other."""
    widths = [max(len(line[i]) for line in lines) for i in range(len(lines[0]))]
    texts = []
    for line in lines:
        padded = [
            text.ljust(width) if i in left else text.rjust(width)
            for i, (text, width) in enumerate(zip(line, widths, strict=True))
        ]
        texts.append("  ".join(padded).rstrip())
    return texts


def _text(
    title: str, sections: Sequence[Section], remarks: Sequence[str], legend: Sequence[str]
) -> str:
    """Notes are long and often the same: they are numbered and printed once, below."""
    numbers: dict[str, int] = {}
    parts: list[Sequence[str]] = [[title]]
    for section in sections:
        if not section.detailed:
            parts += [[section.heading] if section.heading else []]
            parts += [aligned(section.lines, left=[0])]
            continue
        head, *rows = section.lines
        numbered = [[*row[:-1], _marked(row[-1], numbers)] for row in rows]
        parts += [[section.heading, *aligned([head, *numbered], left=[0, len(head) - 1])]]
    notes = [f"[{number}] {note}" for note, number in numbers.items()]
    parts += [notes, remarks, legend]
    return "\n\n".join("\n".join(part) for part in parts if part) + "\n"


def _marked(note: str, numbers: dict[str, int]) -> str:
    return f"[{numbers.setdefault(note, len(numbers) + 1)}]" if note else ""


def _markdown(
    title: str, sections: Sequence[Section], remarks: Sequence[str], legend: Sequence[str]
) -> str:
    parts: list[Sequence[str]] = [[f"### {title}"]]
    for section in sections:
        parts += [[f"#### {section.heading}"] if section.heading else []]
        parts += [_markdown_lines(section)]
    parts += [[f"- {remark}" for remark in remarks], legend]
    return "\n\n".join("\n".join(part) for part in parts if part) + "\n"


def _markdown_lines(section: Section) -> list[str]:
    head, *body = section.lines
    numbers = range(1, len(head) - section.detailed)
    rule = ["---:" if i in numbers else "---" for i in range(len(head))]
    escaped = [[text.replace("|", "∣").strip() for text in line] for line in (head, rule, *body)]
    return [f"| {' | '.join(line)} |" for line in escaped]
