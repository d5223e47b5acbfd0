"""Rows: the scalar inequalities that a condition comes down to; the branch engine sees no more.

A row says: **g(y) ≤ 0 for every y of a box that satisfies s_1(y) ≥ 0, …, s_J(y) ≥ 0** (strict:
g(y) < 0), outside the hole if there is one. g and the side constraints s_j are *forms*: affine in
the state y and in the last hidden layers x_A(y), x_B(y) of at most two *chains* of ReLU layers over
the same input,

    form(y) = q·y + k + a·x_A(y) + b·x_B(y).

Both chains are bounded together, so what cancels between them cancels in the bound: decrease has
V∘F as chain A and V as chain B. A network with one output layer is one chain; its outputs are forms
over that chain, so a property "y in a box and −Y_0 ≥ 0 imply Y_1 < 0" is one row with one side
constraint. Side constraints enter a bound by multipliers μ_j ≥ 0: on the states that satisfy them
g ≤ g + Σ μ_j·s_j, and the right side is bounded over the whole box. Any μ ≥ 0 is sound; they are
chosen leaf by leaf and stored with the leaf. Where one choice does for a whole row (a class's
decision region) the constraints are folded into g before the search.

Whoever reads problems in another format builds rows and hands them to `branch.search.Search`."""

from __future__ import annotations

from dataclasses import dataclass

from graphkeel.verify.affine import added, zero
from graphkeel.verify.problem import Affine, Array

Layers = tuple[Affine, ...]  # hidden layers, a ReLU after each


@dataclass(frozen=True, eq=False)
class Form:
    """q·y + k + a·x_A + b·x_B.

    Args:
        direct: q and k, a map from the n coordinates of the state to one output.
        finals: (a, b), maps from the chains' last hidden layers to one output; a chain without
            hidden layers takes `zero(0)`.
    """

    direct: Affine
    finals: tuple[Affine, Affine]


@dataclass(frozen=True, eq=False)
class Row:
    """g ≤ 0 (strict: < 0) on [lower, upper] where every side constraint holds.

    Args:
        name: the row's name in a proof.
        form: g.
        hidden: the hidden layers of chain A and chain B; () for a chain that is not there.
        lower, upper: the box, shape (n,).
        where: side constraints s_j, each ≥ 0.
        hole: whether the problem's hole is left out.
        strict: whether g has to be negative.
        side: (axis, sign) of a positivity row's half of the box.
        empty: whether the row's box is empty, so that nothing has to be shown.
        multipliers: of side constraints that were folded into g for the whole row, shape (n,).
    """

    name: str
    form: Form
    hidden: tuple[Layers, Layers]
    lower: Array
    upper: Array
    where: tuple[Form, ...] = ()
    hole: bool = False
    strict: bool = False
    side: tuple[int, int] | None = None
    empty: bool = False
    multipliers: Array | None = None

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
