"""Conformance checks for parts of your own: a controller, a reconstruction method.

`check_controller` and `check_reconstruction` run every check and raise `ConformanceError` at the
first that fails; the `yield_*_checks` hand the checks out one by one, for
`pytest.mark.parametrize`."""

from graphkeel.testing.checks import Check, Conformance, ConformanceError
from graphkeel.testing.controller import check_controller, yield_controller_checks
from graphkeel.testing.reconstruction import check_reconstruction, yield_reconstruction_checks

__all__ = [
    "Check",
    "Conformance",
    "ConformanceError",
    "check_controller",
    "check_reconstruction",
    "yield_controller_checks",
    "yield_reconstruction_checks",
]
