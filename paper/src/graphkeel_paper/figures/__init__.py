"""The paper's figures, each with a number that says what the eye should see; SVG and PNG."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from graphkeel.core.files import write_text
from graphkeel_paper.fingerprint import commit
from graphkeel_paper.specs import RunSpec


class Drawn(NamedTuple):
    """Files written, and the numbers that the picture shows (JSON-able)."""

    files: list[Path]
    numbers: dict[str, Any]

    def payload(self) -> dict[str, Any]:
        """The stable JSON object of `keel figure --json`."""
        return {"command": "figure", **self.numbers, "files": [str(path) for path in self.files]}


def draw(figure: int, spec: RunSpec, seed: int, out: Path) -> Drawn:
    """Draw a figure of the paper for one seed, and write its numbers beside it."""
    from graphkeel_paper.figures import embeddings, lyapunov

    artists: dict[int, Callable[[RunSpec, int, Path], Drawn]] = {
        3: embeddings.draw_shift,
        4: embeddings.draw_classes,
        5: lyapunov.draw_lyapunov,
    }
    files, numbers = artists[figure](spec, seed, out)
    drawn = Drawn(files, {"seed": seed, **numbers})
    named = {"files": [path.name for path in files], "commit": commit()}
    content = json.dumps({**drawn.payload(), **named}, indent=1, allow_nan=False)
    write_text(out / f"figure-{figure}.json", content + "\n")
    return drawn
