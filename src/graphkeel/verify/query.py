"""Rows: the scalar inequalities that a condition comes down to; the branch engine sees no more.

A row says: **g(y) ≤ 0 for every y of a box** (strict: g(y) < 0), outside the hole if there is one.
g is a *form*: affine in the state y and in the last hidden layers x_A(y), x_B(y) of at most two
*chains* of ReLU layers over the same input,

    g(y) = q·y + k + a·x_A(y) + b·x_B(y).

Both chains are bounded together, so that terms which cancel between them cancel in the bound:
decrease has V∘F as chain A and V as chain B. Side constraints s_j(y) ≥ 0 are folded into g with
multipliers μ_j ≥ 0 before the search: where they hold, g ≤ g + Σ μ_j·s_j, and the right side is
bounded over the whole box. Any μ ≥ 0 is sound."""

from __future__ import annotations

from dataclasses import dataclass

from graphkeel.verify.affine import added, zero
from graphkeel.verify.problem import Affine, Array

Layers = tuple[Affine, ...]  # hidden layers, a ReLU after each


@dataclass(frozen=True, eq=False)
class Form:
    """q·y + k + a·x_A + b·x_B."""

    direct: Affine  # q and k, from the n coordinates of the state to one output
    finals: tuple[Affine, Affine]  # (a, b), from the last hidden layers; `zero(0)` without any


@dataclass(frozen=True, eq=False)
class Row:
    """g ≤ 0 (strict: < 0) on [lower, upper]."""

    name: str  # in a proof
    form: Form  # g
    hidden: tuple[Layers, Layers]  # of chain A and chain B; () for a chain that is not there
    lower: Array  # (n,)
    upper: Array
    hole: bool = False  # whether the problem's hole is left out
    strict: bool = False  # whether g has to be negative
    side: tuple[int, int] | None = None  # (axis, sign) of a positivity row's half of the box
    empty: bool = False  # whether the box is empty, so that there is nothing to prove
    multipliers: Array | None = None  # (n,): of side constraints that were folded into g

    @property
    def n(self) -> int:
        return int(self.lower.shape[0])

    @property
    def units(self) -> int:
        """The number of hidden units of both chains."""
        return sum(layer.n_out for chain in self.hidden for layer in chain)

    @property
    def first_widths(self) -> tuple[int, int]:
        """The widths of both chains' first hidden layers."""
        a, b = (chain[0].n_out if chain else 0 for chain in self.hidden)
        return a, b


def form_over(direct: Affine, hidden: tuple[Layers, Layers], a: Affine, b: Affine) -> Form:
    """A form whose parts over chains without hidden layers are affine in y: these join `direct`."""
    finals = []
    for layers, final in zip(hidden, (a, b), strict=True):
        if layers:
            finals.append(final)
            continue
        finals.append(zero(0))
        if final.n_in:
            direct = added(direct, final)
    return Form(direct, (finals[0], finals[1]))
