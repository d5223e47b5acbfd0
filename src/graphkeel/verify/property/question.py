"""The question about a network: does an input of a box satisfy some conjunction of inequalities?

A property is a disjunction of *cases*; a case is a box for the inputs x and inequalities

    s_j(x) = a_j·x + b_j·N(x) + c_j ≥ 0,

all of them non-strict. They describe a violation: the property holds where no input satisfies any
case. Numbers of the file are decimal, hence rational. A float that stands for one of them is
rounded so that the case gets larger, never smaller: what is shown of the floats holds of the
decimals; and a counterexample is tested against the decimals."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from graphkeel.core.errors import ProblemError
from graphkeel.verify.problem import Array
from graphkeel.verify.property.network import Block, BlockNetwork
from graphkeel.verify.rational import nearest_float, rationals, rounded_down

Terms = dict[int, Fraction]  # a number for each variable: inputs first, then outputs


@dataclass(frozen=True, eq=False)
class Inequality:
    """Σ terms + constant ≥ 0, in rationals; > 0 where strict, which a counterexample has to show
    and a proof does not use."""

    terms: Terms
    constant: Fraction
    strict: bool = False

    def value(self, variables: list[Fraction]) -> Fraction:
        """The left side."""
        return self.constant + sum(c * variables[i] for i, c in self.terms.items())

    def holds(self, variables: list[Fraction]) -> bool:
        """Whether the inequality holds."""
        value = self.value(variables)
        return value > 0 or (value == 0 and not self.strict)


@dataclass(frozen=True, eq=False)
class Case:
    """A box and inequalities, in rationals and in floats that enclose them."""

    ends: tuple[tuple[Fraction, Fraction], ...]  # (lower, upper) of every input
    inequalities: tuple[Inequality, ...]  # each ≥ 0
    lower: Array  # (inputs,): rounded outward
    upper: Array
    weight: Array  # (count, inputs + outputs): coefficients of the inequalities
    constant: Array  # (count,): rounded up
    # whether an input counts as a counterexample; a proof does not use it
    counts: Callable[[list[Fraction]], bool] | None = None

    @classmethod
    def of(
        cls, ends: list[tuple[Fraction, Fraction]], inequalities: list[Inequality], outputs: int
    ) -> Case:
        """Round a case to floats."""
        lower = np.array([rounded_down(low) for low, _ in ends])
        upper = np.array([-rounded_down(-high) for _, high in ends])
        exact = [_with_floats(inequality) for inequality in inequalities]
        weight = np.zeros((len(exact), len(ends) + outputs))
        for row, inequality in zip(weight, exact, strict=True):
            for place, number in inequality.terms.items():
                row[place] = float(number)
        constant = np.array([-rounded_down(-inequality.constant) for inequality in exact])
        return cls(tuple(ends), tuple(inequalities), lower, upper, weight, constant)

    def joined(self, network: BlockNetwork) -> BlockNetwork:
        """The network whose outputs are the inequalities."""
        inputs = network.inputs
        terms = ((0, self.weight[:, :inputs]), (len(network.blocks), self.weight[:, inputs:]))
        used = tuple((number, weight) for number, weight in terms if weight.any())
        return BlockNetwork(inputs, (*network.blocks, Block(used, self.constant, relu=False)))

    def holds_at(self, network: BlockNetwork, point: Array) -> bool:
        """Whether an input is in the case, in exact arithmetic."""
        exact = rationals(point)
        inside = all(a <= x <= b for x, (a, b) in zip(exact, self.ends, strict=True))
        if not inside or (self.counts is not None and not self.counts(exact)):
            return False
        variables = [*exact, *network.exact_outputs(exact)]
        return all(inequality.holds(variables) for inequality in self.inequalities)


@dataclass(frozen=True, eq=False)
class Property:
    """Cases over one network's inputs and outputs; the property holds if none has a member."""

    inputs: int
    outputs: int
    cases: tuple[Case, ...]

    def check_fits(self, network: BlockNetwork) -> None:
        """That the network has as many inputs and outputs as the property speaks of."""
        here = (network.inputs, network.outputs)
        if here != (self.inputs, self.outputs):
            raise ProblemError(
                f"the property is about {self.inputs} inputs and {self.outputs} outputs",
                got=f"a network with {here[0]} and {here[1]}",
            )


def _with_floats(inequality: Inequality) -> Inequality:
    """The inequality with coefficients that are floats, multiplied by an integer if need be."""
    numbers = inequality.terms.values()
    if all(_is_float(number) for number in numbers):
        return inequality
    scale = math.lcm(*(number.denominator for number in numbers))
    terms = {place: number * scale for place, number in inequality.terms.items()}
    if not all(_is_float(number) for number in terms.values()):
        raise ProblemError(
            "a coefficient of the property has too many digits",
            fix="Use fewer than 16 digits in factors of X and Y.",
        )
    return Inequality(terms, inequality.constant * scale)


def _is_float(number: Fraction) -> bool:
    near = nearest_float(number)
    return math.isfinite(near) and Fraction(near) == number
