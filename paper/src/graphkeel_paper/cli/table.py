"""The paper's tables with our measurements beside the published numbers, and five of our own.

  keel-paper table 1                                       every row, ten seeds, all five datasets
  keel-paper table 1 --quick --datasets digits             two seeds, nothing downloaded
  keel-paper table 1 --only auto,t3a,cs --datasets cora,citeseer
  keel-paper table 1 --only auto,t3a,cs,smooth,lame,lp --labels train+half-val
  keel-paper table 1 --only auto,t3a,cs --model gcn --features rownorm --datasets cora
  keel-paper table 3 --format md                           the controllers
  keel-paper table reach                                   is the published gain reachable?
  keel-paper table adapt                                   a frozen model on another graph
  keel-paper table adapt --pairs twitch                    six pairs of one kind
  keel-paper table adapt --pairs citationv1:dblpv7 --target-labels 0,20 --seeds 2
  keel-paper table citations                               the field's own pairs, beside A2GNN
  keel-paper table ingraph                                 every label serving, beside retraining
  keel-paper table examination                             what no choice was made on
  keel-paper table 1 --plan                                what is missing, and its hours
  keel-paper table --from tables/table-1.json              from the stored runs
  keel-paper table 1 --only auto --from tables/table-1.json  auto anew, others from it

Every finished job (row, dataset, seed) is kept in OUT/measurements.sqlite: started again after a
kill, nothing is computed twice. OUT also receives the table as text, Markdown and JSON;
the JSON file holds every run behind it. Each row is compared with the untouched SGC on the same
seeds, and with one that is tuned on validation. A first seed that takes more processor time than
--row-budget is stopped; its cell stays empty and says so."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from graphkeel.cli.shared.common import (
    EXIT_DONE,
    add_options,
    console,
    emit,
    emit_lines,
    jobs_type,
    make_out_dir,
    path_type,
    say_reused,
    verbatim,
    whole_number,
)
from graphkeel.cli.shared.width import terminal_width
from graphkeel.core.errors import ConfigError
from graphkeel.core.signals import raise_pending
from graphkeel_paper.cli.columns import in_columns

if TYPE_CHECKING:
    from graphkeel.store.job import Job, Measurement
    from graphkeel.store.store import Store
    from graphkeel_paper.tables.filled import Filled
    from graphkeel_paper.tables.plan import Plan

HELP = "the paper's tables, measured: every row beside its published number"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add(
        "table",
        nargs="?",
        choices=("1", "3", "reach", "adapt", "citations", "ingraph", "examination"),
        help="1: all methods; 3: the controllers; reach: readings of the paper's row; "
        "adapt: another graph; citations: the field's own pairs; ingraph: every label; "
        "examination: what no choice was made on",
    )
    add(
        "--from",
        dest="stored",
        type=path_type,
        metavar="FILE",
        help="compute a stored table again from its runs; with a table: take the cells from it that"
        " are not measured anew; with --plan: take the seconds from it",
    )
    words = "print what is missing and its hours; compute nothing"
    add("--plan", action="store_true", help=words)
    seeds = {"default": 10, "help": "how many seeds (default 10)"}
    add_options(parser, "--seeds", seeds=seeds)
    add("--quick", action="store_true", help="at most 2 seeds")
    add("--only", type=_names, metavar="ROWS", help="rows, separated by commas")
    words = "separated by commas (default: the paper's)"
    add("--datasets", type=_names, metavar="NAMES", help=words)
    words = "of tables adapt and citations: source:target, or all pairs of citations or of twitch, "
    words += "separated by commas (default: citations,twitch; citations)"
    add("--pairs", type=_pairs, metavar="PAIRS", help=words)
    words = "of table adapt: label counts (default 0,20,50,100,500), and citations (0,100)"
    add("--target-labels", type=_counts, metavar="N,…", help=words)
    words = "labels the rows may use: train, train+half-val, train+val"
    add("--labels", default="train", help=words)
    add(
        "--model",
        help="the frozen model: sgc (the paper's, default), gcn, gat, sage, appnp, or one with "
        "-tuned; of table ingraph: sgc or gcn (default: both)",
    )
    words = "auto (the paper's protocol), raw, rownorm, pca or pca-raw"
    add("--features", default="auto", help=words)
    words = "processor time a job may take, 0: any (default 600)"
    add("--row-budget", type=_budget, default=600.0, metavar="SECONDS", help=words)
    add("--format", choices=("text", "md"), default="text", help="what is printed")
    cores = os.cpu_count() or 1
    add("--jobs", type=jobs_type, default=cores, metavar="N", help="worker processes")
    add("--retry", action="store_true", help="compute jobs again that failed before")
    words = "accept measurements that other code has made"
    add("--any-code", action="store_true", help=words)
    add("--no-run", action="store_true", help="compute nothing: show what is stored")
    out = "where measurements and tables are kept (default: tables)"
    add_options(parser, "--seed", "--out", "--json", out=out)


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def _pairs(text: str) -> list[tuple[str, str]]:
    from graphkeel_paper.tables.adapt import FAMILIES

    pairs: list[tuple[str, str]] = []
    for name in _names(text):
        source, colon, target = name.partition(":")
        if name not in FAMILIES and not (source and colon and target and ":" not in target):
            families = " or ".join(FAMILIES)
            raise argparse.ArgumentTypeError(f"must be source:target,… or {families} (got {text})")
        pairs += FAMILIES.get(name, [(source, target)])
    if not pairs:
        raise argparse.ArgumentTypeError(f"names no pair (got {text!r})")
    return pairs


def _budget(text: str) -> float | None:
    return float(whole_number(0, 10_000_000)(text)) or None


def _counts(text: str) -> list[int]:
    counts = [int(name) for name in _names(text)]
    if not counts or min(counts) < 0:
        raise argparse.ArgumentTypeError(f"must be counts, 0 or more (got {text})")
    return counts


def run(args: argparse.Namespace) -> int:
    from graphkeel.store.job import package_versions
    from graphkeel.store.store import FILE, Store
    from graphkeel_paper.tables.filled import Filled, joined, read_table, recomputed

    if args.stored is not None and args.table is None and not args.plan:
        return _show_stored(args)
    plan = _plan(args)
    out = make_out_dir(args.out or Path("tables"))
    store = Store(out / FILE, versions=package_versions())
    if args.plan:
        emit_lines(_forecast(args, plan.jobs, store))
        return EXIT_DONE
    if not args.no_run:
        compute(args, plan.jobs, store)
    filled = Filled.stored(plan, store, any_code=args.any_code)
    if args.stored is not None:
        filled = joined(filled, recomputed(read_table(args.stored)))
    filled.write(out)
    return _show(args, filled)


def _show_stored(args: argparse.Namespace) -> int:
    """A table from its own file; with --out it is written there in every format."""
    from graphkeel_paper.tables.filled import read_table, recomputed

    filled = recomputed(read_table(args.stored))
    if args.out is not None:
        filled.write(make_out_dir(args.out))
    return _show(args, filled)


def _show(args: argparse.Namespace, filled: Filled) -> int:
    width = terminal_width() if args.format == "text" else None
    lines = filled.render(args.format).splitlines()
    lines = lines if width is None else in_columns(lines, width)
    return emit(args, filled.payload(), lambda: emit_lines(lines))


def _missing(args: argparse.Namespace, jobs: list[Job], store: Store) -> list[Job]:
    from graphkeel_paper.tables.grid import missing_jobs

    known = {"any_code": args.any_code, "retry": args.retry, "row_budget": args.row_budget}
    return missing_jobs(jobs, store, **known)


def _forecast(args: argparse.Namespace, jobs: list[Job], store: Store) -> list[str]:
    """The missing jobs, and their time as far as it was ever measured."""
    from graphkeel_paper.tables.filled import read_table
    from graphkeel_paper.tables.grid import RowCosts, forecast, times_of

    stored = {} if args.stored is None else times_of(read_table(args.stored))
    times = {**stored, **store.typical_seconds()}
    costs = RowCosts.stored(jobs, store, args.row_budget, any_code=args.any_code)
    each = list({job.key: job for job in jobs}.values())  # a job may fill several cells
    waiting = _missing(args, each, store)
    return forecast(waiting, times, costs, args.jobs, wanted=len(each))


def _plan(args: argparse.Namespace) -> Plan:
    """The rows, columns and jobs of the table that was asked for."""
    from graphkeel_paper.tables.filled import TABLES
    from graphkeel_paper.tables.plan import Request

    if args.table is None:
        raise ConfigError(
            "keel-paper table needs a table or a file",
            fix="Name one, such as keel-paper table 1, or give a stored one: --from FILE.",
        )
    count = min(args.seeds, 2) if args.quick else args.seeds
    request = Request(
        range(args.seed, args.seed + count),
        only=args.only,
        datasets=args.datasets,
        pairs=args.pairs,
        counts=args.target_labels,
        labels=args.labels,
        model=args.model,
        features=args.features,
        row_budget=args.row_budget,
    )
    name = int(args.table) if args.table.isdigit() else args.table
    return TABLES[name].plan(request)


def compute(args: argparse.Namespace, jobs: list[Job], store: Store) -> None:
    """Compute the missing jobs, with a progress bar and an estimate of what is left."""
    from graphkeel_paper.tables.grid import RowCosts, run_grid

    costs = RowCosts.stored(jobs, store, args.row_budget, any_code=args.any_code)
    missing = _missing(args, jobs, store)
    waiting = [job for job in missing if not costs.is_over(job)]
    wanted = len({job.key for job in jobs})
    reused = wanted - len({job.key for job in missing})
    if reused:
        say_reused(f"{reused} of {wanted} measurements", args.out or Path("tables"))
    if waiting:
        with _progress(len(jobs) - len(waiting), len(waiting)) as on_job:
            run_grid(waiting, store, args.jobs, on_job=on_job, costs=costs)


@contextmanager
def _progress(done: int, waiting: int) -> Iterator[Callable[[Job, Measurement], None]]:
    """A bar over the jobs, and the time left as the finished ones suggest it."""
    from rich.progress import MofNCompleteColumn, Progress, TimeElapsedColumn

    columns = (*Progress.get_default_columns(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console(stderr=True)) as bar:
        task = bar.add_task("jobs", total=done + waiting, completed=done)

        def on_job(job: Job, measurement: Measurement) -> None:
            what = f"{job.spec.dataset} {job.row} seed {job.seed}"
            bar.update(task, advance=1, description=verbatim(what))
            raise_pending()
            if not measurement.done:
                failure = f"{what} failed: {measurement.message}"
                bar.console.print(verbatim(failure), style="yellow")

        yield on_job
