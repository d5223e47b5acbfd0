"""The loop on a real graph as a chart: V and the certain nodes over its steps."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from markupsafe import Markup

from graphkeel.core.errors import ConfigError
from graphkeel.core.files import write_text


@dataclass(frozen=True)
class _Layout:
    """Sizes in the units of the drawing, and what is drawn.

    Attributes:
        width: of the chart.
        height: of the chart.
        left: margin.
        right: margin.
        top: margin.
        bottom: margin.
        steps: steps that are drawn; a loop that has come to rest looks the same from then on.
        least: what a residual of zero is drawn as.
    """

    width: int = 640
    height: int = 280
    left: int = 62
    right: int = 52
    top: int = 34
    bottom: int = 36
    steps: int = 60
    least: float = 1e-17


_LAYOUT = _Layout()
_STYLE = (
    "text{font:12px sans-serif;fill:#1f2933}.rule{stroke:#e3e6ea}"
    ".tick,.axis{fill:#5f6b78;font-size:11px}.tick{text-anchor:middle}"
    ".left{text-anchor:end}.right{text-anchor:start}"
    ".fall,.bound,.certain{fill:none;stroke-width:2}"
    ".fall{stroke:#17697a}.bound{stroke:#17697a;stroke-dasharray:5 4;opacity:.7}"
    ".certain{stroke:#1e8a6e}text.fall{fill:#17697a}text.certain{fill:#1e8a6e}"
    "text.fall,text.certain{stroke:none}"
)


def graph_loop_chart(
    steps: Mapping[str, Any], nodes: int, kappa: float, *, alone: bool = False
) -> Markup:
    """V(Ŷ) = ‖loop(Ŷ) − Ŷ‖ (left, logarithmic), what κ allows of it (dashed), and the share of
    nodes whose class is certain (right), step by step."""
    residuals = [float(value) for value in steps["residuals"]][: _LAYOUT.steps]
    certain = [int(value) for value in steps["certain"]][: _LAYOUT.steps]
    if not residuals or len(residuals) != len(certain) or nodes < 1:
        return Markup("")
    if not all(0.0 <= value < math.inf for value in residuals):
        raise ValueError("a residual is not negative and not infinite")
    frame = _Frame(residuals)
    allowed = [residuals[0] * kappa**t for t in range(len(residuals))]
    shares = [frame.share(100.0 * count / nodes) for count in certain]
    parts = [
        _opening(alone),
        *frame.rules(),
        _line("bound", [frame.at(t, value) for t, value in enumerate(allowed)]),
        _line("fall", [frame.at(t, value) for t, value in enumerate(residuals)]),
        _line("certain", [(frame.x(t), y) for t, y in enumerate(shares)]),
        _text(
            "fall",
            _LAYOUT.left,
            18,
            f"V = ‖loop(Ŷ) − Ŷ‖; dashed: what the factor {kappa:.3g} allows",
        ),
        _text(
            "certain right", _LAYOUT.width - _LAYOUT.right - 148, 18, "nodes with a certain class"
        ),
        Markup("</svg>"),
    ]
    return Markup("").join(parts)


def draw_graph_loop(certificate: Mapping[str, Any], path: Path) -> Path:
    """Write the chart of a certificate's loop as a file of its own; returns its path.

    Args:
        certificate: the content of certificate.json.
        path: the SVG file.
    """
    graph = certificate.get("graph") or {}
    steps = (certificate.get("provenance") or {}).get("graph_steps")
    if not steps or "equilibrium" not in graph:
        raise ConfigError("the certificate has no steps of a graph's loop to draw")
    nodes = graph["equilibrium"]["nodes"]
    write_text(path, str(graph_loop_chart(steps, nodes, graph["kappa"], alone=True)) + "\n")
    return path


class _Frame:
    """Where steps, values and shares lie in the picture."""

    def __init__(self, residuals: Sequence[float]) -> None:
        self.last = max(len(residuals) - 1, 1)
        logs = [math.log10(max(value, _LAYOUT.least)) for value in residuals]
        self.low, self.high = math.floor(min(logs)), math.ceil(max(logs) + 1e-9)

    def x(self, step: int) -> float:
        return _LAYOUT.left + step / self.last * (_LAYOUT.width - _LAYOUT.left - _LAYOUT.right)

    def at(self, step: int, value: float) -> tuple[float, float]:
        share = (math.log10(max(value, _LAYOUT.least)) - self.low) / max(self.high - self.low, 1)
        return self.x(step), self.share(100.0 * min(max(share, 0.0), 1.0))

    def share(self, percent: float) -> float:
        return (
            _LAYOUT.height
            - _LAYOUT.bottom
            - percent / 100.0 * (_LAYOUT.height - _LAYOUT.top - _LAYOUT.bottom)
        )

    def rules(self) -> list[Markup]:
        """Grid and numbers: decades at the left, percent at the right, steps below."""
        parts = []
        decades = self.high - self.low
        apart = max(1, math.ceil(decades / 6))
        for power in range(self.low, self.high + 1, apart):
            y = self.at(0, 10.0**power)[1]
            parts.append(_rule(_LAYOUT.left, _LAYOUT.width - _LAYOUT.right, y, y))
            parts.append(_text("axis left", _LAYOUT.left - 6, y + 4, f"1e{power}"))
        for percent in (0, 25, 50, 75, 100):
            y = self.share(float(percent))
            parts.append(
                _text("axis right", _LAYOUT.width - _LAYOUT.right + 6, y + 4, f"{percent} %")
            )
        for step in range(0, self.last + 1, max(1, math.ceil(self.last / 10))):
            parts.append(
                _text("tick", self.x(step), _LAYOUT.height - _LAYOUT.bottom + 16, str(step))
            )
        parts.append(
            _text(
                "tick",
                (_LAYOUT.left + _LAYOUT.width - _LAYOUT.right) / 2,
                _LAYOUT.height - 4,
                "steps of the loop",
            )
        )
        return parts


def _opening(alone: bool) -> Markup:
    label = "V and the certain nodes over the steps of the loop on the real graph"
    opening = Markup(
        '<svg class="chart" xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {} {}" role="img"'
        ' aria-label="{}">'
    ).format(_LAYOUT.width, _LAYOUT.height, label)
    return opening + Markup("<style>{}</style>").format(Markup(_STYLE)) if alone else opening


def _rule(x1: float, x2: float, y1: float, y2: float) -> Markup:
    return Markup('<line class="rule" x1="{:.1f}" x2="{:.1f}" y1="{:.1f}" y2="{:.1f}"/>').format(
        x1, x2, y1, y2
    )


def _line(kind: str, points: Sequence[tuple[float, float]]) -> Markup:
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    return Markup('<polyline class="{}" points="{}"/>').format(kind, path)


def _text(kind: str, x: float, y: float, words: str) -> Markup:
    return Markup('<text class="{}" x="{:.1f}" y="{:.1f}">{}</text>').format(kind, x, y, words)
