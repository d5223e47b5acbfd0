"""The verify package: is V a Lyapunov function of the closed loop F on a box? Proved, refuted, or
unknown and why."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from types import ModuleType
from typing import Any

from graphkeel.core.names import check_name
from graphkeel.verify.problem import (
    CONDITIONS,
    Affine,
    Network,
    Problem,
    Region,
    Sublevel,
    check_conditions,
)
from graphkeel.verify.problem_io import read_problem, write_problem
from graphkeel.verify.result import Budget, ConditionReport, Verdict, Verifier, VerifyReport

# name -> (module, class); a module is imported when its engine is loaded
_ENGINES = {
    "auto": ("graphkeel.verify.portfolio", "AutoVerifier"),
    "branch": ("graphkeel.verify.branch", "BranchVerifier"),
    "contraction": ("graphkeel.verify.contraction", "ContractionVerifier"),
    "falsify": ("graphkeel.verify.portfolio", "FalsifyVerifier"),
    "smt": ("graphkeel.verify.smt", "SmtVerifier"),
}
ENGINES = tuple(_ENGINES)


def load_engine(name: str) -> Verifier:
    """One engine, its module imported now.

    Args:
        name: one of `ENGINES`.
    """
    check_name("a verification engine", name, _ENGINES)
    module, cls = _ENGINES[name]
    verifier: Verifier = getattr(import_module(module), cls)()
    return verifier


def verify(
    problem: Problem,
    engine: str = "auto",
    budget: Budget | None = None,
    conditions: Sequence[str] = tuple(CONDITIONS),
) -> VerifyReport:
    """Decide the conditions of a problem with one engine.

    Args:
        problem: the loop, the Lyapunov function and the box.
        engine: one of `ENGINES`.
        budget: for all conditions together.
        conditions: their names; the report has them in this order.

    >>> absolute = Network.of(([[1.0], [-1.0]], [0.0, 0.0]), ([[1.0, 1.0]], [0.0]))
    >>> halving = Network.of(([[0.5]], [0.0]))
    >>> problem = Problem(halving, absolute, [-1.0], [1.0], [0.0], hole_radius=0.1, rho=0.75)
    >>> verify(problem).verdict
    <Verdict.PROVED: 'proved'>
    """
    check_conditions(problem, conditions)
    verifier = load_engine(engine)
    against = verifier.supports(problem)
    if against is not None:
        reports = tuple(
            ConditionReport(c, Verdict.UNKNOWN, engine, f"unsupported: {against}")
            for c in conditions
        )
        return VerifyReport(reports)
    report: VerifyReport = verifier.solve(problem, budget, conditions)
    return report


__all__ = [
    "CONDITIONS",
    "ENGINES",
    "Affine",
    "Budget",
    "ConditionReport",
    "Network",
    "Problem",
    "Region",
    "Sublevel",
    "Verdict",
    "Verifier",
    "VerifyReport",
    "load_engine",
    "read_problem",
    "verify",
    "write_problem",
]


class _CallablePackage(ModuleType):
    """`graphkeel.verify` is this package; called, it is its main function, so that `gk.verify(…)`
    works whether or not the package was loaded before."""

    def __call__(self, *args: Any, **kwargs: Any) -> VerifyReport:
        return verify(*args, **kwargs)


sys.modules[__name__].__class__ = _CallablePackage
