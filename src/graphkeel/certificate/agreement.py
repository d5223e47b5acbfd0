"""The model's own answers on one graph, beside those of the layers that it was recognised as.

A model is recognised on a small random graph, and may answer otherwise on a large one. So it is run
on the graph in question, and each of its answers has to lie within rounding of the layers' answer.

Let M be the answer of the layers with |W_p| and |b_p| to |x|: no program that evaluates a layer as
sums of these products, in any order, loses more than γ = k·u of the layer's M, where u is the unit
roundoff of its precision and k counts the roundings on the way to one number. The losses of all
layers together are at most (Π(1 + γ) − 1)·M ≤ (e^Σγ − 1)·M at the last one. Four times k is
allowed: a program may multiply layers out, or go through other polynomials of Ŝ than its powers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from graphkeel.certificate.bounds import SLACK, UNIT, Floats, Ints, checked_terms, finite
from graphkeel.certificate.layers import Branches, Operator, row_slices
from graphkeel.core.errors import CertificateError

if TYPE_CHECKING:
    from torch import Tensor, nn

    from graphkeel.models.aggregation import Aggregation
    from graphkeel.models.frozen import FrozenModel


class Differs(Exception):
    """How a model, or a graph, differs from what is said of it, in words."""


@dataclass(frozen=True, eq=False)
class Comparison:
    """Answers of a model that differ from those of its layers by rounding alone.

    Attributes:
        precision: of the model's answers.
        gap: an upper bound of the largest difference from the layers in exact arithmetic.
        classes: of each node by the model, shape (N,).
    """

    precision: str
    gap: float
    classes: Ints


class RecognisedModel:
    """A model, and the layers that it was recognised as, on a graph with edges (2, E)."""

    def __init__(
        self, found: Aggregation, frozen: FrozenModel, edge_index: Tensor, nodes: int
    ) -> None:
        self.found, self.frozen, self.edge_index = found, frozen, edge_index
        self.layers = model_layers(found)
        self.operator = Operator.of(found.operator, edge_index.cpu().numpy(), nodes)

    def run(self, x: Tensor, which: str) -> Comparison:
        """Run the model on features (N, d), and compare its answers with those of the layers."""
        try:
            scores = self.frozen(x, self.edge_index)
        except Exception as error:  # whatever a model raises, nothing is claimed of it
            where = f"on this graph with {which} features"
            raise Differs(f"the model does not run {where}: {error}") from error
        return self.compare(x, scores, which)

    def compare(self, x: Tensor, scores: Tensor, which: str) -> Comparison:
        """The scores (N, n) that the model answered to features (N, d), beside those of the
        layers."""
        import torch

        precision = str(scores.dtype).removeprefix("torch.")
        if not scores.is_floating_point():
            raise Differs(f"the model answers in {precision}, not in floats")
        given = x.detach().to(scores.dtype).cpu()  # as the model reads them
        plain = given.float() if scores.dtype.itemsize < 4 else given
        kind = torch.finfo(scores.dtype)
        values, allowed = self._answers(plain.numpy(), kind.eps / 2, kind.tiny)
        lost = allowed * (UNIT / (kind.eps / 2 + UNIT))  # of what is allowed, by the values here
        return _compared(scores.double().cpu().numpy(), values, allowed, lost, which, precision)

    def compare_own(self, x: Tensor, scores: Tensor) -> Comparison:
        """As `compare`, of the given features. A model that counts its calls is refused: what two
        equal calls, on a single node with a loop, leave with two values."""
        loop = self.edge_index.new_zeros(2, 1)
        self.frozen(x[:1], loop)
        before = _plain_state(self.frozen.module)
        self.frozen(x[:1], loop)
        for name, value in _plain_state(self.frozen.module).items():
            if before.get(name) != value:
                what = "the model's answers may depend on the calls before"
                raise Differs(f"{what}: {name!a} counts them")
        return self.compare(x, scores, "the given")

    @np.errstate(all="ignore")  # what overflows is refused by `finite`
    def _answers(self, x: NDArray[Any], unit: float, least: float) -> tuple[Floats, Floats]:
        """The answers of the layers, and how far from them rounding may take the model's, shape
        (N, n) each. What underflow loses is below the unit roundoff of the least normal float."""
        values, sizes = _run(self.layers, self.operator, x, least)
        roundings = sum(_roundings(layer, self.operator.most) for layer in self.layers)
        allowed = finite(np.expm1(4 * roundings * (unit + UNIT)) * sizes * SLACK)
        return _as_output(values, allowed, self.found.output, unit)


def _run(
    layers: Sequence[Branches], operator: Operator, x: NDArray[Any], least: float
) -> tuple[Floats, Floats]:
    """The last layer's values, and M, shape (N, n) each."""
    value, size = x, x  # of the features, M is |x|
    for i, layer in enumerate(layers):
        shape = (len(x), len(layer[0][2]))
        total, sizes = np.zeros(shape), np.zeros(shape)
        for power, weight, bias in layer:
            moved, grown = _affine(np.maximum(value, 0.0) if i else x, size, weight, bias, least)
            for _ in range(power):
                moved, grown = operator.summed(moved), operator.summed(grown)
            total += moved
            sizes += grown
        value, size = finite(total), finite(sizes)
    return value, size


def _affine(
    x: NDArray[Any], size: NDArray[Any], weight: Floats, bias: Floats, least: float
) -> tuple[Floats, Floats]:
    """X·Wᵀ + b in float64, and the same without signs, some rows at a time."""
    value, sizes = np.empty((len(x), len(bias))), np.empty((len(x), len(bias)))
    for rows in row_slices(*x.shape):
        part = x[rows].astype(np.float64)
        value[rows] = part @ weight.T + bias
        grown = np.abs(part if size is x else size[rows]) + least
        sizes[rows] = grown @ np.abs(weight).T + np.abs(bias) + least
    return value, sizes


def _roundings(layer: Branches, most: int) -> int:
    """On the way from a layer's inputs to one of its values: products and sums."""
    farthest = max(power for power, _, _ in layer)
    return checked_terms(layer[0][1].shape[1]) + 8 + farthest * (most + 8) + len(layer)


def _as_output(values: Floats, allowed: Floats, output: str, unit: float) -> tuple[Floats, Floats]:
    """Values and allowance behind the model's own output. (Log-)softmax moves by at most twice
    the largest change of a logit, and loses a few units of what it adds up."""
    import torch

    from graphkeel.models.head import OUTPUTS

    if output == "logits":
        return values, allowed
    made = OUTPUTS[output](torch.from_numpy(values.copy())).numpy()
    added = values.shape[1] + 8 + 2 * np.ptp(values, axis=1) + np.abs(values).max(axis=1)
    widest = 2 * allowed.max(axis=1) + 4 * unit * added
    return finite(made), finite(np.broadcast_to(widest[:, None], made.shape))


def _compared(
    own: Floats, values: Floats, allowed: Floats, lost: Floats, which: str, precision: str
) -> Comparison:
    where = f"on this graph, with {which} features,"
    if own.shape != values.shape:
        raise Differs(f"{where} the model answers {own.shape}, its layers {values.shape}")
    if not np.isfinite(own).all():
        raise Differs(f"{where} the model's answers leave the range of {precision}")
    apart = np.abs(own - values)
    wrong = ~(apart <= allowed).all(axis=1)
    if wrong.any():
        at = np.unravel_index((apart - allowed).argmax(), apart.shape)
        raise Differs(
            f"{where} the model's answers at {wrong.sum()} of {len(own)} nodes are not those of the"
            f" layers that it was recognised as: they differ by up to {apart.max():.3g}, and by"
            f" {apart[at]:.3g} where the rounding of {precision} explains {allowed[at]:.3g}"
        )
    if not allowed.max() < np.ptp(values):
        raise Differs(
            f"{where} the rounding of {precision} may change the model's answers by up to"
            f" {allowed.max():.3g}, as much as they vary: they cannot be compared"
        )
    return Comparison(precision, float((apart + lost).max()), own.argmax(axis=1))


def model_layers(found: Aggregation) -> list[Branches]:
    """The layers of a recognised model as arrays: power, weight and bias of each branch."""
    return [
        [(branch.power, branch.weight.numpy(), branch.bias.numpy()) for branch in layer]
        for layer in found.layers
    ]


def given_array(x: Any) -> np.ndarray:
    """Features (N, d) as they are; numpy knows no bfloat16, and each is a float32."""
    plain = x.detach().cpu()
    return np.asarray((plain.float() if str(plain.dtype) == "torch.bfloat16" else plain).numpy())


def answers_difference(
    found: Aggregation,
    frozen: FrozenModel,
    x: Tensor,
    edge_index: Tensor,
    which: str = "the given",
) -> str | None:
    """How the model's answers to features (N, d) on a graph with edges (2, E) differ from those of
    its recognised layers; None if only by rounding."""
    try:
        RecognisedModel(found, frozen, edge_index, len(x)).run(x, which)
    except (Differs, CertificateError) as error:
        return str(error)
    return None


def _plain_state(module: nn.Module) -> dict[str, Any]:
    """Numbers and texts that a model keeps, by name: where two equal calls leave them with two
    values, its answers may depend on the calls before. Tensors that change are refused by the
    frozen model itself; what is kept outside of the model is not seen."""
    return {
        f"{place}.{name}".lstrip("."): value
        for place, part in module.named_modules()
        for name, value in vars(part).items()
        if type(value) in (int, float, bool, str)
    }
