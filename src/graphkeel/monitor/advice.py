"""One recommendation: the cheapest step that is expected to be worth its price."""

from __future__ import annotations

from dataclasses import dataclass, field

from graphkeel.monitor.drift import DriftSettings

NOTHING, UPDATE, LABEL, RETRAIN = "nothing", "update", "label", "retrain"
ACTIONS = {
    NOTHING: "nothing to do",
    UPDATE: "update the features",
    LABEL: "label the nodes below, then feedback",
    RETRAIN: "retrain the model",
}


@dataclass(frozen=True)
class MonitorSettings:
    """Numbers of the monitor; benchmarks/bench_monitor.py has the simulated weeks that chose them.

    Attributes:
        sample: nodes of the graph now whose features are compared.
        suggested: nodes to label.
        update_gain: points that an update must be expected to bring.
        label_fall: points of expected accuracy, lost since the fit, from which labels are asked
            for,
        label_beyond: where the share of new nodes without a label near is by so much larger than at
            the fit.
        retrain_fall: likewise, from which a new model is.
        worth: labels that the answers' own account of their accuracy is worth: its interval is
            that of a share in so many.
        confidence: how often that interval is meant to cover.
        drift: of the tests.
    """

    sample: int = 2000
    suggested: int = 20
    update_gain: float = 0.5
    label_fall: float = 3.0
    label_beyond: float = 0.1
    retrain_fall: float = 25.0
    worth: float = 45.0
    confidence: float = 0.9
    drift: DriftSettings = field(default_factory=DriftSettings)


def advise(gain: float, fall: float, beyond: float, settings: MonitorSettings) -> tuple[str, str]:
    """The step, and why.

    Args:
        gain: points that an update is expected to bring.
        fall: points of expected accuracy that are lost since the fit, even after an update.
        beyond: how much larger the share of nodes without a label near is among the new ones.
    """
    lost = f"expected accuracy is {fall:.1f} points below that of the fit, even after an update"
    if fall >= settings.retrain_fall:
        return RETRAIN, lost
    if fall >= settings.label_fall and beyond >= settings.label_beyond:
        return LABEL, f"{lost}, and new nodes lie where no label is near"
    if gain >= settings.update_gain:
        return UPDATE, f"an update is expected to bring {gain:.1f} points"
    return NOTHING, "the answers are expected to be about as right as an update would make them"
