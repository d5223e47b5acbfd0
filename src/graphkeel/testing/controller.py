"""The contract of a controller: steers a plant to its target, and tells the truth about how near it
came."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator
from functools import partial
from itertools import pairwise
from unittest import SkipTest

import torch
from torch import Tensor

from graphkeel.control.base import Controller, LayeredPlant, Layers, Plant, Regulation
from graphkeel.core.errors import KeelError
from graphkeel.testing.checks import (
    Check,
    Conformance,
    Subject,
    expect,
    expect_equal,
    expect_refusal,
    global_seed,
    left_alone,
    run_all,
)

_Factory = Callable[[Plant, Tensor], Controller]

# ---- small heads with known answers: what a controller has to steer


class OpaquePlant:
    """y = x + sin(x)/10: smooth and invertible, but no ReLU network, so it has no layers."""

    layers: Layers = ()
    n_in, n_out = 2, 2

    def __call__(self, x: Tensor) -> Tensor:
        return x + 0.1 * torch.sin(x)


def affine_plant() -> LayeredPlant:
    """y = (2x₀ + x₂ + 1, x₁ − 1): three features, two logits."""
    weight = torch.tensor([[2.0, 0.0, 1.0], [0.0, 1.0, 0.0]], dtype=torch.float64)
    return LayeredPlant(((weight, torch.tensor([1.0, -1.0], dtype=torch.float64)),))


def blind_plant() -> LayeredPlant:
    """y = (x₀, 0): no feature moves the second logit, so a target off the first axis cannot be
    reached."""
    weight = torch.tensor([[1.0, 0.0], [0.0, 0.0]], dtype=torch.float64)
    return LayeredPlant(((weight, torch.zeros(2, dtype=torch.float64)),))


def random_plant(sizes: tuple[int, ...], seed: int = 0, scale: float = 1.0) -> LayeredPlant:
    generator = torch.Generator().manual_seed(seed)
    layers = []
    for before, after in pairwise(sizes):
        weight = torch.randn(after, before, generator=generator) * scale / before**0.5
        layers.append((weight.double(), torch.randn(after, generator=generator).double()))
    return LayeredPlant(tuple(layers))


_REACHABLE: dict[str, dict[str, Plant]] = {
    "affine": {"by hand": affine_plant(), "20 features": random_plant((20, 7), seed=1)},
    "relu": {
        "30-16-4": random_plant((30, 16, 4), seed=5),
        "8-24-24-3": random_plant((8, 24, 24, 3), seed=1),
    },
}


def check_controller(
    controller: Controller | type[Controller] | _Factory,
    *,
    reaches: Collection[str] = ("affine", "relu"),
    tolerance: float = 1e-3,
) -> Conformance:
    """Run every check on a controller.

    Args:
        controller: the controller, its class, or a function `(plant, target) -> controller` for one
            that is trained for its plant and target; the function may refuse a plant with a
            `KeelError`.
        reaches: the kinds of plants, "affine" and "relu", on which it claims to arrive. On the
            others it still has to tell the truth.
        tolerance: how near it has to come, as a part of 1 + ‖Y‖.
    """
    return run_all(yield_controller_checks(controller, reaches=reaches, tolerance=tolerance))


def yield_controller_checks(
    controller: Controller | type[Controller] | _Factory,
    *,
    reaches: Collection[str] = ("affine", "relu"),
    tolerance: float = 1e-3,
) -> Iterator[Check]:
    """The checks one by one, each to be called.

    Args:
        controller, reaches, tolerance: as for `check_controller`.
    """
    subject = _Subject(controller, tolerance)
    for kind in reaches:
        for name, plant in _REACHABLE[kind].items():
            yield subject.check(f"reaches its targets ({kind} plant, {name})", _reaches, plant)
    for name, plant in _every_plant().items():
        yield subject.check(
            f"measures its residual at the shipped feature ({name})", _tells_the_truth, plant
        )
    functions = (
        _has_the_promised_form,
        _admits_what_cannot_be_reached,
        _remembers_nothing,
        _ignores_the_global_generators,
        _leaves_its_arguments_alone,
        _leaves_its_surroundings_alone,
        _takes_any_precision,
        _refuses_wrong_targets,
    )
    yield from subject.checks(functions)


class _Subject(Subject):
    """The controller under test, made anew for a plant and target where it comes as a function."""

    def __init__(self, given: Controller | type[Controller] | _Factory, tolerance: float) -> None:
        self.given = given() if isinstance(given, type) else given
        self.tolerance = tolerance

    @property
    def name(self) -> str:
        own = getattr(self.given, "name", None)
        return str(own or getattr(self.given, "__name__", type(self.given).__name__))

    def of(self, plant: Plant, target: Tensor) -> Controller:
        if hasattr(self.given, "regulate"):
            return self.given  # type: ignore[return-value]
        try:
            return self.given(plant, target)
        except KeelError as refusal:
            raise SkipTest(f"refused: {refusal}") from refusal

    def regulate(self, plant: Plant, target: Tensor) -> Regulation:
        return self.of(plant, target).regulate(plant, target)


def _every_plant() -> dict[str, Plant]:
    reachable = {
        f"{kind}, {name}": plant
        for kind, plants in _REACHABLE.items()
        for name, plant in plants.items()
    }
    return {**reachable, "without layers": OpaquePlant(), "blind to a logit": blind_plant()}


def _targets(plant: Plant) -> Iterator[Tensor]:
    for strength in (1.0, 5.0):
        yield from strength * torch.eye(plant.n_out, dtype=torch.float64)


def _hidden_plant() -> tuple[Plant, Tensor]:
    return random_plant((30, 16, 4), seed=5), torch.eye(4, dtype=torch.float64)[1]


def _target(values: tuple[float, ...] = (1.0, 0.0)) -> Tensor:
    return torch.tensor(values, dtype=torch.float64)


# ---- arriving, and saying so


def _reaches(subject: _Subject, plant: Plant) -> None:
    for target in _targets(plant):
        allowed = subject.tolerance * (1.0 + float(target.norm()))
        residual = subject.regulate(plant, target).residual
        wanted = f"a residual of at most {allowed:.1e} for Y = {target.tolist()}"
        expect(residual <= allowed, wanted, residual)


def _tells_the_truth(subject: _Subject, plant: Plant) -> None:
    for target in _targets(plant):
        found = subject.regulate(plant, target)
        finite = bool(torch.isfinite(found.anchor).all())
        expect(finite, f"a finite feature for Y = {target.tolist()}", found.anchor)
        true = float((plant(found.anchor.double()) - target).norm())
        near = math.isclose(found.residual, true, rel_tol=1e-6, abs_tol=1e-12)
        wanted = f"the residual ‖C(h*) − Y‖ = {true:.9g} of the float32 feature handed over"
        expect(near, wanted, found.residual)


def _admits_what_cannot_be_reached(subject: _Subject) -> None:
    residual = subject.regulate(blind_plant(), _target((0.0, 1.0))).residual
    wanted = "a residual of at least 1 where no feature moves the logit asked for"
    expect(residual >= 1.0 - 1e-6, wanted, residual)


def _has_the_promised_form(subject: _Subject) -> None:
    plant, target = affine_plant(), _target()
    controller = subject.of(plant, target)
    found = controller.regulate(plant, target)
    expect(isinstance(found, Regulation), "a Regulation", type(found).__name__)
    named = bool(controller.name) and found.controller == controller.name
    expect(named, "its own name on it", found.controller)
    form = (tuple(found.anchor.shape), found.anchor.dtype)
    wanted = f"a float32 feature of shape ({plant.n_in},)"
    expect(form == ((plant.n_in,), torch.float32), wanted, form)
    counted = isinstance(found.steps, int) and found.steps >= 0
    expect(counted, "a number of steps", found.steps)
    attached = found.anchor.requires_grad
    expect(not attached, "a feature without a gradient history", "one that requires gradients")


# ---- nothing but the arguments counts, and nothing but the answer changes


def _remembers_nothing(subject: _Subject) -> None:
    plant, target = _hidden_plant()
    controller = subject.of(plant, target)
    first = controller.regulate(plant, target)
    subject.regulate(affine_plant(), _target())
    _expect_same(first, controller.regulate(plant, target), "the same answer after another plant")


def _ignores_the_global_generators(subject: _Subject) -> None:
    plant, target = _hidden_plant()
    answers = []
    for seed in (1, 2):
        with global_seed(seed):
            answers.append(subject.regulate(plant, target))
    _expect_same(answers[0], answers[1], "the same answer, to the bit, under any global seed")


def _expect_same(first: Regulation, second: Regulation, what: str) -> None:
    expect_equal(first.anchor, second.anchor, what, "anchors")
    residuals = f"residuals {first.residual} and {second.residual}"
    expect(first.residual == second.residual, what, residuals)


def _leaves_its_arguments_alone(subject: _Subject) -> None:
    plant, target = _hidden_plant()
    weights = [("plant", tensor) for layer in plant.layers for tensor in layer]
    given = [("target", target), *weights]
    before = [tensor.clone() for _, tensor in given]
    subject.regulate(plant, target)
    for (name, now), kept in zip(given, before, strict=True):
        expect(torch.equal(kept, now), f"the {name} to be left alone", "a change")


def _leaves_its_surroundings_alone(subject: _Subject) -> None:
    plant, target = _hidden_plant()
    controller = subject.of(plant, target)
    with left_alone():
        controller.regulate(plant, target)


def _takes_any_precision(subject: _Subject) -> None:
    plant, target = affine_plant(), _target()
    controller = subject.of(plant, target)
    single = controller.regulate(plant, target.float())
    double = controller.regulate(plant, target)
    _expect_same(single, double, "the same answer to a target in float32 and in float64")


# ---- what makes no sense is refused


def _refuses_wrong_targets(subject: _Subject) -> None:
    plant, controller = affine_plant(), subject.of(affine_plant(), _target())
    for wrong, because in (
        (_target((1.0, 0.0, 0.0)), "a target with three entries for two logits"),
        (_target().unsqueeze(0), "a target of shape (1, 2)"),
        (_target((math.nan, 0.0)), "a target with a NaN"),
        (_target((math.inf, 0.0)), "an infinite target"),
    ):
        expect_refusal(partial(controller.regulate, plant, wrong), because)
