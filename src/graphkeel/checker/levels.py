"""Bounds of linear forms on a level of V (proof format, 2, level cuts).

On a part of the box with c₁ ≤ V(y) ≤ c₂, V(y) = v·relu(Ry + r) + v₀ and v ≥ 0, whatever is called
q(y) here, and comes with −ω·V(y) besides, is bounded by a choice of λ, γ ≥ 0 and θ: λ·(c₂ − V(y))
and γ·(V(y) − c₁) are ≥ 0 there, and relu(z) ≥ α·z for 0 ≤ α ≤ 1. So, where θ ≤ (ω + λ − γ)·v,

    q − ω·(V − v₀) ≤ q − θ·(Ry + r) + λ·(c₂ − v₀) − γ·(c₁ − v₀).
"""

from collections.abc import Sequence
from fractions import Fraction
from typing import Any, NamedTuple

from .exact import Matrix, Vector, folded
from .limits import MOST_KEPT
from .networks import Network
from .reading import Rejected, array
from .relaxation import Support, rounded


class Levels(NamedTuple):
    """c₁ ≤ V(y) ≤ c₂ on a part of the box, as far as cuts said so."""

    low: Fraction | None = None
    high: Fraction | None = None

    def below(self, level: Fraction) -> "Levels":
        return Levels(self.low, level if self.high is None else min(self.high, level))

    def above(self, level: Fraction) -> "Levels":
        return Levels(level if self.low is None else max(self.low, level), self.high)


EVERYWHERE = Levels()


class Gauge:
    """V of one hidden layer, and the choices (λ, γ, θ) of one tree."""

    def __init__(self, lyapunov: Network, own: Fraction, value: Any, where: str) -> None:
        first, last = lyapunov
        self.columns = Matrix(first.weight.columns, first.weight.exp)
        self.bias = first.bias
        self.outer = last.weight.row(0).fractions()
        self.start = last.bias.fractions()[0]
        self.own = own  # ω of the row
        self.where = where
        values, shape = array(value, f"{where}.supports", 2)
        if shape[1] != 2 + len(self.outer) or any(value < 0 for value in (*values, *self.outer)):
            raise Rejected(f"{where}: a support must be {2 + len(self.outer)} numbers ≥ 0, as v")
        self.choices = folded(rounded(values).ints, shape[1])
        exps = (self.columns.exp, self.bias.exp, last.bias.exp)
        self.exp = min(exps) + rounded([]).exp  # of θ·(Ry + r) and λ·v₀, for whole y
        self.kept: dict[tuple[int, Levels, bool], tuple[Vector, Fraction]] = {}

    def supports(self, numbers: Sequence[int], levels: Levels) -> list[Support]:
        """Those of a leaf, by their numbers; 0 is none. The last one is for the row, with its ω."""
        if not all(0 <= number <= len(self.choices) for number in numbers):
            raise Rejected(f"{self.where}: a leaf names a support that is not there")
        last = len(numbers) - 1
        return [self._support(k, levels, i == last) if k else None for i, k in enumerate(numbers)]

    def at_least(self, level: Fraction, box: list[Fraction], number: int) -> bool:
        """Whether a support shows V ≥ level on a box: λ·(level − V) ≤ 0 there, with λ > 0."""
        (found, _) = self.supports([number, 0], Levels(high=level))
        if found is None or not self.choices[number - 1][0]:
            return False
        ends = zip(found[0].fractions(), box[: len(box) // 2], box[len(box) // 2 :], strict=True)
        return found[1] + sum(slope * (b if slope > 0 else a) for slope, a, b in ends) <= 0

    def _support(self, number: int, levels: Levels, whole: bool) -> tuple[Vector, Fraction]:
        """−θ·R, and −θ·r + λ·(c₂ − v₀) − γ·(c₁ − v₀)."""
        key = (number, levels, whole)
        if key not in self.kept:
            if len(self.kept) == MOST_KEPT:
                self.kept.clear()
            up, down, *theta = Vector(self.choices[number - 1], rounded([]).exp).fractions()
            share = (self.own if whole else 0) + up - down
            fits = all(t <= share * v for t, v in zip(theta, self.outer, strict=True))
            known = not (up and levels.high is None) and not (down and levels.low is None)
            if not fits or not known:
                raise Rejected(f"{self.where}: a support uses more of V than there is")
            pull = Vector.of([-t for t in theta])
            constant = pull.dot(self.bias)
            constant += up * (levels.high - self.start) if levels.high is not None else 0
            constant -= down * (levels.low - self.start) if levels.low is not None else 0
            self.kept[key] = (self.columns.apply(pull), constant)
        return self.kept[key]
