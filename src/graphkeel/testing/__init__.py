"""Conformance checks for parts of your own: a controller, a verification engine, a reconstruction
method.

`check_controller`, `check_verifier` and `check_reconstruction` run every check and raise
`ConformanceError` at the first that fails; the `yield_*_checks` hand the checks out one by one, for
`pytest.mark.parametrize`. The names load on first use, so that an engine can be checked without
torch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from graphkeel.core.lazy import lazy_names

_HOMES = {
    "Check": "graphkeel.testing.checks",
    "Conformance": "graphkeel.testing.checks",
    "ConformanceError": "graphkeel.testing.checks",
    "check_controller": "graphkeel.testing.controller",
    "yield_controller_checks": "graphkeel.testing.controller",
    "check_reconstruction": "graphkeel.testing.reconstruction",
    "yield_reconstruction_checks": "graphkeel.testing.reconstruction",
    "check_verifier": "graphkeel.testing.verifier",
    "yield_verifier_checks": "graphkeel.testing.verifier",
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

else:
    __getattr__, __dir__ = lazy_names(__name__, _HOMES)
