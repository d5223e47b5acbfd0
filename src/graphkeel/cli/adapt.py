"""Take a model that was trained on one graph to another one, without retraining it.

  keel adapt --source citationv1.npz --target dblpv7.npz
  keel adapt --source citationv1.npz --target dblpv7.npz --target-labels 20
  keel adapt --source old.npz --target new.npz --target-labels known.csv --out runs/new
  keel adapt --source old.npz --target new.npz --weights net.pt --factory net:make

Source and target have the same features and classes. The model is trained on the source and
frozen, or is one of your own; nothing else of the source is needed. Labels of the target are drawn
at random (a number) or named by a CSV file with the header node,label. Accuracies are percent of
the target's nodes whose label is not in use."""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

from graphkeel.cli.run import OUT, run_spec
from graphkeel.cli.shared.common import OWN_MODEL, add_options, path_type, whole_number
from graphkeel.cli.shared.own_model import OWN, chosen_method, chosen_model, own_split, specs

HELP = "the same frozen weights on another graph, with few labels there or none"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    data = "a dataset's name or a graph of your own as FILE.npz"
    add("--source", required=True, metavar="NAME|FILE", help=f"where: {data}")
    add("--target", required=True, metavar="NAME|FILE", help=f"whereto: {data}")
    words = "labels known on the target: how many, or a CSV file (default 0)"
    add("--target-labels", type=_labels, default=0, metavar="N|FILE", help=words)
    add_options(parser, "--model")
    words = "auto (default), none, or a control: no-model, random-weights; keel-paper has rivals"
    add("--method", default="auto", help=words)
    seeds = "how many seeds, from --seed on (default 5; 1 for a model of your own)"
    add_options(parser, "--class-weight", "--seeds", seeds=seeds)
    words = "of the source: most (four fifths train), biased, random or public (default most; "
    words += "with --weights public, where the source has masks)"
    add("--split", help=words)
    words = "auto (components of the source), raw or rownorm (default auto; raw with --weights)"
    add("--features", help=words)
    add_options(parser, *OWN_MODEL)
    add_options(parser, "--seed", "--out", "--json", out=OUT)


def _labels(text: str) -> int | str:
    if text.lstrip("-").isdecimal():
        return whole_number(0, 10_000_000)(text)
    return str(path_type(text))


def run(args: argparse.Namespace) -> int:
    model, options = chosen_model(args)
    own = model == OWN
    spec = specs(args).AdaptSpec(
        source=args.source,
        target=args.target,
        model=model,
        method=chosen_method(args),
        target_labels=args.target_labels,
        split=args.split or "most",
        features=args.features or ("raw" if own else "auto"),
        model_options=options,
    )
    if own and args.split is None:
        spec = replace(spec, split=own_split(spec.graph(spec.source), spec.split))
    if isinstance(spec.target_labels, str):
        Path(spec.target_labels).stat()  # a wrong name fails before anything is trained
    return run_spec(args, spec, usual_seeds=5)
