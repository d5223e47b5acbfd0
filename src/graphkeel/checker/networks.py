"""The shipped networks and what they compose to.

A *source network* is what ships: layers with a ReLU between each two, each layer a product of
affine factors (weight, bias), where null stands for the identity or for zero. The controller's
last layer and the head's first one have no ReLU between them, so C∘f is again such a network;
multiplied out it has one weight and one bias a layer, whatever the number of features.
"""

from itertools import pairwise
from typing import Any, NamedTuple

from .exact import Matrix, Vector, Work, rise
from .limits import LONGEST_PRODUCT, MOST_BITS
from .reading import Unreadable, items, mapping, matrix, vector


class Layer(NamedTuple):
    """x → weight·x + bias."""

    weight: Matrix
    bias: Vector

    def apply(self, point: Vector) -> Vector:
        return self.weight.apply(point) + self.bias


Factor = tuple[Matrix | None, Vector | None]  # weight and bias
Source = list[list[Factor]]
Network = list[Layer]


def read_source(value: Any, where: str) -> Source:
    """A source network from its JSON."""
    layers = [items(layer, where, most=8) for layer in items(value, where, most=64)]
    return [[_factor(part, where) for part in layer] for layer in layers]


def _factor(value: Any, where: str) -> Factor:
    content = mapping(value, where, {"weight", "bias"})
    weight = None if content["weight"] is None else matrix(content["weight"], f"{where}.weight")
    bias = None if content["bias"] is None else vector(content["bias"], f"{where}.bias")
    return weight, bias


def composed(controller: Source, head: Source) -> Source:
    """head∘controller."""
    return [*controller[:-1], [*controller[-1], *head[0]], *head[1:]]


def collapsed(source: Source, where: str, work: Work) -> Network:
    """One weight and one bias a layer."""
    network: Network = []
    for factors in source:
        network.append(_product(factors, where, work))
        weights = [layer.weight for layer in network]
        memory = sum(weight.height * weight.width * weight.bits for weight in weights)
        if sum(weight.bits for weight in weights) > LONGEST_PRODUCT or memory > MOST_BITS:
            raise Unreadable(f"{where}: products of its weights are too long")
    if any(after.weight.width != before.weight.height for before, after in pairwise(network)):
        raise Unreadable(f"{where}: the layers do not fit together")
    return network


def _product(factors: list[Factor], where: str, work: Work) -> Layer:
    """The map of a layer, multiplied from its end, so that features are summed away first."""
    product: Matrix | None = None
    total: Vector | None = None
    for weight, bias in reversed(factors):
        if bias is not None:
            moved = bias if product is None else product.apply(bias)
            total = moved if total is None else total + moved
        if weight is not None and product is not None:
            products = product.height * product.width * weight.width
            work.spend(products, product.bits + weight.bits)
            product = product @ weight
        product = weight if product is None else product
    if product is None:
        raise Unreadable(f"{where}: a layer has no weight")
    layer = Layer(product, Vector([0] * product.height) if total is None else total)
    if len(layer.bias) != product.height:
        raise Unreadable(f"{where}: the factors of a layer do not fit together")
    return layer


def source_value(source: Source, point: Vector) -> Vector:
    """The value of a source network, factor by factor: no product of matrices is formed."""
    for i, factors in enumerate(source):
        for weight, bias in factors:
            point = point if weight is None else weight.apply(point)
            point = point if bias is None else point + bias
        point = point if i + 1 == len(source) else point.each(rise)
    return point


def value_at(network: Network, point: Vector) -> Vector:
    """The network's value at one point."""
    return source_value([[layer] for layer in network], point)
