"""The picture of the packages, drawn from the whitelist that tests/test_architecture.py enforces.

`{architecture}` becomes an SVG: a box a package, an arrow from a package to each one that it may
import, those left out that follow from others. Packages stand above all that they may import.
"""

from __future__ import annotations

import ast
from itertools import pairwise
from pathlib import Path
from typing import Any

from docutils import nodes
from docutils.parsers.rst import Directive
from sphinx.application import Sphinx

WHITELIST = Path(__file__).parents[2] / "tests" / "test_architecture.py"
WIDTH, HEIGHT, GAP, RISE, MARGIN = 104, 32, 24, 40, 12
TRUSTED = "checker"

Table = dict[str, set[str]]


def whitelist(path: Path = WHITELIST) -> Table:
    """MAY_IMPORT of the architecture's test, read without running it."""
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.AnnAssign) and getattr(node.target, "id", "") == "MAY_IMPORT":
            pairs = zip(node.value.keys, node.value.values, strict=True)  # type: ignore[union-attr]
            return {ast.literal_eval(key): _names(value) for key, value in pairs}
    raise ValueError(f"{path} has no table MAY_IMPORT")


def _names(value: ast.expr) -> set[str]:
    return set() if isinstance(value, ast.Call) else set(ast.literal_eval(value))


def levels(table: Table) -> dict[str, int]:
    """How many packages at the most lie below each."""
    found: dict[str, int] = {}
    while len(found) < len(table):
        for package, below in table.items():
            if below <= set(found):
                found[package] = 1 + max((found[name] for name in below), default=-1)
    return found


def reduced(table: Table) -> list[tuple[str, str]]:
    """The arrows that do not follow from others."""
    return [
        (package, name)
        for package, below in table.items()
        for name in sorted(below)
        if not any(name in table[other] for other in below)
    ]


def layered(table: Table) -> tuple[list[list[str]], list[list[str]]]:
    """Rows from the lowest to the highest, and each arrow as the places it passes: an arrow over
    several rows has a place of its own in each, so that it does not run behind a box."""
    level = levels(table)
    rows: list[list[str]] = [[] for _ in range(1 + max(level.values()))]
    for package in table:
        rows[level[package]].append(package)
    arrows = []
    for upper, lower in reduced(table):
        between = [f"{upper}>{lower}@{k}" for k in range(level[upper] - 1, level[lower], -1)]
        for place in between:
            rows[int(place.split("@")[1])].append(place)
        arrows.append([upper, *between, lower])
    for _ in range(8):  # each place towards the middle of its neighbours
        centre = {place: _middle(row, place) for row in rows for place in row}
        near: dict[str, list[float]] = {place: [centre[place]] for place in centre}
        for arrow in arrows:
            for above, below in pairwise(arrow):
                near[above].append(centre[below])
                near[below].append(centre[above])
        rows = [sorted(row, key=lambda place: sum(near[place]) / len(near[place])) for row in rows]
    return rows, arrows


def _middle(row: list[str], place: str) -> float:
    widths = [_width(one) for one in row]
    at = row.index(place)
    total = sum(widths) + GAP * (len(row) - 1)
    return sum(widths[:at]) + GAP * at + widths[at] / 2 - total / 2


def _width(place: str) -> int:
    return 8 if "@" in place else WIDTH


def drawing(table: Table) -> str:
    """The picture as an SVG element."""
    rows, arrows = layered(table)
    half = max(-_middle(row, row[0]) + _width(row[0]) / 2 for row in rows)
    width = 2 * (half + MARGIN)
    height = len(rows) * (HEIGHT + RISE) - RISE + 2 * MARGIN
    places = {}
    for depth, row in enumerate(rows):
        top = MARGIN + (len(rows) - 1 - depth) * (HEIGHT + RISE)
        for place in row:
            places[place] = (half + MARGIN + _middle(row, place), top)
    lines = "".join(_line([places[place] for place in arrow]) for arrow in arrows)
    boxes = "".join(_box(package, *places[package]) for package in table)
    return (
        f'<svg viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}" role="img"'
        ' style="max-width:100%;height:auto"'
        ' xmlns="http://www.w3.org/2000/svg" font-family="sans-serif" font-size="13">'
        "<title>The packages; an arrow points to what a package may import</title>"
        '<defs><marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7"'
        ' markerHeight="7" orient="auto"><path d="M0 0 8 4 0 8z" fill="#888"/></marker></defs>'
        f"{lines}{boxes}</svg>"
    )


def _line(points: list[tuple[float, float]]) -> str:
    """A smooth line from the first box's lower edge to the last one's upper edge."""
    (x, top), *rest = points
    y = top + HEIGHT
    path = f"M{x:.0f} {y:.0f}"
    for k, (to_x, to_top) in enumerate(rest):
        bend = (to_top - y) / 2
        path += f"C{x:.0f} {y + bend:.0f} {to_x:.0f} {to_top - bend:.0f} {to_x:.0f} {to_top:.0f}"
        x, y = to_x, to_top
        if k + 1 < len(rest):
            y += HEIGHT
            path += f"V{y:.0f}"
    return f'<path d="{path}" fill="none" stroke="#888" marker-end="url(#head)"/>'


def _box(package: str, x: float, y: float) -> str:
    colours = ("#0b6e4f", "#ffffff") if package == TRUSTED else ("#e8eef7", "#1b2a41")
    return (
        f'<rect x="{x - WIDTH / 2:.0f}" y="{y:.0f}" width="{WIDTH}" height="{HEIGHT}" rx="5"'
        f' fill="{colours[0]}" stroke="#1b2a41"/><text x="{x:.0f}"'
        f' y="{y + HEIGHT / 2 + 5:.0f}" text-anchor="middle" fill="{colours[1]}">{package}</text>'
    )


class Architecture(Directive):
    """`{architecture}`: the picture."""

    def run(self) -> list[nodes.Node]:
        self.state.document.settings.record_dependencies.add(str(WHITELIST))
        return [nodes.raw("", drawing(whitelist()), format="html")]


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_directive("architecture", Architecture)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
