"""The checker's bounds lie above every sampled value, in floats and exactly, for random networks
with errors."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphkeel.certificate.bounds import RowBound
from graphkeel.certificate.collapse import value_at
from graphkeel.certificate.dyadic import Dyadic
from graphkeel.certificate.exact_bounds import exact_upper
from graphkeel.certificate.rows import Row, compose, rows_of
from graphkeel.certificate.schema import Layer, Loop


def layer(rng: np.random.Generator, out: int, inp: int, error: float) -> Layer:
    weight, bias = rng.normal(size=(out, inp)), rng.normal(size=out)
    return Layer(weight, bias, error * rng.random((out, inp)), error * rng.random(out))


def network(rng: np.random.Generator, widths: list[int], error: float) -> tuple[Layer, ...]:
    return tuple(layer(rng, b, a, error) for a, b in pairwise(widths))


def random_loop(
    seed: int, hidden_f: list[int], hidden_v: list[int], *, n: int = 2, error: float = 0.0, **kw
) -> Loop:  # type: ignore[no-untyped-def]
    rng = np.random.default_rng(seed)
    Y = rng.normal(size=n)
    options = {"hole_radius": 0.1, "hole_norm": "inf", "rho": 0.9, "positivity": 0.1, **kw}
    return Loop(
        network(rng, [n, *hidden_f, n], error),
        network(rng, [n, *hidden_v, 1], error),
        lower=Y - 1,
        upper=Y + 1,
        equilibrium=Y,
        **options,
    )


def perturbed(
    layers: tuple[Layer, ...], rng: np.random.Generator
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Some network within the error bounds, often at their ends."""

    def moved(value: np.ndarray, error: np.ndarray) -> np.ndarray:
        return value + error * rng.choice([-1.0, -0.5, 0.0, 1.0], size=value.shape)

    return [(moved(la.weight, la.weight_error), moved(la.bias, la.bias_error)) for la in layers]


def evaluate(layers: list[tuple[np.ndarray, np.ndarray]], points: np.ndarray) -> np.ndarray:
    for k, (weight, bias) in enumerate(layers):
        points = points @ weight.T + bias
        points = np.maximum(points, 0) if k + 1 < len(layers) else points
    return points


def true_row(loop: Loop, name: str, points: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    F, V = perturbed(loop.closed_loop, rng), perturbed(loop.lyapunov, rng)
    if name == "decrease":
        return (evaluate(V, evaluate(F, points)) - loop.rho * evaluate(V, points))[:, 0]
    if name == "positivity":
        return -evaluate(V, points)[:, 0]
    if name[0] in "+-":
        sign, axis = (1 if name[0] == "+" else -1), int(name[1:])
        return (
            loop.positivity * sign * (points[:, axis] - loop.equilibrium[axis])
            - evaluate(V, points)[:, 0]
        )
    side, axis = name.split()[0], int(name.split()[1])
    image = evaluate(F, points)[:, axis]
    return image - loop.upper[axis] if side == "upper" else loop.lower[axis] - image


def random_lens(row: Row, rng: np.random.Generator) -> np.ndarray | None:
    """Random θ >= 0 on the units that may carry one, none on the others; V∘F and V need a hidden
    layer each."""
    if len(row.branches) != 2:
        return None
    sure = row.branches[0].final >= row.branches[0].final_error
    theta = rng.random((row.lens_width, row.lens_width)) * rng.choice(
        [0.0, 1.0], size=(row.lens_width, 1)
    )
    return theta * sure[:, None]


SHAPES = st.sampled_from([([], []), ([], [3]), ([4], []), ([4], [3]), ([4, 3], [3]), ([3], [4, 2])])


@settings(max_examples=120, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    shapes=SHAPES,
    error=st.sampled_from([0.0, 1e-16, 0.01]),
    size=st.sampled_from([1.0, 0.2, 1e-3, 0.0]),
    condition=st.sampled_from(["decrease", "positivity", "invariance"]),
    c=st.sampled_from([0.0, 0.3]),
    stored=st.booleans(),
)
def test_no_sample_exceeds_the_bounds(
    seed: int,
    shapes: tuple[list[int], list[int]],
    error: float,
    size: float,
    condition: str,
    c: float,
    stored: bool,
) -> None:
    loop = random_loop(seed, *shapes, error=error, positivity=c)
    rng = np.random.default_rng(seed)
    lower = loop.lower + rng.random(2) * (2 - 2 * size)
    upper = np.minimum(lower + 2 * size, loop.upper)
    points = rng.uniform(lower, upper, size=(200, 2))
    points[:4] = np.array([[lower[0], lower[1]], [lower[0], upper[1]], [upper[0], lower[1]], upper])
    for row in rows_of(loop, condition):
        slopes = rng.random(row.first_width) if stored else None
        lens = random_lens(row, rng) if stored and row.lens_width else None
        bound, slack = RowBound(row, loop.lower, loop.upper).upper(
            lower[None],
            upper[None],
            None if slopes is None else slopes[None],
            None if lens is None else lens[None],
        )
        exact = exact_upper(row, lower, upper, slopes, lens)
        # Two sound bounds of one relaxation: they differ by their roundings, either way, as wider
        # enclosures of a unit may tighten a bound whose stored slopes are not those of the
        # enclosure.
        assert abs(float(Fraction(bound[0]) - exact)) <= 1e-8 * max(1.0, abs(bound[0]))
        assert (true_row(loop, row.name, points, rng) <= bound[0] + 1e-12).all()
        assert slack[0] < 1e-11 * max(1.0, abs(bound[0])) * 100
        assert (true_row(loop, row.name, points, rng) <= float(exact) + 1e-12).all()


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    shapes=SHAPES,
    condition=st.sampled_from(["decrease", "positivity", "invariance"]),
)
def test_at_a_point_the_bound_lies_above_the_exact_value_by_no_more_than_rounding(
    seed: int, shapes: tuple[list[int], list[int]], condition: str
) -> None:
    """On a box of one point nothing is relaxed but rounding: exact value <= bound <= exact value +
    a little."""
    loop = random_loop(seed, *shapes, positivity=0.0)
    point = loop.lower + 2 * np.random.default_rng(seed).random(2)
    exact_layers = [
        [(Dyadic.of(a.weight), Dyadic.of(a.bias)) for a in net]
        for net in (loop.closed_loop, loop.lyapunov)
    ]
    image, here = (value_at(tuple(layers), Dyadic.of(point)) for layers in exact_layers)
    after = value_at(tuple(exact_layers[1]), image).fraction()
    values = {
        "decrease": after - Fraction(loop.rho) * here.fraction(),
        "positivity": -here.fraction(),
    }
    for i, value in enumerate(image.fractions()):
        values[f"upper {i}"] = value - Fraction(loop.upper[i])
        values[f"lower {i}"] = Fraction(loop.lower[i]) - value
    for row in rows_of(loop, condition):
        bound = RowBound(row, loop.lower, loop.upper).upper(point[None], point[None])[0][0]
        assert values[row.name] <= Fraction(bound)
        assert float(Fraction(bound) - values[row.name]) < 1e-9 * max(1.0, abs(bound))


def test_float_and_exact_bounds_agree_to_rounding() -> None:
    loop = random_loop(3, [8], [8], n=3)
    row = rows_of(loop, "decrease")[0]
    bound = RowBound(row, loop.lower, loop.upper).upper(loop.lower[None], loop.upper[None])[0][0]
    exact = float(exact_upper(row, loop.lower, loop.upper))
    assert exact <= bound <= exact + 1e-11 * max(1, abs(exact))


def test_a_hand_computed_bound() -> None:
    """g(y) = relu(y) on [-1, 1]: the upper line is (y + 1)/2, so the bound is 1 at y = 1; minus 2
    is the constant."""
    one, zero = np.ones((1, 1)), np.zeros(1)
    plain = Layer(one, zero, np.zeros((1, 1)), zero)
    loop = Loop(
        (plain, plain),
        (plain, plain),
        np.array([-1.0]),
        np.array([1.0]),
        zero,
        0.0,
        "inf",
        1.0,
        0.0,
    )
    upper, lower = rows_of(loop, "invariance")
    assert exact_upper(upper, np.array([-1.0]), np.array([1.0])) == 0  # relu(y) - 1 <= 0
    # −1 − relu(y) with the lower line y/2 (the default slope of a symmetric unit): at most −1/2.
    assert exact_upper(lower, np.array([-1.0]), np.array([1.0])) == Fraction(-1, 2)
    assert exact_upper(lower, np.array([-1.0]), np.array([1.0]), np.array([0.0])) == -1


@given(seed=st.integers(0, 10**6), error=st.sampled_from([0.0, 0.1]))
@settings(max_examples=30, deadline=None)
def test_a_composed_layer_covers_the_exact_composition(seed: int, error: float) -> None:
    rng = np.random.default_rng(seed)
    outer, inner = layer(rng, 3, 4, error), layer(rng, 4, 2, error)
    both = compose(outer, inner)
    (W1, b1), (W0, b0) = perturbed((outer, inner), rng)
    assert (np.abs(W1 @ W0 - both.weight) <= both.weight_error + 1e-14).all()
    assert (np.abs(W1 @ b0 + b1 - both.bias) <= both.bias_error + 1e-14).all()


def test_overflow_never_proves() -> None:
    loop = random_loop(0, [3], [3])
    huge = Layer(np.full((3, 2), 1e200), np.zeros(3), np.zeros((3, 2)), np.zeros(3))
    loop = Loop((huge, *loop.closed_loop[1:]), (huge, *loop.lyapunov[1:]), *vars_after(loop))
    row: Row = rows_of(loop, "decrease")[0]
    big = RowBound(row, loop.lower, loop.upper).upper(loop.lower[None], loop.upper[None])[0]
    assert not (big <= 0).any()


def vars_after(loop: Loop) -> tuple:  # type: ignore[type-arg]
    return (
        loop.lower,
        loop.upper,
        loop.equilibrium,
        loop.hole_radius,
        loop.hole_norm,
        loop.rho,
        loop.positivity,
    )


@pytest.mark.parametrize("boxes", [0, 1, 1000])
def test_batches_of_any_size(boxes: int) -> None:
    loop = random_loop(1, [5], [5])
    row = rows_of(loop, "decrease")[0]
    lower = np.tile(loop.lower, (boxes, 1))
    upper = np.tile(loop.upper, (boxes, 1))
    bounds = RowBound(row, loop.lower, loop.upper).upper(lower, upper)[0]
    assert bounds.shape == (boxes,)
    assert np.ptp(bounds) < 1e-12 if boxes else True
