"""Small charts drawn as SVG by hand: they take the page's colours, light or dark."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from markupsafe import Markup


@dataclass(frozen=True)
class _Layout:
    """Sizes in the units of the drawing.

    Attributes:
        width: of a chart.
        row: height of a dumbbell.
        bar_row: height of a pair of bars.
        left: margin for numbers.
        right: likewise.
        letter: width of a letter on a phone, where letters are larger.
        longest: letters of a name for which there is a margin.
    """

    width: int = 640
    row: int = 26
    bar_row: int = 44
    left: int = 70
    right: int = 60
    letter: int = 11
    longest: int = 20


_LAYOUT = _Layout()


def dumbbells(rows: list[dict[str, Any]], *, label: str, neutral: bool = False) -> Markup:
    """A chart with a line a row from `before` to `after`, in percent.

    Args:
        rows: with `name`, `before` and `after`.
        label: what is drawn.
        neutral: neither direction is better.
    """
    if not rows:
        return Markup("")
    low = min(min(row["before"], row["after"]) for row in rows)
    high = max(max(row["before"], row["after"]) for row in rows)
    pad = max(1.0, 0.08 * (high - low))
    low, high = max(0.0, low - pad), min(100.0, high + pad)
    height = _LAYOUT.row * len(rows) + 28
    letters = min(_LAYOUT.longest, max(len(row["name"]) for row in rows))
    left = max(_LAYOUT.left, 12 + _LAYOUT.letter * letters)

    def x(value: float) -> float:
        share = (value - low) / max(high - low, 1e-9)
        return left + share * (_LAYOUT.width - left - _LAYOUT.right)

    parts = [
        Markup('<svg class="chart" viewBox="0 0 {} {}" role="img" aria-label="{}">').format(
            _LAYOUT.width, height, label
        )
    ]
    for tick in _ticks(low, high):
        parts.append(
            Markup('<line class="rule" x1="{0:.1f}" x2="{0:.1f}" y1="4" y2="{1}"/>').format(
                x(tick), height - 22
            )
            + Markup('<text class="tick" x="{:.1f}" y="{}">{:g} %</text>').format(
                x(tick), height - 6, tick
            )
        )
    for i, row in enumerate(rows):
        gain = 0.0 if neutral else row["after"] - row["before"]
        kind = "up" if gain > 0 else "down" if gain < 0 else "same"
        parts.append(_dumbbell(row, kind, x(row["before"]), x(row["after"]), _LAYOUT.row * i + 17))
    return Markup("").join([*parts, Markup("</svg>")])


def bars(rows: list[dict[str, Any]], *, label: str) -> Markup:
    """A chart with a horizontal bar a row, its name above it, from 0 to 100 percent."""
    if not rows:
        return Markup("")
    height = _LAYOUT.bar_row * len(rows) + 4
    long = _LAYOUT.width - _LAYOUT.right
    parts = [
        Markup('<svg class="chart" viewBox="0 0 {} {}" role="img" aria-label="{}">').format(
            _LAYOUT.width, height, label
        )
    ]
    for i, row in enumerate(rows):
        top = _LAYOUT.bar_row * i
        width = long * min(max(row["share"], 0.0), 100.0) / 100.0
        parts += [
            Markup('<text class="name" x="4" y="{}">{}</text>').format(top + 16, row["name"]),
            Markup('<rect class="rail" x="4" y="{}" width="{}" height="12" rx="3"/>').format(
                top + 20, long
            ),
            Markup('<rect class="bar" x="4" y="{}" width="{:.1f}" height="12" rx="3"/>').format(
                top + 20, width
            ),
            Markup('<text class="gain" x="{}" y="{}">{:.0f} %</text>').format(
                _LAYOUT.width - 4, top + 31, row["share"]
            ),
        ]
    return Markup("").join([*parts, Markup("</svg>")])


def trend(values: list[float], *, label: str, low: list[float], high: list[float]) -> Markup:
    """A line through values in percent, oldest first, in a band from `low` to `high`.

    Args:
        values: in percent.
        label: what is drawn.
        low: the lower edge of the band, as many.
        high: its upper edge.
    """
    bottom = max(0.0, 5.0 * (min(low) // 5.0) - 5.0)
    top = min(100.0, 5.0 * (max(high) // 5.0) + 10.0)
    wide = _LAYOUT.width - _LAYOUT.right
    height = 6 * _LAYOUT.row

    def x(i: int) -> float:
        return _LAYOUT.left + (wide - _LAYOUT.left) * (i + 0.5) / len(values)

    def y(value: float) -> float:
        return 8 + (height - 16) * (top - value) / (top - bottom)

    def path(edge: list[float], which: list[int]) -> str:
        return " ".join(f"{x(i):.1f},{y(edge[i]):.1f}" for i in which)

    forth = list(range(len(values)))
    frame = Markup('<svg class="chart" viewBox="0 0 {} {}" role="img" aria-label="{}">')
    parts = [frame.format(_LAYOUT.width, height, label)]
    for tick in _ticks(bottom, top):
        line = Markup('<line class="rule" x1="{}" x2="{}" y1="{y:.1f}" y2="{y:.1f}"/>')
        words = Markup('<text class="axis" x="4" y="{:.1f}">{:g} %</text>')
        parts += [line.format(_LAYOUT.left, wide, y=y(tick)), words.format(y(tick) + 4, tick)]
    band = Markup('<polygon class="band" points="{} {}"/><polyline class="fall" points="{}"/>')
    parts.append(band.format(path(low, forth), path(high, forth[::-1]), path(values, forth)))
    dot = Markup('<circle class="now" cx="{:.1f}" cy="{:.1f}" r="4"/>')
    parts += [dot.format(x(i), y(value)) for i, value in enumerate(values)]
    last = Markup('<text class="gain" x="{}" y="{:.1f}">{:.1f}</text></svg>')
    return Markup("").join([*parts, last.format(_LAYOUT.width - 4, y(values[-1]) + 4, values[-1])])


def _dumbbell(row: dict[str, Any], kind: str, before: float, after: float, y: int) -> Markup:
    gain = row["after"] - row["before"]
    return (
        Markup('<text class="name" x="4" y="{}">{}</text>').format(y + 4, row["name"])
        + Markup('<line class="{}" x1="{:.1f}" x2="{:.1f}" y1="{y}" y2="{y}"/>').format(
            kind, before, after, y=y
        )
        + Markup('<circle class="before" cx="{:.1f}" cy="{}" r="4"/>').format(before, y)
        + Markup('<circle class="{}" cx="{:.1f}" cy="{}" r="5"/>').format(kind, after, y)
        + Markup('<text class="gain" x="{}" y="{}">{:+.1f}</text>').format(
            _LAYOUT.width - 4, y + 4, gain
        )
    )


def _ticks(low: float, high: float) -> list[float]:
    for step in (1, 2, 5, 10, 20, 50):
        if (high - low) / step <= 6:
            first = -(-low // step) * step
            return [first + k * step for k in range(int((high - first) // step) + 1)]
    return [low, high]
