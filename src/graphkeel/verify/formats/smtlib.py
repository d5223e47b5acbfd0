"""SMT-LIB 2: one question per condition in linear real arithmetic, with the weights as exact
rationals."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction

from graphkeel.verify.formats.vnnlib import POLARITY, error_comment, reach_down
from graphkeel.verify.problem import Network, Problem


def smtlib(problem: Problem, condition: str) -> str:
    """QF_LRA with exact rational weights; (check-sat) answers unsat exactly when the condition
    holds."""
    script = _Script()
    state = [f"y{i}" for i in range(problem.n)]
    for name, low, high in zip(state, problem.lower, problem.upper, strict=True):
        script.declare(name)
        script.add(f"(and (<= {_rational(low)} {name}) (<= {name} {_rational(high)}))")
    if condition == "invariance":
        image = script.network("f", problem.closed_loop, state)
        ends = zip(image, problem.lower, problem.upper, strict=True)
        script.add(
            _any(f"(or (< {v} {_rational(lo)}) (> {v} {_rational(hi)}))" for v, lo, hi in ends)
        )
    else:
        script.add(_smt_outside_hole(problem, state))
        here = script.network("v", problem.lyapunov, state)[0]
        script.add(_smt_violation(problem, condition, state, here, script))
    header = [
        f"; graphkeel: {condition} of {problem.name}",
        *POLARITY.splitlines(),
        *error_comment(problem),
        *_l2_comment(problem, condition),
        "(set-logic QF_LRA)",
    ]
    return "\n".join(
        [*header, *script.lines, "(check-sat)", f"(get-value ({' '.join(state)}))", ""]
    )


def _l2_comment(problem: Problem, condition: str) -> list[str]:
    if problem.hole_norm == "inf" or condition == "invariance":
        return []
    return [
        "; the L2 hole is replaced by the box inside it: unsat proves more than asked, sat may lie in the hole"
    ]


def _smt_violation(
    problem: Problem, condition: str, state: list[str], here: str, script: _Script
) -> str:
    if condition == "positivity":
        if problem.positivity == 0:
            return f"(<= {here} 0)"
        c = _rational(problem.positivity)
        offsets = [
            f"(- {y} {_rational(e)})" for y, e in zip(state, problem.equilibrium, strict=True)
        ]
        return _any(f"(or (< {here} (* {c} {o})) (< {here} (* (- {c}) {o})))" for o in offsets)
    image = script.network("f", problem.closed_loop, state)
    after = script.network("w", problem.lyapunov, image)[0]
    return (
        f"(>= {after} {here})"
        if problem.rho == 1
        else f"(> {after} (* {_rational(problem.rho)} {here}))"
    )


def _smt_outside_hole(problem: Problem, state: list[str]) -> str:
    reach = reach_down(problem)
    parts = []
    for y, centre in zip(state, problem.equilibrium, strict=True):
        high, low = Fraction(float(centre)) + reach, Fraction(float(centre)) - reach
        strict = reach == 0
        parts.append(
            f"({'>' if strict else '>='} {y} {_rational(high)}) ({'<' if strict else '<='} {y} {_rational(low)})"
        )
    return _any(parts)


class _Script:
    """Declarations and assertions, in order."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def declare(self, name: str) -> str:
        self.lines.append(f"(declare-const {name} Real)")
        return name

    def add(self, formula: str) -> None:
        self.lines.append(f"(assert {formula})")

    def network(self, prefix: str, network: Network, values: list[str]) -> list[str]:
        for k, layer in enumerate(network.layers):
            sums = []
            for j in range(layer.n_out):
                terms = [
                    f"(* {_rational(w)} {v})"
                    for w, v in zip(layer.weight[j], values, strict=True)
                    if w
                ]
                name = self.declare(f"{prefix}{k}_{j}")
                self.add(f"(= {name} (+ {_rational(layer.bias[j])} {' '.join(terms) or '0'}))")
                sums.append(name)
            values = sums if k + 1 == len(network.layers) else [self._relu(z) for z in sums]
        return values

    def _relu(self, z: str) -> str:
        p = self.declare(f"{z}_p")
        self.add(f"(and (>= {p} 0) (>= {p} {z}) (or (<= {p} 0) (<= {p} {z})))")
        return p


def _any(parts: Iterable[str]) -> str:
    return f"(or {' '.join(parts)})"


def _rational(value: float | Fraction) -> str:
    exact = value if isinstance(value, Fraction) else Fraction(float(value))
    size = f"(/ {abs(exact.numerator)}.0 {exact.denominator}.0)"
    return f"(- {size})" if exact < 0 else size
