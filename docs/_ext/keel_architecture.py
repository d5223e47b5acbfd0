"""The picture of the packages, drawn from the whitelist that tests/test_architecture.py enforces.

`{architecture}` becomes an SVG: a box a package, an arrow from a package to each one that it may
import, those left out that follow from others. Packages stand above all that they may import.
"""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

from docutils import nodes
from docutils.parsers.rst import Directive
from sphinx.application import Sphinx

WHITELIST = Path(__file__).parents[2] / "tests" / "test_architecture.py"
WIDTH, HEIGHT, GAP, RISE, MARGIN = 112, 34, 22, 64, 16
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


def drawing(table: Table) -> str:
    """The picture as an SVG element."""
    level = levels(table)
    rows: dict[int, list[str]] = {}
    for package in table:
        rows.setdefault(level[package], []).append(package)
    widest = max(len(row) for row in rows.values())
    width = widest * (WIDTH + GAP) - GAP + 2 * MARGIN
    height = len(rows) * (HEIGHT + RISE) - RISE + 2 * MARGIN
    places = {}
    for depth, row in rows.items():
        start = (width - len(row) * (WIDTH + GAP) + GAP) / 2
        top = MARGIN + (len(rows) - 1 - depth) * (HEIGHT + RISE)
        for i, package in enumerate(row):
            places[package] = (start + i * (WIDTH + GAP), top)
    arrows = "".join(_arrow(places[upper], places[lower]) for upper, lower in reduced(table))
    boxes = "".join(_box(package, *place) for package, place in places.items())
    return (
        f'<svg viewBox="0 0 {width:.0f} {height:.0f}" role="img" style="max-width:100%"'
        ' xmlns="http://www.w3.org/2000/svg" font-family="sans-serif" font-size="13">'
        "<title>The packages; an arrow points to what a package may import</title>"
        '<defs><marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7"'
        ' markerHeight="7" orient="auto"><path d="M0 0 8 4 0 8z" fill="#888"/></marker></defs>'
        f"{arrows}{boxes}</svg>"
    )


def _arrow(upper: tuple[float, float], lower: tuple[float, float]) -> str:
    x1, y1 = upper[0] + WIDTH / 2, upper[1] + HEIGHT
    x2, y2 = lower[0] + WIDTH / 2, lower[1]
    bend = (y2 - y1) / 2
    path = f"M{x1:.0f} {y1:.0f}C{x1:.0f} {y1 + bend:.0f} {x2:.0f} {y2 - bend:.0f} {x2:.0f} {y2:.0f}"
    return f'<path d="{path}" fill="none" stroke="#888" marker-end="url(#head)"/>'


def _box(package: str, x: float, y: float) -> str:
    colours = ("#0b6e4f", "#ffffff") if package == TRUSTED else ("#e8eef7", "#1b2a41")
    return (
        f'<rect x="{x:.0f}" y="{y:.0f}" width="{WIDTH}" height="{HEIGHT}" rx="5"'
        f' fill="{colours[0]}" stroke="#1b2a41"/><text x="{x + WIDTH / 2:.0f}"'
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
