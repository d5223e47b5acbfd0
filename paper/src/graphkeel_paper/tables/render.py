"""A table as text, Markdown, LaTeX or CSV. First the paper's layout (methods by datasets), then
every detail."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Sequence
from itertools import groupby

from graphkeel.core.statistics import plus_minus
from graphkeel.store.statistics import TEST
from graphkeel_paper.tables.statistics import CORRECTION
from graphkeel_paper.tables.table import TableCell

FORMATS = {"text": "txt", "md": "md", "latex": "tex", "csv": "csv"}

TITLES = {
    1: "Table 1. Test accuracy in percent under biased training sets",
    3: "Table 3. Controllers: test accuracy in percent and ‖C(h*) − Y‖, one class replaced",
}
_RESIDUAL_HEAD = ["‖C(h*)−Y‖"]
_COMPARED_HEAD = ["over tuned", "auto has", "p auto"]


def render(
    table: int,
    cells: Sequence[TableCell],
    datasets: Sequence[str],
    remarks: Sequence[str],
    style: str,
) -> str:
    """The table as a text."""
    return _RENDERERS[style](table, cells, datasets, remarks)


# ---- one cell


def spread(mean: float | None, std: float | None) -> str:
    """Mean ± std as a text."""
    return "–" if mean is None else plus_minus(mean, std)


def ours(cell: TableCell) -> str:
    """Mean ± std; the number of seeds where fewer were run than asked for; nothing where the row
    does not have the column."""
    if is_blank(cell):
        return ""
    text = spread(cell.mean, cell.std)
    return f"{text} (n={cell.seeds})" if 0 < cell.seeds < cell.asked else text


def is_blank(cell: TableCell) -> bool:
    """Whether the row does not have the column at all."""
    return cell.mean is None and not cell.note


def _summary_cell(table: int, cell: TableCell) -> str:
    if table == 3 and cell.residual is not None:
        return f"{ours(cell)}, {cell.residual:.0e}"
    return ours(cell)


def _signed(value: float | None) -> str:
    return "" if value is None else f"{value:+.2f}"


def _p(value: float | None) -> str:
    if value is None:
        return ""
    return "<0.001" if value < 0.001 else f"{value:.3f}"


def _details(table: int, cells: Sequence[TableCell]) -> list[list[str]]:
    """One dataset's lines, their heads first; Table 3 also says how near each controller came to
    its target."""
    last = _RESIDUAL_HEAD if table == 3 else _COMPARED_HEAD
    head = ["method", "ours", "paper", "difference", "gain", "95 %", "p", "p Holm", *last, "note"]
    return [head, *(_detail(table, cell) for cell in cells if not is_blank(cell))]


def _detail(table: int, cell: TableCell) -> list[str]:
    paper = "" if cell.paper is None else spread(cell.paper, cell.paper_std)
    numbers = [
        ours(cell),
        paper,
        _signed(cell.difference),
        _signed(cell.gain),
        _interval(cell),
        _p(cell.p_value),
        _p(cell.p_holm),
    ]
    if table == 3:
        last = ["" if cell.residual is None else f"{cell.residual:.1e}"]
    else:
        last = [_signed(cell.gain_tuned), _signed(cell.behind_auto), _p(cell.p_auto)]
    return [cell.label, *numbers, *last, cell.note]


def _interval(cell: TableCell) -> str:
    if cell.gain_low is None or cell.gain_high is None:
        return ""
    return f"{cell.gain_low:+.2f} to {cell.gain_high:+.2f}"


def _rows(cells: Sequence[TableCell]) -> list[list[TableCell]]:
    return [list(row) for _, row in groupby(cells, key=lambda cell: cell.method)]


def _paper_row(row: Sequence[TableCell]) -> list[str] | None:
    """The published numbers of a row, where there are any and the row is the paper's own."""
    if row[0].group not in ("base", "paper", "protocol") or all(cell.paper is None for cell in row):
        return None
    return ["  (paper)", *(_published(cell) for cell in row)]


def _published(cell: TableCell) -> str:
    return "" if is_blank(cell) else spread(cell.paper, cell.paper_std)


def _summary(table: int, cells: Sequence[TableCell]) -> list[list[str]]:
    lines = []
    for row in _rows(cells):
        lines.append([row[0].label, *(_summary_cell(table, cell) for cell in row)])
        published = _paper_row(row)
        if published:
            lines.append(published)
    return lines


def legend() -> list[str]:
    """What the columns mean."""
    return [
        "ours: mean ± sample standard deviation over seeds; paper: as published; difference: ours "
        "minus paper;",
        "gain: over the untouched SGC (protocol rows: their own) on the same seeds, with Student's "
        "95 % interval;",
        f"p: of that gain ({TEST}); p Holm: corrected ({CORRECTION});",
        "over tuned: gain over the SGC tuned on validation; auto has: what auto has more, on the "
        "same seeds, and p auto: of that, corrected.",
    ]


# ---- formats


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
    table: int, cells: Sequence[TableCell], datasets: Sequence[str], remarks: Sequence[str]
) -> str:
    """Notes are long and often the same: they are numbered and printed once, below."""
    numbers: dict[str, int] = {}
    blocks = [
        TITLES[table],
        "",
        *aligned([["", *datasets], *_summary(table, cells)], left=[0]),
        "",
    ]
    for dataset in datasets:
        head, *rows = _details(table, [cell for cell in cells if cell.dataset == dataset])
        numbered = [[*row[:-1], _marked(row[-1], numbers)] for row in rows]
        blocks += [dataset, *aligned([head, *numbered], left=[0, len(head) - 1]), ""]
    notes = [f"[{number}] {note}" for note, number in numbers.items()]
    parts = [part for part in (blocks, notes, remarks, legend()) if part]
    return "\n\n".join("\n".join(part).rstrip() for part in parts) + "\n"


def _marked(note: str, numbers: dict[str, int]) -> str:
    return f"[{numbers.setdefault(note, len(numbers) + 1)}]" if note else ""


def markdown_lines(head: Sequence[str], body: Sequence[Sequence[str]], right: range) -> list[str]:
    """A Markdown table."""
    rule = ["---:" if i in right else "---" for i in range(len(head))]
    escaped = [[text.replace("|", "∣").strip() for text in line] for line in (head, rule, *body)]
    return [f"| {' | '.join(line)} |" for line in escaped]


def _markdown(
    table: int, cells: Sequence[TableCell], datasets: Sequence[str], remarks: Sequence[str]
) -> str:
    blocks = [f"### {TITLES[table]}", ""]
    blocks += [
        *markdown_lines(["", *datasets], _summary(table, cells), range(1, len(datasets) + 1)),
        "",
    ]
    for dataset in datasets:
        head, *rows = _details(table, [cell for cell in cells if cell.dataset == dataset])
        blocks += [f"#### {dataset}", "", *markdown_lines(head, rows, range(1, len(head) - 1)), ""]
    blocks += [f"- {remark}" for remark in remarks] + ([""] if remarks else [])
    return "\n".join([*blocks, *legend()]) + "\n"


_TEX = {
    "\\": r"\textbackslash{}",
    "&": r"\&",
    "%": r"\%",
    "#": r"\#",
    "_": r"\_",
    "±": r"$\pm$",
    "–": "--",
    "·": r"\quad",
}


def _tex(text: str) -> str:
    return "".join(_TEX.get(letter, letter) for letter in text)


def _latex(
    table: int, cells: Sequence[TableCell], datasets: Sequence[str], remarks: Sequence[str]
) -> str:
    """The paper's layout, for `booktabs`; published numbers in the line below ours."""
    lines = [
        r"\begin{tabular}{l" + "r" * len(datasets) + "}",
        r"\toprule",
        " & ".join(["Method", *(_tex(name.capitalize()) for name in datasets)]) + r" \\",
        r"\midrule",
    ]
    for line in _summary(table, cells):
        texts = [_tex(text.strip()) for text in line]
        if line[0].strip() == "(paper)":
            texts = [rf"\textit{{{text}}}" for text in texts]
        lines.append(" & ".join(texts) + r" \\")
    note = [f"% {remark}" for remark in (*remarks, *legend())]
    return "\n".join([f"% {TITLES[table]}", *lines, r"\bottomrule", r"\end{tabular}", *note]) + "\n"


def _csv(
    _table: int, cells: Sequence[TableCell], _datasets: Sequence[str], _remarks: Sequence[str]
) -> str:
    """One line a cell, with every field."""
    buffer = io.StringIO()
    fields = list(TableCell.__dataclass_fields__)
    writer = csv.DictWriter(buffer, fieldnames=fields, lineterminator="\n")
    writer.writeheader()
    writer.writerows(cell.as_dict() for cell in cells)
    return buffer.getvalue()


_RENDERERS: dict[str, Callable[[int, Sequence[TableCell], Sequence[str], Sequence[str]], str]] = {
    "text": _text,
    "md": _markdown,
    "latex": _latex,
    "csv": _csv,
}
