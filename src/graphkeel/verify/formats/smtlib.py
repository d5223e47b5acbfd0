"""SMT-LIB 2: one question per condition in linear real arithmetic, with the weights as exact
rationals.

Each ReLU is three clauses (p >= 0, p >= z, p <= 0 or p <= z), measured to be several times faster
than if-then-else terms. Weight errors enter as free variables within their bounds, so that `unsat`
speaks of every network within them. The engine `smt` solves exactly this text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction

from graphkeel.core.text import printable
from graphkeel.verify.problem import (
    STAYS,
    SUBLEVEL,
    Affine,
    Network,
    Problem,
    region_of,
    sublevel_of,
)
from graphkeel.verify.rational import rational, rationals, sup_radius

POLARITY = """\
; Polarity: the assertions describe a VIOLATION. unsat: no state of this file's region violates the
; condition. sat: the assignment is a counterexample. The condition is proved when every file of it
; is unsat."""


def smtlib(problem: Problem, condition: str) -> str:
    """A QF_LRA file; (check-sat) answers unsat only if the condition holds."""
    header = [
        f"; graphkeel: {condition} of {printable(problem.name)}",
        *POLARITY.splitlines(),
        *_error_comment(problem),
        *_l2_comment(problem, condition),
        "(set-logic QF_LRA)",
    ]
    states = " ".join(state_names(problem))
    footer = ["(check-sat)", f"(get-value ({states}))", ""]
    return "\n".join([*header, violation(problem, condition), *footer])


def state_names(problem: Problem) -> list[str]:
    """The variables of the state."""
    return [f"y{i}" for i in range(problem.n)]


def violation(problem: Problem, condition: str) -> str:
    """Declarations and assertions that a violating state satisfies."""
    script = _Script()
    state = state_names(problem)
    for name, low, high in zip(state, problem.lower, problem.upper, strict=True):
        script.declare(name)
        script.add(f"(and (<= {_rational(low)} {name}) (<= {name} {_rational(high)}))")
    if condition in ("invariance", "region"):
        image = script.network("f", problem.closed_loop, state, _box_sizes(problem))
        leaves = _leaves_box if condition == "invariance" else _leaves_region
        script.add(leaves(problem, state, image))
    else:
        if condition != STAYS:
            script.add(_outside_hole(problem, state))
        here = script.network("v", problem.lyapunov, state, _box_sizes(problem))[0]
        if condition in SUBLEVEL:
            script.add(_in_sublevel(problem, condition, here))
        script.add(_violated(problem, condition, state, here, script))
    return "\n".join(script.lines)


def _error_comment(problem: Problem) -> list[str]:
    if problem.exact:
        return []
    return [
        "; the weights are rounded: unsat speaks of every network within the problem's errors, "
        "sat of one of them"
    ]


def _l2_comment(problem: Problem, condition: str) -> list[str]:
    if problem.hole_norm == "inf" or condition in ("invariance", "region", STAYS):
        return []
    return [
        "; the L2 hole is replaced by the box inside it: unsat proves more than asked, "
        "sat may lie in the hole"
    ]


def _leaves_box(problem: Problem, _state: list[str], image: list[str]) -> str:
    ends = zip(image, problem.lower, problem.upper, strict=True)
    return _any(f"(or (< {v} {_rational(lo)}) (> {v} {_rational(hi)}))" for v, lo, hi in ends)


def _leaves_region(problem: Problem, state: list[str], image: list[str]) -> str:
    region = region_of(problem)
    margin = _rational(region.margin)
    rivals = region.rivals(problem.n)
    margins = [f"(>= (- {state[region.axis]} {state[k]}) {margin})" for k in rivals]
    less = "<=" if region.margin == 0 else "<"
    lost = [f"({less} (- {image[region.axis]} {image[k]}) {margin})" for k in rivals]
    return f"(and {' '.join(margins)} {_any(lost)})"


def _in_sublevel(problem: Problem, condition: str, here: str) -> str:
    sublevel = sublevel_of(problem)
    below = f"(<= {here} {_rational(sublevel.level)})"
    if condition == STAYS or sublevel.floor is None:
        return below
    return f"(and {below} (>= {here} {_rational(sublevel.floor)}))"


def _violated(
    problem: Problem, condition: str, state: list[str], here: str, script: _Script
) -> str:
    if condition == "positivity":
        if problem.positivity == 0:
            return f"(<= {here} 0)"
        c = _rational(problem.positivity)
        pairs = zip(state, problem.equilibrium, strict=True)
        offsets = [f"(- {y} {_rational(e)})" for y, e in pairs]
        return _any(f"(or (< {here} (* {c} {o})) (< {here} (* (- {c}) {o})))" for o in offsets)
    image = script.network("f", problem.closed_loop, state, _box_sizes(problem))
    if condition == STAYS:
        after = script.network("w", problem.lyapunov, image, None)[0]
        level = _rational(sublevel_of(problem).level)
        return _any([f"(> {after} {level})", _leaves_box(problem, state, image)])
    after = script.network("w", problem.lyapunov, image, None)[0]
    if problem.rho == 1:
        return f"(>= {after} {here})"
    return f"(> {after} (* {_rational(problem.rho)} {here}))"


def _outside_hole(problem: Problem, state: list[str]) -> str:
    """Outside the hole; for the L2 norm outside the box within the ball, which claims more."""
    reach = sup_radius(problem)
    greater, less = (">", "<") if reach == 0 else (">=", "<=")
    parts = []
    for y, centre in zip(state, rationals(problem.equilibrium), strict=True):
        parts.append(f"({greater} {y} {_rational(centre + reach)})")
        parts.append(f"({less} {y} {_rational(centre - reach)})")
    return _any(parts)


def _box_sizes(problem: Problem) -> list[str]:
    """Bounds on the absolute values of the state."""
    ends = zip(problem.lower, problem.upper, strict=True)
    return [_rational(max(abs(float(low)), abs(float(high)))) for low, high in ends]


class _Script:
    """Declarations and assertions, in order.

    Writes: `lines`.
    """

    def __init__(self) -> None:
        self.lines: list[str] = []

    def declare(self, name: str) -> str:
        self.lines.append(f"(declare-const {name} Real)")
        return name

    def add(self, formula: str) -> None:
        self.lines.append(f"(assert {formula})")

    def network(
        self, prefix: str, network: Network, values: list[str], sizes: Sequence[str] | None
    ) -> list[str]:
        """The names of a network's outputs; `sizes` bound its inputs, None where nothing does."""
        for k, layer in enumerate(network.layers):
            if sizes is None and layer.weight_error is not None:
                sizes = [self._size(f"{prefix}{k}_s{i}", value) for i, value in enumerate(values)]
            sums = [
                self._output(f"{prefix}{k}_{j}", layer, j, values, sizes)
                for j in range(layer.n_out)
            ]
            if k + 1 == len(network.layers):
                return sums
            values = sizes = [self._relu(z) for z in sums]  # not negative: its own size
        raise AssertionError("a network has at least one layer")

    def _size(self, name: str, value: str) -> str:
        """|value|, as a variable."""
        self.declare(name)
        self.add(f"(and (>= {name} {value}) (>= {name} (- {value})))")
        self.add(f"(or (<= {name} {value}) (<= {name} (- {value})))")
        return name

    def _output(
        self, name: str, layer: Affine, j: int, values: list[str], sizes: Sequence[str] | None
    ) -> str:
        self.declare(name)
        terms = _weighted(layer.weight[j], values)
        if not layer.exact:
            terms.append(self._drift(f"{name}_e", layer, j, sizes or []))
        self.add(f"(= {name} (+ {_rational(layer.bias[j])} {' '.join(terms) or '0'}))")
        return name

    def _drift(self, name: str, layer: Affine, j: int, sizes: Sequence[str]) -> str:
        """How far the sum may be off: a free variable within the errors' reach."""
        self.declare(name)
        constant = 0.0 if layer.bias_error is None else float(layer.bias_error[j])
        terms = [] if layer.weight_error is None else _weighted(layer.weight_error[j], sizes)
        most = f"(+ {_rational(constant)} {' '.join(terms) or '0'})"
        self.add(f"(and (<= {name} {most}) (<= (- {name}) {most}))")
        return name

    def _relu(self, z: str) -> str:
        p = self.declare(f"{z}_p")
        self.add(f"(and (>= {p} 0) (>= {p} {z}) (or (<= {p} 0) (<= {p} {z})))")
        return p


def _weighted(weights: Iterable[float], values: Sequence[str]) -> list[str]:
    return [f"(* {_rational(w)} {v})" for w, v in zip(weights, values, strict=True) if w]


def _any(parts: Iterable[str]) -> str:
    return f"(or {' '.join(parts)})"


def _rational(value: float | Fraction) -> str:
    exact = value if isinstance(value, Fraction) else rational(value)
    size = f"(/ {abs(exact.numerator)}.0 {exact.denominator}.0)"
    return f"(- {size})" if exact < 0 else size
