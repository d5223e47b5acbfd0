"""dReal, where it loads: the solver of the neural-Lyapunov literature, with the L2 ball and its δ.

The wheel on PyPI needs a library that it does not bring, so most machines cannot load it;
`supports` then says so. A δ-sat answer is a box that violates the *softened* condition: its
midpoint counts only if it violates the true one in exact rationals. dReal knows no time limit, so
it runs in a child process that is killed when the budget ends."""

from __future__ import annotations

import importlib
import multiprocessing
import time
from multiprocessing.connection import Connection
from typing import Any

import numpy as np

from graphkeel.verify.confirm import nearest_confirmed
from graphkeel.verify.engines.in_turn import decide_in_turn
from graphkeel.verify.problem import CONDITIONS, Network, Problem
from graphkeel.verify.result import Budget, ConditionReport, Verdict, VerifyReport

DELTA = 1e-3


class DrealVerifier:
    """One δ-satisfiability question per condition."""

    name = "dreal"

    def __init__(self, delta: float = DELTA) -> None:
        self.delta = delta

    def supports(self, problem: Problem) -> str | None:
        try:
            importlib.import_module("dreal")
        except ImportError as error:
            return f"dreal cannot be loaded ({error})"
        exact = all(
            layer.exact for net in (problem.closed_loop, problem.lyapunov) for layer in net.layers
        )
        return None if exact else "weight errors are not supported by this engine"

    def solve(
        self,
        problem: Problem,
        budget: Budget | None = None,
        conditions: tuple[str, ...] = tuple(CONDITIONS),
    ) -> VerifyReport:
        against = self.supports(problem)

        def decide(condition: str, seconds: float) -> ConditionReport:
            return self._condition(problem, condition, seconds, against)

        return decide_in_turn(conditions, budget, decide)

    def _condition(
        self, problem: Problem, condition: str, seconds: float, against: str | None
    ) -> ConditionReport:
        if against is not None:
            return ConditionReport(condition, Verdict.UNKNOWN, self.name, against)
        start = time.perf_counter()
        answer = _ask_child(problem, condition, self.delta, seconds)
        took = time.perf_counter() - start
        if answer == "time":
            return ConditionReport(condition, Verdict.UNKNOWN, self.name, "time", seconds=took)
        if answer == "unsat":
            return ConditionReport(
                condition, Verdict.PROVED, self.name, "unsat (dReal, numerical)", seconds=took
            )
        point = nearest_confirmed(problem, condition, np.asarray(answer))
        if point is not None:
            reason = "violation confirmed in exact rationals"
            return ConditionReport(condition, Verdict.REFUTED, self.name, reason, point, took)
        reason = f"δ-sat only: the point found violates the condition softened by {self.delta:g}, not the condition"
        return ConditionReport(condition, Verdict.UNKNOWN, self.name, reason, seconds=took)


def _ask_child(problem: Problem, condition: str, delta: float, seconds: float) -> Any:
    context = multiprocessing.get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    child = context.Process(target=_child, args=(sender, problem, condition, delta), daemon=True)
    child.start()
    sender.close()
    try:
        return receiver.recv() if receiver.poll(seconds) else "time"
    except EOFError:
        return "time"
    finally:
        child.kill()
        child.join()


def _child(sender: Connection, problem: Problem, condition: str, delta: float) -> None:
    dreal = importlib.import_module("dreal")
    state = [dreal.Variable(f"y{i}") for i in range(problem.n)]
    box = [
        part
        for y, low, high in zip(state, problem.lower, problem.upper, strict=True)
        for part in (y >= float(low), y <= float(high))
    ]
    found = dreal.CheckSatisfiability(
        dreal.And(*box, _violation(dreal, problem, condition, state)), delta
    )
    sender.send("unsat" if not found else [found[y].mid() for y in state])


def _violation(dreal: Any, problem: Problem, condition: str, state: list[Any]) -> Any:
    if condition == "invariance":
        image = _network(dreal, problem.closed_loop, state)
        ends = zip(image, problem.lower, problem.upper, strict=True)
        return dreal.Or(*(part for v, lo, hi in ends for part in (v < float(lo), v > float(hi))))
    offsets = [y - float(e) for y, e in zip(state, problem.equilibrium, strict=True)]
    here = _network(dreal, problem.lyapunov, state)[0]
    if condition == "positivity":
        c = problem.positivity
        wrong = (
            here <= 0
            if c == 0
            else dreal.Or(*(p for o in offsets for p in (here < c * o, here < -c * o)))
        )
    else:
        after = _network(dreal, problem.lyapunov, _network(dreal, problem.closed_loop, state))[0]
        wrong = after >= here if problem.rho == 1 else after > problem.rho * here
    return dreal.And(_outside_hole(dreal, problem, offsets), wrong)


def _outside_hole(dreal: Any, problem: Problem, offsets: list[Any]) -> Any:
    radius = problem.hole_radius
    if problem.hole_norm == "2":
        return sum(o * o for o in offsets) >= radius**2
    return dreal.Or(*(part for o in offsets for part in (o >= radius, o <= -radius)))


def _network(dreal: Any, network: Network, values: list[Any]) -> list[Any]:
    for k, layer in enumerate(network.layers):
        rows = zip(layer.weight, layer.bias, strict=True)
        values = [
            sum((float(w) * v for w, v in zip(row, values, strict=True)), float(b))
            for row, b in rows
        ]
        values = values if k + 1 == len(network.layers) else [dreal.Max(0.0, v) for v in values]
    return values
