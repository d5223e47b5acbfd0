"""One recommendation: the step after which expected accuracy, less the step's price, is largest."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from graphkeel.monitor.drift import DriftSettings

NOTHING, UPDATE, LABEL, RETRAIN = "nothing", "update", "label", "retrain"
ACTIONS = {
    NOTHING: "nothing to do",
    UPDATE: "update the features",
    LABEL: "update, label the nodes below, then feedback",
    RETRAIN: "retrain the model",
}


@dataclass(frozen=True)
class Prices:
    """Points of accuracy that a step has to bring to be worth its trouble. They are yours to name.

    Attributes:
        update: of new features.
        label: of an update, and of a person who labels the suggested nodes.
        retrain: of a training set, a new model, and its validation.
    """

    update: float = 0.25
    label: float = 2.0
    retrain: float = 8.0


@dataclass(frozen=True)
class MonitorSettings:
    """Numbers of the monitor; benchmarks/bench_monitor.py has the simulated weeks that chose them.

    Attributes:
        prices: of the steps.
        sample: nodes of the graph now whose features are compared.
        suggested: nodes to label.
        draws: simulations of what people would answer.
        label_yield: points that labels bring for each point of the simulation, in which the
            weights of the sources stay.
        training: labels of each class that a new model is trained on, where it is not known on how
            many the present one was.
        worth: labels that the answers' own account of their accuracy is worth: its interval is
            that of a share in so many.
        confidence: how often that interval is meant to cover.
        drift: of the tests.
    """

    prices: Prices = Prices()
    sample: int = 2000
    suggested: int = 20
    draws: int = 4
    label_yield: float = 1.5
    training: int = 20
    worth: float = 45.0
    confidence: float = 0.9
    drift: DriftSettings = field(default_factory=DriftSettings)


def advise(after: Mapping[str, float], prices: Prices) -> tuple[str, str]:
    """The step, and why, by the expected accuracy after each step, in percent."""
    price = {NOTHING: 0.0, UPDATE: prices.update, LABEL: prices.label, RETRAIN: prices.retrain}
    best = max(ACTIONS, key=lambda step: after[step] - price[step])
    gain = {step: after[step] - after[NOTHING] for step in ACTIONS}
    if best == NOTHING:
        return best, "no step is expected to bring more than its price"
    why = f"{gain[best]:.1f} points are expected of it, against a price of {price[best]:g}"
    if best != UPDATE:
        why += f"; an update alone is expected to bring {gain[UPDATE]:.1f}"
    return best, why
