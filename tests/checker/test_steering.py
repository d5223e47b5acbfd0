"""The steering that ships contracts as stated: tried with exact Fractions on small graphs."""

from __future__ import annotations

import math
import random
import re
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import pytest
from hand_loops import sealed_bytes, source
from steering_cases import LINEAR, linear, steered, with_part

from graphkeel import checker
from graphkeel.certificate.steering import linear_contraction
from graphkeel.checker.exact import Work
from graphkeel.checker.networks import read_source
from graphkeel.checker.steering import derive_steering, gain
from graphkeel.core.errors import CertificateError

Rows = list[list[Fraction]]


class Linear(NamedTuple):
    """A graph of complete parts, a linear model on it, and what was decided.

    In a part of m nodes, each with a loop, all entries of Ŝ are 1/m: rational, for any m."""

    parts: list[int]
    weight: Rows
    wanted: list[int]
    shares: list[Fraction]
    margin: Fraction
    numbers: dict[str, Fraction]
    hops: int

    def carried(self, values: Rows) -> Rows:
        """Ŝᴷ·H; Ŝ is symmetric, and idempotent on such a graph."""
        if not self.hops:
            return values
        found: Rows = []
        start = 0
        for size in self.parts:
            rows = values[start : start + size]
            mean = [sum(column, Fraction(0)) / size for column in zip(*rows, strict=True)]
            found += [mean] * size
            start += size
        return found

    def gradient(self, change: Rows) -> Rows:
        """∇V(Δ), by the definition of V; X and b are zero, as the margin takes all of them."""
        ratio = self.numbers["length"] / self.numbers["unit"]
        z = [[ratio * value for value in row] for row in self.carried(times(change, self.weight))]
        pulls = []
        for row, w, share in zip(z, self.wanted, self.shares, strict=True):
            missing = [max(Fraction(0), self.margin - row[w] + value) for value in row]
            missing[w] = Fraction(0)
            pull = [share * value for value in missing]
            pull[w] = -share * sum(missing)
            pulls.append(pull)
        back = self.carried(pulls)
        columns = [list(column) for column in zip(*self.weight, strict=True)]
        moved = times(back, columns)
        return [
            [ratio * value + self.numbers["ridge"] * own for value, own in zip(*pair, strict=True)]
            for pair in zip(moved, change, strict=True)
        ]

    def step(self, change: Rows) -> Rows:
        return [
            [own - self.numbers["step"] * value for own, value in zip(*pair, strict=True)]
            for pair in zip(change, self.gradient(change), strict=True)
        ]


def times(rows: Rows, weight: Rows) -> Rows:
    """H·Wᵀ."""
    return [
        [sum((a * b for a, b in zip(row, w, strict=True)), Fraction(0)) for w in weight]
        for row in rows
    ]


def apart(one: Rows, two: Rows) -> Fraction:
    """The squared distance."""
    pairs = [(a, b) for r, s in zip(one, two, strict=True) for a, b in zip(r, s, strict=True)]
    return sum(((a - b) ** 2 for a, b in pairs), Fraction(0))


def drawn(rng: random.Random, height: int, width: int, size: int = 1) -> Rows:
    return [
        [Fraction(rng.randint(-64, 64) * size, 16) for _ in range(width)] for _ in range(height)
    ]


def random_linear(rng: random.Random) -> Linear:
    parts = [rng.randint(1, 3) for _ in range(rng.randint(1, 3))]
    nodes = sum(parts)
    classes, width = rng.randint(2, 4), rng.randint(1, 3)
    weight = drawn(rng, classes, width)
    hops = rng.randint(0, 3)
    options = {
        "ridge": 2.0 ** rng.randint(-8, 2),
        "hops": hops,
        "length": 2.0 ** rng.randint(-2, 2),
        "unit": 2.0 ** rng.randint(-2, 2),
    }
    found: Any = linear_contraction(np.array(weight, dtype=float), **options)
    assert found is not None
    content = {"contraction": found, "features": None}
    head = read_source(source(([[float(w) for w in row] for row in weight], [0.0] * classes)), "")
    sentence = derive_steering(content, head, None, Work(10**9))
    numbers = said(sentence)
    assert numbers["factor"] <= 1 - (1 - Fraction(found["factor"])) * Fraction(99, 100)
    return Linear(
        parts,
        weight,
        [rng.randrange(classes) for _ in range(nodes)],
        [Fraction(rng.choice([0, 1, 4, 8, 8]), 8) for _ in range(nodes)],
        Fraction(rng.randint(-8, 40), 8),
        numbers,
        hops,
    )


def said(sentence: str) -> dict[str, Fraction]:
    """The numbers of the sentence itself: that is what is tried."""
    number = r"(\d+(?:\.\d+)?(?:e[-+]?\d+)?)"
    marks = {"step": "η = ", "factor": "at most 1 − ", "ridge": "λ = ", "length": "s = "}
    marks["unit"] = "ℓ = "
    found = {}
    for name, mark in marks.items():
        (text,) = re.findall(f"(?<!\\w){re.escape(mark)}{number}", sentence)
        found[name] = Fraction(text)
    return found | {"factor": 1 - found["factor"]}


@pytest.mark.parametrize("block", range(4))
def test_any_two_changes_come_nearer_by_the_factor_of_the_sentence(block: int) -> None:
    sharp = Fraction(0)
    for seed in range(25 * block, 25 * block + 25):
        rng = random.Random(seed)
        one = random_linear(rng)
        nodes, width = sum(one.parts), len(one.weight[0])
        for size in (1, 1, 100):
            here, there = drawn(rng, nodes, width, size), drawn(rng, nodes, width, size)
            before, after = apart(here, there), apart(one.step(here), one.step(there))
            assert after <= one.numbers["factor"] ** 2 * before, seed
            sharp = max(sharp, after / (one.numbers["factor"] ** 2 * before) if before else sharp)
    assert sharp > Fraction(1, 2)  # the bound is no idle one


def test_the_equilibrium_is_reached_and_v_is_least_there() -> None:
    rng = random.Random(5)
    one = random_linear(rng)._replace(margin=Fraction(3))
    one = one._replace(numbers=one.numbers | {"ridge": Fraction(2)})
    found: Any = linear_contraction(
        np.array(one.weight, dtype=float),
        ridge=2.0,
        hops=one.hops,
        length=float(one.numbers["length"]),
        unit=float(one.numbers["unit"]),
    )
    one = one._replace(numbers=one.numbers | {"step": Fraction(found["step"])})
    nodes, width = sum(one.parts), len(one.weight[0])
    ends = []
    for _ in range(2):
        change = drawn(rng, nodes, width)
        for _ in range(math.ceil(30 / (1 - found["factor"]))):
            change = [[value.limit_denominator(10**9) for value in row] for row in one.step(change)]
        ends.append(change)
    assert apart(*ends) < Fraction(1, 10**10)
    assert apart(one.gradient(ends[0]), drawn(rng, nodes, width, 0)) < Fraction(1, 10**8)


def test_the_smoothness_is_needed() -> None:
    """Two classes, one node: with L half as large the step would not contract."""
    weight = [[Fraction(1), Fraction(0)], [Fraction(0), Fraction(1)]]
    numbers = {name: Fraction(LINEAR[name]) for name in ("ridge", "length", "unit", "step")}
    one = Linear([1], weight, [0], [Fraction(1)], Fraction(100), numbers, 2)
    here, there = [[Fraction(0), Fraction(0)]], [[Fraction(1), Fraction(-1)]]
    assert apart(one.step(here), one.step(there)) == Fraction(1, 4) * apart(here, there)
    longer = one._replace(numbers=numbers | {"step": Fraction(1)})
    assert apart(longer.step(here), longer.step(there)) == 4 * apart(here, there)


@pytest.mark.parametrize("seed", range(30))
def test_the_writer_rounds_so_that_the_exact_check_holds(seed: int) -> None:
    """For weights and units of any size; and L is not much larger than it has to be."""
    rng = np.random.default_rng(seed)
    classes, width = int(rng.integers(2, 7)), int(rng.integers(1, 9))
    weight = rng.normal(size=(classes, width)) * 10.0 ** rng.integers(-12, 12)
    weight = weight.astype(np.float32) if seed % 2 else weight
    options = {"length": 10.0 ** rng.integers(-6, 6), "unit": 10.0 ** rng.integers(-6, 6)}
    gain_size = float(np.linalg.norm(weight - weight.mean(axis=0), 2) ** 2)
    largest = classes * gain_size * (options["length"] / options["unit"]) ** 2
    ridge = largest * 10.0 ** -rng.integers(0, 12)
    found = linear_contraction(weight, ridge=ridge, hops=2, **options)
    assert found is not None
    head = read_source(source((weight.astype(float).tolist(), [0.0] * classes)), "")
    sentence = derive_steering({"contraction": found, "features": None}, head, None, Work(10**9))
    assert "exactly one equilibrium" in sentence
    shown = (found["smoothness"] - ridge) / largest
    assert 1 - 1e-9 <= shown <= 1.13  # 7^(1/16)


def test_where_no_float_is_large_enough_nothing_is_claimed() -> None:
    weight = np.eye(2)
    assert linear_contraction(weight, ridge=1e-20, hops=2, length=1.0, unit=1.0) is None
    assert linear_contraction(1e30 * weight, ridge=1e-3, hops=2, length=1e9, unit=1.0) is None
    assert linear_contraction(1e119 * weight, ridge=1.0, hops=2, length=1e99, unit=1e-99) is None
    with pytest.raises(CertificateError):
        linear_contraction(1e121 * weight, ridge=1.0, hops=2, length=1.0, unit=1.0)
    with pytest.raises(CertificateError):
        linear_contraction(weight[:1], ridge=1.0, hops=2, length=1.0, unit=1.0)
    for wrong in (0.0, -1.0, math.nan, math.inf):
        with pytest.raises(CertificateError):
            linear_contraction(weight, ridge=wrong, hops=2, length=1.0, unit=1.0)
    zero = linear_contraction(0 * weight, ridge=0.5, hops=2, length=1.0, unit=1.0)
    assert zero is not None and zero["smoothness"] == 0.5 and zero["factor"] < 1


def test_the_trace_bounds_the_norm() -> None:
    rng = np.random.default_rng(0)
    for _ in range(50):
        weight = rng.integers(-8, 9, size=(rng.integers(2, 6), rng.integers(1, 6))).astype(float)
        head = read_source(source((weight.tolist(), [0.0] * len(weight))), "")
        n, power = gain(head, Work(10**9))
        sizes = np.linalg.svd(weight - weight.mean(axis=0), compute_uv=False)
        assert n == len(weight)
        assert float(power) == pytest.approx(float((sizes**32).sum()), rel=1e-9, abs=1e-9)


def test_what_a_reader_is_told() -> None:
    result = checker.check_bytes(sealed_bytes(steered()))
    assert result.accepted and result.steering.startswith("On every undirected graph")
    assert "Stated of the features that ship" in result.steering
    assert "V fell from 2 to 0 in 3 steps" in result.steering
    assert "and 7 passes of the model" in result.steering
    refused = checker.check_bytes(sealed_bytes(linear(factor=0.25)))
    assert not refused.accepted and refused.steering == ""
    plain = {name: value for name, value in steered().items() if name != "steering"}
    assert checker.check_bytes(sealed_bytes(plain)).steering == ""


def test_the_limit_on_arithmetic_holds_for_steering() -> None:
    content = {"contraction": LINEAR, "features": None}
    rows = [[2.0**-390 * (i + j + 1) for j in range(60)] for i in range(40)]
    head = read_source(source((rows, [0.0] * 40)), "")
    with pytest.raises(ArithmeticError):
        derive_steering(content, head, None, Work(10**5))


def test_a_part_for_another_head_is_refused() -> None:
    content = with_part(steered(), LINEAR, None)
    content["head"] = source(([[2.0, 0.0], [0.0, 2.0]], [0.0, 0.0]))
    assert not checker.check_bytes(sealed_bytes(content)).accepted
