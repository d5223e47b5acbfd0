"""A table as text, Markdown, LaTeX or CSV. First the paper's layout (methods by datasets), then
every detail."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Sequence
from itertools import groupby

from graphkeel.paper.tables.statistics import TEST
from graphkeel.paper.tables.tables import Place

FORMATS = {"text": "txt", "md": "md", "latex": "tex", "csv": "csv"}

TITLES = {
    1: "Table 1. Test accuracy in percent under biased training sets",
    3: "Table 3. Controllers: test accuracy in percent and ‖C(h*) − Y‖, one class replaced",
}
_RESIDUAL = "‖C(h*)−Y‖"


def render(
    table: int, places: Sequence[Place], datasets: Sequence[str], remarks: Sequence[str], style: str
) -> str:
    """The table in one of `FORMATS`."""
    return _RENDERERS[style](table, places, datasets, remarks)


# ---- cells


def spread(mean: float | None, std: float | None) -> str:
    if mean is None:
        return "–"
    return f"{mean:.2f}" if std is None else f"{mean:.2f} ± {std:.2f}"


def ours(place: Place) -> str:
    """Mean ± std; the number of seeds where fewer were run than asked for."""
    text = spread(place.mean, place.std)
    return f"{text} (n={place.seeds})" if 0 < place.seeds < place.asked else text


def _summary_cell(table: int, place: Place) -> str:
    if table == 3 and place.residual is not None:
        return f"{ours(place)}, {place.residual:.0e}"
    return ours(place)


def _signed(value: float | None) -> str:
    return "" if value is None else f"{value:+.2f}"


def _p(value: float | None) -> str:
    return "" if value is None else "<0.001" if value < 0.001 else f"{value:.3f}"


def _details(table: int, places: Sequence[Place]) -> list[list[str]]:
    """One dataset's lines, their heads first; Table 3 also says how near each controller came to
    its target."""
    head = [
        "method",
        "ours",
        "paper",
        "difference",
        "gain",
        "p",
        *([_RESIDUAL] if table == 3 else []),
        "note",
    ]
    return [head, *(_detail(table, place) for place in places)]


def _detail(table: int, place: Place) -> list[str]:
    paper = "" if place.paper is None else spread(place.paper, place.paper_std)
    numbers = [
        ours(place),
        paper,
        _signed(place.difference),
        _signed(place.gain),
        _p(place.p_value),
    ]
    residual = "" if place.residual is None else f"{place.residual:.1e}"
    return [place.label, *numbers, *([residual] if table == 3 else []), place.note]


def _rows(places: Sequence[Place]) -> list[list[Place]]:
    return [list(row) for _, row in groupby(places, key=lambda place: place.method)]


def _paper_row(row: Sequence[Place]) -> list[str] | None:
    """The published numbers of a row, where there are any and the row is the paper's own."""
    if row[0].group not in ("base", "paper") or all(place.paper is None for place in row):
        return None
    return ["  (paper)", *(spread(place.paper, place.paper_std) for place in row)]


def _summary(table: int, places: Sequence[Place]) -> list[list[str]]:
    lines = []
    for row in _rows(places):
        lines.append([row[0].label, *(_summary_cell(table, place) for place in row)])
        published = _paper_row(row)
        lines += [published] if published else []
    return lines


def legend() -> list[str]:
    return [
        "ours: mean ± sample standard deviation over seeds; paper: as published; difference: ours minus paper;",
        f"gain: over the untouched SGC on the same seeds; p: of that gain ({TEST}).",
    ]


# ---- formats


def _aligned(lines: Sequence[Sequence[str]], *, left: Sequence[int]) -> list[str]:
    widths = [max(len(line[i]) for line in lines) for i in range(len(lines[0]))]
    return [
        "  ".join(
            text.ljust(width) if i in left else text.rjust(width)
            for i, (text, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    ]


def _text(
    table: int, places: Sequence[Place], datasets: Sequence[str], remarks: Sequence[str]
) -> str:
    """Notes are long and often the same: they are numbered and told once, below."""
    numbers: dict[str, int] = {}
    blocks = [
        TITLES[table],
        "",
        *_aligned([["", *datasets], *_summary(table, places)], left=[0]),
        "",
    ]
    for dataset in datasets:
        head, *rows = _details(table, [place for place in places if place.dataset == dataset])
        numbered = [[*row[:-1], _marked(row[-1], numbers)] for row in rows]
        blocks += [dataset, *_aligned([head, *numbered], left=[0, len(head) - 1]), ""]
    notes = [f"[{number}] {note}" for note, number in numbers.items()]
    return (
        "\n\n".join("\n".join(part).rstrip() for part in (blocks, notes, remarks, legend()) if part)
        + "\n"
    )


def _marked(note: str, numbers: dict[str, int]) -> str:
    return f"[{numbers.setdefault(note, len(numbers) + 1)}]" if note else ""


def _markdown(
    table: int, places: Sequence[Place], datasets: Sequence[str], remarks: Sequence[str]
) -> str:
    def lines(head: Sequence[str], body: Sequence[Sequence[str]], right: range) -> list[str]:
        rule = ["---:" if i in right else "---" for i in range(len(head))]
        return [
            f"| {' | '.join(cell.replace('|', '∣').strip() for cell in line)} |"
            for line in (head, rule, *body)
        ]

    blocks = [f"### {TITLES[table]}", ""]
    blocks += [*lines(["", *datasets], _summary(table, places), range(1, len(datasets) + 1)), ""]
    for dataset in datasets:
        head, *rows = _details(table, [place for place in places if place.dataset == dataset])
        blocks += [f"#### {dataset}", "", *lines(head, rows, range(1, len(head) - 1)), ""]
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
    table: int, places: Sequence[Place], datasets: Sequence[str], remarks: Sequence[str]
) -> str:
    """The paper's layout, for `booktabs`; published numbers in the line below ours."""
    lines = [
        r"\begin{tabular}{l" + "r" * len(datasets) + "}",
        r"\toprule",
        " & ".join(["Method", *(_tex(name.capitalize()) for name in datasets)]) + r" \\",
        r"\midrule",
    ]
    for line in _summary(table, places):
        cells = [_tex(cell.strip()) for cell in line]
        published = line[0].strip() == "(paper)"
        lines.append(
            " & ".join(rf"\textit{{{cell}}}" if published else cell for cell in cells) + r" \\"
        )
    note = [f"% {remark}" for remark in (*remarks, *legend())]
    return "\n".join([f"% {TITLES[table]}", *lines, r"\bottomrule", r"\end{tabular}", *note]) + "\n"


def _csv(
    table: int, places: Sequence[Place], datasets: Sequence[str], remarks: Sequence[str]
) -> str:
    """One line a place, with every field."""
    buffer = io.StringIO()
    fields = list(Place.__dataclass_fields__)
    writer = csv.DictWriter(buffer, fieldnames=fields, lineterminator="\n")
    writer.writeheader()
    writer.writerows(place.as_dict() for place in places)
    return buffer.getvalue()


_RENDERERS: dict[str, Callable[[int, Sequence[Place], Sequence[str], Sequence[str]], str]] = {
    "text": _text,
    "md": _markdown,
    "latex": _latex,
    "csv": _csv,
}
