"""The paper's figures, each with a number that says what the eye should see; SVG and PNG."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from graphkeel.core.files import replacing, write_text
from graphkeel.core.optional import import_optional
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


# ---- One look for all figures: palette, fonts, files.


INK, SOFT, GRID = "#1f2933", "#616e7c", "#e4e7eb"
# Okabe and Ito's colours, which colour-blind readers can tell apart; a marker goes with each, so
# that no reading rests on colour alone.
TRAIN, TEST = "#d55e00", "#56b4e9"
GOOD, BAD = "#009e73", "#d55e00"
CLASSES = (
    ("#0072b2", "o"),
    ("#e69f00", "^"),
    ("#009e73", "s"),
    ("#d55e00", "D"),
    ("#cc79a7", "v"),
    ("#56b4e9", "P"),
    ("#000000", "X"),
    ("#f0e442", "<"),
    ("#7f7f7f", ">"),
    ("#8c564b", "*"),
)

_RC = {
    "font.family": "DejaVu Sans",
    "font.size": 10,
    "text.color": INK,
    "axes.edgecolor": GRID,
    "axes.labelcolor": SOFT,
    "axes.titlesize": 11,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.facecolor": "#ffffff",
    "figure.facecolor": "#ffffff",
    "xtick.color": SOFT,
    "ytick.color": SOFT,
    "legend.frameon": False,
    "svg.fonttype": "path",  # the same everywhere, whatever fonts the reader has
    "svg.hashsalt": "graphkeel",  # the same file for the same picture
}


@contextmanager
def canvas(
    columns: int, rows: int = 1, *, width: float = 4.0, height: float = 3.9, **options: Any
) -> Iterator[Any]:
    """(figure, axes) in our look; no display is needed."""
    matplotlib = import_optional("matplotlib", extra="report")
    matplotlib.use("Agg")
    pyplot = import_optional("matplotlib.pyplot", extra="report")
    with matplotlib.rc_context(_RC):
        figure, axes = pyplot.subplots(
            rows, columns, figsize=(width * columns, height * rows), layout="constrained", **options
        )
        try:
            yield figure, axes
        finally:
            pyplot.close(figure)


def save(figure: Any, out: Path, name: str) -> list[Path]:
    """NAME.svg and NAME.png."""
    files = [out / f"{name}.svg", out / f"{name}.png"]
    with replacing(files[0]) as temporary:
        figure.savefig(temporary, format="svg", metadata={"Date": None, "Creator": "graphkeel"})
    with replacing(files[1]) as temporary:
        figure.savefig(temporary, format="png", dpi=160)
    return files


def hide_axes(axes: Any) -> None:
    """t-SNE's axes mean nothing: no ticks."""
    axes.set_xticks([])
    axes.set_yticks([])
    for side in axes.spines.values():
        side.set_color(GRID)
        side.set_visible(True)


def heading(figure: Any, text: str) -> None:
    """The figure's title, at its left."""
    figure.suptitle(text, x=0.004, ha="left", fontsize=13, fontweight="bold", color=INK)
