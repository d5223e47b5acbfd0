"""Repair a frozen model's predictions on a shifted graph, over several seeds.

  keel run                                            digits, nothing downloaded
  keel run --method none --seeds 10                   the untouched model
  keel run --dataset my_graph.npz --model gcn --method auto --out runs/mine
  keel run --dataset my_graph.npz --weights net.safetensors --factory net:make

Each seed is one split and one trained model. With --out every finished seed is kept: an interrupted
run continues where it stopped. Accuracies are percent of the test nodes; the method never sees a
test label.
"""

from __future__ import annotations

import argparse
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from graphkeel.cli.shared.common import (
    SPEC,
    add_options,
    console,
    emit,
    make_out_dir,
    say_reused,
    verbatim,
)
from graphkeel.cli.shared.own_model import chosen_spec
from graphkeel.core.statistics import plus_minus

if TYPE_CHECKING:
    from graphkeel.runs.run import RunResult
    from graphkeel.runs.specs import AnySpec

HELP = "better predictions from the same frozen weights, over several seeds"


OUT = "keep rows, decisions and features here; the run can be continued"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_options(parser, *SPEC)
    words = "auto (default), none, replace, diffuse, or a control: no-model, random-weights"
    parser.add_argument("--method", default="auto", help=words)
    seeds = "how many seeds, from --seed on (default 10; 1 for a model of your own)"
    add_options(parser, "--seeds", "--seed", "--out", "--json", seeds=seeds, out=OUT)


def run(args: argparse.Namespace) -> int:
    return run_spec(args, chosen_spec(args))


def run_spec(args: argparse.Namespace, spec: AnySpec, usual_seeds: int = 10) -> int:
    """Run a specification over the seeds that were asked for, and print it."""
    spec.check(args.seed)
    if args.out is not None:
        make_out_dir(args.out)
    seeds = args.seeds or (1 if args.weights else usual_seeds)
    result = run_with_progress(spec, range(args.seed, args.seed + seeds), out=args.out)
    payload = {"command": args.command, **_payload(result)}
    return emit(args, payload, lambda: show(result))


def run_with_progress(spec: AnySpec, seeds: range, **options: Any) -> RunResult:
    from rich.progress import Progress

    from graphkeel.core.signals import raise_pending
    from graphkeel.runs.run import run_seeds

    screen = console(stderr=True)
    with Progress(console=screen, transient=True, disable=not screen.is_terminal) as progress:
        bar = progress.add_task(verbatim(f"{spec.dataset}: {spec.method}"), total=len(seeds))

        def on_row(_: object) -> None:
            progress.advance(bar)
            raise_pending()

        result = run_seeds(spec, seeds, on_row=on_row, **options)
    if result.reused:
        say_reused(f"{result.reused} of {len(result.rows)} seeds", options["out"])
    return result


_SPEC = ("dataset", "source", "target", "target_labels", "model", "method", "labels")
_ROW = ("seed", "base", "accuracy", "balanced_base", "balanced", "kept")


def _payload(result: RunResult) -> dict[str, Any]:
    """The stable JSON object of `keel run --json` and `keel adapt --json`."""
    spec = asdict(result.spec)
    return {
        **{name: spec[name] for name in _SPEC if name in spec},
        "rows": [{name: row[name] for name in _ROW if name in row} for row in result.rows],
        "summary": result.summary(),
        "paper": result.spec.published() or None,
    }


def show(result: RunResult) -> None:
    """Print a row a seed, then the mean, with the paper's figure where there is one."""
    from rich.table import Table

    spec = result.spec
    summary = result.summary()
    table = Table(title=verbatim(spec.title), title_justify="left")
    balanced = ["balanced"] if "balanced" in result.rows[0] else []
    for column in ("seed", "untouched", spec.method, "difference", *balanced):
        table.add_column(column, justify="right")
    for row in result.rows:
        note = " (left unchanged)" if row["kept"] and spec.method != "none" else ""
        difference = f"{row['accuracy'] - row['base']:+.2f}{note}"
        cells = [str(row["seed"]), f"{row['base']:.2f}", f"{row['accuracy']:.2f}", difference]
        cells += [f"{row['balanced_base']:.2f} → {row['balanced']:.2f}"] if balanced else []
        table.add_row(*cells)
    table.add_section()
    table.add_row(
        "mean ± std",
        plus_minus(summary["base_mean"], summary["base_std"]),
        plus_minus(summary["accuracy_mean"], summary["accuracy_std"]),
        f"{summary['gain_mean']:+.2f}",
        style="bold",
    )
    paper = spec.published()
    if paper:
        table.add_row("paper", *(plus_minus(*paper[row]) for row in paper), style="dim")
        table.caption = "paper: its SGC row, and its neural controller (one class replaced)."
    console().print(table)
    _show_decisions(result)


def _show_decisions(result: RunResult) -> None:
    """Print what was decided, and why: a sentence, with the seeds that it is about."""
    seeds: dict[str, list[str]] = {}
    for row in result.rows:
        seeds.setdefault(str(row["decision"].get("reason", "")), []).append(str(row["seed"]))
    for reason in filter(None, seeds):
        which = f"seed {', '.join(seeds[reason])}: " if len(seeds) > 1 else ""
        console().print(verbatim(f"{which}{reason}"), style="dim", highlight=False)
