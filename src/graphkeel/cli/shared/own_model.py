"""The options with which commands take a model of the user's own."""

from __future__ import annotations

import argparse
import importlib
import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from graphkeel.cli.shared.common import add_dataset, path_type
from graphkeel.core.errors import ConfigError
from graphkeel.core.text import printable

if TYPE_CHECKING:
    from graphkeel.graph import RawGraph
    from graphkeel.runs.specs import RunSpec

OWN = "own"
DRAWN = "biased"  # the split that is drawn where nothing else is said


def add_model(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--model", default="sgc", help="sgc, gcn, gat, sage or appnp (default sgc)")


def add_own_model(parser: argparse.ArgumentParser) -> None:
    weights = "a model of your own: its weights, as safetensors or torch.save(state_dict)"
    parser.add_argument("--weights", type=path_type, metavar="FILE", help=weights)
    factory = "the function that builds it: called with n_features and n_classes if it takes them"
    parser.add_argument("--factory", metavar="MODULE:FUNCTION", help=factory)


def add_features(parser: argparse.ArgumentParser) -> None:
    words = "auto, raw, rownorm, pca or pca-raw (default auto)"
    parser.add_argument("--features", default="auto", help=words)


def chosen_model(args: argparse.Namespace) -> tuple[str, dict[str, Any]]:
    """Name and options of the model for a `RunSpec`: one of ours, or the user's own."""
    if args.weights is None and args.factory is None:
        return getattr(args, "model", OWN), {}
    if args.weights is None or args.factory is None:
        given = "--weights" if args.factory is None else "--factory"
        raise ConfigError(
            "a model of your own needs both --weights FILE and --factory MODULE:FUNCTION",
            got=f"{given} alone",
        )
    from graphkeel.core.digests import file_sha256

    if not args.weights.is_file():
        raise ConfigError("there is no such file of weights", got=str(args.weights))
    sha256 = file_sha256(args.weights)  # so that other weights of the same name are another run
    return OWN, {"weights": str(args.weights), "factory": args.factory, "sha256": sha256}


def add_spec(parser: argparse.ArgumentParser) -> None:
    """The options of one method, ours, on one dataset: what `chosen_spec` reads."""
    add_dataset(parser)
    add_model(parser)
    add_split(parser)
    add_features(parser)
    add_class_weight(parser)
    add_own_model(parser)


def add_class_weight(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--class-weight",
        choices=("balanced",),
        help="of auto: every class has the same weight, however large (default: every node does)",
    )


def chosen_method(args: argparse.Namespace) -> str:
    """The method, with its class weight."""
    method = str(getattr(args, "method", "auto"))
    if getattr(args, "class_weight", None) is None:
        return method
    if method != "auto":
        raise ConfigError("--class-weight is an option of --method auto", got=repr(method))
    return f"{method}-{args.class_weight}"


def specs(args: argparse.Namespace) -> Any:
    return importlib.import_module(args.specs)


def chosen_spec(args: argparse.Namespace, **more: Any) -> RunSpec:
    """One model, ours or the user's, on one dataset."""
    model, options = chosen_model(args)
    spec: RunSpec = specs(args).RunSpec(
        args.dataset,
        model,
        chosen_method(args),
        split=args.split or DRAWN,
        features=args.features,
        model_options=options,
        **more,
    )
    if args.split is None and model == OWN:
        return replace(spec, split=own_split(spec.graph(), spec.split))
    return spec


def add_split(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--split",
        help="biased, random or public: the graph's own masks (default biased; with --weights "
        "public, where the graph has masks)",
    )


def own_split(graph: RawGraph, otherwise: str) -> str:
    """The split that belongs to a model of the user's own: the masks of its graph, which say what
    it was trained on."""
    if graph.public_split is not None:
        return "public"
    sys.stderr.write(
        f"{printable(graph.name)} has no train_mask, so nobody says what the model was trained on; "
        f"the split {otherwise} is drawn\n"
    )
    return otherwise


def model_name(args: argparse.Namespace) -> str:
    return str(args.model if args.factory is None else args.factory)
