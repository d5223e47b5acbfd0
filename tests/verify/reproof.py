"""Engine proofs, proved again by the independent checker: what it accepts is a fact."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from graphkeel.checker.contraction import check_contraction
from graphkeel.checker.exact import Matrix, Vector, Work
from graphkeel.checker.limits import MAX_PRODUCTS
from graphkeel.checker.networks import Layer
from graphkeel.checker.problem import Problem as CheckerProblem
from graphkeel.checker.trees import check_branch, check_faces
from graphkeel.verify import Network, Problem


def reprove(problem: Problem, proof: dict[str, Any]) -> int:
    """The number of leaves; raises `checker.Rejected` where a proof does not show its claim.

    Args:
        problem: as the engine had it. Of weights with an error the stored ones are taken: an
            engine's proof covers them all.
        proof: what the engine returned.
    """
    checks = {"branch": check_branch, "homogeneous": check_faces, "contraction": check_contraction}
    assert proof["version"] == 4
    return checks[proof["kind"]](
        checker_problem(problem), proof["condition"], proof, Work(MAX_PRODUCTS)
    )


def checker_problem(problem: Problem) -> CheckerProblem:
    """A problem as the checker holds it.

    Args:
        problem: as an engine has it; a round hole is read as the box around it.
    """
    region = getattr(problem, "region", None)
    numbers = (problem.hole_radius, problem.rho, problem.positivity, 0.0)
    return CheckerProblem(
        0 if region is None else region.axis,
        layers(problem.closed_loop),
        layers(problem.lyapunov),
        *(Vector.of(list(map(float, ends))) for ends in (problem.lower, problem.upper)),
        Vector.of(list(map(float, problem.equilibrium))),
        *map(Fraction, map(float, numbers)),
        Fraction(0.0 if region is None else float(region.margin)),
    )


def layers(network: Network) -> list[Layer]:
    return [Layer(matrix(layer.weight), Vector.of(layer.bias.tolist())) for layer in network.layers]


def matrix(values: np.ndarray) -> Matrix:
    flat = Vector.of(values.ravel().tolist())
    width = values.shape[1]
    return Matrix([flat.ints[i : i + width] for i in range(0, len(flat), width)], flat.exp)
