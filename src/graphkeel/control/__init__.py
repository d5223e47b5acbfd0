"""Controllers: each finds, for a class's target logits Y, the feature h* that the frozen head maps
onto Y.

One controller a file, one protocol (`Controller.regulate`). None of them knows a graph, a dataset
or a solver: they see the head as a callable with layers (`Plant`)."""

from __future__ import annotations

from graphkeel.control.base import (
    Controller,
    Plant,
    Regulation,
    jacobian,
    origin,
    set_point,
    settle,
)
from graphkeel.control.deadbeat import Deadbeat, SolveSettings, solve_anchor
from graphkeel.control.levenberg import levenberg_marquardt
from graphkeel.control.lqr import LQR
from graphkeel.control.mfac import MFAC
from graphkeel.control.neural import ControllerBatch, NeuralController, NeuralWeights
from graphkeel.control.pid import PID

CLASSICAL: dict[str, type] = {"deadbeat": Deadbeat, "mfac": MFAC, "pid": PID, "lqr": LQR}

__all__ = [
    "CLASSICAL",
    "LQR",
    "MFAC",
    "PID",
    "Controller",
    "ControllerBatch",
    "Deadbeat",
    "NeuralController",
    "NeuralWeights",
    "Plant",
    "Regulation",
    "SolveSettings",
    "jacobian",
    "levenberg_marquardt",
    "origin",
    "set_point",
    "settle",
    "solve_anchor",
]
