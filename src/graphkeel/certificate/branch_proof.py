"""Re-proving trees of boxes: proof kinds "branch" and "homogeneous" of docs/proof-format.md."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from graphkeel.certificate.bounds import RowBound
from graphkeel.certificate.cells import check_cells, exact_row
from graphkeel.certificate.dyadic import Bools, Floats
from graphkeel.certificate.exact_bounds import exact_upper
from graphkeel.certificate.geometry import covers_side, hole_reach, inside_hole, side_is_empty
from graphkeel.certificate.residual import homogeneity_defect
from graphkeel.certificate.rows import Row, rows_of
from graphkeel.certificate.schema import Loop, number
from graphkeel.certificate.trees import CELLS, HOLE, Leaves, Refused, Tree
from graphkeel.core.errors import CertificateError

_TREE_KEYS = {"row", "lower", "upper", "axis", "cut", "slopes", "lenses"}
# rounding slacks: a miss by less (about a millionth of the row's magnitudes) is worth a second look
NEAR = 1e9
PARTS = 8


def check_branch(loop: Loop, condition: str, proof: dict[str, Any]) -> int:
    """Re-prove every leaf of one tree per row; the number of leaves, or Refused."""
    rows = rows_of(loop, condition)
    trees = _list(proof, "trees")
    if len(trees) != len(rows):
        raise Refused(f"{condition} needs {len(rows)} trees, the proof has {len(trees)}")
    return sum(
        _check_row_tree(loop, condition, row, tree, f"{condition}, row {row.name!r}")
        for row, tree in zip(rows, trees, strict=True)
    )


def _check_row_tree(loop: Loop, condition: str, row: Row, content: Any, where: str) -> int:
    if not isinstance(content, dict) or content.get("row") != row.name:
        raise Refused(f"{where}: its tree is missing or out of order")
    if content.get("empty") is True and set(content) == {"row", "empty"}:
        if row.side is None or not side_is_empty(loop, *row.side):
            raise Refused(f"{where}: its region is called empty and is not")
        return 0
    if set(content) - {"cells"} != _TREE_KEYS:
        raise CertificateError(
            f"{where}: a tree has the keys {sorted(_TREE_KEYS)}", got=sorted(map(str, content))
        )
    tree = Tree.from_json(content, loop.n, row.first_width, row.lens_width, where)
    _check_root(loop, row, tree, where)
    return _check_tree(loop, condition, row, tree, where, margin=0.0, holes=row.avoids_hole)


def _check_root(loop: Loop, row: Row, tree: Tree, where: str) -> None:
    lower, upper = loop.lower.copy(), loop.upper.copy()
    if row.side is not None:
        axis, sign = row.side
        end = float(tree.lower[axis] if sign > 0 else tree.upper[axis])
        if not covers_side(loop, axis, sign, end):
            raise Refused(f"{where}: the root box leaves out a part of the row's region")
        (lower if sign > 0 else upper)[axis] = end
    if not (np.array_equal(tree.lower, lower) and np.array_equal(tree.upper, upper)):
        raise Refused(f"{where}: the root box is not the domain")


def check_homogeneous(loop: Loop, condition: str, proof: dict[str, Any]) -> int:
    """Re-prove the faces of the box and that the inside follows; the number of leaves, or
    Refused."""
    if condition not in ("decrease", "positivity"):
        raise Refused(f"a homogeneous proof cannot show {condition}")
    margin = number(proof.get("margin"), f"{condition}.margin")
    _check_carries(loop, condition, margin)
    expected = [
        (row, axis, side) for row in rows_of(loop, condition) for axis, side in _faces(loop)
    ]
    faces = _list(proof, "faces")
    if len(faces) != len(expected):
        raise Refused(f"{condition} needs {len(expected)} faces, the proof has {len(faces)}")
    leaves = 0
    for (row, axis, side), content in zip(expected, faces, strict=True):
        where = f"{condition}, row {row.name!r}, {side} face of axis {axis}"
        leaves += _check_face(loop, condition, row, axis, side, margin, content, where)
    return leaves


def _check_face(
    loop: Loop,
    condition: str,
    row: Row,
    axis: int,
    side: str,
    margin: float,
    content: Any,
    where: str,
) -> int:
    if (
        not isinstance(content, dict)
        or content.get("row") != row.name
        or content.get("side") != side
    ):
        raise Refused(f"{where}: missing or out of order")
    tree = Tree.from_json(content, loop.n, row.first_width, row.lens_width, where)
    lower, upper = loop.lower.copy(), loop.upper.copy()
    lower[axis] = upper[axis] = (loop.lower if side == "lower" else loop.upper)[axis]
    # The order of the faces and this box say which face it is.
    if not (np.array_equal(tree.lower, lower) and np.array_equal(tree.upper, upper)):
        raise Refused(f"{where}: the root box is not that face of the domain")
    return _check_tree(loop, condition, row, tree, where, margin=margin, holes=False)


def _faces(loop: Loop) -> list[tuple[int, str]]:
    faces = []
    for axis in range(loop.n):
        for side, end in (("lower", loop.lower), ("upper", loop.upper)):
            if end[axis] != loop.equilibrium[axis]:
                faces.append((axis, side))
    return faces


def _check_carries(loop: Loop, condition: str, margin: float) -> None:
    """That −μ on the faces gives the row's sign in all of D outside the hole."""
    if (loop.equilibrium < loop.lower).any() or (loop.equilibrium > loop.upper).any():
        raise Refused(f"{condition}: the equilibrium lies outside the box")
    defect, mu = homogeneity_defect(loop, condition), Fraction(margin)
    reach = max(
        max(Fraction(high) - Fraction(y), Fraction(y) - Fraction(low))
        for low, high, y in zip(loop.lower, loop.upper, loop.equilibrium, strict=True)
    )
    strict = loop.rho == 1 if condition == "decrease" else loop.positivity == 0
    left, right = (mu - defect) * hole_reach(loop), defect * reach
    enough = left > right if strict else left >= right
    if mu <= 0 or mu <= defect or not (defect == 0 or enough):
        raise Refused(
            f"{condition}: the margin {margin:g} on the faces does not outweigh the residual {float(defect):g}"
        )


def _check_tree(
    loop: Loop, condition: str, row: Row, tree: Tree, where: str, *, margin: float, holes: bool
) -> int:
    bound, count = RowBound(row, tree.lower, tree.upper), 0
    for leaves in tree.leaves(where):
        count += leaves.lower.shape[0]
        if leaves.kind == HOLE:
            if not holes or not inside_hole(loop, leaves.lower, leaves.upper).all():
                raise Refused(f"{where}: a leaf is called inside the hole and is not")
        elif leaves.kind == CELLS:
            _check_cell_leaves(loop, condition, row, leaves, margin, where)
        else:
            _check_leaves(row, bound, leaves, margin, where)
    return count


def _check_cell_leaves(
    loop: Loop, condition: str, row: Row, leaves: Leaves, margin: float, where: str
) -> None:
    exact = exact_row(loop, condition, row.name)
    for low, high, steps in zip(leaves.lower, leaves.upper, leaves.cells or [], strict=True):
        check_cells(exact, low, high, steps, margin, where)


def _check_leaves(row: Row, bound: RowBound, leaves: Leaves, margin: float, where: str) -> None:
    if leaves.lenses is not None:
        _check_lenses(row, leaves.lenses, where)
    value, slack = bound.upper(leaves.lower, leaves.upper, leaves.slopes, leaves.lenses)
    for leaf in np.flatnonzero(~_holds(row, value, margin)):
        one = leaves.only(int(leaf))
        if value[leaf] + margin <= 4 * slack[leaf] and _holds_exactly(row, one, margin):
            continue
        if value[leaf] + margin <= NEAR * slack[leaf] and _holds_in_parts(row, bound, one, margin):
            continue
        raise Refused(
            f"{where}: the bound of a leaf is {value[leaf] + margin:.3g}, so the leaf is not proved"
        )


def _holds(row: Row, value: Floats, margin: float) -> Bools:
    if margin:
        return np.asarray(value < -margin * (1 + 2.0**-50))
    return np.asarray(value < 0) if row.strict else np.asarray(value <= 0)


def _holds_in_parts(row: Row, bound: RowBound, leaf: Leaves, margin: float) -> bool:
    """A near miss, as when a stored slope was rounded the wrong way: halve the leaf a few times,
    which is as sound."""
    for _ in range(PARTS):
        failing = ~_holds(
            row, bound.upper(leaf.lower, leaf.upper, leaf.slopes, leaf.lenses)[0], margin
        )
        if not failing.any():
            return True
        leaf = leaf.halved(failing)
    return False


def _check_lenses(row: Row, lenses: Floats, where: str) -> None:
    """A lens replaces a unit by something larger, which is sound for units that count positively
    only."""
    sure = row.branches[0].final >= row.branches[0].final_error
    if (lenses.any(axis=2) & ~sure).any():
        raise Refused(f"{where}: a lens stands on a unit whose outer weight may be negative")


def _holds_exactly(row: Row, leaf: Leaves, margin: float) -> bool:
    slopes = None if leaf.slopes is None else leaf.slopes[0]
    lens = None if leaf.lenses is None else leaf.lenses[0]
    value = exact_upper(row, leaf.lower[0], leaf.upper[0], slopes, lens) + Fraction(margin)
    return value < 0 if row.strict and margin == 0 else value <= 0


def _list(proof: dict[str, Any], key: str) -> list[Any]:
    value = proof.get(key)
    if not isinstance(value, list):
        raise CertificateError(f"the proof needs a list of {key}", got=type(value).__name__)
    return value
