"""From the conditions that were shown to the one sentence they give, and never to more than that.

Outside the hole V is shown to fall. What happens inside is decided here, from the weights:

* `contraction`: F shrinks V-distances everywhere, so one fixed point attracts all of Rⁿ (Banach);
* `homogeneous`: on the hole's box F(y) − F(Y) and V(y) are positively homogeneous in y − Y, so what
  holds on the hole's shell holds on every smaller copy of it, but for the residual F(Y) − Y: inside
  V(F(y)) ≤ ρV(y) + V(residual), so trajectories end within V(residual)/((1 − ρ)c) of Y;
* `open`: neither.
"""

from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from typing import Any, NamedTuple

from .contraction import contraction_factor, gauge_of
from .exact import Vector, drop, float_above, rise
from .limits import LONGEST
from .networks import Network, value_at
from .problem import Problem

NOT_COVERED = [
    "Message passing on the real graph: the loop is that of a node whose whole receptive field"
    " carries one feature.",
    "Test accuracy: a stable loop says where its trajectories go, not whether predictions get"
    " better.",
    "Float rounding at run time: the claim is about real arithmetic over the shipped weights.",
    "Switching where the region is not proved: the class's controller is taken as chosen once, not"
    " anew at every step.",
]
_VACUOUS = "D holds no state but Y and those of the hole"


class Hole(NamedTuple):
    """`radius`: how far from Y trajectories may end; `fixed_point`: they end in one point."""

    kind: str = "open"
    radius: Fraction | None = None
    fixed_point: bool = False
    factor: Fraction | None = None


def analyse_hole(problem: Problem, proved: set[str]) -> Hole:
    """The hole, given the conditions that are shown outside of it."""
    residual = value_at(problem.forward, problem.equilibrium) - problem.equilibrium
    gauge = gauge_of(problem)
    factor = Fraction(1) if gauge is None else contraction_factor(problem.forward, gauge)
    if gauge is not None and factor < 1:
        # y* − Y = (F(y*) − F(Y)) + (F(Y) − Y), so V_h(y* − Y) ≤ κ·V_h(y* − Y) + V_h(residual).
        radius = gauge(residual) / ((1 - factor) * gauge.floor)
        return Hole("contraction", radius, True, factor)
    covered = min(problem.clearance().fractions()) >= problem.radius  # all of the shell lies in D
    if covered and {"decrease", "positivity"} <= proved:
        return _homogeneous(problem, residual)
    return Hole()


def _homogeneous(problem: Problem, residual: Vector) -> Hole:
    centre, radius, c = problem.equilibrium, problem.radius, problem.positivity
    shape = _local_shape(problem.forward, centre, radius)
    homogeneous = shape is not None and _is_gauge(problem.lyapunov, centre)
    if not homogeneous or problem.rho == 1 or c == 0 or radius == 0:
        return Hole()
    end = problem.gauge(centre + residual) / ((1 - problem.rho) * c)
    if 2 * end >= radius:  # trajectories have to end where F is affine or conic
        return Hole()
    # On an affine piece V(Jz) ≤ (ρ + V(−residual)/min V on the shell)·V(z).
    back = problem.gauge(centre - residual) / (c * radius)
    fixed = end == 0 or (shape == "affine" and problem.rho + back < 1)
    return Hole("homogeneous", end, fixed)


def _local_shape(network: Network, centre: Vector, radius: Fraction) -> str | None:
    """Affine or conic around the centre: N(centre + t·z) − N(centre) is t times that of z, for
    0 ≤ t ≤ 1 and ‖z‖∞ ≤ radius; None if a unit may change its sign in between."""
    value, shape = centre, "affine"
    spread = Vector([1] * len(centre)).times(radius)
    for layer in network[:-1]:
        value = layer.apply(value)
        spread = layer.weight.each(abs).apply(spread)
        sizes = zip(value.fractions(), spread.fractions(), strict=True)
        for unit, (at_rest, moves) in enumerate(sizes):
            if at_rest and moves > abs(at_rest):
                return None
            shape = "conic" if moves and not at_rest else shape
            spread.ints[unit] = 0 if at_rest < 0 else spread.ints[unit]
        value = value.each(rise)
    return shape


def _is_gauge(network: Network, centre: Vector) -> bool:
    """Positively homogeneous around the centre, as every unit is zero there, and subadditive, as
    outer weights are ≥ 0 (homogeneous and convex)."""
    value = centre
    for layer in network:
        value = layer.apply(value)
        if any(value.ints):
            return False
    return not any(any(map(drop, row)) for layer in network[1:] for row in layer.weight.rows)


def conclude(problem: Problem, hole: Hole, proved: set[str]) -> dict[str, Any]:
    """The strongest sentence about the class's own loop; `kind`: asymptotic, practical, recurrent
    or nothing; `region`: everywhere, D, sublevel or none."""
    every = {"positivity", "decrease", "invariance"} <= proved
    vacuous = _is_vacuous(problem)
    steps = _steps_into_hole(problem) if every and not vacuous else None
    if hole.kind == "contraction":
        return _attracted(hole, "everywhere", "anywhere in Rⁿ", steps)
    if hole.kind == "homogeneous" and every:
        return _attracted(hole, "D", "in D", steps)
    if hole.kind == "homogeneous":
        # V ≥ c‖y − Y‖∞, so this sublevel set lies in D.
        level = decimal(problem.positivity * min(problem.clearance().fractions()), up=False)
        return _attracted(hole, "sublevel", f"in the set V < {level}", None)
    if vacuous:
        text = f"Vacuous: {_VACUOUS}, so that nothing is said of any trajectory."
        return _end("nothing", "none", None, None, text)
    if every and problem.radius > 0:
        text = "Every trajectory that starts in D reaches the hole around Y"
        text += f"{_within(steps)} and returns to it whenever it leaves; no more is proved."
        return _end("recurrent", "D", None, steps, text)
    shown = {"positivity", "decrease"} <= proved
    leaves = "a trajectory may leave D, or Y may be no fixed point"
    reason = leaves if shown else "positivity and decrease are not both proved"
    return _end("nothing", "none", None, None, f"Nothing follows: {reason}.")


def _is_vacuous(problem: Problem) -> bool:
    """Whether positivity and decrease are claimed of no state."""
    reach = max(problem.clearance().fractions())
    return reach < problem.radius or reach == 0


def _attracted(hole: Hole, region: str, where: str, steps: int | None) -> dict[str, Any]:
    radius = hole.radius or Fraction(0)
    kind, goal = "practical", f"the box of radius {decimal(radius)} around Y"
    if hole.fixed_point:
        point = f"one fixed point, which lies within {decimal(radius)} of Y in the sup norm"
        kind, goal = "asymptotic", point if radius else "Y"
    entry = "" if steps is None else f" From any state of D the hole is reached{_within(steps)}."
    text = f"Every trajectory that starts {where} converges to {goal}: {kind} stability.{entry}"
    return _end(kind, region, float_above(radius), steps, text)


def _end(kind: str, region: str, radius: float | None, steps: int | None, text: str) -> Any:
    return {"kind": kind, "region": region, "radius": radius, "steps": steps, "sentence": text}


def _within(steps: int | None) -> str:
    return "" if steps is None else f" within {steps} steps"


def _steps_into_hole(problem: Problem) -> int | None:
    """T with ρ^T·max V < c·r: staying outside for T steps would contradict positivity."""
    floor = problem.positivity * problem.radius
    if problem.rho == 1 or floor == 0:
        return None
    low, high = problem.lower, problem.upper  # interval bounds of V's layers
    for layer in problem.lyapunov:
        plus, less = layer.weight.each(rise), layer.weight.each(drop)
        least = (plus.apply(low) - less.apply(high) + layer.bias).each(rise)
        most = (plus.apply(high) - less.apply(low) + layer.bias).each(rise)
        low, high = least, most
    ratio = high.fractions()[0] / floor
    left = -((-ratio.numerator << 64) // ratio.denominator)  # in units of 2^-64, rounded up
    top, bottom = problem.rho.as_integer_ratio()
    steps = 0
    while steps < LONGEST and left >> 64:
        left = -(-left * top // bottom)
        steps += 1
    return steps if steps < LONGEST else None


def setting(problem: Problem, distance: Fraction) -> str:
    """Y, D, the hole and δ, in numbers that claim no more than the exact ones."""
    centre = problem.equilibrium.fractions()
    places = [decimal(value, digits=6) for value in centre]
    exact = [Fraction(place) for place in places] == centre
    ends = list(zip(problem.lower.fractions(), problem.upper.fractions(), strict=True))
    sides = [_side(low, high) for low, high in ends]
    whole = [tuple(map(Fraction, side)) for side in sides] == ends
    box = " × ".join(f"[{low}, {high}]" for low, high in sides)
    text = (
        f"Y {'=' if exact else '≈'} ({', '.join(places)}); D {'=' if whole else '⊇'} {box}; the"
        f" hole is the box of radius {_stated(problem.radius)} around Y; δ is"
        f" {_stated(problem.delta)}, and ‖C(h*) − Y‖ is at most {decimal(distance)}."
    )
    if _is_vacuous(problem):
        text += f" Positivity and decrease are vacuous: {_VACUOUS}."
    return text


def _side(low: Fraction, high: Fraction) -> tuple[str, str]:
    """An interval rounded inwards, with so many digits that nearly all of it is left. The last
    number of digits is enough for any number that is read."""
    for digits in (3, 6, 17, 400):
        side = decimal(low, digits=digits), decimal(high, up=False, digits=digits)
        if 10 * (Fraction(side[1]) - Fraction(side[0])) >= 9 * (high - low):
            break
    return side


def _stated(value: Fraction) -> str:
    text = decimal(value)
    return text if Fraction(text) == value else f"at most {text}"


def decimal(value: Fraction, up: bool = True, digits: int = 3) -> str:
    """A few decimal digits, rounded so that a sentence promises no more than the number."""
    rounding = ROUND_CEILING if up else ROUND_FLOOR
    context = Context(prec=digits, rounding=rounding, Emin=-(10**6), Emax=10**6)
    return f"{context.divide(Decimal(value.numerator), Decimal(value.denominator)):g}"


def switched_sentence(problem: Problem) -> tuple[bool, str]:
    """Whether any state keeps its class with the controller chosen anew at every step, in words."""
    lower, upper = problem.lower.fractions(), problem.upper.fractions()
    margin, own = decimal(problem.margin), upper[problem.label]
    rivals = lower[: problem.label] + lower[problem.label + 1 :]
    lead = f"this class's logit leads by at least {margin}"
    if problem.margin == 0:
        lead = "this class is chosen first, as its logit is the largest,"
    empty = "D is a single state" if lower == upper else f"there is no state of D in which {lead}"
    if lower == upper or any(own - rival < Fraction(margin) for rival in rivals):
        return False, f" Vacuous with a controller chosen anew at every step: {empty.rstrip(',')}."
    return True, (
        f" From the states of D in which {lead} the same holds if the controller is chosen anew at"
        " every step."
    )


def all_together(entries: list[dict[str, Any]]) -> dict[str, Any]:
    """The verdict on all classes with the controller chosen anew at every step. Each class has a D
    and a margin of its own: D is named as one only where all are the same."""
    shown = [e for e in entries if e["verdict"] == "proved" and e["conclusion"]["switched"]]
    if len(shown) < len(entries):
        labels = ", ".join(str(entry["class"]) for entry in entries if entry not in shown)
        refuted = any(entry["verdict"] == "refuted" for entry in entries)
        text = "Nothing follows about a controller chosen anew at every step from the states of"
        verdict = "refuted" if refuted else "unknown"
        return {"verdict": verdict, "everywhere": False, "sentence": f"{text} class {labels}."}
    radius = max(Fraction(entry["conclusion"]["radius"]) for entry in entries)
    margins = {Fraction(entry["problem"]["margin"]) for entry in entries}
    margin = max(margins)
    boxes = [[entry["problem"][end] for end in ("lower", "upper")] for entry in entries]
    classes = sorted(entry["class"] for entry in entries)
    complete = classes == list(range(boxes[0][0]["shape"][0])) and margin == 0
    everywhere = complete and all(box == boxes[0] for box in boxes)
    lead = f" and leads by at least {decimal(margin)}" if margin else ""
    lead = " and leads by what its class's own sentence says" if len(margins) > 1 else lead
    labels = ", ".join(map(str, classes))
    states = f"Every state of class {labels} that lies in the D of its class{lead}"
    text = (
        f"{'Every state of D' if everywhere else states} flows to the equilibrium of its class, the"
        f" one of its largest logit that is chosen first, to within {decimal(radius)} in the sup"
        " norm, with the controller chosen anew at every step: the choice never changes."
    )
    return {"verdict": "proved", "everywhere": everywhere, "sentence": text}
