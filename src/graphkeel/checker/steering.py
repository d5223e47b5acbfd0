"""Steering, the features that ship: a contraction factor for linear models (proof format, 9).

The model is z = (Ŝᴷ·X′·Wᵀ + b)/ℓ with the head's W, Ŝ the symmetric normalisation of an undirected
graph, so that |Ŝ|₂ ≤ 1. With n classes and W̄ = W minus its mean row, the gradient of V is Lipschitz
with L ≥ λ + n·(s/ℓ)²·|W̄|₂², and V is λ-strongly convex: Δ ↦ Δ − η∇V(Δ) contracts with the factor
max(|1 − ηλ|, |1 − ηL|). As |W̄|₂³² ≤ tr((W̄W̄ᵀ)¹⁶), no root is taken.
"""

from fractions import Fraction
from itertools import pairwise
from typing import Any

from .conclusion import decimal
from .exact import Matrix, Work, scaled
from .limits import MOST_STEPS
from .networks import Source, collapsed
from .reading import Rejected, Unreadable, mapping, number, same

SYMMETRIC = {"symmetric", "symmetric, loops added", "symmetric, loops removed"}
_NUMBERS = ("ridge", "length", "unit", "smoothness", "step", "factor")
_COUNTS = ("nodes", "as_decided", "changed", "passes")
_FACTS = {*_COUNTS, "median_change", "fall", "sha256"}


def check_steering(value: Any, head: Source, graph: Any, work: Work) -> str:
    """Rejected unless the head's weights give what `steering` states; its sentence."""
    content = mapping(value, "steering", {"contraction", "features", "sentence"})
    sentence = derive_steering(content, head, graph, work)
    same(content["sentence"], sentence, "what is said of steering")
    return sentence


def derive_steering(content: Any, head: Source, graph: Any, work: Work) -> str:
    """The sentence; used by the check, and by whoever writes a certificate."""
    said = []
    if content["contraction"] is not None:
        said.append(_contraction(content["contraction"], head, graph, work))
    if content["features"] is not None:
        said.append(_features(content["features"]))
    if not said:
        raise Unreadable("steering: nothing is stated")
    return " ".join(said)


def _contraction(value: Any, head: Source, graph: Any, work: Work) -> str:
    where = "steering.contraction"
    content = mapping(value, where, {*_NUMBERS, "hops"})
    hops = content["hops"]
    if type(hops) is not int or not 0 <= hops < 1024:
        raise Unreadable(f"{where}: hops is a small integer")
    floats = {name: number(content[name], f"{where}.{name}") for name in _NUMBERS}
    if not min(floats.values()) > 0:
        raise Rejected(f"{where}: every number has to be positive")
    operator = graph.get("operator") if isinstance(graph, dict) else None
    if operator not in {None, *SYMMETRIC}:
        raise Rejected(f"{where}: the graph's aggregation is not the symmetric one")
    ridge, length, unit, smoothness, step, factor = map(Fraction, floats.values())
    classes, power = gain(head, work)
    bound = (smoothness - ridge) * unit**2 / (classes * length**2)  # of |W̄|₂²
    if bound < 0 or bound**16 < power:
        raise Rejected(f"{where}: the smoothness L is not shown by the head's weights")
    if factor >= 1:  # so that the step is below 2/L
        raise Rejected(f"{where}: the factor is not below one")
    if max(abs(1 - step * ridge), abs(1 - step * smoothness)) > factor:
        raise Rejected(f"{where}: the factor is smaller than L, λ and the step give")
    return (
        "On every undirected graph, of any size, for the linear model z = (ŜᴷX′Wᵀ + b)/ℓ with the"
        f" symmetric normalisation Ŝ, K = {hops} and the head's W and b, for any wanted classes w,"
        " weights 0 ≤ p ≤ 1 and margin μ: the step Δ ↦ Δ − η∇V(Δ), η ="
        f" {floats['step']!r}, leaves at most 1 − {decimal(1 - factor, up=False)} of the distance"
        " of any two Δ. So it has exactly one equilibrium, reached from anywhere in the limit, and"
        " V is least there: no other features miss less margin at the same or a smaller change."
        " Here Δ = (X′ − X)/s and V(Δ) = ½Σ_v p_v Σ_k max(0, μ − (z_v,w − z_v,k))² + ½λ|Δ|², over k"
        f" ≠ w(v), with λ = {floats['ridge']!r}, s = {floats['length']!r}, ℓ = {floats['unit']!r}."
    )


def gain(head: Source, work: Work) -> tuple[int, Fraction]:
    """The number n of classes, and tr((W̄W̄ᵀ)¹⁶)."""
    if len(head) != 1:
        raise Rejected("steering.contraction: the head is no single affine layer")
    weight = collapsed(head, "steering: the head", work)[0].weight
    n = weight.height
    if n < 2:
        raise Rejected("steering.contraction: there is one class only")
    centred = _times(Matrix([[n * (i == j) - 1 for j in range(n)] for i in range(n)]), weight, work)
    # That is n·W̄.
    gram = _times(centred, Matrix(centred.columns, centred.exp), work)
    for _ in range(3):
        gram = _times(gram, gram, work)
    work.spend(n * n, 2 * gram.bits)
    square = sum(value * value for row in gram.rows for value in row)  # it is symmetric
    return n, scaled(square, 2 * gram.exp) / n**32


def _times(left: Matrix, right: Matrix, work: Work) -> Matrix:
    work.spend(left.height * left.width * right.width, left.bits + right.bits)
    return left @ right


def _features(value: Any) -> str:
    """The sentence about the features that ship, without the model and the graph."""
    where = "steering.features"
    content = mapping(value, where, _FACTS)
    nodes, decided, changed, passes = (content[name] for name in _COUNTS)
    whole = all(type(content[name]) is int and 0 <= content[name] < 2**53 for name in _COUNTS)
    digest = content["sha256"]
    hexadecimal = type(digest) is str and len(digest) == 64 and set(digest) <= {*"0123456789abcdef"}
    if not whole or not hexadecimal:
        raise Unreadable(f"{where}: counts are integers ≥ 0, and sha256 has 64 hex digits")
    median = Fraction(number(content["median_change"], f"{where}.median_change"))
    if max(decided, changed) > nodes or median < 0 or not nodes:
        raise Rejected(f"{where}: more nodes are counted than there are, or a size is negative")
    fall = content["fall"]
    if not isinstance(fall, list) or len(fall) > MOST_STEPS:
        raise Unreadable(f"{where}: fall is a list of at most {MOST_STEPS} numbers")
    values = [Fraction(number(entry, f"{where}.fall")) for entry in fall]
    if any(after > before for before, after in pairwise([*values, Fraction(0)])):
        raise Rejected(f"{where}: V rises, or is negative")
    text = (
        "Stated of the features that ship, and checked only with the model and the graph: the model"
        f" answers at least {decided} of {nodes} nodes as decided; {changed} of {nodes} features"
        f" are changed, and the median change is at most {decimal(median)} of a feature's length."
    )
    if not values:
        return text
    return text + (
        f" Recorded: V fell from {decimal(values[0], digits=6)} to {decimal(values[-1], digits=6)}"
        f" in {len(values) - 1} steps, at some of which the price of a change may have been"
        f" lowered, and {passes} passes of the model; that it never rises is checked, that it was"
        " computed is not."
    )
