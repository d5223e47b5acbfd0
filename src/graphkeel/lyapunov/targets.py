"""Where the loop of each class is to rest: equilibria Y that the head can answer, and the features
h with C(h) = Y.

The first choice is Y = m·e_c + s, as asked. A head with ReLU units may not reach it; a target of
another strength or shift, or the nearest answer of class c that the search finds, then takes its
place. Only a class for which no feature was found at all keeps a target out of reach."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from graphkeel.control.base import Plant
from graphkeel.control.deadbeat import levenberg_marquardt, solve_anchor
from graphkeel.core.errors import ConfigError
from graphkeel.lyapunov.config import LyapunovConfig


@dataclass(frozen=True)
class _TargetSettings:
    """The search for another target where the head does not reach m·e_c + s.

    Attributes:
        strengths: of the targets tried, as shares of m.
        shifts: added to all their logits, as shares of their strength.
        steps: of Levenberg–Marquardt, at most.
        clear: a margin below this share of m is taken only if there is no larger one.
        climb_steps: of Adam uphill along the class's margin, where no answer is of the class.
        climb_rate: its learning rate.
        climb_starts: random starts of it besides the features found before.
    """

    strengths: tuple[float, ...] = (1.0, 0.5, 2.0, 0.25)
    shifts: tuple[float, ...] = (0.0, -0.5, 0.5, -1.0, 1.0)
    steps: int = 60
    clear: float = 0.1
    climb_steps: int = 300
    climb_rate: float = 0.05
    climb_starts: int = 8


_SETTINGS = _TargetSettings()


@dataclass(frozen=True)
class Target:
    """Where the loop of a class is to rest.

    Attributes:
        equilibrium: Y, float64, shape (n,).
        anchor: h with C(h) = Y, float32, shape (d,); None in the paper's form, whose controllers
            are free.
        note: how Y differs from the one asked for; empty where it does not.
        reachable: a feature was found that the head answers with the class.
    """

    equilibrium: Tensor
    anchor: Tensor | None = None
    note: str = ""
    reachable: bool = True


def class_margins(states: Tensor, classes: Tensor) -> Tensor:
    """Each state's own logit minus the largest other one, shape (B,), for states (B, n) of classes
    (B,)."""
    own = states.gather(1, classes.unsqueeze(1)).squeeze(1)
    others = states.scatter(1, classes.unsqueeze(1), -torch.inf).amax(dim=1)
    return torch.where(others.isinf(), torch.ones_like(own), own - others)


def choose_targets(
    plant: Plant, classes: Sequence[int], config: LyapunovConfig, anchors: Tensor | None = None
) -> list[Target]:
    """An equilibrium for each class that the head can answer.

    With anchors (classes, d) the states with which the head answers these: they are certified as
    they are, but for one that is answered with another class than its own."""
    requested = config.strength * torch.eye(plant.n_out, dtype=torch.float64)[list(classes)]
    requested = requested + config.shift
    if anchors is None and config.form == "paper":
        return [Target(want) for want in requested]
    wanted = zip(classes, requested, strict=True)
    if anchors is None:
        return [_target(plant, label, want, config) for label, want in wanted]
    if anchors.shape != (len(classes), plant.n_in):
        raise ConfigError(
            f"anchors must have the shape ({len(classes)}, {plant.n_in})", got=tuple(anchors.shape)
        )
    shipped = anchors.detach().float().cpu()
    answers = plant(shipped.double()).detach()
    margins = class_margins(answers, torch.tensor(list(classes)))
    found = []
    for k, (label, want) in enumerate(wanted):
        if margins[k] > 0:
            found.append(Target(answers[k], shipped[k]))
            continue
        other = _target(plant, label, want, config)
        notes = (f"the anchor in use is answered with class {int(answers[k].argmax())}", other.note)
        found.append(replace(other, note="; ".join(filter(None, notes))))
    return found


def _target(plant: Plant, label: int, requested: Tensor, config: LyapunovConfig) -> Target:
    anchor = solve_anchor(plant, requested).float()
    tolerance = config.delta / 2
    if float((plant(anchor.double()) - requested).norm()) <= tolerance:
        return Target(requested, anchor)
    features = torch.cat([anchor.unsqueeze(0), _searched(plant, label, config)])
    clear = _SETTINGS.clear * config.strength
    best = _nearest(plant, label, requested, features, clear)
    if best is None:
        features = _climbed(plant, label, features)
        best = _nearest(plant, label, requested, features, clear)
    if best is None:
        note = f"no feature was found that the head answers with class {label}"
        return Target(requested, anchor, note, reachable=False)
    answer = plant(best.double()).detach()
    margin = float(class_margins(answer.unsqueeze(0), torch.tensor([label])))
    note = (
        f"the head does not reach {config.strength:g} times the one-hot; Y is an answer of the head"
        f" with a margin of {margin:.3g}"
    )
    return Target(answer, best, note)


def _searched(plant: Plant, label: int, config: LyapunovConfig) -> Tensor:
    """Levenberg–Marquardt to targets of several strengths and shifts, float32, shape (B, d)."""
    one_hot = torch.eye(plant.n_out, dtype=torch.float64)[label]
    strengths = [config.strength * share for share in _SETTINGS.strengths]
    wanted = torch.stack(
        [m * one_hot + config.shift + m * s for m in strengths for s in _SETTINGS.shifts]
    )
    generator = torch.Generator().manual_seed(label)
    start = 0.1 * torch.randn(len(wanted), plant.n_in, generator=generator, dtype=torch.float64)
    goal = config.delta / 10
    steps = _SETTINGS.steps
    found, _ = levenberg_marquardt(plant, wanted, start, steps=steps, damping=1.0, goal=goal)
    return found.float()


def _nearest(
    plant: Plant, label: int, requested: Tensor, features: Tensor, clear: float
) -> Tensor | None:
    """The feature whose answer is of the class and nearest to the target but for a common shift,
    which changes no prediction; where no margin is `clear`, the one with the largest."""
    answers = plant(features.double()).detach()
    margins = class_margins(answers, torch.full((len(features),), label))
    finite = answers.isfinite().all(dim=1)
    if not bool(((margins > 0) & finite).any()):
        return None
    apart = answers - requested
    distance = (apart - apart.mean(dim=1, keepdim=True)).norm(dim=1)
    sure = (margins >= clear) & finite
    if bool(sure.any()):
        return features[int(torch.where(sure, distance, torch.inf).argmin())]
    return features[int(torch.where(finite, margins, -torch.inf).argmax())]


def _climbed(plant: Plant, label: int, features: Tensor) -> Tensor:
    """Features moved uphill along the class's margin, float32, shape (B, d)."""
    generator = torch.Generator().manual_seed(label)
    starts = _SETTINGS.climb_starts
    shape = (starts, plant.n_in)
    noise = torch.randn(shape, generator=generator, dtype=torch.float64)
    reach = torch.logspace(-1, 2, starts, dtype=torch.float64).unsqueeze(1)
    x = torch.cat([features.double(), noise * reach]).requires_grad_(True)
    optimiser = torch.optim.Adam([x], lr=_SETTINGS.climb_rate)
    for _ in range(_SETTINGS.climb_steps):
        optimiser.zero_grad()
        (-_soft_margin(plant(x), label).sum()).backward()
        optimiser.step()
    return x.detach().float()


def _soft_margin(states: Tensor, label: int) -> Tensor:
    others = torch.cat([states[:, :label], states[:, label + 1 :]], dim=1)
    return states[:, label] - others.logsumexp(dim=1)
