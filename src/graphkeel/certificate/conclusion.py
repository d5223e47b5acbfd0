"""From the proved conditions to the one sentence they give, and never to more than that."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from decimal import ROUND_UP, Context, Decimal
from fractions import Fraction
from typing import Any

from graphkeel.certificate.dyadic import Dyadic, down, up
from graphkeel.certificate.geometry import hole_reach
from graphkeel.certificate.hole import ExactNetwork, Hole
from graphkeel.certificate.schema import Loop

NOT_COVERED = (
    "Message passing on the real graph: the loop is that of a node whose whole receptive field carries one feature.",
    "Test accuracy: a stable loop says where its trajectories go, not whether predictions get better.",
    "Float rounding at run time: the claim is about real arithmetic over the shipped weights.",
    "Switching where the region is not proved: the class's controller is taken as chosen once, not anew at every step.",
)
_LONGEST = 10**9  # steps; a longer bound is not worth stating


@dataclass(frozen=True)
class Conclusion:
    """kind: asymptotic | practical | recurrent | nothing; region: everywhere | D | sublevel |
    none."""

    kind: str
    region: str
    radius: float | None  # sup norm around Y within which the trajectories end
    steps: int | None  # at most so many steps from any state of D into the hole
    level: float | None  # of the sublevel set {V < level}, where that is the region
    sentence: str
    # the same holds from the class's own states if the controller is chosen anew at every step
    switched: bool = False

    def to_json(self) -> dict[str, object]:
        return asdict(self)


def conclude(
    loop: Loop, lyapunov: ExactNetwork, hole: Hole, proved: frozenset[str], margin: float = 0.0
) -> Conclusion:
    """The strongest sentence that follows."""
    alone = _alone(loop, lyapunov, hole, proved)
    flows = alone.kind in ("asymptotic", "practical") and alone.region in ("everywhere", "D")
    if not flows or not {"region", "invariance"} <= proved:
        return alone
    own = (
        "in which this class's logit is the largest"
        if margin == 0
        else f"in which this class's logit leads by {_shown(margin)}"
    )
    text = f"{alone.sentence} From the states of D {own} the same holds if the controller is chosen anew at every step."
    return replace(alone, sentence=text, switched=True)


def conclude_together(entries: Sequence[Mapping[str, Any]], *, whole: bool) -> dict[str, Any]:
    """One sentence about all classes; `whole`: they are all the classes there are, on one box."""
    verdicts = {entry["class"]: entry["verdict"] for entry in entries}
    missing = [
        entry["class"]
        for entry in entries
        if entry["verdict"] != "proved" or not entry["conclusion"]["switched"]
    ]
    if missing:
        verdict = "refuted" if "refuted" in verdicts.values() else "unknown"
        named = ", ".join(map(str, missing))
        text = f"Nothing follows about a controller chosen anew at every step from the states of class {named}."
        return {"verdict": verdict, "everywhere": False, "radius": None, "sentence": text}
    radius = max(float(entry["conclusion"]["radius"]) for entry in entries)
    margin = max(float(entry["conditions"]["region"]["margin"]) for entry in entries)
    everywhere = whole and margin == 0
    named = ", ".join(str(entry["class"]) for entry in entries)
    states = (
        "Every state of D"
        if everywhere
        else f"Every state of D that belongs to one of the classes {named}"
    )
    owned = "" if margin == 0 else f" by a lead of {_shown(margin)}"
    text = (
        f"{states}{owned} flows to the equilibrium of its own class, that of its largest logit, to within"
        f" {_shown(radius)} in the sup norm, with the controller chosen anew at every step: the choice never changes."
    )
    return {"verdict": "proved", "everywhere": everywhere, "radius": radius, "sentence": text}


def _alone(loop: Loop, lyapunov: ExactNetwork, hole: Hole, proved: frozenset[str]) -> Conclusion:
    """With the class's controller chosen once."""
    steps = (
        steps_into_hole(loop, lyapunov)
        if {"positivity", "decrease", "invariance"} <= proved
        else None
    )
    if hole.kind == "contraction":
        return _attracted(hole, "everywhere", steps, None)
    if not {"positivity", "decrease"} <= proved:
        missing = [c for c in ("positivity", "decrease") if c not in proved]
        return _nothing(f"{' and '.join(missing)} {'are' if len(missing) > 1 else 'is'} not proved")
    if "invariance" in proved:
        return _on_domain(loop, hole, steps)
    level = _sublevel(loop, hole)
    if level is None:
        return _nothing(
            "invariance is not proved, so a trajectory may leave the domain that was checked"
        )
    return _attracted(hole, "sublevel", None, level)


def _on_domain(loop: Loop, hole: Hole, steps: int | None) -> Conclusion:
    if hole.kind in ("exact", "residual"):
        return _attracted(hole, "D", steps, None)
    radius, within = loop.hole_radius, _within(steps)
    if radius == 0:
        return _nothing("the decrease is proved, but not that Y is a fixed point")
    name = "box" if loop.hole_norm == "inf" else "ball"
    if hole.kind == "trapping":
        text = (
            f"Every trajectory that starts in D reaches the {name} of radius {_shown(radius)} around Y {within}"
            f" and stays there: practical stability with radius {_shown(radius)}."
            " Nothing is claimed about what it does inside."
        )
        return Conclusion("practical", "D", radius, steps, None, text)
    text = (
        f"Every trajectory that starts in D reaches the {name} of radius {_shown(radius)} around Y {within},"
        " and returns to it whenever it leaves; that it stays there is not proved."
    )
    return Conclusion("recurrent", "D", None, steps, None, text)


def _attracted(hole: Hole, region: str, steps: int | None, level: float | None) -> Conclusion:
    where = {
        "everywhere": "anywhere in Rⁿ",
        "D": "in D",
        "sublevel": f"in the set V < {_shown_down(level)}",
    }[region]
    radius = hole.radius or 0.0
    entry = "" if steps is None else f" From any state of D the hole is reached {_within(steps)}."
    if hole.fixed_point:
        target = (
            "Y"
            if radius == 0
            else f"one fixed point, which lies within {_shown(radius)} of Y in the sup norm"
        )
        text = f"Every trajectory that starts {where} converges to {target}: asymptotic stability.{entry}"
        return Conclusion("asymptotic", region, radius, steps, level, text)
    text = (
        f"Every trajectory that starts {where} converges to the box of radius {_shown(radius)} around Y:"
        f" practical stability with that radius, which is what the last bits of F(Y) − Y leave open.{entry}"
    )
    return Conclusion("practical", region, radius, steps, level, text)


def _nothing(reason: str) -> Conclusion:
    return Conclusion(
        "nothing", "none", None, None, None, f"Nothing follows about trajectories: {reason}."
    )


def _within(steps: int | None) -> str:
    if steps is None:
        return "after finitely many steps"
    return "within 1 step" if steps == 1 else f"within {steps} steps"


def _sublevel(loop: Loop, hole: Hole) -> float | None:
    """A level λ with {V < λ} inside D: V is homogeneous where the hole is closed, so V >= c‖y − Y‖∞
    everywhere."""
    if hole.kind not in ("exact", "residual") or loop.positivity == 0:
        return None
    ends = zip(loop.lower, loop.upper, loop.equilibrium, strict=True)
    room = min(min(Fraction(y) - Fraction(lo), Fraction(hi) - Fraction(y)) for lo, hi, y in ends)
    level = Fraction(loop.positivity) * room
    # The residual must not push a trajectory out of the set.
    if level <= 0 or Fraction(hole.radius or 0) >= room:
        return None
    return down(level)


def steps_into_hole(loop: Loop, lyapunov: ExactNetwork) -> int | None:
    """T with ρ^T·max V < c·r∞: a trajectory outside the hole for T steps would contradict
    positivity."""
    floor = Fraction(loop.positivity) * hole_reach(loop)
    if loop.rho == 1 or floor <= 0:
        return None
    top = largest_on_box(lyapunov, Dyadic.of(loop.lower), Dyadic.of(loop.upper))
    if top < floor:
        return 1
    enough = up(
        floor / top
    )  # a float is below floor / top exactly if it is below the next float from there
    steps = 1
    while _power_up(loop.rho, steps) >= enough:
        steps *= 2
        if steps > _LONGEST:
            return None
    low, high = steps // 2, steps
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if _power_up(loop.rho, middle) < enough else (middle, high)
    return high


def _power_up(base: float, exponent: int) -> float:
    """base^exponent, rounded up after every product, so that numerators stay short."""
    result, square = 1.0, base
    while exponent:
        if exponent & 1:
            result = math.nextafter(result * square, math.inf)
        square = math.nextafter(square * square, math.inf)
        exponent >>= 1
    return result


def largest_on_box(network: ExactNetwork, low: Dyadic, high: Dyadic) -> Fraction:
    """An upper bound of a scalar network on a box, by exact interval arithmetic."""
    for k, (weight, bias) in enumerate(network):
        plus, minus = weight.relu(), (-weight).relu()
        low, high = plus @ low - minus @ high + bias, plus @ high - minus @ low + bias
        if k + 1 < len(network):
            low, high = low.relu(), high.relu()
    return high.max()


def _shown(value: float) -> str:
    """Three digits, rounded up: a sentence must not promise more than the number."""
    return f"{Context(prec=3, rounding=ROUND_UP).create_decimal(Decimal(value)):g}"


def _shown_down(value: float | None) -> str:
    return f"{Context(prec=3, rounding='ROUND_DOWN').create_decimal(Decimal(value or 0.0)):g}"
