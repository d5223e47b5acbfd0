"""What a certificate holds, as plain dataclasses, and their way to and from JSON
(docs/certificate.md).

These classes are the checker's own: they resemble the engines' `Problem`, but share no code with
it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from graphkeel.certificate.dyadic import Cut, Dyadic, Floats
from graphkeel.certificate.encoding import decode_array, encode_array
from graphkeel.core.errors import CertificateError

FORMAT = "graphkeel-certificate"
VERSION = 2
VERDICTS = ("proved", "refuted", "unknown")
SEARCHED = ("positivity", "decrease", "invariance")  # what an engine proves of the loop alone
CONDITIONS = ("representative", *SEARCHED, "hole", "region")
NORMS = ("inf", "2")
MAX_DIMENSION = 4096
MAX_LAYERS = 32


@dataclass(frozen=True, eq=False)
class Layer:
    """x -> weight @ x + bias; the exact weights lie within the errors of the stored ones."""

    weight: Floats
    bias: Floats
    weight_error: Floats
    bias_error: Floats

    @cached_property
    def exactly(self) -> tuple[Dyadic, Dyadic, Dyadic, Dyadic]:
        """Weight, bias and their errors in exact numbers."""
        weight, bias = Dyadic.of(self.weight), Dyadic.of(self.bias)
        return weight, bias, Dyadic.of(self.weight_error), Dyadic.of(self.bias_error)

    @property
    def exact(self) -> bool:
        return not (self.weight_error.any() or self.bias_error.any())

    def to_json(self) -> dict[str, Any]:
        parts = {"weight": self.weight, "bias": self.bias}
        errors = {"weight_error": self.weight_error, "bias_error": self.bias_error}
        parts.update({key: value for key, value in errors.items() if value.any()})
        return {key: encode_array(value) for key, value in parts.items()}

    @staticmethod
    def from_json(value: Any, where: str) -> Layer:
        content = mapping(value, where, need={"weight", "bias"}, may={"weight_error", "bias_error"})
        weight = decode_array(content["weight"], f"{where}.weight", 2)
        bias = decode_array(content["bias"], f"{where}.bias", 1)
        errors = {}
        for key, like in (("weight_error", weight), ("bias_error", bias)):
            error = (
                decode_array(content[key], f"{where}.{key}", like.ndim)
                if key in content
                else np.zeros(like.shape)
            )
            if error.shape != like.shape or (error < 0).any():
                raise CertificateError(
                    f"{where}.{key} must be non-negative, shape {like.shape}", got=error.shape
                )
            errors[key] = error
        if bias.shape[0] != weight.shape[0]:
            raise CertificateError(
                f"{where}: weight and bias do not fit", got=(weight.shape, bias.shape)
            )
        return Layer(weight, bias, **errors)


@dataclass(frozen=True, eq=False)
class Factor:
    """One exact affine step of a layer: x -> weight @ x + bias, where None is the identity or
    zero."""

    weight: Floats | None
    bias: Floats | None

    @cached_property
    def cut(self) -> Cut | None:
        """The weight, ready for exact products over its columns; the head's is used by every
        class."""
        return None if self.weight is None else Cut.of(self.weight)

    def to_json(self) -> dict[str, Any]:
        return {
            "weight": None if self.weight is None else encode_array(self.weight),
            "bias": None if self.bias is None else encode_array(self.bias),
        }

    @staticmethod
    def from_json(value: Any, where: str) -> Factor:
        content = mapping(value, where, need={"weight", "bias"})
        weight, bias = content["weight"], content["bias"]
        return Factor(
            None if weight is None else decode_array(weight, f"{where}.weight", 2),
            None if bias is None else decode_array(bias, f"{where}.bias", 1),
        )


Chain = tuple[Factor, ...]  # applied from the first to the last; together one affine layer
Source = tuple[Chain, ...]  # a ReLU between each two chains


@dataclass(frozen=True, eq=False)
class Loop:
    """The collapsed question: F, V, the box, the hole, ρ and c."""

    closed_loop: tuple[Layer, ...]
    lyapunov: tuple[Layer, ...]
    lower: Floats
    upper: Floats
    equilibrium: Floats
    hole_radius: float
    hole_norm: str
    rho: float
    positivity: float

    @property
    def n(self) -> int:
        return int(self.lower.shape[0])

    @cached_property
    def centre(self) -> Dyadic:
        """The equilibrium in exact numbers."""
        return Dyadic.of(self.equilibrium)

    def to_json(self) -> dict[str, Any]:
        return {
            "F": [layer.to_json() for layer in self.closed_loop],
            "V": [layer.to_json() for layer in self.lyapunov],
            **{key: encode_array(getattr(self, key)) for key in ("lower", "upper", "equilibrium")},
            **{
                key: getattr(self, key) for key in ("hole_radius", "hole_norm", "rho", "positivity")
            },
        }

    @staticmethod
    def from_json(value: Any, where: str) -> Loop:
        keys = {
            "F",
            "V",
            "lower",
            "upper",
            "equilibrium",
            "hole_radius",
            "hole_norm",
            "rho",
            "positivity",
        }
        content = mapping(value, where, need=keys)
        loop = Loop(
            _layers(content["F"], f"{where}.F"),
            _layers(content["V"], f"{where}.V"),
            lower=decode_array(content["lower"], f"{where}.lower", 1),
            upper=decode_array(content["upper"], f"{where}.upper", 1),
            equilibrium=decode_array(content["equilibrium"], f"{where}.equilibrium", 1),
            hole_radius=number(content["hole_radius"], f"{where}.hole_radius"),
            hole_norm=content["hole_norm"],
            rho=number(content["rho"], f"{where}.rho"),
            positivity=number(content["positivity"], f"{where}.positivity"),
        )
        loop._check(where)
        return loop

    def _check(self, where: str) -> None:
        n = self.n
        if not 0 < n <= MAX_DIMENSION or self.upper.shape != (n,) or self.equilibrium.shape != (n,):
            raise CertificateError(
                f"{where}: the box and the equilibrium must have one length", got=n
            )
        if (self.lower >= self.upper).any():
            raise CertificateError(f"{where}: the box must not be empty", got="lower >= upper")
        for name, layers, out in (("F", self.closed_loop, n), ("V", self.lyapunov, 1)):
            widths = [n, *(layer.weight.shape[0] for layer in layers)]
            if [layer.weight.shape[1] for layer in layers] != widths[:-1] or widths[-1] != out:
                raise CertificateError(
                    f"{where}.{name}: the layers do not fit together", got=widths
                )
        if self.hole_norm not in NORMS or self.hole_radius < 0:
            raise CertificateError(
                f"{where}: the hole must have a norm of {NORMS} and a radius >= 0",
                got=self.hole_norm,
            )
        if not 0 < self.rho <= 1 or self.positivity < 0:
            raise CertificateError(
                f"{where}: rho must lie in (0, 1], positivity must be >= 0", got=self.rho
            )


def layers_of(network: Any) -> tuple[Layer, ...]:
    """The layers of anything that has `.layers` with weight, bias and, maybe, their errors."""

    def filled(error: Any, like: Floats) -> Floats:
        return np.zeros(like.shape) if error is None else np.asarray(error, dtype=np.float64)

    return tuple(
        Layer(
            np.asarray(layer.weight, dtype=np.float64),
            np.asarray(layer.bias, dtype=np.float64),
            filled(getattr(layer, "weight_error", None), layer.weight),
            filled(getattr(layer, "bias_error", None), layer.bias),
        )
        for layer in network.layers
    )


def loop_of(problem: Any) -> Loop:
    """The certificate's copy of an engine's problem (anything with the same attributes)."""
    return Loop(
        layers_of(problem.closed_loop),
        layers_of(problem.lyapunov),
        lower=np.asarray(problem.lower, dtype=np.float64),
        upper=np.asarray(problem.upper, dtype=np.float64),
        equilibrium=np.asarray(problem.equilibrium, dtype=np.float64),
        hole_radius=float(problem.hole_radius),
        hole_norm=str(problem.hole_norm),
        rho=float(problem.rho),
        positivity=float(problem.positivity),
    )


def source_to_json(source: Source) -> list[list[dict[str, Any]]]:
    return [[factor.to_json() for factor in chain] for chain in source]


def source_from_json(value: Any, where: str) -> Source:
    chains = items(value, where)
    return tuple(
        tuple(
            Factor.from_json(f, f"{where}[{i}][{j}]")
            for j, f in enumerate(items(chain, f"{where}[{i}]"))
        )
        for i, chain in enumerate(chains)
    )


def _layers(value: Any, where: str) -> tuple[Layer, ...]:
    return tuple(
        Layer.from_json(layer, f"{where}[{i}]") for i, layer in enumerate(items(value, where))
    )


# ---- small readers, each with its place in the file in the message
# ----------------------------------------


def items(value: Any, where: str, limit: int = MAX_LAYERS) -> Sequence[Any]:
    if not isinstance(value, list) or not 0 < len(value) <= limit:
        raise CertificateError(
            f"{where} must be a list of 1 to {limit} entries", got=repr(value)[:80]
        )
    return value


def mapping(
    value: Any, where: str, need: set[str], may: set[str] | frozenset[str] = frozenset()
) -> dict[str, Any]:
    if not isinstance(value, dict) or not need <= set(value) <= need | may:
        got = sorted(value) if isinstance(value, dict) else type(value).__name__
        raise CertificateError(f"{where} must have the keys {sorted(need)}", got=got)
    return value


def number(value: Any, where: str) -> float:
    if (
        isinstance(value, bool)
        or not isinstance(value, int | float)
        or abs(value) > 1e300
        or not math.isfinite(value)
    ):
        raise CertificateError(f"{where} must be a finite number", got=repr(value)[:80])
    return float(value)


def text(value: Any, where: str) -> str:
    if not isinstance(value, str) or len(value) > 10_000:
        raise CertificateError(f"{where} must be a text", got=repr(value)[:80])
    return value
