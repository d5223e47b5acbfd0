"""The verification problem as plain arrays: a closed loop F, a Lyapunov function V, a box, a hole.

Everything here is solver-neutral. The claim is always about **real arithmetic**: float weights are
taken as the rational numbers they are. Where a layer is itself the rounded result of an exact
computation (the collapse of f's last layer with the head), `weight_error` and `bias_error` bound
the distance to the exact value, entry by entry, and every engine has to cover all weights within
those bounds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from graphkeel.core.errors import ProblemError
from graphkeel.core.names import check_name

Array = NDArray[np.float64]

_NORMS = ("inf", "2")


def _frozen(values: object, name: str, ndim: int) -> Array:
    array = np.array(values, dtype=np.float64, order="C")
    if array.ndim != ndim:
        raise ProblemError(f"{name} must have {ndim} dimension(s)", got=f"shape {array.shape}")
    if not np.isfinite(array).all():
        raise ProblemError(
            f"{name} must be finite",
            got=f"{int((~np.isfinite(array)).sum())} NaN or infinite entries",
        )
    array.setflags(write=False)
    return array


@dataclass(frozen=True, eq=False)
class Affine:
    """x -> weight @ x + bias, with entrywise bounds on how far the stored numbers are from the
    exact ones."""

    weight: Array  # (out, in)
    bias: Array  # (out,)
    weight_error: Array | None = None  # (out, in), >= 0; None means exact
    bias_error: Array | None = None  # (out,), >= 0; None means exact

    def __post_init__(self) -> None:
        weight = _frozen(self.weight, "a layer's weight", 2)
        bias = _frozen(self.bias, "a layer's bias", 1)
        if bias.shape[0] != weight.shape[0]:
            raise ProblemError(
                "a layer's bias must have one entry per output",
                got=f"weight {weight.shape}, bias {bias.shape}",
            )
        object.__setattr__(self, "weight", weight)
        object.__setattr__(self, "bias", bias)
        for name, like in (("weight_error", weight), ("bias_error", bias)):
            self._freeze_error(name, like)

    def _freeze_error(self, name: str, like: Array) -> None:
        value = getattr(self, name)
        if value is None:
            return
        error = _frozen(value, f"a layer's {name}", like.ndim)
        if error.shape != like.shape or (error < 0).any():
            raise ProblemError(
                f"a layer's {name} must be non-negative and of its array's shape", got=error.shape
            )
        object.__setattr__(self, name, error if error.any() else None)

    @property
    def n_in(self) -> int:
        return int(self.weight.shape[1])

    @property
    def n_out(self) -> int:
        return int(self.weight.shape[0])

    @property
    def exact(self) -> bool:
        return self.weight_error is None and self.bias_error is None


@dataclass(frozen=True, eq=False)
class Network:
    """Affine layers with a ReLU between each two of them (none after the last)."""

    layers: tuple[Affine, ...]

    def __post_init__(self) -> None:
        layers = tuple(self.layers)
        if not layers:
            raise ProblemError("a network needs at least one layer", got="none")
        for i, (a, b) in enumerate(pairwise(layers)):
            if a.n_out != b.n_in:
                raise ProblemError(
                    f"layer {i} and layer {i + 1} of a network do not fit together",
                    got=f"{a.n_out} outputs into {b.n_in} inputs",
                )
        object.__setattr__(self, "layers", layers)

    @classmethod
    def of(cls, *layers: Sequence[object]) -> Network:
        """Build from (weight, bias) pairs, which may also hold bounds on the errors of both.

        >>> absolute = Network.of(([[1.0], [-1.0]], [0.0, 0.0]), ([[1.0, 1.0]], [0.0]))
        >>> absolute([-3.0])
        array([3.])
        """
        return cls(tuple(Affine(*layer) for layer in layers))  # type: ignore[arg-type]

    @property
    def n_in(self) -> int:
        return self.layers[0].n_in

    @property
    def n_out(self) -> int:
        return self.layers[-1].n_out

    @property
    def exact(self) -> bool:
        return all(layer.exact for layer in self.layers)

    @property
    def hidden(self) -> tuple[int, ...]:
        return tuple(layer.n_out for layer in self.layers[:-1])

    def __call__(self, points: Array) -> Array:
        """Float64 value at points, for search and replay, never for a proof.

        Args:
            points: states, shape (..., n_in).
        """
        *_, last = self.pre_activations(points)
        return last

    def pre_activations(self, points: Array) -> list[Array]:
        """The float64 value of every layer before its ReLU, the network's output last.

        Args:
            points: states, shape (..., n_in).
        """
        sums: list[Array] = []
        value = np.asarray(points, dtype=np.float64)
        for layer in self.layers:
            sums.append(value @ layer.weight.T + layer.bias)
            value = np.maximum(sums[-1], 0.0)
        return sums


@dataclass(frozen=True)
class Region:
    """The decision region of a class: states with coordinate `axis` above all others by `margin`.

    Where F keeps the states of the region in it, a controller that is chosen anew at every step by
    the largest logit never changes, so what is proved of the class's own loop holds of the switched
    one.
    """

    axis: int
    margin: float = 0.0

    def rivals(self, n: int) -> list[int]:
        """The other coordinates of a state with n of them.

        Args:
            n: the number of coordinates.
        """
        return [k for k in range(n) if k != self.axis]

    def margins(self, points: Array) -> Array:
        """The margin of the class at points (..., n), in float64.

        Args:
            points: states, shape (..., n).
        """
        rivals = self.rivals(points.shape[-1])
        others = points[..., rivals].max(axis=-1, initial=-np.inf)
        return np.asarray(points[..., self.axis] - others)


@dataclass(frozen=True)
class Sublevel:
    """A sublevel set {y in the box: V(y) ≤ level}, and what of it V has to fall on.

    Where the box itself is not invariant, a sublevel set of V often is: trajectories that start in
    it stay where the conditions were shown.

    Args:
        level: c of V(y) ≤ c.
        floor: c₁ of c₁ ≤ V(y) ≤ c, the part on which V has to fall; None for all of the set.
    """

    level: float
    floor: float | None = None


@dataclass(frozen=True, eq=False)
class Problem:
    """Is V a Lyapunov function of y⁺ = F(y) on the box [lower, upper] without a hole around the
    equilibrium?

    For all y in the box with ‖y − equilibrium‖ ≥ hole_radius (in `hole_norm`):

    * positivity: V(y) ≥ c·‖y − equilibrium‖∞; with `positivity == 0` strictly V(y) > 0;
    * decrease: V(F(y)) ≤ ρ·V(y); with `rho == 1` strictly V(F(y)) < V(y), the paper's condition;

    and for all y in the box, hole included:

    * invariance: lower ≤ F(y) ≤ upper;
    * region (only where `region` is given): a state of the class's decision region stays in it,
      F(y)_c − F(y)_k ≥ margin for every k ≠ c; with `margin == 0` strictly, so that no tie is left.

    With a `sublevel` set, level c and floor c₁:

    * sublevel-invariance: for all y in the box with V(y) ≤ c, hole included, V(F(y)) ≤ c and
      lower ≤ F(y) ≤ upper;
    * sublevel-decrease: decrease for all y in the box without the hole with c₁ ≤ V(y) ≤ c.

    The box may be thin: lower = upper along an axis fixes that coordinate.
    The hole is open: its boundary has to satisfy the conditions. `hole_radius == 0` excludes the
    equilibrium only.

    Args:
        closed_loop: F, from R^n to R^n.
        lyapunov: V, from R^n to R.
        lower, upper, equilibrium: shape (n,).
        hole_radius: ≥ 0.
        hole_norm: "inf" or "2".
        rho: ρ in (0, 1].
        positivity: c ≥ 0.
        name: for messages.
        region: the class whose decision region should be invariant, if any.
        sublevel: the sublevel set of the two conditions on it, if any.
    """

    closed_loop: Network  # F: R^n -> R^n
    lyapunov: Network  # V: R^n -> R
    lower: Array
    upper: Array
    equilibrium: Array
    hole_radius: float = 0.0
    hole_norm: str = "inf"
    rho: float = 1.0
    positivity: float = 0.0
    name: str = field(default="problem")
    region: Region | None = None
    sublevel: Sublevel | None = None

    def __post_init__(self) -> None:
        for name in ("lower", "upper", "equilibrium"):
            object.__setattr__(self, name, _frozen(getattr(self, name), name, 1))
        n = self.n
        if self.closed_loop.n_in != n or self.closed_loop.n_out != n:
            raise ProblemError(
                f"F must map R^{n} to R^{n}, as the box has {n} dimensions",
                got=f"R^{self.closed_loop.n_in} to R^{self.closed_loop.n_out}",
            )
        if self.lyapunov.n_in != n or self.lyapunov.n_out != 1:
            raise ProblemError(
                f"V must map R^{n} to R", got=f"R^{self.lyapunov.n_in} to R^{self.lyapunov.n_out}"
            )
        if self.upper.shape != (n,) or self.equilibrium.shape != (n,):
            raise ProblemError(
                "lower, upper and equilibrium must have the same length",
                got=(n, self.upper.shape[0], self.equilibrium.shape[0]),
            )
        if (self.lower > self.upper).any():
            axis = int(np.argmax(self.lower > self.upper))
            raise ProblemError(
                f"the box is empty along axis {axis}",
                got=f"[{self.lower[axis]}, {self.upper[axis]}]",
            )
        self._check_numbers()

    def _check_numbers(self) -> None:
        check_name("hole_norm", self.hole_norm, _NORMS, ProblemError)
        if not (np.isfinite(self.hole_radius) and self.hole_radius >= 0):
            raise ProblemError("hole_radius must be finite and not negative", got=self.hole_radius)
        if not 0 < self.rho <= 1:
            raise ProblemError("rho must lie in (0, 1]", got=self.rho)
        if not (np.isfinite(self.positivity) and self.positivity >= 0):
            raise ProblemError("positivity must be finite and not negative", got=self.positivity)
        if self.region is not None:
            self._check_region(self.region)
        if self.sublevel is not None:
            self._check_sublevel(self.sublevel)

    def _check_region(self, region: Region) -> None:
        if not 0 <= region.axis < self.n:
            raise ProblemError(f"a region's axis must lie in 0 … {self.n - 1}", got=region.axis)
        if not (np.isfinite(region.margin) and region.margin >= 0):
            raise ProblemError(
                "a region's margin must be finite and not negative", got=region.margin
            )

    def _check_sublevel(self, sublevel: Sublevel) -> None:
        if not np.isfinite(sublevel.level):
            raise ProblemError("a sublevel set's level must be finite", got=sublevel.level)
        floor = sublevel.floor
        if floor is not None and not (np.isfinite(floor) and floor <= sublevel.level):
            raise ProblemError(
                "a sublevel set's floor must be finite and not above its level",
                got=f"floor {floor}, level {sublevel.level}",
            )

    @property
    def n(self) -> int:
        return int(self.lower.shape[0])

    @property
    def exact(self) -> bool:
        return self.closed_loop.exact and self.lyapunov.exact

    def in_hole(self, points: Array) -> NDArray[np.bool_]:
        """Which points lie strictly inside the hole (float test; proofs use exact arithmetic).

        Args:
            points: states, shape (..., n).
        """
        offset = np.abs(np.asarray(points) - self.equilibrium)
        if self.hole_norm == "inf":
            return np.asarray(offset.max(axis=-1) < self.hole_radius)
        return np.asarray((offset**2).sum(axis=-1) < self.hole_radius**2)


CONDITIONS: Sequence[str] = ("positivity", "decrease", "invariance")
_REGION = "region"  # decided only where it is named: it needs a problem with a region
STAYS, FALLS = "sublevel-invariance", "sublevel-decrease"
SUBLEVEL: Sequence[str] = (
    STAYS,
    FALLS,
)  # likewise: they need a problem with a sublevel set


def check_conditions(problem: Problem, conditions: Sequence[str]) -> None:
    """Refuse a name that is no condition: a proof of something else must not be filed under it."""
    known = (*CONDITIONS, _REGION, *SUBLEVEL)
    for condition in conditions:
        check_name("a condition", condition, known, ProblemError)
        if condition == _REGION:
            region_of(problem)
        if condition in SUBLEVEL:
            sublevel_of(problem)


def region_of(problem: Problem) -> Region:
    """The problem's decision region; a `ProblemError` where it has none."""
    if problem.region is None:
        raise ProblemError(
            "the condition 'region' needs a problem with a region",
            got=problem.name,
            fix="Give the problem a class: replace(problem, region=Region(axis, margin)).",
        )
    return problem.region


def sublevel_of(problem: Problem) -> Sublevel:
    """The problem's sublevel set; a `ProblemError` where it has none."""
    if problem.sublevel is None:
        raise ProblemError(
            "a condition on a sublevel set needs a problem with one",
            got=problem.name,
            fix="Give a level: --sublevel C, or the key sublevel in the file.",
        )
    return problem.sublevel
