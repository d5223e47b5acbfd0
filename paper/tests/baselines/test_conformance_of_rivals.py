"""Every rival keeps the contract of a method."""

from __future__ import annotations

import pytest

from graphkeel.testing import yield_reconstruction_checks
from graphkeel_paper.baselines.frozen.controllers import ControllerMethod
from graphkeel_paper.baselines.registry import BASELINES, get_baseline
from graphkeel_paper.baselines.retrained.kdga import KDGA
from graphkeel_paper.baselines.retrained.mh_aug import MHAug

# by the beginning of the name
LONG = ("frgnn", "gtrans", "mh-aug", "kdga", "srgnn", "soga", "homottt", "pool", "retrain")
LONG += ("a2gnn", "udagcn")
CLASSICAL = ("deadbeat", "pid", "lqr", "mfac-probed")


def is_long(method) -> bool:
    return method.name.startswith(LONG) and method not in SHORTENED.values()


RIVALS = [
    *(get_baseline(name) for name in BASELINES),
    *(ControllerMethod(controller, "all") for controller in CLASSICAL),
]
# Two train for so long that all checks at full length take minutes. The contract is not about
# length: all checks run on the same code with fewer steps, in every test run, and those that ask
# most of it at full length as well.
SHORTENED = {
    "mh-aug": MHAug("mh-aug, shortened", proposals=200, accepted=60),
    "kdga": KDGA("kdga, shortened", edge_epochs=20, classifier_epochs=10, epochs=20, hidden=32),
}
AT_FULL_LENGTH = (
    "gives whole results (sgc)",
    "never looks at hidden labels",
    "does the same again",
)


def checks_of(method):
    """All checks of a method, those that take long as slow ones."""
    for check in yield_reconstruction_checks(method):
        if method.name not in SHORTENED or check.name in AT_FULL_LENGTH:
            yield pytest.param(
                check, id=str(check), marks=[pytest.mark.slow] if is_long(method) else []
            )


CHECKS = [check for method in (*RIVALS, *SHORTENED.values()) for check in checks_of(method)]


@pytest.mark.parametrize("check", CHECKS)
def test_rivals_conform(check) -> None:
    check()


def test_most_methods_are_checked_in_every_test_run() -> None:
    assert sum(not is_long(method) for method in RIVALS) >= 11
