"""Controllers: each finds, for a class's target logits Y, the feature h* that the frozen head maps
onto Y.

One protocol (`Controller.regulate`). None of them knows a graph, a dataset
or a solver: they see the head as a callable with layers (`Plant`)."""

from __future__ import annotations

from graphkeel.control.base import (
    Controller,
    Plant,
    Regulation,
    jacobian,
    regulation_at,
    set_point,
)
from graphkeel.control.classical import LQR, MFAC, PID
from graphkeel.control.deadbeat import Deadbeat, SolveSettings, solve_anchor
from graphkeel.control.neural import NeuralController, NeuralWeights

CLASSICAL: dict[str, type] = {"deadbeat": Deadbeat, "mfac": MFAC, "pid": PID, "lqr": LQR}

__all__ = [
    "CLASSICAL",
    "LQR",
    "MFAC",
    "PID",
    "Controller",
    "Deadbeat",
    "NeuralController",
    "NeuralWeights",
    "Plant",
    "Regulation",
    "SolveSettings",
    "jacobian",
    "regulation_at",
    "set_point",
    "solve_anchor",
]
