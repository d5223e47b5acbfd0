"""Ridge regression from features to classes, in closed form: a linear probe of one view of the
features, and several probes stacked.

How strong a ridge is, how sharp its answer and how much each probe counts, the members say
themselves, each left out once: closed form as well, from one decomposition a probe."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from graphkeel.reconstruct.views import (
    BENT,
    LINKED,
    ONE_HOP,
    OWN,
    SPREAD,
    TWO_HOPS,
    View,
)

# Strengths relative to the mean squared length of a member, and factors from regression scores
# (about 0 to 1) to log-probabilities.
RIDGES = (0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0)
SHARPNESSES = (2.5, 5.0, 10.0, 20.0, 40.0)
MOST_LEFT_OUT = 1000  # members that choose
MOST_STACKED = 3000  # members beyond which features spread over the graph are the only view
HOPS = (OWN, ONE_HOP, TWO_HOPS)
# What the probes see. Found by the ablation in docs/research.md.
PROBED = ((SPREAD,), (OWN,), HOPS, (SPREAD, BENT), (*HOPS, BENT), (*HOPS, LINKED))
STACKING_ROUNDS = 50


@dataclass(frozen=True)
class Choice:
    """What members chose, each left out once.

    Attributes:
        strength: of the ridge, relative to the mean squared length of a member.
        sharpness: from scores to log-probabilities.
        said: how likely each member's own class then is, shape (k,).
    """

    strength: float
    sharpness: float
    said: Tensor


def ridge_evidence(features: Tensor, members: Tensor, memberships: Tensor) -> Tensor:
    """One probe. A system of as many equations as there are members or features, whichever are
    fewer: words need no reduction, and many labels cost little.

    Args:
        features: of all nodes, shape (N, d).
        members: of those with a class, shape (M, d).
        memberships: how much a node belongs to a class, shape (M, n_classes).
    """
    rows = members.double()
    centre = memberships.double().mean(dim=0)
    targets = memberships.double() - centre
    step = _step(len(rows))
    chosen = _left_out_once(*_singular(rows[::step]), targets[::step], centre)
    ridge = chosen.strength * _mean_square(rows)
    if rows.shape[0] < rows.shape[1]:
        weights = rows.T @ _solved(rows @ rows.T, ridge, targets)
    else:
        weights = _solved(rows.T @ rows, ridge, rows.T @ targets)
    scores = features @ weights.float() + centre.float()
    return (chosen.sharpness * scores).softmax(dim=-1)


def stacked_evidence(views: Mapping[str, View], nodes: Tensor, memberships: Tensor) -> Tensor:
    """The probes of `PROBED` as a mixture; each counts as much as makes the members likeliest when
    they are left out (stacking, Wolpert 1992).

    Args:
        views: of all features, by name, each of N rows.
        nodes: ids of those with a class, int64, shape (M,).
        memberships: how much each belongs to a class, shape (M, n_classes).
    """
    if len(views) == 1 or len(nodes) > MOST_STACKED:
        spread = views[SPREAD]
        return ridge_evidence(spread, spread[nodes], memberships)
    centre = memberships.double().mean(dim=0)
    targets = memberships.double() - centre
    rows = {name: view[nodes.numpy()] for name, view in views.items()}
    products = {name: _products(members) for name, members in rows.items()}
    step = _step(len(nodes))
    grams = [torch.stack([products[name] for name in names]).sum(dim=0) for names in PROBED]
    choices = [
        _left_out_once(*_eigen(gram[::step, ::step]), targets[::step], centre) for gram in grams
    ]
    shares = _stacked([choice.said for choice in choices])
    mixture = torch.zeros(views[OWN].shape[0], memberships.shape[1])
    for names, gram, choice, share in zip(PROBED, grams, choices, shares, strict=True):
        duals = _solved(gram, choice.strength * float(gram.diagonal().mean()), targets).float()
        scores = centre.float().expand_as(mixture)
        for name in names:
            scores = scores + _carried(views[name], rows[name], duals)
        mixture += float(share) * (choice.sharpness * scores).softmax(dim=-1)
    return mixture


def _left_out_once(squares: Tensor, basis: Tensor, targets: Tensor, centre: Tensor) -> Choice:
    """The ridge's strength and the sharpness under which members are likeliest to be what they are,
    each predicted from the others; from the squared singular values of the members and their left
    singular vectors."""
    turned = basis.T @ targets
    mean_square = float(squares.sum()) / len(targets) + 1e-30
    memberships = targets + centre
    best: Choice | None = None
    likeliest = -float("inf")
    for strength in RIDGES:
        kept = squares / (squares + strength * mean_square)
        own = (basis**2 @ kept).clamp_max(1.0 - 1e-9).unsqueeze(1)
        left_out = targets - (targets - basis @ (kept.unsqueeze(1) * turned)) / (1.0 - own)
        for sharpness in SHARPNESSES:
            said = (sharpness * (left_out + centre)).log_softmax(dim=1)
            likelihood = float((memberships * said).sum())
            if best is None or likelihood > likeliest:
                likeliest = likelihood
                best = Choice(strength, sharpness, (memberships * said.exp()).sum(dim=1))
    assert best is not None
    return best


def _stacked(said: Sequence[Tensor]) -> Tensor:
    """Shares of a mixture under which the members are likeliest (expectation maximisation)."""
    likely = torch.stack(list(said), dim=1).clamp_min(1e-30)
    shares = likely.new_full((len(said),), 1.0 / len(said))
    for _ in range(STACKING_ROUNDS):
        owed = likely * shares
        shares = (owed / owed.sum(dim=1, keepdim=True)).mean(dim=0)
    return shares


def _step(n_members: int) -> int:
    """The step through the members that choose: at most `MOST_LEFT_OUT` of them do."""
    return max(1, -(-n_members // MOST_LEFT_OUT))


def _singular(rows: Tensor) -> tuple[Tensor, Tensor]:
    """Squared singular values and left singular vectors, from the smaller Gram matrix."""
    if rows.shape[0] <= rows.shape[1]:
        return _eigen(rows @ rows.T)
    squares, turn = torch.linalg.eigh(rows.T @ rows)
    squares = squares.clamp_min(1e-12 * float(squares[-1]) + 1e-30)
    return squares, rows @ turn / squares.sqrt()


def _eigen(gram: Tensor) -> tuple[Tensor, Tensor]:
    squares, basis = torch.linalg.eigh(gram)
    return squares.clamp_min(0.0), basis


def _mean_square(rows: Tensor) -> float:
    return float((rows**2).sum(dim=1).mean()) + 1e-30


def _solved(gram: Tensor, ridge: float, targets: Tensor) -> Tensor:
    gram.diagonal().add_(ridge + 1e-30)
    return torch.linalg.solve(gram, targets)


def _products(rows: View) -> Tensor:
    """The members' Gram matrix, float64, shape (M, M)."""
    if isinstance(rows, Tensor):
        return (rows @ rows.T).double()
    return torch.from_numpy((rows @ rows.T).toarray()).double()


def _carried(view: View, rows: View, duals: Tensor) -> Tensor:
    """Scores of all nodes from the members' duals: (N, d), (M, d), (M, n) -> (N, n)."""
    if isinstance(view, Tensor):
        return view @ (rows.T @ duals)
    return torch.from_numpy(view @ (rows.T @ duals.numpy()))
