"""The part of a certificate about the features that ship: written here, and measured here again.

A linear model's contraction is checked by `graphkeel.checker.steering` from the weights alone. What
holds of one graph needs the graph: the class of every node under the shipped features, by rigorous
rounding, and how far these are from the given ones."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from graphkeel.certificate.agreement import Differs, model_layers
from graphkeel.certificate.bounds import (
    SLACK,
    TINY,
    Bounded,
    Flags,
    Floats,
    Ints,
    checked_terms,
    finite,
)
from graphkeel.certificate.encoding import encode_array, read_arrays, sealed
from graphkeel.certificate.equilibrium import at_most
from graphkeel.certificate.layers import (
    Branches,
    Operator,
    are_edges,
    are_floats,
    is_undirected,
    row_slices,
    run_layers,
    through_rows,
)
from graphkeel.certificate.sources import WriterSettings
from graphkeel.checker import Rejected, Unreadable
from graphkeel.checker.exact import float_above
from graphkeel.checker.networks import read_source
from graphkeel.checker.steering import SYMMETRIC, derive_steering, gain
from graphkeel.core.digests import arrays_sha256
from graphkeel.core.errors import CertificateError

if TYPE_CHECKING:
    from graphkeel.models.aggregation import Aggregation

STEERING = "steering.safetensors"  # beside certificate.json


@dataclass(frozen=True, eq=False)
class ShippedFeatures:
    """A graph, the features that ship in place of the given ones, and what was decided.

    Attributes:
        x: given features, shape (N, d).
        edges: from the first row's nodes to the second row's, shape (2, E).
        features: float32 or float64, shape (N, d).
        wanted: the decided class of every node, int64, shape (N,).
    """

    x: NDArray[Any]
    edges: Ints
    features: NDArray[Any]
    wanted: Ints

    def __post_init__(self) -> None:
        size = len(self.x)
        fits = (
            size > 0
            and are_floats(self.x)
            and self.features.shape == self.x.shape
            and self.features.dtype in (np.float32, np.float64)
            and self.wanted.shape == (size,)
            and self.wanted.dtype == np.int64
            and are_edges(self.edges, size)
        )
        if not fits:
            raise CertificateError("the stored features do not fit the graph")

    def sha256(self) -> str:
        """SHA-256 of dtype, shape and bytes of the features and of the decided classes."""
        kind = "<f4" if self.features.dtype == np.float32 else "<f8"
        return arrays_sha256([(self.features, kind), (self.wanted, "<i8")])

    @np.errstate(all="ignore")  # what overflows is refused by `finite`
    def measured(
        self, layers: Sequence[Branches], operator: str, slack: float = 1.0
    ) -> dict[str, Any]:
        """Nodes, a lower bound of those answered as decided, those with another feature than
        given, and an upper bound of the median of |x′ − x|/|x|."""
        certain = self.as_decided(layers, operator, slack)
        changed = self._changed()
        return {
            "nodes": len(self.x),
            "as_decided": int(certain.sum()),
            "changed": int(changed.sum()),
            "median_change": self._median_change(changed),
        }

    @np.errstate(all="ignore")
    def as_decided(self, layers: Sequence[Branches], operator: str, slack: float = 1.0) -> Flags:
        """Where the layers certainly answer the decided class, shape (N,)."""
        widths = {weight.shape[1] for _, weight, _ in layers[0]}
        classes = len(layers[-1][0][2])
        if widths != {self.x.shape[1]} or not 0 <= self.wanted.min() <= self.wanted.max() < classes:
            raise CertificateError("the stored features do not fit the model")
        aggregation = Operator.of(operator, self.edges, len(self.x))
        answer = run_layers(layers, aggregation, self._through)
        best, clear = answer.clear_classes(slack)
        return np.asarray(clear & (best == self.wanted))

    def _through(self, weight: Floats, bias: Floats) -> Bounded:
        """X′·Wᵀ + b, shape (N, out)."""
        return through_rows(
            lambda rows: Bounded.exact(self.features[rows]), len(self.x), weight, bias
        )

    def _changed(self) -> Flags:
        """Exact: no two floats of different value are equal in float64."""
        found = np.empty(len(self.x), dtype=np.bool_)
        for rows in row_slices(*self.x.shape):
            here, there = self.x[rows].astype(np.float64), self.features[rows].astype(np.float64)
            found[rows] = (here != there).any(axis=1)
        return found

    def _median_change(self, changed: Flags) -> float:
        """An upper bound; where x = 0, relative to the median length of the other features."""
        checked_terms(self.x.shape[1])
        longest, shortest = np.empty(len(self.x)), np.empty(len(self.x))
        for rows in row_slices(*self.x.shape):
            here = self.x[rows].astype(np.float64)
            apart = self.features[rows].astype(np.float64) - here
            longest[rows] = np.sqrt((apart * apart).sum(axis=1) * SLACK + TINY)
            squares = finite((here * here).sum(axis=1))  # infinity would make a change look small
            shortest[rows] = np.sqrt(np.maximum(squares - TINY, 0.0)) / SLACK
        nonzero = self.x.any(axis=1)
        known = np.sort(shortest[nonzero])
        typical = known[(len(known) - 1) // 2] if len(known) else 1.0
        lengths = np.where(nonzero, shortest, typical)
        share = np.divide(longest, lengths, out=np.zeros(len(self.x)), where=changed)
        return float(finite(np.median(finite(share)) * SLACK))


def with_steering(
    certificate: Mapping[str, Any],
    layers: Sequence[Branches],
    operator: str,
    shipped: ShippedFeatures,
    *,
    fall: Sequence[float] = (),
    passes: int = 0,
    contraction: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    facts = shipped.measured(layers, operator, WriterSettings().rounding)
    facts["median_change"] *= SLACK
    facts |= {"fall": [float(value) for value in fall], "passes": int(passes)}
    facts["sha256"] = shipped.sha256()
    stated = None if contraction is None else dict(contraction)
    return _stating(certificate, {"contraction": stated, "features": facts})


def without_features(certificate: Mapping[str, Any]) -> dict[str, Any]:
    """The certificate without what it says of the features that ship; a contraction stays."""
    contraction = (certificate.get("steering") or {}).get("contraction")
    if contraction is not None:
        return _stating(certificate, {"contraction": contraction, "features": None})
    return sealed({key: value for key, value in certificate.items() if key != "steering"})


def _stating(certificate: Mapping[str, Any], content: dict[str, Any]) -> dict[str, Any]:
    """The sentence is derived by the checker's own code."""
    try:
        head = read_source(certificate["head"], "the head")
        sentence = derive_steering(content, head, certificate.get("graph"), WriterSettings().work())
    except (Unreadable, Rejected, ArithmeticError) as error:
        raise CertificateError("steering cannot be certified", got=str(error)) from None
    return sealed({**certificate, "steering": {**content, "sentence": sentence}})


def linear_contraction(
    weight: Floats, *, ridge: float, hops: int, length: float, unit: float
) -> dict[str, Any] | None:
    """L, the step 2/(L + λ) and its factor for a linear model with the weight (n, d), rounded so
    that the exact check holds; None where no float below one is large enough."""
    given = [float(ridge), float(length), float(unit)]
    if not all(0 < value < math.inf for value in given):
        raise CertificateError("λ, s and ℓ of steering must be positive", got=given)
    content = [[{"weight": encode_array(weight), "bias": None}]]
    try:
        n, power = gain(read_source(content, "the head"), WriterSettings().work())
        smoothness, step, factor = _rounded(given, n, power)
    except (Unreadable, Rejected) as error:
        raise CertificateError("steering cannot be certified", got=str(error)) from None
    except ArithmeticError:  # numbers beyond the range of floats
        return None
    if not factor < 1:
        return None
    numbers = {"ridge": given[0], "length": given[1], "unit": given[2]}
    return {**numbers, "hops": int(hops), "smoothness": smoothness, "step": step, "factor": factor}


def _rounded(given: list[float], n: int, power: Fraction) -> tuple[float, float, float]:
    """L rounded up, the step 2/(L + λ), and the factor of that very step rounded up; of λ, s, ℓ."""
    ridge, length, unit = map(Fraction, given)
    smoothness = float_above(ridge + n * (length / unit) ** 2 * _root_above(power, 4))
    step = float(2 / (Fraction(smoothness) + ridge))
    ends = (1 - Fraction(step) * ridge, 1 - Fraction(step) * Fraction(smoothness))
    return smoothness, step, float_above(max(map(abs, ends)))


def _root_above(value: Fraction, times: int) -> Fraction:
    """The square root, taken several times, each rounded up by a part in 2⁶⁴ or less."""
    for _ in range(times):
        small = value.denominator.bit_length() - value.numerator.bit_length()
        shift = 64 + max(small, 0)
        scaled = -(-(value.numerator << 2 * shift) // value.denominator)
        value = Fraction(math.isqrt(scaled - 1) + 1, 1 << shift) if scaled else value
    return value


def compare_linear(
    weight: np.ndarray, hops: int, found: Aggregation, edges: np.ndarray | None
) -> None:
    """A model, and its graph with edges (2, E), have to be Ŝᴷ·X·Wᵀ + b with the symmetric Ŝ of an
    undirected graph."""
    if found.operator not in SYMMETRIC:
        wrong = f"not with {found.operator!r}"
        raise Differs(f"steering contracts with a symmetric aggregation, {wrong}")
    if found.output != "logits":
        raise Differs(f"steering contracts in logits, and the model gives {found.output}")
    layers = model_layers(found)
    used = [(power, own) for layer in layers for power, own, _ in layer if own.any()]
    if len(layers) != 1 or len(used) != 1:
        raise Differs("steering contracts for models that are linear with a single power of Ŝ")
    power, own = used[0]
    if power != hops or not np.array_equal(own, weight):
        what = "the model's hops or weights"
        raise Differs(f"{what} are not those of steering: {power}, not {hops}")
    if edges is not None and not is_undirected(edges):
        what = "the graph is directed"
        raise Differs(f"{what}, and steering is shown to contract on undirected ones only")


def read_shipped(
    stored: Path | Mapping[str, Any], x: NDArray[Any], edges: NDArray[np.int64]
) -> ShippedFeatures:
    return ShippedFeatures(x, edges, *read_arrays(stored, "steering", ("features", "wanted")))


def compare_features(
    stated: Mapping[str, Any], shipped: ShippedFeatures, layers: Sequence[Branches], operator: str
) -> None:
    """The features have to show all that is stated of them."""
    if stated["sha256"] != shipped.sha256():
        raise Differs("the stored features are not those that the certificate names")
    found = shipped.measured(layers, operator)
    for name in ("nodes", "changed"):
        if stated[name] != found[name]:
            shown = f"{found[name]} with the stored features, not {stated[name]} as stated"
            raise Differs(f"{name} is {shown}")
    if stated["as_decided"] > found["as_decided"]:
        raise Differs(
            f"{found['as_decided']} nodes are shown to be answered as decided with the stored"
            f" features, not {stated['as_decided']} as stated"
        )
    if stated["median_change"] < found["median_change"]:
        raise Differs(
            f"the median change of the features is up to {found['median_change']:.6g}, not"
            f" {stated['median_change']:.6g} as stated"
        )


def features_sentence(stated: Mapping[str, Any]) -> str:
    """The sentence about the features that ship; upper bounds are rounded up."""
    return (
        f"With the features that ship, {stated['as_decided']} of {stated['nodes']} nodes certainly"
        f" have the decided class; {stated['changed']} features are not the given ones, and the"
        f" median change is at most {at_most(stated['median_change'])} of a feature's length."
    )
