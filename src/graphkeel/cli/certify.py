"""Train a controller and a Lyapunov function for each class of a frozen model,
prove them, write a certificate.

  keel certify                           digits, every class, the default form
  keel certify --dataset my_graph.npz --features pca20 --out runs/mine
  keel certify --dataset my_graph.npz --form paper --budget 60
        the paper's free networks and its own loss
  keel certify --dataset digits:0,1,2 --form paper --engine smt --set steps=1
          --set start_node=random
        Algorithm 1 as printed: one initial node, one step a round, Z3 alone
  keel certify --dataset my_graph.npz --model gcn --set shift=-0.5
        any field of LyapunovConfig, by its name

Writes certificate.json (check it with `keel check`), controllers.safetensors,
model.safetensors and training.json. An interrupted run continues from its last
finished round. Exit 0: proved, 1: refuted, 3: unknown.
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
    add_common,
    add_dataset,
    console,
    emit_json,
    make_out_dir,
    number,
    seconds_type,
    verbatim,
    whole_number,
)
from graphkeel.cli.shared.own_model import add_own_model, chosen_model, specs
from graphkeel.core.errors import ConfigError, ModelError
from graphkeel.core.names import did_you_mean
from graphkeel.core.signals import end_if_asked

if TYPE_CHECKING:
    from torch import nn

    from graphkeel.graph import GraphTask
    from graphkeel.lyapunov import LyapunovConfig, RoundLog
    from graphkeel.lyapunov.records import TrainResult

_MODEL = "model.safetensors"  # what the certificate is about

_RANDOM = "random"  # start_node: one of the training nodes
# a logit of a target beyond a million leaves a float32 model no digits
_NUMBER = number(-1e6, 1e6)
_WHOLE = whole_number(0, 1_000_000)

HELP = "prove the class controllers of a frozen model stable, and write certificate.json"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_dataset(parser)
    parser.add_argument("--model", default="sgc", help="sgc, gcn, gat, sage or appnp (default sgc)")
    parser.add_argument(
        "--split", default="biased", help="biased, random or public (default biased)"
    )
    parser.add_argument(
        "--features",
        default="auto",
        help="auto, raw, rownorm, pca, or pcaN, e.g. pca20 (default auto)",
    )
    parser.add_argument(
        "--classes", default="all", help="all, or labels separated by commas (default all)"
    )
    parser.add_argument(
        "--form", default="anchored", help="anchored, homogeneous or paper (default anchored)"
    )
    parser.add_argument(
        "--engine", default="auto", help="who decides: auto, branch, milp or smt (default auto)"
    )
    parser.add_argument(
        "--budget",
        type=seconds_type,
        default=45.0,
        metavar="S",
        help="seconds for training and proofs (default 45)",
    )
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="another field of LyapunovConfig, e.g. rho=1; may be repeated",
    )
    add_own_model(parser)
    add_common(
        parser, out_help="write the certificate and the controllers here (default: certify-DATASET)"
    )


def run(args: argparse.Namespace) -> int:
    started = time.monotonic()
    task, labels = _task_and_labels(args)
    out = make_out_dir(args.out or Path(f"certify-{Path(args.dataset).stem}"))
    model = _model(args, task, out)
    base_seconds = time.monotonic() - started
    processor = time.process_time()
    outcome = _certify(args, task, labels, model, out)
    outcome["processor_seconds"] = time.process_time() - processor
    outcome["base_seconds"] = base_seconds
    payload = {
        "command": "certify",
        "dataset": args.dataset,
        "model": args.model,
        "form": args.form,
        **outcome,
    }
    if args.json:
        emit_json(payload)
    else:
        _show(payload)
    if payload.get("as_printed"):
        return _ENDS[payload["as_printed"]["ended"]]
    verdicts = {row["verdict"] for row in payload["classes"]}
    return (
        EXIT_REFUTED
        if "refuted" in verdicts
        else EXIT_UNKNOWN
        if "unknown" in verdicts
        else EXIT_DONE
    )


# ---- the model and its head


def _task_and_labels(args: argparse.Namespace) -> tuple[GraphTask, list[int]]:
    """The task and the classes to certify, once every name among the flags was looked up: nothing
    is trained and no folder made for a wrong one."""
    from graphkeel.graph.features import parse_features
    from graphkeel.models import build_model
    from graphkeel.verify import load_engine

    name, own = chosen_model(args)
    features, pca = parse_features(args.features)
    spec = specs(args).RunSpec(args.dataset, name, split=args.split, features=features, pca=pca)
    spec.check_names()
    _config(args)
    load_engine(args.engine)
    task = spec.task(args.seed)
    _config(args, task)
    if not own:
        build_model(args.model, task.n_features, task.n_classes)
    return task, _labels(args.classes, task.n_classes)


def _model(args: argparse.Namespace, task: GraphTask, out: Path) -> nn.Module:
    """The model of a task: trained now, or the one an earlier run of the same task left in the
    folder."""
    from graphkeel.models import load_model, save_model, stored_subject, train_model

    name, own = chosen_model(args)
    if own:
        from graphkeel.models.own_model import own_model

        args.model = name
        return own_model(own["weights"], own["factory"], task.n_features, task.n_classes)
    path = out / _MODEL
    subject = f"{args.model} default {args.seed} {task.hash}"
    if path.exists():
        try:
            if stored_subject(path) == subject:
                return load_model(path)
        except ModelError:  # damaged: it is trained again, which gives the same
            console(stderr=True).print(
                f"{path.name} is damaged; the model is trained again", soft_wrap=True, markup=False
            )
    model = train_model(args.model, task, seed=args.seed)
    save_model(path, model, args.model, task.n_features, task.n_classes, subject=subject)
    return model


def _labels(text: str, n_classes: int) -> list[int]:
    if text == "all":
        return list(range(n_classes))
    try:
        labels = [int(part) for part in text.split(",")]
    except ValueError:
        labels = []
    if (
        not labels
        or not all(0 <= label < n_classes for label in labels)
        or len(set(labels)) < len(labels)
    ):
        raise ConfigError(
            f"--classes must be 'all' or distinct labels from 0 to {n_classes - 1}", got=repr(text)
        )
    return labels


def _config(args: argparse.Namespace, task: GraphTask | None = None) -> LyapunovConfig:
    """The configuration of training and proof; without a task, only to be checked."""
    from graphkeel.lyapunov import LyapunovConfig

    chosen = _chosen(args.set)
    start = chosen.pop("start_node", None)
    if start is not None:
        # one gradient step a round makes thousands of rounds; the solver has all the time there is
        as_printed = {
            "rounds": 100_000_000,  # as many as the budget allows
            "falsify_rounds": 0,
            "verify_seconds": args.budget,
            "start_node": 0 if task is None else _initial_node(task, start, args.seed),
        }
        chosen = as_printed | chosen
    return LyapunovConfig(form=args.form, seconds=args.budget, seed=args.seed, **chosen)


def _initial_node(task: GraphTask, start: int | str, seed: int) -> int:
    """The node that was named, or a training node drawn uniformly."""
    import torch

    if start == _RANDOM:
        labelled = task.train_mask.nonzero().flatten()
        draw = torch.randint(len(labelled), (1,), generator=torch.Generator().manual_seed(seed))
        return int(labelled[draw])
    if int(start) >= task.n_nodes or int(task.y[int(start)]) < 0:
        raise ConfigError("start_node must be a labelled node of the graph", got=start)
    return int(start)


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
    """A field's value from its text."""
    kinds = get_args(kind) or (kind,)
    if name == "start_node" and text == _RANDOM:
        return text
    if str in kinds:
        return text
    convert = _WHOLE if int in kinds else _NUMBER
    try:
        return convert(text)
    except argparse.ArgumentTypeError as error:
        raise ConfigError(f"--set {name}: {error}") from error


# ---- training, proof, certificate


def _certify(
    args: argparse.Namespace, task: GraphTask, labels: list[int], model: nn.Module, out: Path
) -> dict[str, Any]:
    from graphkeel.lyapunov.folder import CERTIFICATE, certify_into
    from graphkeel.models.frozen import FrozenModel

    config = _config(args, task)
    node = config.start_node
    if node is not None:
        labels = [int(task.y[node])]
    frozen = FrozenModel(model, n_classes=task.n_classes)
    named = ("dataset", "split", "features", "model", "seed")
    remarks = {name: getattr(args, name) for name in named}
    result = certify_into(
        out,
        frozen,
        task,
        config,
        classes=labels,
        remarks=remarks,
        on_round=_say_round if node is None else _say_some_rounds,
        verifier=args.engine,
    )
    payload = {"seconds": result.seconds, "features": task.n_features}
    if result.certificate is None or result.training is None:
        reason = f"unknown: {result.reason}"
        rows = [_open_row(label, reason) for label in labels]
        return {**payload, "classes": rows, "certificate": None}
    entries = {entry["class"]: entry for entry in result.certificate["classes"]}
    return {
        **payload,
        "classes": [_row(outcome, entries[outcome.label]) for outcome in result.outcomes],
        "rounds": len(result.log),
        "stopped": result.training.stopped,
        "together": result.certificate["together"],
        "graph": _graph_facts(result.graph),
        "graph_sentences": result.sentences(),
        "certificate": str(out / CERTIFICATE),
        "as_printed": None if node is None else _as_printed(result.training, node),
    }


def _as_printed(training: TrainResult, node: int) -> dict[str, Any]:
    """How Algorithm 1 ended on the paper's own two conditions, as the solver decided them."""
    (outcome,) = training.outcomes
    asked = [c for c in outcome.report.conditions if c.condition in training.config.goals]
    verdicts = {c.condition: c.verdict.value for c in asked}
    ended = "budget"
    if set(verdicts.values()) == {"proved"}:
        ended = "proof"
    elif "refuted" in verdicts.values():
        ended = "refutation"
    return {
        "ended": ended,
        "node": node,
        "class": outcome.label,
        "conditions": verdicts,
        "rounds": len(training.log),
        "steps": sum(entry.steps for entry in training.log),
        "counterexamples": sum(sum(entry.counterexamples) for entry in training.log),
        "solver": asked[0].engine,
        "solver_seconds": outcome.seconds,
        "training_seconds": sum(entry.fit_seconds for entry in training.log),
        "loss": {name: values[0] for name, values in training.log[-1].losses.items()},
    }


def _graph_facts(graph: dict[str, Any]) -> dict[str, Any]:
    """The facts that hold with message passing, without the weights."""
    counted = graph.get("equilibrium", {})
    stated = ("contraction", "kappa", "reason")
    counts = (
        "nodes",
        "certain",
        "labelled",
        "labelled_certain",
        "residual",
        "radius",
        "uncertain",
        "written",
    )
    facts: dict[str, Any] = {name: graph[name] for name in stated if name in graph}
    return facts | {name: counted[name] for name in counts if name in counted}


def _say_round(log: RoundLog) -> None:
    """One line a round on stderr; then it is a good moment to end, if somebody asked for it."""
    end_if_asked()
    proved = log.verdicts.count("proved")
    console(stderr=True).print(
        f"round {log.round}: {proved} of {len(log.classes)} open classes proved, "
        f"{sum(log.counterexamples)} counterexamples, {log.steps} steps, "
        f"{log.fit_seconds:.1f} + {log.verify_seconds:.1f} s",
        style="dim",
    )


def _say_some_rounds(log: RoundLog) -> None:
    """One gradient step a round makes thousands of them: the first ten, then every hundredth."""
    end_if_asked()
    if log.round < 10 or log.round % 100 == 0:
        loss = ", ".join(f"{name} {values[0]:.2e}" for name, values in log.losses.items())
        console(stderr=True).print(
            f"round {log.round}: {log.verdicts[0]}, {log.counterexamples[0]} counterexamples, "
            f"{log.verify_seconds:.2f} s of solving; loss: {loss}",
            style="dim",
            highlight=False,
            soft_wrap=True,
        )


def _open_row(label: int, reason: str) -> dict[str, Any]:
    """Anchors can still be computed for such a head, but nothing about it can be proved."""
    return {"class": label, "verdict": "unknown", "seconds": 0.0, "reason": reason}


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
        conditions = row.get("conditions", {})
        marks = [
            _coloured(_MARKS[conditions[name]], conditions[name]) if conditions else ""
            for name in _SEARCHED
        ]
        gap = (
            _coloured(f"{row['distance']:.1e}", conditions["representative"]) if conditions else ""
        )
        verdict = _coloured(row["verdict"], row["verdict"])
        table.add_row(str(row["class"]), verdict, gap, *marks, f"{row['seconds']:.2f}")
    screen = console()
    screen.print(table)
    for engines, labels in _by_engine(payload["classes"]).items():
        screen.print(f"Decided by {engines}: classes {labels}", style="dim")
    for sentence in _sentences(payload["classes"]):
        screen.print(sentence, style="dim")
    if payload.get("together"):
        screen.print(f"Together: {payload['together']['sentence']}", style="dim")
    if payload["form"] != "paper" and any(_missed(row) for row in payload["classes"]):
        screen.print(
            "No feature was found that the head answers with such a class: nothing is proved of it."
        )
    for sentence in payload.get("graph_sentences", []):
        screen.print(verbatim(sentence), style="dim")
    if payload.get("as_printed"):
        screen.print(_printed_sentence(payload["as_printed"]), soft_wrap=True, highlight=False)
    where = verbatim(f"; certificate: {payload['certificate']}") if payload["certificate"] else ""
    screen.print(
        f"{payload['seconds']:.1f} s ({payload['processor_seconds']:.1f} of a processor's), and "
        f"{payload['base_seconds']:.1f} s for data and base"
        f" model{where}"
    )


_ENDS = {"proof": EXIT_DONE, "refutation": EXIT_REFUTED, "budget": EXIT_UNKNOWN}
_ENDED = {
    "proof": "it ended by proof: no state violates V > 0 or ΔV < 0",
    "refutation": "it ended by refutation: the budget is used up, and the last networks still have "
    "a counterexample",
    "budget": "it ended by its budget: the solver did not answer in time",
}


def _printed_sentence(run: dict[str, Any]) -> str:
    """How Algorithm 1 ended, in words."""
    conditions = ", ".join(f"{name} {verdict}" for name, verdict in run["conditions"].items())
    word = (
        " Z3 gives no proof that a checker could repeat: its word is not in the certificate."
        if run["solver"] == "smt" and run["ended"] == "proof"
        else ""
    )
    return (
        f"Algorithm 1 as printed, node {run['node']} of class {run['class']}: "
        f"{_ENDED[run['ended']]} ({conditions}). {run['rounds']} rounds of gradient steps, "
        f"{run['counterexamples']} counterexamples, {run['solver_seconds']:.1f} s of "
        f"{run['solver']}, {run['training_seconds']:.1f} s of training. Invariance, the hole and "
        f"C(h*) = Y are no part of it; the table above says what holds of them.{word}"
    )


_COLOURS = {"proved": "green", "refuted": "red", "unknown": "yellow"}
_MARKS = {"proved": "yes", "refuted": "no", "unknown": "?"}
_SEARCHED = {
    "positivity": "V>0",
    "decrease": "ΔV<0",
    "invariance": "F(D)⊆D",
    "hole": "hole",
    "region": "F(R)⊆R",
}


def _by_engine(rows: list[dict[str, Any]]) -> dict[str, str]:
    """Labels of the classes that the same engines have decided."""
    found: dict[str, list[str]] = {}
    for row in rows:
        if row.get("engine"):
            found.setdefault(row["engine"], []).append(str(row["class"]))
    return {engines: ", ".join(labels) for engines, labels in found.items()}


def _coloured(text: str, verdict: str) -> str:
    return f"[{_COLOURS[verdict]}]{text}[/]"


def _missed(row: dict[str, Any]) -> bool:
    return bool(row.get("conditions", {}).get("representative") == "refuted")


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
