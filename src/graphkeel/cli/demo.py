"""A first result in a minute, on data that is already here: 1,797 handwritten digits, nothing
downloaded.

A graph network is trained on a biased handful of labels and frozen. graphkeel then rewrites the
node features at test time, first with the training labels alone, then with labels that arrive
later, and the same frozen weights answer again. With --out every finished split is kept."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from graphkeel.cli.shared.common import add_options, console, emit, make_out_dir, say_reused
from graphkeel.core.statistics import plus_minus

if TYPE_CHECKING:
    from graphkeel.runs.run import RunResult

HELP = "a first result in a minute, nothing downloaded"

_STEPS = {
    "training labels only": "train",
    "half of the validation labels fed back": "train+half-val",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    seeds = {"default": 5, "help": "biased splits to run (default 5)"}
    out = "write the rows of every split here"
    add_options(parser, "--seeds", "--seed", "--out", "--json", seeds=seeds, out=out)


def run(args: argparse.Namespace) -> int:
    if args.out is not None:
        make_out_dir(args.out)
    results = {title: _run(args, labels) for title, labels in _STEPS.items()}
    steps = {title: _numbers(result) for title, result in results.items()}
    payload = {"command": "demo", "dataset": "digits", "steps": steps}
    return emit(args, payload, lambda: _show(results))


def _run(args: argparse.Namespace, labels: str) -> RunResult:
    """All splits with these labels; of the first step each is shown as soon as it is there."""
    from graphkeel.core.signals import raise_pending
    from graphkeel.runs.run import run_seeds
    from graphkeel.runs.specs import RunSpec

    show = labels == "train" and not args.json
    if show:
        words = "a 6-nearest-neighbour graph, an SGC trained on 20 biased labels a class, frozen."
        console().print(f"[bold]digits[/]: {words}\n")

    def on_row(row: dict[str, Any]) -> None:
        if show:
            _show_bar(row)
        raise_pending()

    out = args.out and args.out / labels
    seeds = range(args.seed, args.seed + args.seeds)
    result = run_seeds(RunSpec(method="auto", labels=labels), seeds, out=out, on_row=on_row)
    if result.reused:
        say_reused(f"{result.reused} of {len(result.rows)} splits", out)
    return result


def _numbers(result: RunResult) -> dict[str, Any]:
    names = ("seed", "base", "accuracy", "kept")
    return {"rows": [{k: row[k] for k in names} for row in result.rows], **result.summary()}


def _show_bar(row: dict[str, Any], width: int = 50) -> None:
    """A bar: right without a change, and what the reconstruction added."""
    before, after = (round(width * row[key] / 100) for key in ("base", "accuracy"))
    low, high = min(before, after), max(before, after)
    colour = "green" if after >= before else "red"
    bar = f"[blue]{'█' * low}[/][{colour}]{'█' * (high - low)}[/][dim]{'·' * (width - high)}[/]"
    words = f"{row['base']:.1f} → [bold]{row['accuracy']:.1f}[/]"
    console().print(f"split {row['seed']:>2}  {bar}  {words}", highlight=False)


def _show(results: dict[str, RunResult]) -> None:
    from rich.table import Table

    table = Table("", "test accuracy", "gain", "worst split")
    (first, *_) = summaries = [result.summary() for result in results.values()]
    untouched = plus_minus(first["base_mean"], first["base_std"])
    table.add_row("untouched frozen model", untouched, "", "")
    for title, found in zip(results, summaries, strict=True):
        accuracy = plus_minus(found["accuracy_mean"], found["accuracy_std"])
        gains = f"{found['gain_mean']:+.2f}", f"{found['gain_min']:+.2f}"
        table.add_row(f"reconstructed, {title}", accuracy, *gains)
    console().print("\nmean ± std over the splits", table, sep="\n")
    console().print(
        "The weights are the same in every row; only the node features changed. Next:\n"
        "  keel certify --out runs/digits      prove the class controllers stable\n"
        "  keel check runs/digits/certificate.json",
        highlight=False,
    )
