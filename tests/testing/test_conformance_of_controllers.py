"""Every controller of ours keeps the contract; controllers that break it are caught, with a message
that says how."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest
import torch
from torch import Tensor

from graphkeel.control import (
    LQR,
    MFAC,
    PID,
    Deadbeat,
    NeuralController,
    Plant,
    Regulation,
)
from graphkeel.control.neural import FORMS, ControllerBatch
from graphkeel.core.errors import KeelError
from graphkeel.testing import ConformanceError, check_controller, yield_controller_checks


def neural(form: str):
    """An untrained f: in the forms anchored by construction, f(Y) solves C(h) = Y already."""

    def build(plant: Plant, target: Tensor) -> NeuralController:
        if not plant.layers:
            raise KeelError("the neural controller needs the head's layers")
        generator = torch.Generator().manual_seed(0)
        width = torch.ones(1, plant.n_out)
        batch = ControllerBatch(
            plant, target[None], width, form=form, hidden=16, generator=generator
        )
        return NeuralController(batch.shipped(0))

    build.__name__ = f"neural, {form}"
    return build


BOTH, AFFINE, NOWHERE = ("affine", "relu"), ("affine",), ()
OURS = [
    (Deadbeat(), BOTH),
    (PID(), BOTH),
    (LQR(), BOTH),
    (MFAC(), AFFINE),  # on a ReLU plant its estimate lags behind the cells it crosses
    (
        MFAC(initial="blind", name="mfac, blind"),
        NOWHERE,
    ),  # the control that shows what the probe is for
    (neural("anchored"), BOTH),
    (neural("homogeneous"), BOTH),
    (neural("paper"), NOWHERE),  # before training its anchor is a random one
]
CHECKS = [
    check for part, reaches in OURS for check in yield_controller_checks(part, reaches=reaches)
]


def test_every_form_of_the_neural_controller_is_among_them() -> None:
    names = {check.part for check in CHECKS}
    assert {f"neural, {form}" for form in FORMS} <= names


@pytest.mark.parametrize("check", CHECKS, ids=str)
def test_ours_conform(check) -> None:
    check()


@dataclass(frozen=True)
class Broken:
    """A dead-beat controller with a fault."""

    name: str = "broken"

    def regulate(self, plant: Plant, target: Tensor) -> Regulation:
        return self.spoil(replace(Deadbeat().regulate(plant, target), controller=self.name))

    def spoil(self, found: Regulation) -> Regulation:
        return found


class Boaster(Broken):
    def spoil(self, found):
        return replace(found, anchor=found.anchor + 0.5)


class Gambler(Broken):
    def spoil(self, found):
        anchor = found.anchor + 1e-6 * torch.randn(found.anchor.shape)
        return replace(found, anchor=anchor)


class Vague(Broken):
    def spoil(self, found):
        return replace(found, anchor=found.anchor.double())


class Meddler(Broken):
    def regulate(self, plant, target):
        found = super().regulate(plant, target)
        target += 1.0
        return found


class Reseeder(Broken):
    def spoil(self, found):
        torch.manual_seed(314159)  # no other test uses this one
        return found


class Careless(Broken):
    def regulate(self, plant, target):
        clean = torch.nan_to_num(target.flatten()[: plant.n_out], posinf=0.0)
        return super().regulate(plant, clean)


@pytest.mark.parametrize(
    ("broken", "check", "message"),
    [
        (
            Boaster,
            "measures its residual at the shipped feature (affine, by hand)",
            "expected the residual",
        ),
        (
            Gambler,
            "ignores the global generators",
            "the same answer, to the bit, under any global seed",
        ),
        (
            Vague,
            "has the promised form",
            "expected a float32 feature of shape (3,) (got ((3,), torch.float64))",
        ),
        (Meddler, "leaves its arguments alone", "expected the target to be left alone"),
        (
            Reseeder,
            "leaves its surroundings alone",
            "expected torch's global random generator to be left alone",
        ),
        (Careless, "refuses wrong targets", "expected a KeelError for a target with three entries"),
    ],
)
def test_faults_are_found_and_named(broken, check, message) -> None:
    (found,) = [one for one in yield_controller_checks(broken()) if one.name == check]
    with pytest.raises(ConformanceError) as caught:
        found()
    assert str(caught.value).startswith(f"broken does not pass the check {check!r}: ")
    assert message in str(caught.value)


def test_one_that_does_not_arrive_is_told_where() -> None:
    with pytest.raises(AssertionError, match=r"reaches its targets \(affine plant, "):
        check_controller(MFAC(initial="blind"))


def test_the_summary_lists_what_was_passed_and_what_did_not_apply() -> None:
    summary = check_controller(neural("anchored"))
    assert "has the promised form" in summary.passed
    assert summary.skipped == {
        "measures its residual at the shipped feature (without layers)": (
            "refused: the neural controller needs the head's layers."
        )
    }
