"""The verify package: is V a Lyapunov function of the closed loop F on a box? Proved, refuted, or
unknown and why."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from types import ModuleType
from typing import Any

from graphkeel.core.names import check_name
from graphkeel.core.optional import is_installed
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

# name -> (module, class, the package it needs); a module is imported when its engine is loaded
_ENGINES = {
    "auto": ("graphkeel.verify.portfolio", "AutoVerifier", "numba"),
    "branch": ("graphkeel.verify.branch", "BranchVerifier", "numba"),
    "contraction": ("graphkeel.verify.engines.contraction", "ContractionVerifier", "numpy"),
    "falsify": ("graphkeel.verify.engines.falsify", "FalsifyVerifier", "scipy"),
    "smt": ("graphkeel.verify.engines.smt", "SmtVerifier", "z3"),
}
ENGINES = tuple(_ENGINES)


def load_engine(name: str) -> Verifier:
    """One engine, its module imported now.

    Args:
        name: one of `ENGINES`.
    """
    check_name("a verification engine", name, _ENGINES)
    module, cls, _ = _ENGINES[name]
    verifier: Verifier = getattr(import_module(module), cls)()
    return verifier


def available_engines() -> dict[str, Verifier]:
    """The engines that can run here, by name."""
    found: dict[str, Verifier] = {}
    for name, (_, _, package) in _ENGINES.items():
        if not is_installed(package):
            continue
        try:
            found[name] = load_engine(name)
        except (ImportError, OSError):  # a package that is there but does not load
            continue
    return found


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
    "available_engines",
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
