"""The collapse, recomputed exactly: are the stored layers of F and V those of the shipped weights?

A layer of the loop is a chain of affine factors. The last layer of the controller and the first of
the head make one chain; multiplied from its end to its front, the feature dimension is summed away
first and everything after is small."""

from __future__ import annotations

import numpy as np

from graphkeel.certificate.dyadic import Cut, Dyadic, Floats, product
from graphkeel.certificate.schema import Chain, Factor, Layer, Source
from graphkeel.core.errors import CertificateError

_MANY = 16  # columns

ExactLayer = tuple[Dyadic, Dyadic]  # weight, bias


def composed(controller: Source, head: Source) -> Source:
    """head ∘ controller: the seam between both is one chain, as no ReLU lies between them."""
    return (*controller[:-1], (*controller[-1], *head[0]), *head[1:])


def exact_layers(source: Source, where: str) -> tuple[ExactLayer, ...]:
    return tuple(exact_layer(chain, f"{where}[{i}]") for i, chain in enumerate(source))


def exact_layer(chain: Chain, where: str) -> ExactLayer:
    """The affine map of a chain, exactly."""
    _check_widths(chain, where)
    weight: Cut | Dyadic | None = (
        None  # of the factors already taken; a cut of floats while still unmultiplied
    )
    bias: Dyadic | None = None
    for factor in reversed(chain):
        if factor.bias is not None:
            moved = _times(weight, factor.bias)
            bias = moved if bias is None else bias + moved
        if factor.weight is not None:
            weight = _first(factor) if weight is None else _times(weight, factor.weight)
    if weight is None:
        raise CertificateError(f"{where} has no weight matrix", got=f"{len(chain)} factors")
    matrix = weight if isinstance(weight, Dyadic) else Dyadic.of(weight.whole)
    return matrix, bias if bias is not None else Dyadic.of(np.zeros(matrix.shape[0]))


def _first(factor: Factor) -> Cut | Dyadic | None:
    """The weight as it multiplies best: over many columns in limbs."""
    if factor.weight is None or factor.weight.shape[1] > _MANY:
        return factor.cut
    return Dyadic.of(factor.weight)


def _times(weight: Cut | Dyadic | None, values: Floats) -> Dyadic:
    if weight is None:
        return Dyadic.of(values)
    return weight @ Dyadic.of(values) if isinstance(weight, Dyadic) else product(weight, values)


def _check_widths(chain: Chain, where: str) -> None:
    width: int | None = None
    for factor in chain:
        if factor.weight is not None:
            if width is not None and factor.weight.shape[1] != width:
                raise CertificateError(
                    f"{where}: the factors do not fit together", got=factor.weight.shape
                )
            width = factor.weight.shape[0]
        if factor.bias is not None:
            if width is not None and factor.bias.shape[0] != width:
                raise CertificateError(
                    f"{where}: a factor's bias does not fit", got=factor.bias.shape
                )
            width = factor.bias.shape[0]


def mismatch(stored: tuple[Layer, ...], exact: tuple[ExactLayer, ...], name: str) -> str | None:
    """Why the stored layers are not the exact ones within their stated errors, or None."""
    if len(stored) != len(exact):
        return f"{name} has {len(stored)} layers, its weights give {len(exact)}"
    for i, (layer, (weight, bias)) in enumerate(zip(stored, exact, strict=True)):
        near_weight, near_bias, weight_error, bias_error = layer.exactly
        parts = (
            ("weight", near_weight, weight_error, weight),
            ("bias", near_bias, bias_error, bias),
        )
        for part, value, error, truth in parts:
            if value.shape != truth.shape:
                return f"{name}[{i}].{part} has the shape {value.shape}, its weights give {truth.shape}"
            if not (abs(value - truth) <= error).all():
                return f"{name}[{i}].{part} is not the collapse of the shipped weights within its stated error"
    return None


def value_at(layers: tuple[ExactLayer, ...], point: Dyadic) -> Dyadic:
    """The network's exact value at one point."""
    for i, (weight, bias) in enumerate(layers):
        point = weight @ point + bias
        if i + 1 < len(layers):
            point = point.relu()
    return point


def exact_value(source: Source, point: Floats, where: str) -> Dyadic | Floats:
    """The value of a source network at one point, factor by factor; floats where it is a stored
    bias as it stands."""
    value: Dyadic | Floats = point
    for i, chain in enumerate(source):
        _check_widths(chain, f"{where}[{i}]")
        for factor in chain:
            value = _applied(factor, value)
        if i + 1 < len(source):
            value = exactly(value).relu()
    return value


def exactly(value: Dyadic | Floats) -> Dyadic:
    return value if isinstance(value, Dyadic) else Dyadic.of(value)


def _applied(factor: Factor, point: Dyadic | Floats) -> Dyadic | Floats:
    if not isinstance(
        point, Dyadic
    ):  # floats as they were stored: the long product takes the fast way
        point = Dyadic.of(point) if factor.cut is None else product(factor.cut, point)
    elif factor.weight is not None:
        used = np.asarray(point.mantissa != 0, dtype=bool)
        if not used.any():  # an anchored controller at rest: what is left is its offset
            return np.zeros(factor.weight.shape[0]) if factor.bias is None else factor.bias
        point = Dyadic.of(factor.weight[:, used]) @ point[used]
    return point if factor.bias is None else point + Dyadic.of(factor.bias)
