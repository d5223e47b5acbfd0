"""HiGHS with one thread and default tolerances."""

from __future__ import annotations

from typing import Any

import highspy
import numpy as np

from peers.program import ENOUGH_ABOVE, ENOUGH_BELOW, Found, Linear, MilpPeer, Program


class HighsPeer(MilpPeer):
    """HiGHS; `milp` in stored results."""

    name = "milp"

    def maximise(self, program: Program, objective: Linear, seconds: float) -> Found:
        """Solve the program."""
        solver = highspy.Highs()
        solver.setOptionValue("output_flag", False)
        solver.setOptionValue("time_limit", float(seconds))
        solver.setOptionValue("threads", 1)
        solver.passModel(_model(program, objective))
        _stop_when_decided(solver)
        solver.run()
        info, status = solver.getInfo(), solver.getModelStatus()
        nodes = max(int(info.mip_node_count), 1)
        if status == highspy.HighsModelStatus.kInfeasible:
            return Found(None, float("inf"), nodes, False, empty=True)
        solved = info.primal_solution_status == 2
        values = np.array(solver.getSolution().col_value) if solved else None
        bound = info.mip_dual_bound if program.integer else info.objective_function_value
        timed_out = status == highspy.HighsModelStatus.kTimeLimit
        return Found(values, float(bound), nodes, timed_out)


def _stop_when_decided(solver: Any) -> None:
    """The exact maximum is not needed: stop once it is clearly negative or a clear violation is at
    hand."""

    def decided(event: Any) -> None:
        bound, best = event.data_out.mip_dual_bound, event.data_out.mip_primal_bound
        if bound < ENOUGH_BELOW or (np.isfinite(best) and best > ENOUGH_ABOVE):
            event.interrupt()

    solver.cbMipInterrupt += decided


def _model(program: Program, objective: Linear) -> Any:
    model = highspy.HighsLp()
    columns, (terms, constant) = len(program.lower), objective
    cost = np.zeros(columns)
    for column, value in terms.items():
        cost[column] = value
    model.num_col_, model.num_row_ = columns, len(program.rows)
    model.col_cost_, model.offset_, model.sense_ = cost, constant, highspy.ObjSense.kMaximize
    model.col_lower_, model.col_upper_ = np.array(program.lower), np.array(program.upper)
    model.row_lower_ = np.array([low for _, low, _ in program.rows])
    model.row_upper_ = np.array([high for _, _, high in program.rows])
    model.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    model.a_matrix_.start_ = np.cumsum([0, *(len(row) for row, _, _ in program.rows)]).astype(
        np.int32
    )
    model.a_matrix_.index_ = np.array(
        [c for row, _, _ in program.rows for c in row], dtype=np.int32
    )
    model.a_matrix_.value_ = np.array([v for row, _, _ in program.rows for v in row.values()])
    kinds = [highspy.HighsVarType.kContinuous] * columns
    for column in program.integer:
        kinds[column] = highspy.HighsVarType.kInteger
    model.integrality_ = kinds
    return model
