"""Run a method, ours or a rival, in the paper's protocol, over several seeds.

  keel-paper run --dataset cora --method none --seeds 10    the untouched model
  keel-paper run --dataset cora --method auto --seeds 10 --out runs/cora
  keel-paper run --dataset cora --method t3a --labels train+half-val

Datasets: cora, citeseer, pubmed, photo, computers, files in the folder that GRAPHKEEL_DATA names,
and all that keel run takes. Methods: those of keel run, and rivals such as t3a, cs, smooth, lame,
lp. Models: those of keel run, and with -tuned the same tuned on validation. --split also takes
outside: the biased split scored on nodes that are in no public mask.
"""

from __future__ import annotations

import argparse

from graphkeel.cli import run as plain
from graphkeel.cli.shared.common import positive_int
from graphkeel.cli.shared.own_model import chosen_spec

HELP = "a method on a dataset of the paper, in its protocol, over several seeds"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    plain.add_arguments(parser)
    parser.add_argument(
        "--labels",
        default="train",
        help="labels the method may use: train, train+half-val, train+val (default train)",
    )
    parser.add_argument(
        "--pca",
        type=positive_int,
        default=20,
        metavar="K",
        help="dimensions of --features pca (default 20)",
    )


def run(args: argparse.Namespace) -> int:
    return plain.run_spec(args, chosen_spec(args, labels=args.labels, pca=args.pca))
