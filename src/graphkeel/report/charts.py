"""Small charts drawn as SVG by hand: they take the page's colours, light or dark."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup


@dataclass(frozen=True)
class _Layout:
    """Sizes in the units of the drawing."""

    width: int = 640  # of a chart
    row: int = 26  # height of a dumbbell
    # left, right: margins for numbers
    left: int = 70
    right: int = 76
    letter: int = 11  # width of a letter on a phone, where letters are larger
    longest: int = 20  # letters of a name for which there is a margin
    # top, bottom: edges of the loop's plot
    top: int = 34
    bottom: int = 244
    steps: int = 60  # of a loop that are drawn; one at rest looks the same from then on
    least: float = 1e-17  # what a residual of zero is drawn as


_LAYOUT = _Layout()
_END = _LAYOUT.width - _LAYOUT.right  # of lines; numbers come after it
_Point = tuple[float, float]


def dumbbells(rows: list[dict[str, Any]], *, label: str, neutral: bool = False) -> Markup:
    """A chart with a line a row from `before` to `after`, in percent; a `neutral` one says of
    neither direction that it is better."""
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
        return left + (value - low) / max(high - low, 1e-9) * (_END - left)

    parts = []
    for tick in _ticks(low, high):
        parts += [_rule(x(tick), x(tick), 4, height - 22)]
        parts += [_words("tick", x(tick), height - 6, f"{tick:g} %")]
    for i, row in enumerate(rows):
        y = _LAYOUT.row * i + 17
        gain = row["after"] - row["before"]
        kind = "same" if neutral or gain == 0 else "up" if gain > 0 else "down"
        parts += [
            _words("name", 4, y + 4, row["name"]),
            _rule(x(row["before"]), x(row["after"]), y, y, kind=kind),
            _dot("before", x(row["before"]), y),
            _dot(kind, x(row["after"]), y, radius=5),
            _words("gain", _LAYOUT.width - 4, y + 4, f"{gain:+.1f}"),
        ]
    return _chart(height, label, parts)


def trend(values: list[float], *, label: str, low: list[float], high: list[float]) -> Markup:
    """A line through values in percent, oldest first, in a band from `low` to `high`."""
    bottom = max(0.0, 5.0 * (min(low) // 5.0) - 5.0)
    top = min(100.0, 5.0 * (max(high) // 5.0) + 10.0)
    height = 6 * _LAYOUT.row

    def x(i: int) -> float:
        return _LAYOUT.left + (_END - _LAYOUT.left) * (i + 0.5) / len(values)

    def y(value: float) -> float:
        return 8 + (height - 16) * (top - value) / (top - bottom)

    def points(edge: list[float]) -> list[_Point]:
        return [(x(i), y(value)) for i, value in enumerate(edge)]

    parts = []
    for tick in _ticks(bottom, top):
        parts += [_rule(_LAYOUT.left, _END, y(tick), y(tick))]
        parts += [_words("axis", 4, y(tick) + 4, f"{tick:g} %")]
    parts += [_line("band", points(low) + points(high)[::-1], shape="polygon")]
    parts += [_line("fall", points(values))]
    parts += [_dot("now", *point) for point in points(values)]
    parts += [_words("gain", _LAYOUT.width - 4, y(values[-1]) + 4, f"{values[-1]:.1f}")]
    return _chart(height, label, parts)


def loop_chart(steps: Mapping[str, Any], nodes: int, kappa: float) -> Markup:
    """The loop on a real graph: V(Ŷ) = ‖loop(Ŷ) − Ŷ‖ (left, logarithmic), what κ allows of it
    (dashed), and the share of nodes whose class is certain (right), step by step."""
    residuals = [float(value) for value in steps["residuals"]][: _LAYOUT.steps]
    certain = [int(value) for value in steps["certain"]][: _LAYOUT.steps]
    if not residuals or len(residuals) != len(certain) or nodes < 1:
        return Markup("")
    if not all(0.0 <= value < math.inf for value in residuals):
        raise ValueError("a residual is not negative and not infinite")
    last = max(len(residuals) - 1, 1)
    logs = [math.log10(max(value, _LAYOUT.least)) for value in residuals]
    low, high = math.floor(min(logs)), math.ceil(max(logs) + 1e-9)

    def x(step: float) -> float:
        return _LAYOUT.left + step / last * (_END - _LAYOUT.left)

    def at(percent: float) -> float:
        return _LAYOUT.bottom - percent / 100.0 * (_LAYOUT.bottom - _LAYOUT.top)

    def y(value: float) -> float:
        share = (math.log10(max(value, _LAYOUT.least)) - low) / max(high - low, 1)
        return at(100.0 * min(max(share, 0.0), 1.0))

    parts = []
    for power in range(low, high + 1, max(1, math.ceil((high - low) / 6))):
        parts += [_rule(_LAYOUT.left, _END, y(10.0**power), y(10.0**power))]
        parts += [_words("axis left", _LAYOUT.left - 6, y(10.0**power) + 4, f"1e{power}")]
    for percent in (0, 25, 50, 75, 100):
        parts += [_words("axis right", _END + 6, at(percent) + 4, f"{percent} %")]
    for step in range(0, last + 1, max(1, math.ceil(last / 10))):
        parts += [_words("tick", x(step), _LAYOUT.bottom + 16, str(step))]
    parts += [
        _words("tick", x(last / 2), _LAYOUT.bottom + 32, "steps of the loop"),
        _line("bound", [(x(t), y(residuals[0] * kappa**t)) for t in range(len(certain))]),
        _line("fall", [(x(t), y(value)) for t, value in enumerate(residuals)]),
        _line("certain", [(x(t), at(100.0 * one / nodes)) for t, one in enumerate(certain)]),
        _words("fall", _LAYOUT.left, 18, "V; dashed: its bound"),
        _words("certain left", _END, 18, "nodes with a certain class"),
    ]
    label = "V and the certain nodes over the steps of the loop on the real graph"
    return _chart(_LAYOUT.bottom + 36, label, parts)


# ---- the parts of a chart


def _chart(height: float, label: str, parts: Iterable[Markup]) -> Markup:
    opening = Markup('<svg class="chart" viewBox="0 0 {} {}" role="img" aria-label="{}">')
    whole = [opening.format(_LAYOUT.width, height, label), *parts, Markup("</svg>")]
    return Markup("").join(whole)


def _words(kind: str, x: float, y: float, words: str) -> Markup:
    return Markup('<text class="{}" x="{:.1f}" y="{:.1f}">{}</text>').format(kind, x, y, words)


def _line(kind: str, points: Sequence[_Point], *, shape: str = "polyline") -> Markup:
    places = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    return Markup('<{} class="{}" points="{}"/>').format(shape, kind, places)


def _rule(x1: float, x2: float, y1: float, y2: float, *, kind: str = "rule") -> Markup:
    line = Markup('<line class="{}" x1="{:.1f}" x2="{:.1f}" y1="{:.1f}" y2="{:.1f}"/>')
    return line.format(kind, x1, x2, y1, y2)


def _dot(kind: str, x: float, y: float, *, radius: int = 4) -> Markup:
    return Markup('<circle class="{}" cx="{:.1f}" cy="{:.1f}" r="{}"/>').format(kind, x, y, radius)


def _ticks(low: float, high: float) -> list[float]:
    for step in (1, 2, 5, 10, 20, 50):
        if (high - low) / step <= 6:
            first = -(-low // step) * step
            return [first + k * step for k in range(int((high - first) // step) + 1)]
    return [low, high]
