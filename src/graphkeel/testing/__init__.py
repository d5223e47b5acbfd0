"""Conformance checks for parts of your own: a controller, a verification engine, a reconstruction
method.

`check_controller`, `check_verifier` and `check_reconstruction` run every check and raise
`ConformanceError` at the first that fails; the `yield_*_checks` hand the checks out one by one, for
`pytest.mark.parametrize`. The names load on first use, so that an engine can be checked without
torch."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

_HOME = {
    "Check": "checks",
    "Conformance": "checks",
    "ConformanceError": "checks",
    "check_controller": "controller",
    "yield_controller_checks": "controller",
    "check_reconstruction": "reconstruction",
    "yield_reconstruction_checks": "reconstruction",
    "check_verifier": "verifier",
    "yield_verifier_checks": "verifier",
}

__all__ = [
    "Check",
    "Conformance",
    "ConformanceError",
    "check_controller",
    "check_reconstruction",
    "check_verifier",
    "yield_controller_checks",
    "yield_reconstruction_checks",
    "yield_verifier_checks",
]

if TYPE_CHECKING:
    from graphkeel.testing.checks import Check, Conformance, ConformanceError
    from graphkeel.testing.controller import check_controller, yield_controller_checks
    from graphkeel.testing.reconstruction import check_reconstruction, yield_reconstruction_checks
    from graphkeel.testing.verifier import check_verifier, yield_verifier_checks


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'graphkeel.testing' has no attribute {name!r}")
    return getattr(importlib.import_module(f"graphkeel.testing.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
