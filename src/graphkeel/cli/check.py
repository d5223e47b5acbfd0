"""Re-prove a certificate independently of the engine that found it: exact integers, no torch, no
solver.

  keel check run/certificate.json
  keel check run/certificate.json --model run/model.safetensors
  keel check run/certificate.json --model run/model.safetensors --data digits
  keel check run/certificate.json --weights net.pt --factory net:make --data graph.npz
  keel check proof.json --network net.onnx --property property.vnnlib
  keel check proof.json --problem loop.npz    a proof about a loop

By itself a certificate is about the weights that it carries. With --model the head is taken out of
that model again and compared number by number (--weights and --factory: a model of your own, as for
keel certify); with --data also the graph's hash, whether the
domain holds the model's logits on it, and what is counted on its nodes. The graph is prepared as
the certificate's own remarks say (features and split); a FILE.npz is a graph of your own.

Exit 0: accepted, 1: rejected with the reason, 2: not a readable certificate.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from graphkeel.cli.shared.common import (
    EXIT_BAD_INPUT,
    EXIT_DONE,
    EXIT_REFUTED,
    OWN_MODEL,
    add_options,
    dataset_type,
    emit,
    emit_lines,
    path_type,
)
from graphkeel.cli.shared.own_model import chosen_model, specs
from graphkeel.cli.shared.proofs import add_check_arguments, linked_to_files
from graphkeel.core.errors import CertificateError, ConfigError, KeelError

if TYPE_CHECKING:
    from graphkeel.certificate import LinkedResult

HELP = "re-prove a certificate, independently of how it was made"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    words = "certificate.json of keel certify"
    parser.add_argument("certificate", type=path_type, metavar="CERTIFICATE", help=words)
    words = "compare the head with that of this stored model"
    parser.add_argument("--model", type=path_type, metavar="FILE", help=words)
    words = "compare hash and domain with this graph (needs a model)"
    parser.add_argument("--data", type=dataset_type, metavar="NAME|FILE", help=words)
    add_options(parser, *OWN_MODEL)
    add_check_arguments(parser)
    add_options(parser, "--json")


def run(args: argparse.Namespace) -> int:
    started = time.perf_counter()
    try:
        result = _checked(args)
        code = EXIT_DONE if result.accepted else EXIT_REFUTED
    except KeelError as error:
        if not args.json:
            raise
        from graphkeel.certificate import LinkedResult

        result = LinkedResult(False, str(error), time.perf_counter() - started)
        code = EXIT_BAD_INPUT
    emit(args, _payload(args, result), lambda: emit_lines(report(result)))
    return code


def _checked(args: argparse.Namespace) -> LinkedResult:
    from graphkeel.certificate.check import check_certificate, linked
    from graphkeel.certificate.encoding import read_certificate

    is_own = args.weights is not None or args.factory is not None
    if is_own and args.model is not None:
        raise ConfigError(
            "one model is compared: --model FILE, or --weights FILE and --factory MODULE:FUNCTION",
            got="both",
        )
    has_model = is_own or args.model is not None
    if args.data is not None and not has_model:
        raise ConfigError(
            "--data can be checked together with a model only",
            fix="Add --model, or --weights and --factory.",
        )
    result = check_certificate(args.certificate)
    if any(given is not None for given in (args.network, args.property, args.problem)):
        return linked_to_files(args, result)
    if not has_model or not result.accepted:
        return result
    content = read_certificate(args.certificate)
    data = None if args.data is None else _graph(args, content.get("provenance") or {})
    return linked(result, args.certificate, _model(args, content), data)


def _model(args: argparse.Namespace, content: dict[str, Any]) -> Any:
    """Ours, as stored; or the user's own, built for the sizes of the certificate's head."""
    if args.model is not None:
        from graphkeel.models import load_model

        return load_model(args.model)
    from graphkeel.models.zoo import own_model

    _, options = chosen_model(args)  # refuses one flag without the other
    layers = content["head"]
    n_features = int(layers[0][0]["weight"]["shape"][1])
    n_classes = int(layers[-1][0]["weight"]["shape"][0])
    return own_model(options["weights"], options["factory"], n_features, n_classes)


def _graph(args: argparse.Namespace, remarks: Any) -> Any:
    """The named graph, prepared as the certificate's remarks say."""
    from graphkeel.graph.features import parse_features

    try:
        features, pca = parse_features(str(remarks["features"]))
        seed, split = int(remarks["seed"]), str(remarks["split"])
    except (KeyError, TypeError, ValueError):
        raise CertificateError(
            "the certificate does not say how its graph was prepared",
            fix="Check it from Python: gk.check(certificate, model=…, data=…).",
        ) from None
    spec = specs(args).RunSpec(args.data, split=split, features=features, pca=pca)
    return spec.task(seed)


def _payload(args: argparse.Namespace, result: LinkedResult) -> dict[str, Any]:
    named = ["accepted", "reason", "classes", "together", "graph", "steering"]
    named += ["model_checked", "data_checked", "on_graph"]
    found = {name: getattr(result, name) for name in named}
    what = {"command": "check", "certificate": str(args.certificate)}
    return {**what, **found, "seconds": round(result.seconds, 6)}


def report(result: LinkedResult) -> list[str]:
    """The result as lines: the verdict, then what is certified."""
    from graphkeel.checker.__main__ import as_lines

    timed = replace(result, reason=f"{result.reason} ({result.seconds:.2f} s)")
    lines = as_lines(timed)
    if not result.accepted or not result.classes or not result.model_checked:
        return lines
    graph = "hash and domain are those of the graph" if result.data_checked else "no graph given"
    linked = f"The head is that of the model, number by number; {graph}."
    return [*lines[:-1], *result.on_graph, linked]  # the checker's last line is that it is not
