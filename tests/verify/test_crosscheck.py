"""All engines on one problem: a report names those that agree, an error those that contradict."""

from __future__ import annotations

import pytest

from graphkeel.core.errors import EngineDisagreementError
from graphkeel.verify import (
    Budget,
    ConditionReport,
    Network,
    Problem,
    Verdict,
    VerifyReport,
    available_engines,
)
from graphkeel.verify.crosscheck import cross_check


def loop(factor: float) -> Problem:
    absolute = Network.of(([[1.0], [-1.0]], [0.0, 0.0]), ([[1.0, 1.0]], [0.0]))
    return Problem(
        Network.of(([[factor]], [0.0])),
        absolute,
        [-1.0],
        [1.0],
        [0.0],
        0.1,
        rho=0.75,
        positivity=0.5,
    )


class Liar:
    """Proves everything."""

    name = "liar"

    def supports(self, problem: Problem) -> str | None:
        return None

    def solve(
        self, problem: Problem, budget: Budget | None = None, conditions: tuple[str, ...] = ()
    ) -> VerifyReport:
        return VerifyReport(
            tuple(ConditionReport(c, Verdict.PROVED, self.name) for c in conditions)
        )


def test_engines_that_agree_are_all_named() -> None:
    report = cross_check(loop(0.5), Budget(seconds=600))
    assert report.verdict is Verdict.PROVED
    assert {"branch", "contraction"} <= set(report["decrease"].engine.split(", "))
    assert "falsify" in report.notes[0]  # it never proves


def test_a_refutation_carries_its_state() -> None:
    report = cross_check(loop(0.9), Budget(seconds=600))
    assert report["decrease"].verdict is Verdict.REFUTED
    assert report["decrease"].counterexample is not None


def test_a_contradiction_is_an_error_that_names_both() -> None:
    among = {"branch": available_engines()["branch"], "liar": Liar()}
    with pytest.raises(
        EngineDisagreementError, match="branch and liar contradict each other on 'decrease'"
    ):
        cross_check(loop(0.9), Budget(seconds=600), among=among)
