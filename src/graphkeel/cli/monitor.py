"""Compare the graph of a run as it is now, without labels: what has drifted, and what to do.

  keel run --dataset mine.npz --out runs/mine
  keel monitor runs/mine --data this_week.npz
  keel monitor runs/mine --data this_week.npz --weights net.safetensors --factory net:make

RUN was written by keel run, keel adapt or keel feedback with --out; or by `Reconstructor.save`,
and then the model is yours to name and the graph of the fit is not needed. WEEK is that graph as it
is now: old nodes keep their ids, new ones come after them; labels in it are not looked at. Each
call adds a line to RUN/monitor.jsonl and writes RUN/monitor.html, the page with the trend.

The step is recommended after which expected accuracy, less the step's price, is largest. A price
is the points of accuracy that a step must bring to be worth its trouble, and yours to name.

Exit codes, for cron: 0 nothing to do, 4 update, 5 label the nodes that are named, 6 retrain;
2 bad input.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from graphkeel.cli.shared.common import (
    OWN_MODEL,
    SEED_OF_RUN,
    add_options,
    console,
    dataset_type,
    emit,
    emit_lines,
    number,
    path_type,
    verbatim,
)
from graphkeel.cli.shared.own_model import chosen_model, specs

if TYPE_CHECKING:
    from graphkeel.monitor import DriftReport

HELP = "what has drifted since the fit, without labels, and what to do about it"
EXIT_CODES = {"nothing": 0, "update": 4, "label": 5, "retrain": 6}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("folder", type=path_type, metavar="RUN", help="a folder of a run, or a saved one")
    words = "the graph as it is now: FILE.npz, a folder of .npy files, or a dataset's name"
    add("--data", type=dataset_type, required=True, metavar="WEEK", help=words)
    words = "it is a graph of its own: its nodes are not those of the run"
    add("--another", action="store_true", help=words)
    words = "of update, label or retrain (default 0.25, 2 and 8); may be given several times"
    add("--price", type=_price, action="append", default=[], metavar="STEP=POINTS", help=words)
    add_options(parser, "--seed", *OWN_MODEL, "--json", seed=SEED_OF_RUN)


def _price(text: str) -> tuple[str, float]:
    """argparse type: a step and its price."""
    step, _, points = text.partition("=")
    if step not in ("update", "label", "retrain"):
        raise argparse.ArgumentTypeError(f"must be of update, label or retrain (got {step!r})")
    return step, number(0.0, 100.0)(points)


def run(args: argparse.Namespace) -> int:
    from graphkeel.monitor import MonitorSettings, Prices
    from graphkeel.runs.opened import features_of, later_graph, opened, with_own_model

    _, options = chosen_model(args)
    if options:
        week = later_graph(args.data, "raw")
        rec = with_own_model(args.folder, options)
    else:
        week = later_graph(args.data, features_of(args.folder, specs(args)))
        rec, _, _ = opened(args.folder, specs(args), args.seed)
    settings = MonitorSettings(prices=Prices(**dict(args.price)))
    found = rec.monitor(week, args.folder, another=args.another, settings=settings)
    code = EXIT_CODES[found.action]
    payload = {"command": "monitor", **found.to_dict(), "exit_code": code}
    emit(args, payload, lambda: _show(args, found))
    return code


def _show(args: argparse.Namespace, found: DriftReport) -> None:
    from rich.table import Table

    from graphkeel.monitor import ACTIONS

    print_ = console().print
    print_(f"[bold]{ACTIONS[found.action]}[/]: {verbatim(found.reason)}", highlight=False)
    table = Table()
    for column in ("against the fit", "effect", "p-value", "drifted"):
        table.add_column(column, justify="right" if column in ("effect", "p-value") else "left")
    for test in found.tests:
        mark = "yes" if test.drifted else "no"
        table.add_row(test.name, f"{test.effect:.2f}", f"{test.p_value:.2g}", mark)
    print_(table)
    emit_lines(_lines(args, found))


def _lines(args: argparse.Namespace, found: DriftReport) -> list[str]:
    lines = [
        f"Expected accuracy: {found.expected_fitted:.1f} % at the fit; now, after each step: "
        + ", ".join(f"{step} {value:.1f}" for step, value in found.after.items())
        + f". After an update {found.low:.0f} to {found.high:.0f} % in nine of ten cases.",
        f"Homophily: {found.homophily_fitted:.1f} % at the fit, {found.homophily:.1f} % now.",
        f"{found.new:,} new nodes, {found.changed:,} with other features; {found.far:,} new ones "
        "have no label near.",
    ]
    if found.apart:
        words = "nodes are far from every label and unlike all that have one: answers there are"
        lines.append(f"{found.apart:,} {words} counted as guesses.")
    if found.action == "label":
        lines.append("Label: " + " ".join(map(str, found.suggested)))
    page = args.folder / "monitor.html"
    return [*lines, str(page)] if page.is_file() else lines
