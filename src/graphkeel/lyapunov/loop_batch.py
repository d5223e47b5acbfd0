"""Controllers, Lyapunov functions and states of all classes, as they are trained and shipped."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import numpy as np
import torch
from torch import Tensor

from graphkeel.certificate.sources import collapsed, collapsed_loop
from graphkeel.control.base import Plant
from graphkeel.control.neural import ControllerBatch, NeuralWeights
from graphkeel.core.errors import ConfigError
from graphkeel.lyapunov.closed_loop import controller_source, lyapunov_source, plain_source
from graphkeel.lyapunov.config import FitSettings, LyapunovConfig
from graphkeel.lyapunov.function import LyapunovWeights, make_lyapunov
from graphkeel.lyapunov.loss import lyapunov_loss, total
from graphkeel.lyapunov.message_passing import Passing
from graphkeel.lyapunov.states import NodeStates, StateSet, shared_box
from graphkeel.lyapunov.targets import choose_targets, class_margins
from graphkeel.models.aggregation import Aggregation
from graphkeel.verify.problem import Network, Problem


@contextmanager
def _one_thread() -> Iterator[None]:
    """Tensors this small are slowed down by threads, tenfold on a busy machine."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


class LoopBatch:
    """One tensor program for all classes. Index k below is a position in `classes`, not a label."""

    def __init__(
        self,
        plant: Plant,
        logits: Tensor,
        classes: Sequence[int],
        config: LyapunovConfig,
        anchors: Tensor | None = None,
        aggregation: Aggregation | None = None,
    ) -> None:
        _check(plant, classes)
        self.plant, self.classes, self.config = plant, list(classes), config
        self.settings = settings = FitSettings()
        self.generator = torch.Generator().manual_seed(config.seed)
        self.goals = choose_targets(plant, self.classes, config, anchors)
        self.equilibria = targets = torch.stack([goal.equilibrium for goal in self.goals])
        solved = [goal.anchor for goal in self.goals if goal.anchor is not None]
        logits = logits.detach().double().cpu()
        low, high = map(torch.from_numpy, shared_box(logits.numpy(), targets.numpy()))
        self.low, self.high = low.repeat(len(targets), 1), high.repeat(len(targets), 1)
        unit = (self.high - self.low) / 2
        self.controller = ControllerBatch(
            plant,
            targets,
            unit,
            form=config.form,
            hidden=config.hidden,
            generator=self.generator,
            anchors=torch.stack(solved) if solved else None,
        )
        self.function = make_lyapunov(config, targets, unit, self.generator)
        aim = min(config.contraction, settings.aim * config.rho)
        # the decrease factor of each class that training aims at, below ρ
        self.aims = torch.full((len(self.classes),), aim, dtype=torch.float64)
        self.margins = class_margins(targets, torch.tensor(self.classes))
        self.passing: Passing | None = None
        if aggregation is not None and aggregation.layers and config.form != "paper":
            self.passing = Passing(aggregation, self.controller)
        self.states = self._first_states(logits)
        self._optimiser: torch.optim.Adam | None = None

    def _first_states(self, logits: Tensor) -> StateSet | NodeStates:
        config = self.config
        if config.start_node is not None:
            if len(self.classes) != 1:
                raise ConfigError(
                    "a node to start from belongs to one class", got=f"{len(self.classes)} classes"
                )
            return NodeStates(logits, config.start_node, len(self.classes))
        box = (self.low, self.high, self.equilibria)
        size, hole = config.samples, config.epsilon
        return StateSet(logits, *box, size, hole, self.settings, self.generator)

    @_one_thread()
    def fit(self, active: list[int], go_on: Callable[[], bool]) -> tuple[dict[str, Tensor], int]:
        """Adam on the given classes until the hinges are satisfied, the steps are used up, or time
        is."""
        chosen = torch.tensor(active)
        as_printed = self.config.start_node is not None
        if self._optimiser is None or not as_printed:
            self._optimiser = torch.optim.Adam(self._weights(), lr=self.config.learning_rate)
        optimiser = self._optimiser
        terms: dict[str, Tensor] = {}
        steps = 0
        while steps < self.config.steps and (steps == 0 or go_on()):
            states = self.states.batch(chosen, self.config.batch, self.generator)
            terms = lyapunov_loss(self, states, chosen)
            loss = total(terms)
            steps += 1
            if float(loss.detach()) <= self.settings.satisfied and not as_printed:
                break
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
        return {name: term.detach() for name, term in terms.items()}, steps

    def _weights(self) -> list[torch.nn.Parameter]:
        everything = (*self.controller.parameters(), *self.function.parameters())
        return [weight for weight in everything if weight.requires_grad]

    def shipped(self, k: int) -> tuple[NeuralWeights, LyapunovWeights]:
        """The weights of one class, bit for bit as they are verified and saved."""
        return self.controller.shipped(k), self.function.shipped(k)

    def problem(self, k: int) -> Problem:
        """The question put to the verifier about one class's shipped weights, collapsed."""
        control, function = self.shipped(k)
        config, n = self.config, self.low.shape[1]
        loop = collapsed_loop(controller_source(control), plain_source(self.plant.layers))
        return Problem(
            closed_loop=Network.of(*loop),
            lyapunov=Network.of(*collapsed(lyapunov_source(function))),
            lower=self.low[k].numpy(),
            upper=self.high[k].numpy(),
            equilibrium=control.equilibrium.numpy(),
            hole_radius=config.epsilon / float(np.sqrt(n)) * (1 - 1e-12),  # in the ε-ball
            hole_norm="inf",
            rho=config.rho,
            positivity=config.positivity,
            name=f"class {self.classes[k]}, {config.form}",
        )

    def learn(self, k: int, condition: str, counterexample: np.ndarray) -> bool:
        """Add a counterexample to the states if the shipped model confirms it."""
        state = torch.from_numpy(np.array(counterexample, dtype=np.float64))
        real = self.violates(k, condition, state)
        if real:
            self.states.learn(k, state, self.generator)
        return real

    @torch.no_grad()
    def violates(self, k: int, condition: str, state: Tensor) -> bool:
        """Whether state y breaks the condition, up to rounding, on the shipped f and C as they are,
        not on their collapse."""
        control, function = self.shipped(k)
        following = self.plant(control(state.double()))
        value, after = float(function(state)), float(function(following))
        distance = float((state - control.equilibrium).abs().max())
        slack = self.settings.replay * (1.0 + abs(value) + abs(after) + distance)
        if condition == "positivity":
            return value - self.config.positivity * distance <= slack
        if condition == "decrease":
            return after - self.config.rho * value >= -slack
        low, high = self.low[k], self.high[k]
        return bool(((following < low + slack) | (following > high - slack)).any())

    @torch.no_grad()
    def set_outer(self, raw: Tensor, k: int | slice = slice(None)) -> Tensor:
        """Put other numbers in the place of B of one class, or of all; those that were there."""
        before = self.controller.raw_outer.clone()
        self.controller.raw_outer[k] = raw
        return before

    def tighten(self, k: int) -> None:
        """Aim lower: a loop that contracts faster is one whose proof takes fewer boxes."""
        self.aims[k] *= self.settings.tighten


def _check(plant: Plant, classes: Sequence[int]) -> None:
    if not plant.layers:
        raise ConfigError(
            "training for a proof needs a head that is a ReLU network", got="no layers"
        )
    if (
        not classes
        or not all(0 <= c < plant.n_out for c in classes)
        or len(set(classes)) < len(classes)
    ):
        raise ConfigError(
            f"classes must be distinct and lie in 0 … {plant.n_out - 1}", got=list(classes)
        )
