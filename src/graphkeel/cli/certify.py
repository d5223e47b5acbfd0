"""Train a controller and a Lyapunov function for each class of a frozen model,
prove them, write a certificate.

  keel certify                           digits, every class, the default form
  keel certify --dataset my_graph.npz --features pca20 --out runs/mine
  keel certify --dataset my_graph.npz --form paper --budget 60
        the paper's free networks and its own loss
  keel certify --dataset my_graph.npz --model gcn --set shift=-0.5
        any field of LyapunovConfig, by its name
  keel certify --form paper --engine smt --set steps=1 --set start_node=0 --set rounds=1000000 \
--set falsify_rounds=0 --set verify_seconds=45
        Algorithm 1 as it is printed: one node, one gradient step a round, Z3

Writes certificate.json (check it with `keel check`; it holds the controllers),
model.safetensors and training.json. Exit 0: proved, 1: refuted, 3: unknown.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args, get_type_hints

from graphkeel.cli.shared.common import (
    EXIT_DONE,
    EXIT_REFUTED,
    EXIT_UNKNOWN,
    OWN_MODEL,
    add_options,
    console,
    emit,
    make_out_dir,
    number,
    seconds_type,
    verbatim,
    whole_number,
)
from graphkeel.cli.shared.own_model import chosen_model, chosen_spec
from graphkeel.core.errors import ConfigError
from graphkeel.core.names import did_you_mean
from graphkeel.core.signals import raise_pending

if TYPE_CHECKING:
    from torch import nn

    from graphkeel.graph import GraphTask
    from graphkeel.lyapunov import CertifyResult, LyapunovConfig, RoundLog


# a logit of a target beyond a million leaves a float32 model no digits
_NUMBER = number(-1e6, 1e6)
_WHOLE = whole_number(0, 1_000_000)

HELP = "prove the class controllers of a frozen model stable, and write certificate.json"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    features = "auto, raw, rownorm, pca, or pcaN, e.g. pca20 (default auto)"
    add_options(parser, "--dataset", "--model", "--split", "--features", features=features)
    add("--classes", default="all", help="all, or labels separated by commas (default all)")
    add("--form", default="anchored", help="anchored, homogeneous or paper (default anchored)")
    add("--engine", default="auto", help="who decides: auto, branch or smt (default auto)")
    words = "seconds for training and proofs (default 45)"
    add("--budget", type=seconds_type, default=45.0, metavar="S", help=words)
    words = "another field of LyapunovConfig, e.g. rho=1; may be repeated"
    add("--set", action="append", default=[], metavar="NAME=VALUE", help=words)
    words = "write the certificate here (default: certify-DATASET)"
    add_options(parser, *OWN_MODEL, "--seed", "--out", "--json", out=words)


def run(args: argparse.Namespace) -> int:
    payload = _certified(args)
    emit(args, payload, lambda: _show(payload))
    verdicts = {row["verdict"] for row in payload["classes"]}
    codes = {"refuted": EXIT_REFUTED, "unknown": EXIT_UNKNOWN}
    return next((code for verdict, code in codes.items() if verdict in verdicts), EXIT_DONE)


def _certified(args: argparse.Namespace) -> dict[str, Any]:
    """The values to print."""
    from graphkeel.lyapunov.certify import certify_into
    from graphkeel.models.frozen import FrozenModel

    started = time.monotonic()
    task, labels = _task_and_labels(args)
    config = _config(args)
    if config.start_node is not None:
        labels = [_class_of(task, config.start_node)]
    out = make_out_dir(args.out or Path(f"certify-{Path(args.dataset).stem}"))
    model = _model(args, task, out)
    base_seconds = time.monotonic() - started
    processor = time.process_time()
    named = ("dataset", "split", "features", "model", "seed")
    result = certify_into(
        out,
        FrozenModel(model, n_classes=task.n_classes),
        task,
        config,
        classes=labels,
        provenance={name: getattr(args, name) for name in named},
        on_round=_say_round,
        verifier=args.engine,
    )
    return {
        "command": "certify",
        "dataset": args.dataset,
        "model": args.model,
        "form": args.form,
        "seconds": result.seconds,
        "features": task.n_features,
        **_facts(result, labels, out),
        "processor_seconds": time.process_time() - processor,
        "base_seconds": base_seconds,
    }


def _task_and_labels(args: argparse.Namespace) -> tuple[GraphTask, list[int]]:
    """The task and the classes to certify, once every name among the flags was looked up: nothing
    is trained and no folder made for a wrong one."""
    from graphkeel.graph.features import parse_features
    from graphkeel.verify import load_engine

    features, pca = parse_features(args.features)
    spec = chosen_spec(args, features=features, pca=pca)
    spec.check_names()
    _config(args)
    load_engine(args.engine)
    args.split, args.model = spec.split, spec.model  # as the certificate tells
    task = spec.task(args.seed)
    return task, _labels(args.classes, task.n_classes)


def _model(args: argparse.Namespace, task: GraphTask, out: Path) -> nn.Module:
    """The user's own model, or one that is trained now and kept in the folder."""
    from graphkeel.models import save_model, train_model
    from graphkeel.models.zoo import own_model

    _, own = chosen_model(args)
    if own:
        return own_model(own["weights"], own["factory"], task.n_features, task.n_classes)
    model = train_model(args.model, task, seed=args.seed)
    save_model(out / "model.safetensors", model, args.model, task.n_features, task.n_classes)
    return model


def _labels(text: str, n_classes: int) -> list[int]:
    if text == "all":
        return list(range(n_classes))
    try:
        labels = [int(part) for part in text.split(",")]
    except ValueError:
        labels = []
    known = all(0 <= label < n_classes for label in labels)
    if not labels or not known or len(set(labels)) < len(labels):
        raise ConfigError(
            f"--classes must be 'all' or distinct labels from 0 to {n_classes - 1}", got=repr(text)
        )
    return labels


def _config(args: argparse.Namespace) -> LyapunovConfig:
    """The configuration of training and proof."""
    from graphkeel.lyapunov import LyapunovConfig

    chosen = _chosen(args.set)
    return LyapunovConfig(form=args.form, seconds=args.budget, seed=args.seed, **chosen)


def _class_of(task: GraphTask, node: int) -> int:
    label = int(task.y[node]) if node < task.n_nodes else -1
    if label < 0:
        raise ConfigError("start_node must be a labelled node of the graph", got=node)
    return label


def _chosen(words: list[str]) -> dict[str, Any]:
    """The fields that --set names, as what they are."""
    from graphkeel.lyapunov import LyapunovConfig

    kinds = get_type_hints(LyapunovConfig)
    for other in ("form", "seconds", "seed"):  # have options of their own
        del kinds[other]
    chosen: dict[str, Any] = {}
    for word in words:
        name, equals, text = word.partition("=")
        if not equals or name not in kinds:
            raise ConfigError(
                f"--set takes NAME=VALUE, where NAME is one of {', '.join(sorted(kinds))}",
                got=repr(word),
                fix=did_you_mean(name, kinds),
            )
        chosen[name] = _value(name, text, kinds[name])
    return chosen


def _value(name: str, text: str, kind: Any) -> Any:
    kinds = get_args(kind) or (kind,)
    if str in kinds:
        return text
    convert = _WHOLE if int in kinds else _NUMBER
    try:
        return convert(text)
    except argparse.ArgumentTypeError as error:
        raise ConfigError(f"--set {name}: {error}") from error


# ---- what is printed


def _facts(result: CertifyResult, labels: list[int], out: Path) -> dict[str, Any]:
    from graphkeel.lyapunov.certify import CERTIFICATE

    if result.certificate is None or result.training is None:
        # anchors can still be computed for such a head, but nothing about it can be proved
        row = {"verdict": "unknown", "seconds": 0.0, "reason": f"unknown: {result.reason}"}
        return {"classes": [{"class": label, **row} for label in labels], "certificate": None}
    entries = {entry["class"]: entry for entry in result.certificate["classes"]}
    facts = ("contraction", "kappa", "reason")
    counted = dict(result.graph.get("equilibrium", {}))
    counted.pop("states_sha256", None)
    return {
        "classes": [_row(outcome, entries[outcome.label]) for outcome in result.outcomes],
        "rounds": len(result.log),
        "stopped": result.training.stopped,
        "together": result.certificate["together"],
        "graph": {name: result.graph[name] for name in facts if name in result.graph} | counted,
        "graph_sentences": result.sentences(),
        "certificate": str(out / CERTIFICATE),
    }


def _say_round(log: RoundLog) -> None:
    """One line a round on stderr; then it is a good moment to end, if somebody asked for it."""
    raise_pending()
    proved = log.verdicts.count("proved")
    console(stderr=True).print(
        f"round {log.round}: {proved} of {len(log.classes)} open classes proved, "
        f"{sum(log.counterexamples)} counterexamples, {log.steps} steps, "
        f"{log.fit_seconds:.1f} + {log.verify_seconds:.1f} s",
        style="dim",
    )


def _row(outcome: Any, entry: dict[str, Any]) -> dict[str, Any]:
    conditions = entry["conditions"]
    engines = dict.fromkeys(condition.engine for condition in outcome.report.conditions)
    return {
        "class": outcome.label,
        "verdict": entry["verdict"],
        "seconds": outcome.seconds,
        "conditions": {name: conditions[name]["verdict"] for name in conditions},
        "engine": "+".join(engines),
        "nodes": outcome.report.nodes,
        "distance": conditions["representative"]["distance"],
        "kind": entry["conclusion"]["kind"],
        "radius": entry["conclusion"].get("radius"),
        "conclusion": entry["conclusion"]["sentence"],
    }


# ---- what the reader sees


def _show(payload: dict[str, Any]) -> None:
    from rich.table import Table

    title = f"{payload['dataset']} · {payload['model']} · {payload['form']}"
    table = Table(title=verbatim(title), title_justify="left")
    for column in ("class", "verdict", "‖C(h*)−Y‖", *_SEARCHED.values(), "s"):
        table.add_column(column, justify="right" if column == "s" else "left", no_wrap=True)
    for row in payload["classes"]:
        found = row.get("conditions", {})
        gap = f"{row['distance']:.1e}" if found else ""
        marks = [_MARKS[found[name]] if found else "" for name in _SEARCHED]
        verdict = f"[{_COLOURS[row['verdict']]}]{row['verdict']}[/]"
        table.add_row(str(row["class"]), verdict, gap, *marks, f"{row['seconds']:.2f}")
    screen = console()
    screen.print(table)
    said = _sentences(payload["classes"])
    if payload.get("together"):
        said.append(f"Together: {payload['together']['sentence']}")
    for sentence in (*said, *payload.get("graph_sentences", [])):
        screen.print(verbatim(sentence), style="dim")
    where = f"; certificate: {payload['certificate']}" if payload["certificate"] else ""
    spent = f"{payload['seconds']:.1f} s ({payload['processor_seconds']:.1f} of a processor's)"
    base = f"{payload['base_seconds']:.1f} s for data and base model"
    screen.print(verbatim(f"{spent}, and {base}{where}"))


_COLOURS = {"proved": "green", "refuted": "red", "unknown": "yellow"}
_MARKS = {"proved": "yes", "refuted": "no", "unknown": "?"}
_SEARCHED = {
    "positivity": "V>0",
    "decrease": "ΔV<0",
    "invariance": "F(D)⊆D",
    "hole": "hole",
    "region": "F(R)⊆R",
}


def _sentences(rows: list[dict[str, Any]]) -> list[str]:
    """Conclusions, once for each group of classes of which the same is said, with the weakest
    bounds of its members."""
    from graphkeel.checker.__main__ import shape, weakest

    groups: dict[str, list[tuple[str, str]]] = {}
    for row in rows:
        words = str(row.get("conclusion", row.get("reason", "")))
        groups.setdefault(shape(words), []).append((str(row["class"]), words))
    sentences = []
    for group in groups.values():
        labels = ", ".join(label for label, _ in group)
        several = "Classes" if len(group) > 1 else "Class"
        sentences.append(f"{several} {labels}: {weakest([words for _, words in group])}")
    return sentences
