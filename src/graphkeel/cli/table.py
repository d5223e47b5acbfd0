"""The paper's tables with our measurements beside the published numbers.

  keel table 1                                       every row, ten seeds, all five datasets
  keel table 1 --quick --datasets digits             two seeds, nothing downloaded
  keel table 1 --only auto,t3a,cs --datasets cora,citeseer
  keel table 1 --only auto,t3a,cs,smooth,lame,lp --labels train+half-val
  keel table 1 --only auto,t3a,cs --model gcn --features rownorm --datasets cora
  keel table 3 --format md                           the controllers
  keel table 1 --backend dask --address HOST:8786    on a cluster (dask or ray)

Every finished cell (row, dataset, seed) is kept in OUT/cells.sqlite: started again after a kill,
nothing is computed twice. OUT also receives the table as text, Markdown, LaTeX, CSV and JSON. Each
row is compared with the untouched SGC on the same seeds. MH-AUG and KDGA run --heavy-seeds seeds on
pubmed, photo and computers; the table prints how many."""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from graphkeel.cli.common import (
    EXIT_DONE,
    add_common,
    console,
    emit_json,
    emit_lines,
    jobs_type,
    make_out_dir,
    positive_int,
    verbatim,
    whole_number,
)
from graphkeel.cli.signals import end_if_asked
from graphkeel.cli.width import fitted, terminal_width

if TYPE_CHECKING:
    from graphkeel.paper.tables.cells import Cell, CellStore, Measured
    from graphkeel.paper.tables.grid import Workers
    from graphkeel.paper.tables.tables import Place

HELP = "the paper's tables, measured: every row beside its published number"

QUICK_SEEDS = 2


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "table", type=int, choices=(1, 3), help="1: all methods; 3: the controllers"
    )
    parser.add_argument(
        "--seeds", type=positive_int, default=10, metavar="N", help="how many seeds (default 10)"
    )
    parser.add_argument("--quick", action="store_true", help=f"at most {QUICK_SEEDS} seeds")
    parser.add_argument(
        "--only", type=_names, default=None, metavar="ROWS", help="rows, separated by commas"
    )
    parser.add_argument(
        "--datasets",
        type=_names,
        default=None,
        metavar="NAMES",
        help="separated by commas (default: the paper's)",
    )
    parser.add_argument(
        "--labels",
        default="train",
        help="labels the rows may use: train, train+half-val, train+val",
    )
    parser.add_argument(
        "--model",
        default="sgc",
        help="the frozen model: sgc (the paper's), gcn, gat, sage or appnp",
    )
    parser.add_argument(
        "--features", default="auto", help="auto (the paper's protocol), raw, rownorm or pca"
    )
    parser.add_argument(
        "--heavy-seeds",
        type=whole_number(0, 1_000_000),
        default=1,
        metavar="N",
        help="for MH-AUG and KDGA on large graphs (default 1)",
    )
    parser.add_argument(
        "--format", choices=("text", "md", "latex", "csv"), default="text", help="what is printed"
    )
    parser.add_argument(
        "--jobs",
        type=jobs_type,
        default=os.cpu_count() or 1,
        metavar="N",
        help="worker processes",
    )
    parser.add_argument(
        "--backend", choices=("loky", "dask", "ray"), default="loky", help="who runs the workers"
    )
    parser.add_argument(
        "--address", default=None, metavar="HOST:PORT", help="of a dask or ray cluster"
    )
    parser.add_argument(
        "--retry", action="store_true", help="compute cells again that failed before"
    )
    parser.add_argument(
        "--any-code", action="store_true", help="accept stored cells that other code has computed"
    )
    parser.add_argument(
        "--no-run", action="store_true", help="compute nothing: show what is stored"
    )
    add_common(parser, out_help="where cells and tables are kept (default: tables)")


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def run(args: argparse.Namespace) -> int:
    from graphkeel.graph.datasets.names import PAPER_DATASETS
    from graphkeel.paper.tables.cells import FILE, CellStore
    from graphkeel.paper.tables.cost import cost_remarks
    from graphkeel.paper.tables.plan import needed_cells
    from graphkeel.paper.tables.provenance import package_versions
    from graphkeel.paper.tables.render import render
    from graphkeel.paper.tables.rows import select_rows, under
    from graphkeel.paper.tables.tables import fill_table, verdicts

    rows = select_rows(args.table, args.only)
    rows = under(rows, labels=args.labels, model=args.model, features=args.features)
    datasets = args.datasets or list(PAPER_DATASETS)
    seeds = range(
        args.seed, args.seed + (min(args.seeds, QUICK_SEEDS) if args.quick else args.seeds)
    )
    out = make_out_dir(args.out or Path("tables"))
    store = CellStore(out / FILE, versions=package_versions())
    cells = needed_cells(rows, datasets, seeds, heavy_seeds=args.heavy_seeds)
    if not args.no_run:
        _compute(args, cells, store)

    def find(cell: Cell) -> Measured | None:
        return store.find(cell, any_code=args.any_code)

    places = fill_table(args.table, rows, datasets, cells, find, asked=len(seeds))
    remarks = [
        *(verdicts(places, datasets) if args.table == 1 else ()),
        *cost_remarks(rows, cells, find),
    ]
    payload = _payload(args.table, places, remarks, list(seeds))
    _write(out, args.table, places, datasets, remarks, payload)
    if args.json:
        emit_json(payload)
    else:
        text = render(args.table, places, datasets, remarks, args.format)
        width = terminal_width() if args.format == "text" else None
        emit_lines(fitted(text.splitlines(), width))
    return EXIT_DONE


def _compute(args: argparse.Namespace, cells: list[Cell], store: CellStore) -> None:
    """The missing cells, with a progress bar and an estimate of what is left."""
    from graphkeel.paper.tables.grid import Workers, run_grid

    waiting = [
        cell for cell in cells if _missing(store, cell, any_code=args.any_code, retry=args.retry)
    ]
    workers = Workers(args.jobs, args.backend, args.address)
    if waiting:
        with _progress(len(cells) - len(waiting), waiting, store, workers) as on_cell:
            run_grid(waiting, store, workers, on_cell=on_cell)


def _missing(store: CellStore, cell: Cell, *, any_code: bool, retry: bool) -> bool:
    found = store.find(cell, any_code=any_code)
    return found is None or (retry and not found.done)


class _progress:
    """A bar over the cells, and the time left as the finished ones suggest it."""

    def __init__(self, done: int, waiting: list[Cell], store: CellStore, workers: Workers) -> None:
        from rich.progress import (
            BarColumn,
            MofNCompleteColumn,
            Progress,
            TextColumn,
            TimeElapsedColumn,
        )

        from graphkeel.paper.tables.estimate import Estimate

        self.estimate = Estimate(waiting, store.typical_seconds(), workers.jobs)
        self.bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("{task.fields[left]}"),
            console=console(stderr=True),
        )
        self.task = self.bar.add_task(
            "cells", total=done + len(waiting), completed=done, left=self._left()
        )

    def _left(self) -> str:
        seconds = self.estimate.left()
        return "" if seconds is None else f"about {_duration(seconds)} left"

    def __enter__(self) -> Any:
        self.bar.start()
        return self.on_cell

    def __exit__(self, *details: object) -> None:
        self.bar.stop()

    def on_cell(self, cell: Cell, measured: Any) -> None:
        self.estimate.done(cell, measured.seconds)
        what = f"{cell.spec.dataset} {cell.row} seed {cell.seed}"
        self.bar.update(self.task, advance=1, description=verbatim(what), left=self._left())
        end_if_asked()
        if not measured.done:
            self.bar.console.print(verbatim(f"{what} failed: {measured.message}"), style="yellow")


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def _payload(
    table: int, places: list[Place], remarks: list[str], seeds: list[int]
) -> dict[str, Any]:
    """The stable JSON object of `keel table --json`."""
    from graphkeel.paper.tables.provenance import provenance
    from graphkeel.paper.tables.statistics import TEST

    return {
        "command": "table",
        "table": table,
        "rows": [place.as_dict() for place in places],
        "verdicts": remarks,
        "seeds": seeds,
        "test": TEST,
        "provenance": provenance(),
    }


def _write(
    out: Path,
    table: int,
    places: list[Place],
    datasets: list[str],
    remarks: list[str],
    payload: dict[str, Any],
) -> None:
    import json

    from graphkeel.core.files import write_text
    from graphkeel.paper.tables.render import FORMATS, render

    for style, suffix in FORMATS.items():
        text = render(table, places, datasets, remarks, style)
        write_text(out / f"table-{table}.{suffix}", text)
    write_text(out / f"table-{table}.json", json.dumps(payload, indent=1, allow_nan=False) + "\n")
