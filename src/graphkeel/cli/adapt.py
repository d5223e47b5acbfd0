"""Take a model that was trained on one graph to another one, without retraining it.

  keel adapt --source citationv1.npz --target dblpv7.npz
  keel adapt --source citationv1.npz --target dblpv7.npz --target-labels 20 --keep summary
  keel adapt --source old.npz --target new.npz --target-labels known.csv --out runs/new
  keel adapt --source old.npz --target new.npz --weights net.pt --factory net:make

Source and target have the same features and classes. The model is trained on the source and
frozen, or is one of your own; labels of the target are drawn at random (a number) or named by a CSV
file with the header node,label. --keep says what may be kept of the source: the graph itself, a
summary of it (sizes alone), or nothing but the model; the answers are the same. Accuracies are
percent of the target's nodes whose label is not in use."""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from graphkeel.cli.run import run_with_progress, show_decisions
from graphkeel.cli.shared.common import (
    EXIT_DONE,
    add_common,
    console,
    emit_json,
    make_out_dir,
    path_type,
    positive_int,
    verbatim,
    whole_number,
)
from graphkeel.cli.shared.own_model import (
    OWN,
    add_class_weight,
    add_own_model,
    chosen_method,
    chosen_model,
    own_split,
    specs,
)
from graphkeel.core.statistics import plus_minus

if TYPE_CHECKING:
    from graphkeel.runs.run import RunResult
    from graphkeel.runs.specs import AdaptSpec

HELP = "the same frozen weights on another graph, with few labels there or none"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The flags of this command."""
    data = "a dataset's name or a graph of your own as FILE.npz"
    parser.add_argument("--source", required=True, metavar="NAME|FILE", help=f"where: {data}")
    parser.add_argument("--target", required=True, metavar="NAME|FILE", help=f"whereto: {data}")
    parser.add_argument(
        "--target-labels",
        type=_labels,
        default=0,
        metavar="N|FILE",
        help="labels known on the target: how many, or a CSV file (default 0)",
    )
    parser.add_argument(
        "--keep",
        default="graph",
        help="what may be kept of the source: graph, summary or model (default graph)",
    )
    parser.add_argument("--model", default="sgc", help="sgc, gcn, gat, sage or appnp (default sgc)")
    parser.add_argument(
        "--method",
        default="auto",
        help="auto (default), none, or a control: no-model, random-weights; keel-paper has rivals",
    )
    add_class_weight(parser)
    parser.add_argument(
        "--seeds",
        type=positive_int,
        default=None,
        metavar="N",
        help="how many seeds, from --seed on (default 5; 1 for a model of your own)",
    )
    parser.add_argument(
        "--split",
        default=None,
        help="of the source: most (four fifths train), biased, random or public (default most; "
        "with --weights public, where the source has masks)",
    )
    parser.add_argument(
        "--features",
        default=None,
        help="auto (components of the source), raw or rownorm (default auto; raw with --weights)",
    )
    add_own_model(parser)
    parser.add_argument(
        "--components",
        type=positive_int,
        default=32,
        metavar="K",
        help="of --features auto (default 32)",
    )
    add_common(parser, out_help="keep rows, decisions and features here; the run can be continued")


def _labels(text: str) -> int | str:
    """How many labels, or the file that names them."""
    if text.lstrip("-").isdecimal():
        return whole_number(0, 10_000_000)(text)
    return str(path_type(text))


def run(args: argparse.Namespace) -> int:
    """Run the command; returns its exit code."""
    model, options = chosen_model(args)
    own = model == OWN
    spec = specs(args).AdaptSpec(
        source=args.source,
        target=args.target,
        model=model,
        method=chosen_method(args),
        keep=args.keep,
        target_labels=args.target_labels,
        split=args.split or "most",
        features=args.features or ("raw" if own else "auto"),
        components=args.components,
        model_options=options,
    )
    if own and args.split is None:
        spec = replace(spec, split=own_split(spec.graph(spec.source), spec.split))
    if isinstance(spec.target_labels, str):
        Path(spec.target_labels).stat()  # a wrong name fails before anything is trained
    spec.check(args.seed)
    if args.out is not None:
        make_out_dir(args.out)
    seeds = args.seeds or (1 if own else 5)
    result = run_with_progress(spec, range(args.seed, args.seed + seeds), out=args.out)
    if args.json:
        emit_json(payload(result))
    else:
        show(result)
    return EXIT_DONE


def payload(result: RunResult[AdaptSpec]) -> dict[str, Any]:
    """The stable JSON object of `keel adapt --json`."""
    spec = result.spec
    keys = ("seed", "base", "accuracy", "balanced_base", "balanced", "kept")
    return {
        "command": "adapt",
        "source": spec.source,
        "target": spec.target,
        "target_labels": spec.target_labels,
        "keep": spec.keep,
        "model": spec.model,
        "method": spec.method,
        "rows": [{key: row[key] for key in keys} for row in result.rows],
        "summary": result.summary(),
    }


def show(result: RunResult[AdaptSpec]) -> None:
    """Print a row a seed, then the mean."""
    from rich.table import Table

    spec = result.spec
    summary = result.summary()
    title = f"{spec.dataset} · {spec.model} · {spec.method} · {spec.target_labels} target labels"
    table = Table(title=verbatim(f"{title} · keeps the {spec.keep}"), title_justify="left")
    for column in ("seed", "untouched", spec.method, "difference", "balanced"):
        table.add_column(column, justify="right")
    for row in result.rows:
        note = " (left unchanged)" if row["kept"] and spec.method != "none" else ""
        balanced = f"{row['balanced_base']:.2f} → {row['balanced']:.2f}"
        table.add_row(
            str(row["seed"]),
            f"{row['base']:.2f}",
            f"{row['accuracy']:.2f}",
            f"{row['accuracy'] - row['base']:+.2f}{note}",
            balanced,
        )
    table.add_section()
    table.add_row(
        "mean ± std",
        plus_minus(summary["base_mean"], summary["base_std"]),
        plus_minus(summary["accuracy_mean"], summary["accuracy_std"]),
        f"{summary['gain_mean']:+.2f}",
        "",
        style="bold",
    )
    console().print(table)
    show_decisions(result)
