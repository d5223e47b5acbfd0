"""SCIP through pyscipopt."""

from __future__ import annotations

import numpy as np
from pyscipopt import Model, quicksum

from peers.program import ENOUGH_ABOVE, ENOUGH_BELOW, Found, Linear, MilpPeer, Program


class ScipPeer(MilpPeer):
    """SCIP with default tolerances; it has one thread."""

    name = "scip"

    def maximise(self, program: Program, objective: Linear, seconds: float) -> Found:
        """Solve the program.

        Args:
            program: columns and rows.
            objective: terms and constant, to be maximised.
            seconds: the limit.
        """
        model = Model()
        model.hideOutput()
        model.setParam("limits/time", seconds)
        model.setParam("limits/primal", ENOUGH_ABOVE)
        model.setParam("limits/dual", ENOUGH_BELOW)
        integer = set(program.integer)
        columns = [
            model.addVar(lb=low, ub=high, vtype="B" if k in integer else "C")
            for k, (low, high) in enumerate(zip(program.lower, program.upper, strict=True))
        ]
        for terms, low, high in program.rows:
            row = quicksum(value * columns[k] for k, value in terms.items())
            if np.isfinite(low):
                model.addCons(row >= low)
            if np.isfinite(high):
                model.addCons(row <= high)
        terms, constant = objective
        goal = quicksum(value * columns[k] for k, value in terms.items())
        model.setObjective(goal + constant, "maximize")
        model.optimize()
        empty = model.getStatus() == "infeasible"
        values = None
        if model.getNSols():
            values = np.array([model.getVal(column) for column in columns])
        bound = float("inf") if empty else float(model.getDualbound())
        timed_out = model.getStatus() == "timelimit"
        return Found(values, bound, int(model.getNTotalNodes()), timed_out, empty)
