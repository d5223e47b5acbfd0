"""The decision region of a class: do its states stay its own, whenever the controller is chosen
anew?

R_c = {y in D: y_c − y_k ≥ γ for every k ≠ c}; to be shown: F(y)_c − F(y)_k ≥ γ on it, strictly
where γ = 0. On R_c every term λ_j·(y_c − y_j − γ) with λ ≥ 0 is at least 0, so it may be added to
what has to be bounded, and the bound taken over all of D: the polytope is left to the multipliers
λ, and boxes are all that is ever cut."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from graphkeel.certificate.bounds import RowBound
from graphkeel.certificate.box_proof import check_region_box
from graphkeel.certificate.collapse import ExactLayer, value_at
from graphkeel.certificate.dyadic import Dyadic, Floats
from graphkeel.certificate.rows import Row, region_rows
from graphkeel.certificate.schema import Loop
from graphkeel.certificate.trees import DEFAULT, STORED, Refused, Tree, _array
from graphkeel.core.errors import CertificateError


def check_region(loop: Loop, axis: int, margin: float, proof: dict[str, Any]) -> int:
    """Re-prove every row; the number of leaves, or Refused."""
    multipliers = _multipliers(loop, axis, proof.get("multipliers"))
    kind = proof.get("kind")
    if kind == "box":
        return check_region_box(loop, axis, margin, multipliers)
    if kind == "branch":
        return _check_trees(loop, region_rows(loop, axis, margin, multipliers), proof.get("trees"))
    raise CertificateError("region: unknown kind of proof", got=repr(kind)[:80])


def _check_trees(loop: Loop, rows: list[Row], trees: Any) -> int:
    if not isinstance(trees, list) or len(trees) != len(rows):
        raise Refused(f"region needs a list of {len(rows)} trees")
    return sum(
        _check_tree(loop, row, tree, f"region, {row.name}")
        for row, tree in zip(rows, trees, strict=True)
    )


def _check_tree(loop: Loop, row: Row, content: Any, where: str) -> int:
    """The tree of one row over the whole domain, its leaves relaxed ones without lenses."""
    if not isinstance(content, dict) or content.get("row") != row.name:
        raise Refused(f"{where}: its tree is missing or out of order")
    tree, count = Tree.from_json(content, loop.n, row.first_width, 0, where), 0
    if not (np.array_equal(tree.lower, loop.lower) and np.array_equal(tree.upper, loop.upper)):
        raise Refused(f"{where}: the root box is not the domain")
    bound = RowBound(row, tree.lower, tree.upper)
    for leaves in tree.leaves(where):
        if leaves.kind not in (DEFAULT, STORED) or leaves.lenses is not None:
            raise Refused(f"{where}: a leaf is of a kind that a region's tree has not")
        value, _ = bound.upper(leaves.lower, leaves.upper, leaves.slopes)
        if not (value < 0 if row.strict else value <= 0).all():
            raise Refused(
                f"{where}: the bound of a leaf is {value.max():.3g}, so the leaf is not proved"
            )
        count += leaves.lower.shape[0]
    return count


def _multipliers(loop: Loop, axis: int, value: Any) -> Floats:
    """λ, a row for every k ≠ c in ascending order, a column for every j; what stands at j = c would
    be no lead."""
    array = _array(value, "<f8", 2, "region.multipliers").astype(np.float64)
    if array.shape != (loop.n - 1, loop.n):
        raise Refused(f"region: multipliers must be {loop.n - 1} × {loop.n}, got {array.shape}")
    if (array < 0).any() or array[:, axis].any() or (array > 1e100).any():
        raise Refused("region: a multiplier is negative, too large, or stands at the class itself")
    return array


def check_region_counterexample(
    loop: Loop, forward: tuple[ExactLayer, ...], axis: int, margin: float, point: Floats
) -> None:
    """Replay with the exact weights: a state of the class that the class's own controller leads to
    another one."""
    if point.shape != (loop.n,) or (point < loop.lower).any() or (point > loop.upper).any():
        raise Refused("region: the counterexample lies outside the domain")
    if leads(Dyadic.of(point).fractions(), axis) < Fraction(margin):
        raise Refused("region: the counterexample lies outside the class's region")
    after = leads(value_at(forward, Dyadic.of(point)).fractions(), axis)
    if after > 0 if margin == 0 else after >= Fraction(margin):
        raise Refused("region: the counterexample satisfies the condition")


def leads(state: list[Fraction], axis: int) -> Fraction:
    """By how much a class's logit leads all others."""
    return min(state[axis] - other for k, other in enumerate(state) if k != axis)
