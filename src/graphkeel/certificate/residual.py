"""How far F and V are from being positively homogeneous around the equilibrium, exactly (proof kind
"homogeneous")."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from graphkeel.certificate.dyadic import Dyadic
from graphkeel.certificate.schema import Layer, Loop


def homogeneity_defect(loop: Loop, condition: str) -> Fraction:
    """δ with |g − g_h| <= δ on all of Rⁿ, for every network within the error bounds."""
    at_rest = Dyadic.of(np.zeros(loop.n))
    of_lyapunov = _propagated(loop.lyapunov, at_rest, loop, target=None)
    if condition == "positivity":
        return of_lyapunov.fraction()
    moved = _propagated(loop.closed_loop, at_rest, loop, target=loop.centre)
    return (
        _propagated(loop.lyapunov, moved, loop, target=None).fraction()
        + Fraction(loop.rho) * of_lyapunov.fraction()
    )


def _propagated(
    layers: tuple[Layer, ...], distance: Dyadic, loop: Loop, target: Dyadic | None
) -> Dyadic:
    """The distance between the network and its homogeneous part, given that between their
    inputs."""
    for k, layer in enumerate(layers):
        weight, error = abs(Dyadic.of(layer.weight)), Dyadic.of(layer.weight_error)
        own = _own_residual(
            layer, loop, first=k == 0, target=target if k + 1 == len(layers) else None
        )
        distance = (weight + error) @ distance + own
    return distance


def _own_residual(layer: Layer, loop: Loop, *, first: bool, target: Dyadic | None) -> Dyadic:
    """What the layer itself adds: its value at the equilibrium, which the homogeneous part
    lacks."""
    value, error = Dyadic.of(layer.bias), Dyadic.of(layer.bias_error)
    if first:
        centre = loop.centre
        value = value + Dyadic.of(layer.weight) @ centre
        error = error + Dyadic.of(layer.weight_error) @ abs(centre)
    if target is not None:
        value = value - target
    return abs(value) + error
