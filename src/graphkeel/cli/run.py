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
from typing import TYPE_CHECKING, Any

from graphkeel.cli.shared.common import (
    EXIT_DONE,
    add_common,
    add_dataset,
    console,
    emit_json,
    make_out_dir,
    positive_int,
    say_reused,
    verbatim,
)
from graphkeel.cli.shared.own_model import (
    add_class_weight,
    add_own_model,
    add_split,
    chosen_spec,
)
from graphkeel.core.statistics import plus_minus

if TYPE_CHECKING:
    from graphkeel.runs.run import AnySpec, RunResult
    from graphkeel.runs.specs import RunSpec

HELP = "better predictions from the same frozen weights, over several seeds"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The flags of this command."""
    add_dataset(parser)
    parser.add_argument("--model", default="sgc", help="sgc, gcn, gat, sage or appnp (default sgc)")
    parser.add_argument(
        "--method",
        default="auto",
        help="auto (default), none, replace, diffuse, or a control: no-model, random-weights",
    )
    parser.add_argument(
        "--seeds",
        type=positive_int,
        default=None,
        metavar="N",
        help="how many seeds, from --seed on (default 10; 1 for a model of your own)",
    )
    add_split(parser)
    parser.add_argument(
        "--features",
        default="auto",
        help="auto, raw, rownorm, pca or pca-raw (default auto)",
    )
    add_class_weight(parser)
    add_own_model(parser)
    add_common(parser, out_help="keep rows, decisions and features here; the run can be continued")


def run(args: argparse.Namespace) -> int:
    """Run the command; returns its exit code."""
    return run_spec(args, chosen_spec(args))


def run_spec(args: argparse.Namespace, spec: RunSpec) -> int:
    """Run a specification over the seeds that were asked for, and print it."""
    spec.check(args.seed)
    if args.out is not None:
        make_out_dir(args.out)
    seeds = args.seeds or (1 if args.weights else 10)
    result = run_with_progress(spec, range(args.seed, args.seed + seeds), out=args.out)
    if args.json:
        emit_json(payload(result))
    else:
        show(result)
    return EXIT_DONE


def run_with_progress(spec: AnySpec, seeds: range, **options: Any) -> RunResult[AnySpec]:
    """`run_seeds` with a progress bar on stderr."""
    from rich.progress import Progress

    from graphkeel.core.signals import end_if_asked
    from graphkeel.runs.run import run_seeds

    with Progress(console=console(stderr=True), transient=True) as progress:
        bar = progress.add_task(verbatim(f"{spec.dataset}: {spec.method}"), total=len(seeds))

        def on_row(_: object) -> None:
            progress.advance(bar)
            end_if_asked()

        result = run_seeds(spec, seeds, on_row=on_row, **options)
    if result.reused:
        say_reused(f"{result.reused} of {len(result.rows)} seeds", options["out"])
    return result


def payload(result: RunResult[RunSpec]) -> dict[str, Any]:
    """The stable JSON object of `keel run --json`."""
    spec = result.spec
    keys = ("seed", "base", "accuracy", "kept")
    return {
        "command": "run",
        "dataset": spec.dataset,
        "model": spec.model,
        "method": spec.method,
        "labels": spec.labels,
        "rows": [{key: row[key] for key in keys} for row in result.rows],
        "summary": result.summary(),
        "paper": spec.published() or None,
    }


def show(result: RunResult[RunSpec]) -> None:
    """Print a row a seed, then the mean with the paper's figure beside it."""
    from rich.table import Table

    spec = result.spec
    summary = result.summary()
    title = f"{spec.dataset} · {spec.model} · {spec.method} · labels: {spec.labels}"
    table = Table(title=verbatim(title), title_justify="left")
    for column in ("seed", "untouched", spec.method, "difference"):
        table.add_column(column, justify="right")
    for row in result.rows:
        note = " (left unchanged)" if row["kept"] and spec.method != "none" else ""
        difference = f"{row['accuracy'] - row['base']:+.2f}{note}"
        table.add_row(str(row["seed"]), f"{row['base']:.2f}", f"{row['accuracy']:.2f}", difference)
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
        figures = [_spread(paper.get(row)) for row in ("sgc", "neural")]
        table.add_row("paper", *figures, "", style="dim")
    console().print(table)
    if paper:
        console().print(
            "[dim]paper: its SGC row, and its neural controller (one class replaced).[/]"
        )
    show_decisions(result)


def show_decisions(result: RunResult[AnySpec]) -> None:
    """Print what was decided, and why: a sentence, with the seeds that it is about."""
    seeds: dict[str, list[str]] = {}
    for row in result.rows:
        seeds.setdefault(str(row["decision"].get("reason", "")), []).append(str(row["seed"]))
    for reason in filter(None, seeds):
        which = f"seed {', '.join(seeds[reason])}: " if len(seeds) > 1 else ""
        console().print(verbatim(f"{which}{reason}"), style="dim", highlight=False)


def _spread(figure: list[float] | None) -> str:
    return "" if figure is None else plus_minus(*figure)
