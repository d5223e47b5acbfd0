"""Small closed loops with their shipped weights, and a plain prover that writes the documented
proof format.

The prover halves boxes until the bound holds. It is slow and simple on purpose: the checker's tests
must not depend on the engine that the checker is there to check."""

from __future__ import annotations

import base64
import zlib
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from graphkeel.certificate import (
    ClassProof,
    Source,
    anchored_controller,
    anchored_lyapunov,
    build_certificate,
    collapsed,
    collapsed_loop,
    mlp,
)
from graphkeel.certificate.bounds import RowBound
from graphkeel.certificate.geometry import hole_reach, inside_hole, side_is_empty
from graphkeel.certificate.region_proof import check_region
from graphkeel.certificate.rows import Row, rows_of
from graphkeel.certificate.schema import Loop
from graphkeel.certificate.trees import Refused


@dataclass(frozen=True)
class Answer:
    """The attributes of an engine's ConditionReport that a certificate takes."""

    verdict: str
    proof: Any = None
    counterexample: Any = None
    engine: str = "test"
    reason: str = ""
    seconds: float = 0.5
    nodes: int = 1


@dataclass(frozen=True)
class Shipped:
    head: Source
    controller: Source
    lyapunov: Source
    anchor: np.ndarray
    loop: Any  # has the attributes of a verify.Problem


@dataclass(frozen=True)
class Layers:
    layers: Any


@dataclass(frozen=True)
class Question:
    closed_loop: Layers
    lyapunov: Layers
    lower: np.ndarray
    upper: np.ndarray
    equilibrium: np.ndarray
    hole_radius: float = 0.125
    hole_norm: str = "inf"
    rho: float = 0.95
    positivity: float = 0.125


def shipped(
    n: int = 2,
    hidden: int = 6,
    d: int = 9,
    *,
    seed: int = 0,
    speed: float = 0.4,
    bend: float = 1.0,
    affine_head: bool = True,
    **changes: Any,
) -> Shipped:
    """An anchored loop that roughly multiplies the distance to Y by `speed`; `bend` 0 makes it
    homogeneous."""
    rng = np.random.default_rng(seed)
    Y = np.zeros(n)
    Y[0] = 1.0
    W, b = rng.normal(size=(n, d)) / np.sqrt(d), rng.normal(size=n)
    A = np.concatenate([np.eye(n), -np.eye(n), 0.3 * rng.normal(size=(hidden - 2 * n, n))])
    a = bend * rng.uniform(0.2, 0.5, size=hidden) * rng.choice([-1.0, 1.0], size=hidden)
    target = (
        speed
        * np.concatenate([np.eye(n), -np.eye(n), 0.1 * rng.normal(size=(hidden - 2 * n, n))]).T
    )
    inverse = np.linalg.pinv(W)
    B, h = inverse @ target, inverse @ (Y - b)
    head = mlp([(W, b)]) if affine_head else _bent_head(W, b)
    controller = anchored_controller(A, a, B, h, Y)
    R = np.concatenate([np.eye(n), -np.eye(n)]) + 0.05 * rng.normal(size=(2 * n, n))
    lyapunov = anchored_lyapunov(R, np.ones(2 * n) + 0.1 * rng.random(2 * n), Y)
    question = Question(
        Layers(collapsed_loop(controller, head)), Layers(collapsed(lyapunov)), Y - 1.0, Y + 1.0, Y
    )
    return Shipped(head, controller, lyapunov, h, replace(question, **changes))


def _bent_head(W: np.ndarray, b: np.ndarray) -> Source:
    """The same map through a ReLU layer: x = relu(x) − relu(−x)."""
    n = W.shape[0]
    split = np.concatenate([W, -W])
    return mlp(
        [
            (split, np.concatenate([b, -b])),
            (np.concatenate([np.eye(n), -np.eye(n)], axis=1), np.zeros(n)),
        ]
    )


def pack(values: np.ndarray, dtype: str) -> dict[str, Any]:
    raw = zlib.compress(np.ascontiguousarray(values, dtype=dtype).tobytes())
    return {
        "dtype": dtype,
        "shape": list(np.shape(values)),
        "data": base64.b64encode(raw).decode("ascii"),
    }


def prove(loop: Loop, condition: str, limit: int = 4_000) -> dict[str, Any] | None:
    """A "branch" proof, or None when a box of the limit is reached."""
    trees = []
    for row in rows_of(loop, condition):
        tree = _tree(loop, row, limit)
        if tree is None:
            return None
        trees.append(tree)
    return {"version": 1, "kind": "branch", "condition": condition, "trees": trees}


def _tree(loop: Loop, row: Row, limit: int) -> dict[str, Any] | None:
    lower, upper = loop.lower.copy(), loop.upper.copy()
    if row.side is not None:
        axis, sign = row.side
        reach = float(hole_reach(loop)) * (1 - 2.0**-40)
        if side_is_empty(loop, axis, sign):
            return {"row": row.name, "empty": True}
        if sign > 0:
            lower[axis] = max(lower[axis], loop.equilibrium[axis] + reach)
        else:
            upper[axis] = min(upper[axis], loop.equilibrium[axis] - reach)
    bound = RowBound(row, lower, upper)
    axes: list[int] = []
    cuts: list[float] = []
    waiting = [(lower, upper)]
    while waiting:
        low, high = waiting.pop()
        if len(axes) > limit:
            return None
        if row.avoids_hole and inside_hole(loop, low[None], high[None])[0]:
            axes.append(-1)
        elif bound.upper(low[None], high[None])[0][0] < 0:
            axes.append(-2)
        else:
            axis = int(np.argmax(high - low))
            cut = (low[axis] + high[axis]) / 2
            left, right = high.copy(), low.copy()
            left[axis] = right[axis] = cut
            axes.append(axis)
            cuts.append(cut)
            waiting += [(right, high), (low, left)]
    return {
        "row": row.name,
        "lower": lower.tolist(),
        "upper": upper.tolist(),
        "axis": pack(np.array(axes), "<i1"),
        "cut": pack(np.array(cuts), "<f8"),
        "slopes": pack(np.zeros((0, row.first_width + row.lens_width)), "|u1"),
        "lenses": pack(np.zeros((0, 0, 0)), "<f8"),
    }


def region_proof(multipliers: np.ndarray) -> dict[str, Any]:
    return {
        "version": 1,
        "kind": "box",
        "condition": "region",
        "multipliers": pack(multipliers, "<f8"),
    }


def prove_region(loop: Loop, axis: int = 0, margin: float = 0.0) -> dict[str, Any] | None:
    """A "box" proof with one multiplier a row, or None where none of a few does it."""
    for weight in np.arange(0, 2, 0.125):
        proof = region_proof(weight * np.delete(np.eye(loop.n), axis, axis=0))
        try:
            check_region(loop, axis, margin, proof)
        except Refused:
            continue
        return proof
    return None


def answers(loop: Loop) -> dict[str, Answer]:
    """Each condition proved, or left unknown."""
    found = {name: prove(loop, name) for name in ("positivity", "decrease", "invariance")}
    found["region"] = prove_region(loop)
    return {
        name: Answer("proved", p) if p else Answer("unknown", reason="limit")
        for name, p in found.items()
    }


def class_proof(
    ship: Shipped, conditions: dict[str, Answer], label: int = 0, delta: float = 1e-9
) -> ClassProof:
    return ClassProof(
        label, "anchored", ship.controller, ship.lyapunov, ship.anchor, ship.loop, conditions, delta
    )


def certificate(
    ship: Shipped, conditions: dict[str, Answer], delta: float = 1e-9
) -> dict[str, Any]:
    return build_certificate(
        ship.head, [class_proof(ship, conditions, 0, delta)], provenance={"seed": 0}
    )
