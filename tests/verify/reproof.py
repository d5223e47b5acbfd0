"""Proofs of the engines, re-proved by the independent checker."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from graphkeel.checker.contraction import check_contraction
from graphkeel.checker.exact import Matrix, Vector, Work
from graphkeel.checker.networks import Layer
from graphkeel.checker.problem import Problem as Checked
from graphkeel.checker.trees import check_branch, check_faces
from graphkeel.verify import Network, Problem


def checked(problem: Problem) -> Checked:
    """The problem as the checker sees it; a round hole becomes the box around it."""

    def network(source: Network) -> list[Layer]:
        return [Layer(matrix(a.weight), Vector.of(a.bias.tolist())) for a in source.layers]

    def matrix(rows: Any) -> Matrix:
        flat = Vector.of(rows.ravel().tolist())
        height, width = rows.shape
        lines = [flat.ints[i * width : (i + 1) * width] for i in range(height)]
        return Matrix(lines, flat.exp)

    ends = (problem.lower, problem.upper, problem.equilibrium)
    region = problem.region
    numbers = (problem.hole_radius, problem.rho, problem.positivity, 0.0)
    margin = Fraction(0 if region is None else region.margin)
    return Checked(
        0 if region is None else region.axis,
        network(problem.closed_loop),
        network(problem.lyapunov),
        *(Vector.of(end.tolist()) for end in ends),
        *map(Fraction, numbers),
        margin,
    )


def reprove(problem: Problem, proof: dict[str, Any]) -> int:
    """The number of leaves that the checker accepts; it raises `Rejected` otherwise."""
    checks = {"branch": check_branch, "homogeneous": check_faces, "contraction": check_contraction}
    assert proof["version"] == 3
    return checks[proof["kind"]](checked(problem), proof["condition"], proof, Work(10**11))
