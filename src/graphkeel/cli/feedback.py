"""Let labels that arrive later improve the features, without touching the weights.

  keel feedback --simulate 300                        digits: 300 labels arrive in five batches
  keel feedback --dataset my_graph.npz --simulate 200 --batches 4
  keel feedback --dataset my_graph.npz --split public --suggest 50 --to wanted.csv
  keel feedback --dataset my_graph.npz --split public --labels wanted.csv --out runs/updated

--suggest writes the nodes whose labels would help most, for a person to fill in and hand back with
--labels: as CSV with their likely classes, neighbours and known labels nearby, or, where the name
ends in .json, as tasks of Label Studio, whose export --labels reads. Lines without a label are
skipped. `keel label` has a page for the same.

Accuracy is measured on test nodes whose label never arrives, so the steps can be compared. With
--out the features after the last batch are kept in a folder that `graphkeel.load` reads; an
interrupted run continues with the batch it was at."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from graphkeel.cli.shared.common import (
    SPEC,
    add_options,
    console,
    emit,
    emit_lines,
    make_out_dir,
    path_type,
    positive_int,
    verbatim,
)
from graphkeel.cli.shared.own_model import chosen_spec, model_name

if TYPE_CHECKING:
    from graphkeel.graph import GraphTask
    from graphkeel.label.files import Batch
    from graphkeel.runs.feedback import Step
    from graphkeel.runs.specs import RunSpec

HELP = "take in labels that arrive later: new features, the same weights"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_options(parser, *SPEC)
    source = parser.add_mutually_exclusive_group(required=True)
    words = "a CSV file with columns node and label, or Label Studio's export (.json)"
    source.add_argument("--labels", type=path_type, metavar="FILE", help=words)
    words = "let the labels of N random test nodes arrive"
    source.add_argument("--simulate", type=positive_int, metavar="N", help=words)
    words = "write the N nodes whose labels would help most, to be filled in"
    source.add_argument("--suggest", type=positive_int, metavar="N", help=words)
    words = "the file that --suggest writes, .csv or .json (default: suggested.csv, in --out)"
    parser.add_argument("--to", type=path_type, metavar="FILE", help=words)
    words = "batches of --simulate (default 5)"
    parser.add_argument("--batches", type=positive_int, default=5, metavar="B", help=words)
    add_options(parser, "--seed", "--out", "--json", out="keep the final reconstruction here")


def run(args: argparse.Namespace) -> int:
    from graphkeel.core.signals import raise_pending
    from graphkeel.label import read_labels
    from graphkeel.runs.feedback import run_feedback, simulated

    spec = chosen_spec(args)
    spec.check(args.seed)
    file = None if args.labels is None else read_labels(args.labels)
    if args.out is not None:
        make_out_dir(args.out)
    if args.suggest is not None:
        return _suggest(args, spec)
    steps: list[Step] = []

    def batches(task: GraphTask) -> list[Batch]:
        if file is not None:
            return [file]
        return simulated(task, args.simulate, args.batches, args.seed)

    for step in run_feedback(spec, args.seed, batches, out=args.out):
        steps.append(step)
        raise_pending()
        console(stderr=True).print(
            verbatim(f"{step.known} labels: {step.reason}"), style="dim", highlight=False
        )
    found = {"dataset": args.dataset, "steps": [asdict(step) for step in steps]}
    return emit(args, {"command": "feedback", **found}, lambda: _show(args, steps))


def _suggest(args: argparse.Namespace, spec: RunSpec) -> int:
    from graphkeel.label.files import write_rows
    from graphkeel.label.view import View
    from graphkeel.runs.feedback import fitted

    path = args.to or (args.out or Path()) / "suggested.csv"
    rec, data = fitted(spec, args.seed)
    nodes = rec.suggest(args.suggest)
    view = View.of(rec, data)
    write_rows(path, [view.row(node) for node in nodes.tolist()])
    found = {"dataset": args.dataset, "suggested": nodes.tolist(), "file": str(path)}
    lines = [
        f"{len(nodes)} nodes to label, the most helpful first: {path}",
        f"Fill in their labels, then: keel feedback … --labels {path}",
    ]
    return emit(args, {"command": "feedback", **found}, lambda: emit_lines(lines))


def _show(args: argparse.Namespace, steps: list[Step]) -> None:
    from rich.table import Table

    table = Table(
        title=verbatim(f"{args.dataset} · {model_name(args)} · labels arriving"),
        title_justify="left",
    )
    for column in ("labels in use", "untouched", "reconstructed", "gain", "seconds"):
        table.add_column(column, justify="right")
    for step in steps:
        note = " (left unchanged)" if step.kept else ""
        gain = f"{step.accuracy - step.base:+.2f}{note}"
        table.add_row(
            str(step.known), f"{step.base:.2f}", f"{step.accuracy:.2f}", gain, f"{step.seconds:.2f}"
        )
    console().print(table)
