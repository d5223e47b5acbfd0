"""A first result in a minute, on data that is already here: 1,797 handwritten digits, nothing
downloaded.

A graph network is trained on a biased handful of labels and frozen. graphkeel then rewrites the
node features at test time, first with the training labels alone, then with labels that arrive
later, and the same frozen weights answer again. With --out the picture is written as a PNG as
well."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from graphkeel.cli.shared.common import add_options, console, emit, make_out_dir
from graphkeel.core.statistics import plus_minus

if TYPE_CHECKING:
    from graphkeel.runs.run import RunResult
    from graphkeel.runs.specs import RunSpec

HELP = "a first result in a minute, nothing downloaded"

_STEPS = (
    ("training labels only", "train"),
    ("half of the validation labels fed back", "train+half-val"),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    seeds = {"default": 5, "help": "biased splits to run (default 5)"}
    out = "write demo.png and the rows of every seed here"
    add_options(parser, "--seeds", "--seed", "--out", "--json", seeds=seeds, out=out)


def run(args: argparse.Namespace) -> int:
    from graphkeel.runs.specs import RunSpec

    if args.out is not None:
        make_out_dir(args.out)
    seeds = range(args.seed, args.seed + args.seeds)
    results: dict[str, RunResult] = {}
    for title, labels in _STEPS:
        show_first = not args.json and not results
        results[title] = _run(
            RunSpec(method="auto", labels=labels),
            seeds,
            args.out and args.out / labels,
            show_first=show_first,
        )
    if args.out is not None:
        draw(results, args.out / "demo.png")
    steps = {title: _numbers(result) for title, result in results.items()}
    payload = {"command": "demo", "dataset": "digits", "steps": steps}
    return emit(args, payload, lambda: _show(results))


def _run(spec: RunSpec, seeds: range, out: Path | None, *, show_first: bool) -> RunResult:
    """All splits; the first one is shown as soon as it is there, the others with it."""
    from graphkeel.cli.run import run_with_progress
    from graphkeel.runs.run import RunResult

    first = run_with_progress(spec, seeds[:1], out=out)
    if show_first:
        _show_heading(console())
        _show_bars(console(), first.rows)
    others = run_with_progress(spec, seeds[1:], out=out) if len(seeds) > 1 else None
    if others is None:
        return first
    if show_first:
        _show_bars(console(), others.rows)
    return RunResult(spec, [*first.rows, *others.rows], first.reused + others.reused)


def _numbers(result: RunResult) -> dict[str, Any]:
    return {
        "rows": [{k: r[k] for k in ("seed", "base", "accuracy", "kept")} for r in result.rows],
        **result.summary(),
    }


def _show(results: dict[str, RunResult]) -> None:
    from rich.table import Table

    out = console()
    first = next(iter(results.values()))
    out.print()
    table = Table(
        "",
        "test accuracy",
        "gain",
        "worst seed",
        title="mean ± std over the splits",
        title_justify="left",
    )
    summary = first.summary()
    table.add_row(
        "untouched frozen model", plus_minus(summary["base_mean"], summary["base_std"]), "", ""
    )
    for title, result in results.items():
        s = result.summary()
        accuracy = plus_minus(s["accuracy_mean"], s["accuracy_std"])
        table.add_row(
            f"reconstructed, {title}", accuracy, f"{s['gain_mean']:+.2f}", f"{s['gain_min']:+.2f}"
        )
    out.print(table)
    out.print(
        "\nThe weights are the same in every row; only the node features were rewritten. Next:\n"
        "  keel certify --out runs/digits      prove the class controllers stable\n"
        "  keel check runs/digits/certificate.json\n",
        highlight=False,
    )


def _show_heading(out: Any) -> None:
    out.print(
        "[bold]digits[/]: a 6-nearest-neighbour graph, an SGC trained on 20 biased labels a class, "
        "frozen.\n"
    )


def _show_bars(out: Any, rows: list[dict[str, Any]], width: int = 50) -> None:
    """One bar a seed: what the untouched model got right, and what the reconstruction added."""
    for row in rows:
        kept, ours = (round(width * row[key] / 100) for key in ("base", "accuracy"))
        low, high = min(kept, ours), max(kept, ours)
        colour = "green" if ours >= kept else "red"
        bar = f"[blue]{'█' * low}[/][{colour}]{'█' * (high - low)}[/][dim]{'·' * (width - high)}[/]"
        out.print(
            f"split {row['seed']:>2}  {bar}  {row['base']:.1f} → [bold]{row['accuracy']:.1f}[/]",
            highlight=False,
        )


def draw(results: dict[str, RunResult], path: Path) -> None:
    """The picture for a page: untouched and reconstructed accuracy of each split."""
    from graphkeel.core.files import replacing
    from graphkeel.core.optional import import_optional

    matplotlib = import_optional("matplotlib", extra="report")
    matplotlib.use("Agg")
    pyplot = import_optional("matplotlib.pyplot", extra="report")
    colours = ("#2a78b5", "#2f9e62")
    figure, axes = pyplot.subplots(figsize=(7.2, 3.6), layout="constrained")
    first = next(iter(results.values()))
    splits = [row["seed"] for row in first.rows]
    axes.plot(
        splits,
        [row["base"] for row in first.rows],
        "o",
        color="#888888",
        label="untouched",
        zorder=3,
    )
    for (title, result), colour in zip(results.items(), colours, strict=True):
        ours = [row["accuracy"] for row in result.rows]
        axes.plot(splits, ours, "o", color=colour, label=title, zorder=3)
        axes.axhline(result.summary()["accuracy_mean"], color=colour, lw=0.8, ls=":")
    top = [max(r.rows[i]["accuracy"] for r in results.values()) for i in range(len(splits))]
    axes.vlines(splits, [row["base"] for row in first.rows], top, color="#cccccc", lw=1.5, zorder=1)
    axes.axhline(first.summary()["base_mean"], color="#888888", lw=0.8, ls=":")
    axes.set(
        xlabel="biased split",
        ylabel="test accuracy, %",
        xticks=splits,
        title="digits: the same weights, before and after",
    )
    axes.spines[["top", "right"]].set_visible(False)
    figure.legend(frameon=False, fontsize=8, loc="outside lower center", ncols=3)
    with replacing(path) as unfinished:
        figure.savefig(unfinished, dpi=150, format="png")
    pyplot.close(figure)
