"""The model, method and specification that options name, one of ours or the user's own model."""

from __future__ import annotations

import argparse
import importlib
import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from graphkeel.core.errors import ConfigError
from graphkeel.core.text import printable

if TYPE_CHECKING:
    from graphkeel.graph import RawGraph
    from graphkeel.runs.specs import RunSpec

OWN = "own"
DRAWN = "biased"  # the split that is drawn where nothing else is said


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
    """One model, ours or the user's, on one dataset; `more` counts more than the flags. With the
    user's own all labels serve, as in `Reconstructor.fit`; ours are in the paper's protocol."""
    model, options = chosen_model(args)
    labels = "train+val" if model == OWN else "train"
    fields = {"features": args.features, "model_options": options, "labels": labels, **more}
    split = args.split or DRAWN
    spec = specs(args).RunSpec(args.dataset, model, chosen_method(args), split=split, **fields)
    if args.split is None and model == OWN:
        spec = replace(spec, split=own_split(spec.graph(), split))
    return spec  # type: ignore[no-any-return]


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
