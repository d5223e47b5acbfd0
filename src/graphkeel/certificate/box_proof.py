"""Proof kind "box": the whole domain is the one leaf of every row, so that nothing but the claim
has to be stored."""

from __future__ import annotations

import numpy as np

from graphkeel.certificate.dyadic import Floats
from graphkeel.certificate.schema import Loop
from graphkeel.certificate.trees import Refused
from graphkeel.certificate.whole_box import Fan, upper_bounds

_HALF = 2.0**-52  # more than the relative rounding of one sum
_LEAST = 1e-300


def check_invariance_box(loop: Loop) -> int:
    """F(D) ⊆ D by one bound a row; the number of rows, or Refused."""
    return _accepted("invariance", invariance_fan(loop), loop, strict=False)


def check_region_box(loop: Loop, axis: int, margin: float, multipliers: Floats) -> int:
    """That no state of class `axis` is led to another class, by one bound a row."""
    return _accepted("region", region_fan(loop, axis, margin, multipliers), loop, strict=not margin)


def _accepted(condition: str, fan: Fan, loop: Loop, *, strict: bool) -> int:
    bounds, _ = upper_bounds(fan, loop.lower, loop.upper)
    if not (bounds < 0 if strict else bounds <= 0).all():
        raise Refused(
            f"{condition}: the bound of a row on the whole box is {bounds.max():.3g}, so it is not proved"
        )
    return int(bounds.shape[0])


def invariance_fan(loop: Loop) -> Fan:
    """F_i − upper_i and lower_i − F_i for every i."""
    *hidden, last = loop.closed_loop
    constant = np.concatenate([last.bias - loop.upper, loop.lower - last.bias])
    final, final_error = (
        np.concatenate([last.weight, -last.weight]),
        np.tile(last.weight_error, (2, 1)),
    )
    nothing = np.zeros((2 * loop.n, loop.n))
    rounding = np.tile(last.bias_error, 2) + np.abs(constant) * _HALF + _LEAST
    return Fan(tuple(hidden), final, final_error, nothing, nothing, constant, rounding)


def region_fan(loop: Loop, axis: int, margin: float, multipliers: Floats) -> Fan:
    """F_k − F_c + γ + Σ_j λ_j·(y_c − y_j − γ) for every k ≠ c (rows.region_rows, all at once)."""
    *hidden, last = loop.closed_loop
    rivals = np.array([k for k in range(loop.n) if k != axis], dtype=np.int64)
    final = last.weight[rivals] - last.weight[axis]
    final_error = (last.weight_error[rivals] + last.weight_error[axis] + np.abs(final) * _HALF) * (
        1 + _HALF
    ) + _LEAST
    total = multipliers.sum(axis=1)
    linear = -multipliers
    linear[:, axis] = total
    linear_error = np.zeros(linear.shape)
    linear_error[:, axis] = loop.n * _HALF * total + _LEAST
    constant = (last.bias[rivals] - last.bias[axis]) + margin * (1.0 - total)
    sizes = np.abs(last.bias[rivals]) + abs(last.bias[axis]) + margin * (1.0 + total)
    rounding = (last.bias_error[rivals] + last.bias_error[axis] + (loop.n + 8) * _HALF * sizes) * (
        1 + _HALF
    ) + _LEAST
    return Fan(tuple(hidden), final, final_error, linear, linear_error, constant, rounding)
