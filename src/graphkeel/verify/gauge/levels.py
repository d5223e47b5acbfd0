"""Bounds of decrease on a slice c₁ ≤ V(y) ≤ c₂ of the box, below cuts at units.

A gauge V is small on a star-shaped set that fits into a box badly: on a face of the box V may be
thirty times as large in one place as in another, and no cut of the box changes that soon. Inside
{V ≤ c₂} every linear form is bounded by its *support*: a combination θ ≥ 0 of V's own rows that
explains the form, f ≈ θR, bounds it by (max θ/v)·c₂. Any θ is sound (docs/formats.md, section
2), so a linear program picks it, for each unit of F and of V∘F and for the row itself.

All bounds count their roundings in, as in boxes/pack.py: γ times the magnitudes of all terms.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from graphkeel.verify.affine import box_magnitude, errors_of, gamma, highest_on
from graphkeel.verify.gauge.simplex import Program, maximise, maximise_all
from graphkeel.verify.problem import Array, Network, Problem
from graphkeel.verify.proof import SLOPE_STEPS
from graphkeel.verify.query import Row
from graphkeel.verify.relaxation import lines_of, through_relu

_Unit = tuple[int, int]  # (0, j): unit j of F; (1, k): unit k of V∘F
Signs = dict[_Unit, bool]  # whether its input is ≥ 0, or else ≤ 0; in the order of the cuts
_GRID = 2.0**60  # stored supports are multiples of 1/GRID
_SIGN_SCALE = 2**40  # stored multipliers of signs are integers over this
_TINY = 1e-250


@dataclass(frozen=True, eq=False)
class Part:
    """A box, and the levels of V between which its states lie; infinite: no such level."""

    lower: Array
    upper: Array
    low: float = -np.inf
    high: float = np.inf


@dataclass(eq=False)
class Bounded:
    """Bounds of some linear forms over a part: the bounds, and the supports that show them."""

    most: Array  # (m,)
    supports: Array  # (m, 2 + K): λ, γ, θ; a line of zeros where none was used
    numbers: list[int] = field(default_factory=list)  # in a proof's table, once it is stored


@dataclass(eq=False)
class Hidden:
    """The hidden units on a part, below some signs: lines around the units of F, upper lines of
    V∘F, upper forms of ±z for the inputs z of V∘F, and where each unit's relaxation costs most."""

    part: Part
    signs: Signs
    first: Bounded
    second: Bounded
    chord: Array
    lift: Array
    slope: Array
    reach: Array  # of F's units
    chord_after: Array
    lift_after: Array
    forms: Array  # (2K, n)
    offsets: Array  # (2K,)
    gaps: tuple[Array, Array]  # of F's units, of those of V∘F


@dataclass(eq=False)
class Leaf:
    """A bound of the row, and the choices that show it."""

    bound: float
    point: Array
    hidden: Hidden
    slopes: NDArray[np.uint8]
    support: Array
    multipliers: list[int]

    @property
    def proved(self) -> bool:
        return self.bound <= 0.0


def is_gauge(lyapunov: Network) -> bool:
    """Whether V is convex by its weights: one exact hidden layer, and v ≥ 0."""
    layers = lyapunov.layers
    return len(layers) == 2 and lyapunov.exact and bool(layers[1].weight.min() >= 0.0)


def level_row(problem: Problem, row: Row, shift: float, shared_gap: float) -> LevelRow | None:
    """The row of decrease for bounds on levels, or None where V is no gauge of one exact hidden
    layer with v ≥ 0, or F is not of one hidden layer."""
    after, before = row.hidden
    fits = row.name == "decrease" and len(after) == 2 and len(before) == 1
    if not fits or not is_gauge(problem.lyapunov):
        return None
    return LevelRow(problem, row, shift, shared_gap)


class LevelRow:
    """V(F(y)) − ρV(y) with F of one hidden layer, packed for bounds on parts.

    Reads: its arrays, made once. Writes: nothing."""

    def __init__(self, problem: Problem, row: Row, shift: float, shared_gap: float) -> None:
        self.shared_gap = shared_gap  # share of a unit's gap that counts for every chord behind it
        self.shift = shift  # added to the row
        first, second = row.hidden[0]
        gauge, last = problem.lyapunov.layers
        # copies: the kernels are compiled for plain arrays, not for read-only ones
        self.weight, self.bias = np.array(first.weight, order="C"), first.bias
        self.after, self.after_bias = np.array(second.weight, order="C"), second.bias
        self.first_errors = errors_of(first)
        self.second_errors = errors_of(second)
        self.rows, self.offset = np.array(gauge.weight, order="C"), np.array(gauge.bias)
        self.v = np.array(last.weight[0])
        self.start = float(last.bias[0])
        self.rho = problem.rho
        self.n = row.n
        self.rounding = 4.0 * gamma(row.n + row.units)
        self.both = np.concatenate([self.after, -self.after])
        self.both_bias = np.concatenate([self.after_bias, -self.after_bias])

    def program(self, part: Part, least: float = -np.inf) -> Program:
        """{y in the box: V(y) ≤ c₂}, and V(y) ≥ `least` relaxed, with t in place of relu(Ry +
        r)."""
        none = np.zeros((0, self.n))
        ends = (least - self.start, part.high - self.start)
        box = (np.array(part.lower), np.array(part.upper))
        return Program(self.rows, self.offset, self.v, *ends, none, np.zeros(0), *box)

    def first_layer(self, part: Part) -> Bounded:
        """Upper bounds of z, then of −z, for the inputs z of F's units."""
        reach = reach_of(part)
        size = np.abs(self.weight) @ reach + np.abs(self.bias)
        uncertainty = self.first_errors[0] @ reach + self.first_errors[1]
        forms = np.concatenate([self.weight, -self.weight])
        offsets = np.concatenate([self.bias, -self.bias])
        return self._bounded(part, forms, offsets, np.tile(size, 2), np.tile(uncertainty, 2))

    def hidden(self, part: Part, signs: Signs, first: Bounded) -> Hidden:
        """The hidden units below some signs."""
        units = len(self.bias)
        high, low = first.most[:units], -first.most[units:]
        chord, lift, slope, low, high = _with_signs(low, high, signs, 0)
        reach = np.maximum(high, 0.0)
        through, lifted = through_relu(self.both, chord, lift, slope)
        forms = through @ self.weight
        offsets = lifted + through @ self.bias + self.both_bias
        size = np.abs(through) @ self._first_size(part) + lifted + np.abs(self.both_bias)
        uncertainty = np.tile(self.second_errors[0] @ reach + self.second_errors[1], 2)
        uncertainty = uncertainty + np.abs(through) @ self._first_uncertainty(part)
        second = self._bounded(part, forms, offsets, size, uncertainty)
        count = len(self.v)
        high_after, low_after = second.most[:count], -second.most[count:]
        chord_after, lift_after, _, low_after, high_after = _with_signs(
            low_after, high_after, signs, 1
        )
        # a unit of F costs what it adds itself, and what it adds to the chords behind it
        open_after = (low_after < 0.0) & (high_after > 0.0)
        direct = np.abs((self.v * chord_after) @ self.after)
        shared = direct + self.shared_gap * (self.v * open_after) @ np.abs(self.after)
        gaps = (_chord_gap(low, high) * shared, self.v * _chord_gap(low_after, high_after))
        return Hidden(
            part,
            signs,
            first,
            second,
            chord,
            lift,
            slope,
            reach,
            chord_after,
            lift_after,
            forms,
            offsets,
            gaps,
        )

    def bounded(self, hidden: Hidden, low: float) -> Leaf:
        """The row on the states of a part with V ≥ `low`: slopes and multipliers by one program,
        rounded, then the row's support by another."""
        slope, betas, feasible, point = self._choices(hidden, low)
        slopes = _stored_slopes(slope)
        multipliers = [_SIGN_SCALE, *(int(beta * _SIGN_SCALE) for beta in betas)]
        form, offset, size = self._substituted(hidden, slopes / SLOPE_STEPS, multipliers)
        program = self.program(hidden.part, low)
        _, peak, theta, level, _ = maximise(program, form, -self.rho * self.v, 0.0)
        support = self._support(theta, level, self.rho, np.isfinite(hidden.part.high))
        if not feasible:  # no states: enough of the signs outweighs whatever the row is
            point = peak
        bound = self._total(hidden.part, low, form, offset, size, support)
        return Leaf(bound, point, hidden, slopes, support, multipliers)

    def empty_leaf(self, hidden: Hidden, theta: Array, least: float, high: float) -> Leaf:
        """The row on the states with V ≤ `high` of a box where V is larger: there are none."""
        slopes = _stored_slopes(hidden.slope)
        form, offset, size = self._substituted(hidden, slopes / SLOPE_STEPS, [_SIGN_SCALE])
        worst = (
            float(highest_on(form[None], hidden.part.lower, hidden.part.upper)[0]) + offset + size
        )
        price = 2.0 * (abs(worst) + 1.0) / (least - high)
        support = self._support(price * theta, price, self.rho, True)
        part = replace(hidden.part, high=high)
        bound = self._total(part, -np.inf, form, offset, size, support)
        return Leaf(bound, hidden.part.lower, hidden, slopes, support, [_SIGN_SCALE])

    def at_least(self, part: Part, theta: Array, level: float) -> Array | None:
        """A support that shows V ≥ level on a box, or None."""
        support = self._support(theta, 1.0, 0.0, True)
        held = self._total(replace(part, high=level), -np.inf, np.zeros(self.n), 0.0, 0.0, support)
        return support if held <= 0.0 else None

    def least_value(self, part: Part) -> tuple[float, Array]:
        """(a lower bound of V on a box, up to rounding, and its θ)."""
        program = self.program(Part(part.lower, part.upper))
        _, point, theta, _, _ = maximise(program, np.zeros(self.n), -self.v, 0.0)
        value = self.v @ np.maximum(self.rows @ point + self.offset, 0.0) + self.start
        return float(value), np.clip(theta, 0.0, self.v)

    def value(self, points: Array) -> Array:
        """V(F(y)) − ρV(y) in floats, shape (m,)."""
        hidden = np.maximum(points @ self.weight.T + self.bias, 0.0)
        after = np.maximum(hidden @ self.after.T + self.after_bias, 0.0) @ self.v
        before = np.maximum(points @ self.rows.T + self.offset, 0.0) @ self.v
        return np.asarray(after - self.rho * before + (1.0 - self.rho) * self.start)

    def _first_size(self, part: Part) -> Array:
        return np.asarray(np.abs(self.weight) @ reach_of(part) + np.abs(self.bias))

    def _first_uncertainty(self, part: Part) -> Array:
        return np.asarray(self.first_errors[0] @ reach_of(part) + self.first_errors[1])

    def _bounded(
        self, part: Part, forms: Array, offsets: Array, size: Array, uncertainty: Array
    ) -> Bounded:
        """max form·y + offset over a part, by the box alone or with a support."""
        slack = self.rounding * (size + np.abs(forms) @ reach_of(part)) + uncertainty + _TINY
        plain = highest_on(forms, part.lower, part.upper) + offsets + slack
        supports = np.zeros((len(forms), 2 + len(self.v)))
        if not np.isfinite(part.high):
            return Bounded(plain, supports)
        thetas, levels = maximise_all(self.program(part), forms)
        supports = self._support(thetas, levels, 0.0, True)
        theta, up = supports[:, 2:], supports[:, 0]
        magnitude = theta @ (np.abs(self.rows) @ reach_of(part) + np.abs(self.offset))
        level_term = up * (part.high - self.start)
        held = (
            highest_on(forms - theta @ self.rows, part.lower, part.upper)
            - theta @ self.offset
            + level_term
            + offsets
        )
        held = held + slack + 2.0 * self.rounding * (magnitude + np.abs(level_term))
        better = held < plain
        supports[~better] = 0.0
        return Bounded(np.where(better, held, plain), supports)

    def _support(self, theta: Array, level: Array | float, own: float, known: bool) -> Array:
        """(λ, γ, θ) from a program's multipliers, so that θ ≤ (ω + λ − γ)·v whatever was rounded.

        `known`: whether there is an upper level, so that λ may be used."""
        level = np.asarray(level, dtype=np.float64)[..., None]
        up = np.maximum(level, 0.0)
        down = np.minimum(np.maximum(-level, 0.0), own)
        more = 2.0**-40 * (own + up) + 2.0**-56
        up = on_grid(up + more) if known else np.zeros_like(up)
        down = on_grid(down)
        share = np.maximum((own + up - down) * (1.0 - 2.0**-48) - 2.0**-58, 0.0)
        limit = share * self.v * (1.0 - 2.0**-48)
        theta = on_grid(np.clip(theta, 0.0, limit))
        return np.concatenate([up, down, theta], axis=-1)

    def _choices(self, hidden: Hidden, low: float) -> tuple[Array, Array, bool, Array]:
        """(lower slopes of F's units, multipliers of the signs, feasible, the maximiser): the
        units with a falling coefficient become variables of the program."""
        weights = self.v * hidden.chord_after
        outer = weights @ self.after
        falling = (outer < 0.0) & (hidden.lift > 0.0)
        through = np.where(falling, 0.0, outer * hidden.chord)
        half = np.zeros((len(hidden.signs), self.n))
        offset = np.zeros(len(hidden.signs))
        for i, ((layer, unit), active) in enumerate(hidden.signs.items()):
            if layer == 0:
                sign = 1.0 if active else -1.0
                half[i] = sign * self.weight[unit]
                offset[i] = sign * self.bias[unit]
            else:
                at = unit if active else unit + len(self.v)
                half[i] = hidden.forms[at]
                offset[i] = hidden.offsets[at]
        extra = np.flatnonzero(falling)
        ends = (low - self.start, hidden.part.high - self.start)
        program = Program(
            np.concatenate([self.rows, self.weight[extra]]),
            np.concatenate([self.offset, self.bias[extra]]),
            np.concatenate([self.v, np.zeros(len(extra))]),
            *ends,
            half,
            offset,
            np.array(hidden.part.lower),
            np.array(hidden.part.upper),
        )
        cost = np.concatenate([-self.rho * self.v, outer[extra]])
        offset_now = float(hidden.lift_after @ self.v + np.maximum(outer, 0.0) @ hidden.lift)
        offset_now += float(weights @ self.after_bias + through @ self.bias)
        solved, point, theta, _, betas = maximise(
            program, through @ self.weight, cost, abs(offset_now)
        )
        slope = hidden.slope.copy()
        slope[extra] = np.clip(theta[len(self.v) :] / -outer[extra], 0.0, 1.0)
        return slope, np.maximum(betas, 0.0), bool(solved), point

    def _substituted(
        self, hidden: Hidden, slope: Array, multipliers: list[int]
    ) -> tuple[Array, float, float]:
        """V(F(y)) and the signs' terms as a linear form above them: (form, offset, its
        uncertainty with rounding)."""
        weights = self.v * hidden.chord_after
        sign_terms = np.zeros(len(self.bias))
        for ((layer, unit), active), beta in zip(
            hidden.signs.items(), multipliers[1:], strict=True
        ):
            multiplier = beta / _SIGN_SCALE if active else -beta / _SIGN_SCALE
            if layer == 0:
                sign_terms[unit] += multiplier
            else:
                weights[unit] += multiplier
        outer = weights @ self.after
        lower = np.where(hidden.lift > 0.0, slope, hidden.slope)
        through, lift = through_relu(outer, hidden.chord, hidden.lift, lower)
        through = through + sign_terms
        form = through @ self.weight
        lifted = float(self.v @ hidden.lift_after + lift)
        offset = lifted + float(weights @ self.after_bias + through @ self.bias)
        offset += (1.0 - self.rho) * self.start + self.shift
        spread = np.abs(weights) @ np.abs(self.after)  # of F's units, before anything cancels
        first = self._first_size(hidden.part)
        size = lifted + float(np.abs(weights) @ np.abs(self.after_bias) + spread @ first)
        size += float(np.abs(sign_terms) @ first + spread @ hidden.lift)
        size += abs(self.start) + abs(self.shift)
        size += float(np.abs(form) @ reach_of(hidden.part))
        uncertainty = self.second_errors[0] @ hidden.reach + self.second_errors[1]
        errors = float(
            np.abs(weights) @ uncertainty + np.abs(through) @ self._first_uncertainty(hidden.part)
        )
        return form, offset, 2.0 * self.rounding * size + errors + _TINY

    def _total(
        self, part: Part, low: float, form: Array, offset: float, size: float, support: Array
    ) -> float:
        """The bound of the row with its support, roundings twice counted in."""
        up, down, theta = support[0], support[1], support[2:]
        total = offset + float(
            highest_on((form - theta @ self.rows)[None], part.lower, part.upper)[0]
        )
        total -= float(theta @ self.offset)
        magnitude = float(theta @ (np.abs(self.rows) @ reach_of(part) + np.abs(self.offset)))
        for weight, level in ((up, part.high), (-down, low)):
            if weight:
                total += weight * (level - self.start)
                magnitude += abs(weight) * (abs(level) + abs(self.start))
        return total + 2.0 * (size + 2.0 * self.rounding * magnitude)


def reach_of(part: Part) -> Array:
    """The largest magnitude of every coordinate on a part's box, shape (n,)."""
    return box_magnitude(part.lower, part.upper)


def on_grid(values: Array) -> Array:
    """Numbers rounded down to multiples of 2⁻⁶⁰, as in the checker."""
    return np.asarray(np.floor(values * _GRID) / _GRID)


def _stored_slopes(slope: Array) -> NDArray[np.uint8]:
    return np.floor(slope * SLOPE_STEPS + 0.5).astype(np.uint8)


def _chord_gap(low: Array, high: Array) -> Array:
    """How far the chord lies above a ReLU at zero."""
    undecided = (low < 0.0) & (high > 0.0)
    width = np.where(undecided, high - low, 1.0)
    return np.where(undecided, -low * high / width, 0.0)


def _with_signs(
    low: Array, high: Array, signs: Signs, layer: int
) -> tuple[Array, Array, Array, Array, Array]:
    """(chord, lift, slope, low, high) of a layer's units, where cuts fixed some signs."""
    low, high = low.copy(), high.copy()
    chord, lift, slope = lines_of(low, high)
    for (place, unit), active in signs.items():
        if place == layer:
            chord[unit] = slope[unit] = 1.0 if active else 0.0
            lift[unit] = 0.0
            low[unit] = max(low[unit], 0.0) if active else min(low[unit], 0.0)
            high[unit] = max(high[unit], 0.0) if active else min(high[unit], 0.0)
    return chord, lift, slope, low, high


def candidates(hidden: Hidden, most: int) -> Sequence[_Unit]:
    """The units whose relaxation costs most, the worst first."""
    scores = [
        (float(gap), (layer, unit))
        for layer, gaps in enumerate(hidden.gaps)
        for unit, gap in enumerate(gaps)
        if gap > 0.0
    ]
    scores.sort(reverse=True)
    return [unit for _, unit in scores[:most]]
