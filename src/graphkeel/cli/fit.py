"""Better features for a graph that one machine need not hold: the whole fit on a Dask cluster.

  keel fit graph/ --out better/ --weights net.safetensors --factory net:make
  keel fit graph/ --out better/ --weights net.pt --factory net:make --scheduler tcp://10.0.0.1:8786

FOLDER holds the graph in shards, each an .npy file of some rows: x/00000.npy, x/00001.npy, …
(nodes, features), edge_index/00000.npy, … (2, edges), and where labels are known y/, train_mask/
and val_mask/ (nodes,). Edges may lie in any shard; least is read where they lie in that of their
target. `graphkeel.cluster.save_shards` writes such a folder.

DIR gets x/ with the features to use, posterior/ and answers/, in shards of the same rows, and
fit.json. FOLDER and DIR must lie on storage that all workers see under the same path, and every
worker needs graphkeel. While it runs, DIR also holds about fifty numbers a node and class.

A worker needs 1 GB and about ten bytes for each edge of 65,536 nodes and each class. One that dies
is replaced by the others; the result is that of one machine. A model that is not linear in its
features must be made of PyG's layers, which tell how many hops away its answers come from: workers
ask it about their nodes with these neighbourhoods, and need the file of its factory."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from graphkeel.cli.shared.common import (
    OWN_MODEL,
    add_options,
    emit,
    emit_lines,
    jobs_type,
    number,
    path_type,
    positive_int,
)
from graphkeel.cli.shared.own_model import chosen_model
from graphkeel.core.errors import ConfigError

if TYPE_CHECKING:
    from graphkeel.cluster import ClusterFit

HELP = "better features for a graph in shards, on a Dask cluster"
_OUT = "a new or empty folder"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("folder", type=path_type, metavar="FOLDER", help="the graph, in shards")
    words = "of a running Dask cluster (default: workers of this machine)"
    add("--scheduler", metavar="ADDRESS", help=words)
    words = "of this machine, where no scheduler is given (default 2)"
    add("--workers", type=jobs_type, metavar="N", help=words)
    words = "that the model tells apart (default: one more than the largest label)"
    add("--classes", type=positive_int, metavar="N", help=words)
    words = "probability of harm up to which a change is kept (default 0.5)"
    add("--risk", type=number(0.0, 1.0), default=0.5, help=words)
    changed = {"seed": "random seed (default 0)", "out": {"required": True, "help": _OUT}}
    add_options(parser, *OWN_MODEL, "--class-weight", "--seed", "--out", "--json", **changed)


def run(args: argparse.Namespace) -> int:
    from graphkeel.cluster import ShardedGraph, fit_shards
    from graphkeel.models.zoo import own_model

    if args.scheduler is not None and args.workers is not None:
        raise ConfigError(
            "a running cluster has the workers it has", got="--workers", fix="Leave it out."
        )
    _, options = chosen_model(args)
    if not options:
        raise ConfigError(
            "no model is named", fix="Name it with --weights FILE --factory MODULE:FUNCTION."
        )
    graph = ShardedGraph.open(args.folder)
    classes = args.classes or graph.n_classes()
    model = own_model(options["weights"], options["factory"], graph.x.shape[1], classes)
    found = fit_shards(
        args.folder,
        model,
        args.out,
        scheduler=args.scheduler,
        workers=args.workers,
        balanced=args.class_weight == "balanced",
        risk=args.risk,
        seed=args.seed,
    )
    payload = {"command": "fit", **found.to_dict()}
    return emit(args, payload, lambda: emit_lines(_summary(found)))


def _summary(found: ClusterFit) -> list[str]:
    guard = found.guard
    lines = [f"{found.n_nodes} nodes in {found.parts} parts: {guard.reason}"]
    if guard.untouched is not None and guard.accuracy is not None:
        lines.append(f"at these labels {guard.untouched:.1f} -> {guard.accuracy:.1f} % right")
    if found.agreement is not None:
        lines.append(f"the model answers {100 * found.agreement:.1f} % of the nodes as decided")
    return [*lines, f"features, posterior and answers are in {found.out} ({found.seconds:.0f} s)"]
