"""Other people's solvers as engines, for comparison only: one file a solver.

Z3 is an engine of graphkeel itself (`smt`); the others are adapters of this folder.
All mixed-integer solvers get one formulation (`program.py`), all SMT solvers one text."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec

from graphkeel.core.errors import ConfigError
from graphkeel.verify import Problem, Verifier, load_engine

# name: (module of this folder, class, the package it needs)
ADAPTERS = {
    "gurobi": ("peers.gurobi", "GurobiPeer", "gurobipy"),
    "milp": ("peers.highs", "HighsPeer", "highspy"),
    "scip": ("peers.scip", "ScipPeer", "pyscipopt"),
    "cvc5": ("peers.cvc5_peer", "Cvc5Peer", "cvc5"),
    "marabou": ("peers.marabou", "MarabouPeer", "maraboupy"),
}
OURS = ("branch", "auto")
PEERS = ("gurobi", "milp", "scip", "marabou", "smt", "cvc5")


def engine_named(name: str, problem: Problem) -> Verifier:
    """One of graphkeel's engines or an adapter, if it is installed and can take the problem.

    Args:
        name: of the engine.
        problem: the problem.
    """
    if name in ADAPTERS:
        module, cls, package = ADAPTERS[name]
        if find_spec(package) is None:
            raise ConfigError(f"{package} is not installed", fix="pip install 'graphkeel[peers]'")
        verifier: Verifier = getattr(import_module(module), cls)()
    else:
        verifier = load_engine(name)
    against = verifier.supports(problem)
    if against is not None:
        raise ConfigError(f"{name} cannot decide this problem", got=against)
    return verifier
