"""A table as text, Markdown, LaTeX or CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence

from graphkeel_paper.tables.cells import Cell
from graphkeel_paper.tables.layout import PUBLISHED_LINE, Layout, Section
from graphkeel_paper.tables.plan import Plan

FORMATS = {"text": "txt", "md": "md", "latex": "tex", "csv": "csv"}


def render(
    plan: Plan, layout: Layout, cells: Sequence[Cell], remarks: Sequence[str], style: str
) -> str:
    """The table as a text."""
    if style == "csv":
        return _csv(layout, cells)
    write = {"text": _text, "md": _markdown, "latex": _latex}[style]
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


_TEX = {
    "\\": r"\textbackslash{}",
    "&": r"\&",
    "%": r"\%",
    "#": r"\#",
    "_": r"\_",
    "±": r"$\pm$",
    "–": "--",
    "·": r"\quad",
    "→": r"$\to$",
}


def _tex(text: str) -> str:
    return "".join(_TEX.get(letter, letter) for letter in text)


def _latex(
    title: str, sections: Sequence[Section], remarks: Sequence[str], legend: Sequence[str]
) -> str:
    """The sections without their details, for `booktabs`; published numbers in the line below
    ours."""
    lines = [f"% {title}"]
    for section in sections:
        if not section.detailed:
            lines += [f"% {section.heading}"] if section.heading else []
            lines += _tabular(section)
    return "\n".join([*lines, *(f"% {remark}" for remark in (*remarks, *legend))]) + "\n"


def _tabular(section: Section) -> list[str]:
    (_, *columns), *body = section.lines
    lines = [
        r"\begin{tabular}{l" + "r" * len(columns) + "}",
        r"\toprule",
        " & ".join(["Method", *(_tex(name.capitalize()) for name in columns)]) + r" \\",
        r"\midrule",
    ]
    for line in body:
        texts = [_tex(text.strip()) for text in line]
        if line[0] == PUBLISHED_LINE:
            texts = [rf"\textit{{{text}}}" for text in texts]
        lines.append(" & ".join(texts) + r" \\")
    return [*lines, r"\bottomrule", r"\end{tabular}"]


def _csv(layout: Layout, cells: Sequence[Cell]) -> str:
    """One line a cell, with every field."""
    buffer = io.StringIO()
    writer = csv.DictWriter(buffer, fieldnames=layout.fields, lineterminator="\n")
    writer.writeheader()
    writer.writerows(cell.as_dict(layout.fields) for cell in cells)
    return buffer.getvalue()
