"""Gurobi under the size-limited licence that comes with gurobipy (2,000 columns, 2,000 rows)."""

from __future__ import annotations

import gurobipy
import numpy as np

from peers.program import ENOUGH_ABOVE, ENOUGH_BELOW, Found, Linear, MilpPeer, Program


class GurobiPeer(MilpPeer):
    """Gurobi with one thread and default tolerances."""

    name = "gurobi"

    def maximise(self, program: Program, objective: Linear, seconds: float) -> Found:
        """Solve the program.

        Args:
            program: columns and rows.
            objective: terms and constant, to be maximised.
            seconds: the limit.
        """
        with gurobipy.Env(params={"OutputFlag": 0}) as env, gurobipy.Model(env=env) as model:
            model.Params.Threads = 1
            model.Params.TimeLimit = seconds
            model.Params.BestObjStop = ENOUGH_ABOVE
            model.Params.BestBdStop = ENOUGH_BELOW
            columns = _filled(model, program, objective)
            try:
                model.optimize()
            except gurobipy.GurobiError as error:  # larger than the licence allows
                return Found(None, float("inf"), 0, str(error) == "")
            return _found(model, columns)


def _filled(model: gurobipy.Model, program: Program, objective: Linear) -> list[gurobipy.Var]:
    integer = set(program.integer)
    kinds = [
        gurobipy.GRB.BINARY if k in integer else gurobipy.GRB.CONTINUOUS
        for k in range(len(program.lower))
    ]
    made = model.addVars(len(kinds), lb=program.lower, ub=program.upper, vtype=kinds)
    columns = list(made.values())
    for terms, low, high in program.rows:
        row = gurobipy.LinExpr(list(terms.values()), [columns[k] for k in terms])
        if low == high:
            model.addLConstr(row, gurobipy.GRB.EQUAL, low)
            continue
        if np.isfinite(low):
            model.addLConstr(row, gurobipy.GRB.GREATER_EQUAL, low)
        if np.isfinite(high):
            model.addLConstr(row, gurobipy.GRB.LESS_EQUAL, high)
    terms, constant = objective
    goal = gurobipy.LinExpr(list(terms.values()), [columns[k] for k in terms])
    model.setObjective(goal + constant, gurobipy.GRB.MAXIMIZE)
    return columns


def _found(model: gurobipy.Model, columns: list[gurobipy.Var]) -> Found:
    status = model.Status
    empty = status in (gurobipy.GRB.INFEASIBLE, gurobipy.GRB.INF_OR_UNBD)
    values = np.array([column.X for column in columns]) if model.SolCount else None
    bound = float("inf") if empty else float(model.ObjBound)
    return Found(values, bound, int(model.NodeCount), status == gurobipy.GRB.TIME_LIMIT, empty)
