"""The paper's figures, as SVG and PNG, each with a number that says what the eye should see.

keel-paper figure 3 --dataset cora --out figures/    training against test nodes: untouched,
                                                     FRGNN, the neural controller, auto
keel-paper figure 4 --dataset cora --out figures/    the same nodes by class (silhouette)
keel-paper figure 5 --dataset cora --out figures/    the Lyapunov surface, trajectories
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from graphkeel.cli.shared.common import add_options, emit, emit_lines, make_out_dir

HELP = "the paper's figures: embeddings under shift, and the Lyapunov surface"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "figure", type=int, choices=(3, 4, 5), help="the figure's number in the paper"
    )
    out = "where the pictures go (default: figures)"
    add_options(parser, "--dataset", "--model", "--seed", "--out", "--json", out=out)


def run(args: argparse.Namespace) -> int:
    from graphkeel_paper.figures import draw
    from graphkeel_paper.specs import RunSpec

    spec = RunSpec(dataset=args.dataset, model=args.model)
    spec.check(args.seed)
    out = make_out_dir(args.out or Path("figures"))
    drawn = draw(args.figure, spec, args.seed, out)
    return emit(args, drawn.payload(), lambda: emit_lines(_lines(drawn.payload())))


def _lines(payload: dict[str, Any]) -> list[str]:
    """A line for each panel, then the files."""
    panels: dict[str, dict[str, Any]] = payload.get("panels") or payload["forms"]
    lines = []
    for name, numbers in panels.items():
        shown = {key: value for key, value in numbers.items() if key != "by_class"}
        parts = [f"{key.replace('_', ' ')} {_short(value)}" for key, value in shown.items()]
        lines.append(f"{name}: {', '.join(parts)}")
    return [*lines, *payload["files"]]


def _short(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
