"""Train a controller and a Lyapunov function for each class of a frozen model, prove them, write a
certificate: as keel certify, on the paper's datasets too.

  keel-paper certify --dataset cora --out runs/cora
  keel-paper certify --dataset digits:0,1,2 --form paper --engine smt --set steps=1
          --start-node random
        Algorithm 1 as printed: one initial node, one step a round, Z3 alone

Algorithm 1 as printed ends by proof (exit 0), by refutation (1) or by its budget (3).
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from graphkeel.cli import certify as plain
from graphkeel.cli.shared.common import EXIT_DONE, EXIT_REFUTED, EXIT_UNKNOWN, console, emit
from graphkeel.core.errors import ConfigError
from graphkeel.core.signals import raise_pending

if TYPE_CHECKING:
    from graphkeel.graph import GraphTask
    from graphkeel.lyapunov import RoundLog
    from graphkeel.lyapunov.result import TrainResult

HELP = "as keel certify, and Algorithm 1 as it is printed"

_RANDOM = "random"
_ENDS = {"proof": EXIT_DONE, "refutation": EXIT_REFUTED, "budget": EXIT_UNKNOWN}
_ENDED = {
    "proof": "it ended by proof: no state violates V > 0 or ΔV < 0",
    "refutation": "it ended by refutation: the budget is used up, and the last networks still have "
    "a counterexample",
    "budget": "it ended by its budget: the solver did not answer in time",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    plain.add_arguments(parser)
    parser.add_argument(
        "--start-node",
        type=_node,
        default=None,
        metavar="NODE",
        help="Algorithm 1 as printed, from the prediction of this node: an id, or random for one "
        "of the training nodes",
    )


def _node(text: str) -> int | str:
    if text != _RANDOM and not text.isdecimal():
        raise argparse.ArgumentTypeError(f"must be the id of a node, or {_RANDOM} (got {text!r})")
    return text if text == _RANDOM else int(text)


def run(args: argparse.Namespace) -> int:
    if args.start_node is None:
        return plain.run(args)

    def settings(task: GraphTask) -> dict[str, Any]:
        # one gradient step a round makes thousands of rounds; the solver has all the time there is
        return {
            "rounds": 100_000_000,  # as many as the budget allows
            "falsify_rounds": 0,
            "verify_seconds": args.budget,
            "start_node": _initial_node(task, args.start_node, args.seed),
        }

    payload, result = plain.certified(args, _say_some_rounds, settings)
    if result.training is None:
        raise ConfigError("Algorithm 1 needs a head that can be read off", got=result.reason)
    payload["as_printed"] = _as_printed(result.training)

    def show() -> None:
        plain.show(payload)
        sentence = _printed_sentence(payload["as_printed"])
        console().print(sentence, soft_wrap=True, highlight=False)

    emit(args, payload, show)
    return _ENDS[payload["as_printed"]["ended"]]


def _initial_node(task: GraphTask, start: int | str, seed: int) -> int:
    """The node that was named, or a training node drawn uniformly."""
    from graphkeel_paper.baselines.rival import drawn_node

    if start == _RANDOM:
        return drawn_node(task.train_mask.nonzero().flatten(), seed)
    if int(start) >= task.n_nodes or int(task.y[int(start)]) < 0:
        raise ConfigError("--start-node must be a labelled node of the graph", got=start)
    return int(start)


def _say_some_rounds(log: RoundLog) -> None:
    """One gradient step a round makes thousands of them: the first ten, then every hundredth."""
    raise_pending()
    if log.round < 10 or log.round % 100 == 0:
        loss = ", ".join(f"{name} {values[0]:.2e}" for name, values in log.losses.items())
        console(stderr=True).print(
            f"round {log.round}: {log.verdicts[0]}, {log.counterexamples[0]} counterexamples, "
            f"{log.verify_seconds:.2f} s of solving; loss: {loss}",
            style="dim",
            highlight=False,
            soft_wrap=True,
        )


def _as_printed(training: TrainResult) -> dict[str, Any]:
    """How Algorithm 1 ended on the paper's own two conditions, as the solver decided them."""
    (outcome,) = training.outcomes
    decided = [c for c in outcome.report.conditions if c.condition in training.config.goals]
    verdicts = {c.condition: c.verdict.value for c in decided}
    ended = "budget"
    if set(verdicts.values()) == {"proved"}:
        ended = "proof"
    elif "refuted" in verdicts.values():
        ended = "refutation"
    return {
        "ended": ended,
        "node": training.config.start_node,
        "class": outcome.label,
        "conditions": verdicts,
        "rounds": len(training.log),
        "steps": sum(entry.steps for entry in training.log),
        "counterexamples": sum(sum(entry.counterexamples) for entry in training.log),
        "solver": decided[0].engine,
        "solver_seconds": outcome.seconds,
        "training_seconds": sum(entry.fit_seconds for entry in training.log),
        "loss": {name: values[0] for name, values in training.log[-1].losses.items()},
    }


def _printed_sentence(ended: dict[str, Any]) -> str:
    """How Algorithm 1 ended, in words."""
    conditions = ", ".join(f"{name} {verdict}" for name, verdict in ended["conditions"].items())
    word = ""
    if ended["solver"] == "smt" and ended["ended"] == "proof":
        word = " Z3 gives no proof that a checker could repeat: its word is not in the certificate."
    return (
        f"Algorithm 1 as printed, node {ended['node']} of class {ended['class']}: "
        f"{_ENDED[ended['ended']]} ({conditions}). {ended['rounds']} rounds of gradient steps, "
        f"{ended['counterexamples']} counterexamples, {ended['solver_seconds']:.1f} s of "
        f"{ended['solver']}, {ended['training_seconds']:.1f} s of training. V(Y) = 0 is no part of "
        f"it (V(Y)² was {ended['loss']['origin']:.2g} before the last step), nor are invariance, "
        f"the hole and C(h*) = Y; the table above says what holds of them.{word}"
    )
