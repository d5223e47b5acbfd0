"""The paper's figures, each with a number that says what the eye should see; SVG and PNG."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from graphkeel.paper.tables.spec import RunSpec


class Drawn(NamedTuple):
    """Files written, and the numbers that the picture shows (JSON-able)."""

    files: list[Path]
    numbers: dict[str, Any]


def draw(figure: int, spec: RunSpec, seed: int, out: Path) -> Drawn:
    """Draw figure 3, 4 or 5 of the paper for one seed."""
    from graphkeel.paper.figures import embeddings, lyapunov

    artists: dict[int, Callable[[RunSpec, int, Path], Drawn]] = {
        3: embeddings.draw_shift,
        4: embeddings.draw_classes,
        5: lyapunov.draw_lyapunov,
    }
    return artists[figure](spec, seed, out)
