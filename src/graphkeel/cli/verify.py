"""Decide a closed loop given as a file: is V a Lyapunov function of F on the box without the hole?

  keel verify problem.json
  keel verify problem.npz --engine milp --timeout 120 --json
  keel verify problem.json --cross-check
        every installed engine; a contradiction is an error

The file is described in docs/problem-format.md. Exit 0: proved, 1: refuted with a counterexample,
3: unknown.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from graphkeel.cli.common import add_json, emit_json, emit_lines, path_type, seconds_type
from graphkeel.core.errors import ConfigError

if TYPE_CHECKING:
    from graphkeel.verify.problem import Problem
    from graphkeel.verify.result import Verifier, VerifyReport

HELP = "decide a closed loop given as a file, without a dataset"

ENGINES = ("auto", "branch", "contraction", "falsify", "milp", "smt")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "problem", type=path_type, metavar="PROBLEM", help="a .json or .npz problem file"
    )
    who = parser.add_mutually_exclusive_group()
    who.add_argument(
        "--engine", choices=ENGINES, default="auto", help="which engine decides (default auto)"
    )
    who.add_argument(
        "--cross-check", action="store_true", help="ask every installed engine, each with --timeout"
    )
    parser.add_argument(
        "--timeout",
        type=seconds_type,
        default=60.0,
        metavar="S",
        help="seconds for all conditions (default 60)",
    )
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    from graphkeel.verify.crosscheck import cross_check
    from graphkeel.verify.problem_io import read_problem
    from graphkeel.verify.result import Budget

    problem, budget = read_problem(args.problem), Budget(seconds=args.timeout)
    if args.cross_check:
        name, report = "all", cross_check(problem, budget)
    else:
        name, report = args.engine, engine(args.engine, problem).solve(problem, budget)
    if args.json:
        emit_json(
            {"command": "verify", "problem": str(args.problem), "engine": name, **_payload(report)}
        )
    else:
        emit_lines(_lines(report))
    return report.verdict.exit_code


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
    point = report.counterexample
    return {
        "verdict": report.verdict.value,
        "counterexample": None if point is None else [float(v) for v in point],
        "seconds": round(report.seconds, 6),
        "nodes": report.nodes,
        "conditions": [
            {
                "condition": answer.condition,
                "verdict": answer.verdict.value,
                "engine": answer.engine,
                "reason": answer.reason,
                "counterexample": None
                if answer.counterexample is None
                else [float(v) for v in answer.counterexample],
                "seconds": round(answer.seconds, 6),
                "nodes": answer.nodes,
            }
            for answer in report.conditions
        ],
    }


def _lines(report: VerifyReport) -> list[str]:
    verdict = report.verdict
    spent = f"{report.seconds:.2f} s, {report.nodes} nodes"
    lines = [f"{verdict.value}: {verdict.sentence} ({spent})"]
    for answer in report.conditions:
        reason = f": {answer.reason}" if answer.reason else ""
        lines.append(f"  {answer.condition:<10} {answer.verdict.value} by {answer.engine}{reason}")
        if answer.counterexample is not None:
            lines.append(f"             at y = {[float(v) for v in answer.counterexample]}")
    return [*lines, *(f"  {note}" for note in report.notes)]
