"""Decide a closed loop given as a file: is V a Lyapunov function of F on the box without the hole?

  keel verify problem.json
  keel verify problem.json --conditions decrease,region
        these conditions alone
  keel verify problem.json --sublevel 0.25 --conditions sublevel-decrease
        does V fall on {V ≤ 0.25}?
  keel verify problem.json --proof proof.json
        the proofs of its conditions, for keel check proof.json --problem problem.json
  keel verify problem.npz --engine smt --timeout 120 --json

A refuted condition ends the work unless --all is given. The file is described in
docs/formats.md. Exit 0: proved, 1: refuted with a counterexample, 3: unknown."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from graphkeel.cli.shared.common import add_options, emit, emit_lines, path_type, seconds_type
from graphkeel.cli.shared.proofs import (
    add_verify_arguments,
    run_property,
    store_proofs,
    with_sublevel,
)
from graphkeel.core.errors import ConfigError
from graphkeel.core.steps import stage, step

if TYPE_CHECKING:
    from graphkeel.verify.problem import Problem
    from graphkeel.verify.result import Budget, Progress, Verifier, VerifyReport

HELP = "decide a closed loop given as a file, without a dataset"

ENGINES = ("auto", "branch", "contraction", "falsify", "smt")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("problem", type=path_type, metavar="PROBLEM", help="a .json or .npz problem file")
    add_verify_arguments(parser)
    words = f"which engine decides: {', '.join(ENGINES)} (default auto)"
    add("--engine", choices=ENGINES, default="auto", metavar="NAME", help=words)
    words = "of positivity, decrease, invariance, region, sublevel-invariance, sublevel-decrease"
    words += " (default: all that the problem has)"
    add("--conditions", metavar="LIST", help=words)
    words = "decide every condition, also after one was refuted"
    add("--all", action="store_true", help=words)
    words = "seconds for all conditions, shared between them (default 60)"
    add("--timeout", type=seconds_type, default=60.0, metavar="S", help=words)
    words = "whether --timeout is of wall or of processor time (default wall)"
    add("--clock", choices=("wall", "processor"), default="wall", help=words)
    add_options(parser, "--json")


def run(args: argparse.Namespace) -> int:
    if args.property is not None or args.problem.suffix == ".onnx":
        return run_property(args)
    if args.results is not None:
        raise ConfigError("--results is for a network and its property", got="a closed loop")
    from graphkeel.verify.problem_io import read_problem

    problem = with_sublevel(read_problem(args.problem), args)
    conditions = selected(args.conditions, problem)
    budget = _budget(args)
    with step("verify"):
        report = engine(args.engine, problem).solve(problem, budget, conditions)
    what = {"command": "verify", "problem": str(args.problem), "engine": args.engine}
    what |= _payload(report)
    lines = _lines(report)
    if args.proof is not None:
        shown, sentence = store_proofs(args, problem, report)
        what["proof"] = str(args.proof) if shown else None
        lines.append(f"  {sentence}")
    emit(args, what, lambda: emit_lines(lines))
    return report.verdict.exit_code


def selected(listed: str | None, problem: Problem) -> tuple[str, ...]:
    """The conditions that were asked for; by default all that the problem has."""
    from graphkeel.verify.problem import CONDITIONS, SUBLEVEL, check_conditions

    if listed is None:
        region = () if problem.region is None else ("region",)
        sublevel = () if problem.sublevel is None else tuple(SUBLEVEL)
        return (*CONDITIONS, *region, *sublevel)
    names = tuple(dict.fromkeys(part.strip() for part in listed.split(",") if part.strip()))
    if not names:
        raise ConfigError("--conditions names no condition", got=repr(listed))
    check_conditions(problem, names)
    return names


def _budget(args: argparse.Namespace) -> Budget:
    from graphkeel.verify.result import Budget

    return Budget(
        seconds=args.timeout,
        clock=args.clock,
        first_refutation=not args.all,
        on_progress=_say_where,
    )


def _say_where(search: Progress) -> None:
    """Progress of a long run."""
    boxes = f"{search.nodes:,} boxes, {search.open:,} open"
    stage(f"{search.row}: {boxes}, {search.seconds:.0f} s")


def engine(name: str, problem: Problem) -> Verifier:
    """The engine of that name, if it can take the problem."""
    from graphkeel.verify import load_engine

    verifier = load_engine(name)
    against = verifier.supports(problem)
    if against is not None:
        raise ConfigError(
            f"the engine {name!r} cannot decide this problem", got=against, fix="Try --engine auto."
        )
    return verifier


def _payload(report: VerifyReport) -> dict[str, Any]:
    return {
        "verdict": report.verdict.value,
        "counterexample": _listed(report.counterexample),
        "seconds": round(report.seconds, 6),
        "nodes": report.nodes,
        "conditions": [
            {
                "condition": answer.condition,
                "verdict": answer.verdict.value,
                "engine": answer.engine,
                "reason": answer.reason,
                "counterexample": _listed(answer.counterexample),
                "seconds": round(answer.seconds, 6),
                "nodes": answer.nodes,
            }
            for answer in report.conditions
        ],
    }


def _listed(point: Any) -> list[float] | None:
    return None if point is None else [float(v) for v in point]


def _lines(report: VerifyReport) -> list[str]:
    verdict = report.verdict
    spent = f"{report.seconds:.2f} s, {report.nodes} nodes"
    lines = [f"{verdict.value}: {verdict.sentence} ({spent})"]
    for answer in report.conditions:
        reason = f": {answer.reason}" if answer.reason else ""
        lines.append(f"  {answer.condition:<10} {answer.verdict.value} by {answer.engine}{reason}")
        if answer.counterexample is not None:
            lines.append(f"             at y = {_listed(answer.counterexample)}")
    return lines
