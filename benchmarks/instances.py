"""The collection of closed loops that every engine is asked about, trained by graphkeel's own loop.

Each instance is a frozen random affine head, trained in one of the three forms on a narrow or a
wide box. `trained` is the loop as training left it, proved or not; `tightened` is the same loop
with ρ set two per cent below the largest V(F(y))/V(y) that a search finds, so that violations exist
but are small. Trained problems are kept as files, so the engines can be timed again without
training again."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np

from graphkeel.verify.problem import Problem
from graphkeel.verify.problem_io import read_problem, write_problem
from graphkeel.verify.rational import violates

FEATURES = 64
WIDTHS = {"narrow": (0.0, 1.0), "wide": (-1.5, 2.5)}  # the range of the logits
FORMS = ("anchored", "homogeneous", "paper")


@dataclass(frozen=True)
class Spec:
    """Which instance; its name is its key."""

    n: int
    hidden: int
    form: str
    width: str
    kind: str  # trained | tightened
    seed: int = 0

    @property
    def name(self) -> str:
        return f"n{self.n}_h{self.hidden}_{self.form}_{self.width}_{self.kind}"


def collection() -> list[Spec]:
    """Every size in all forms, boxes and kinds: 216 problems."""
    return [
        Spec(n, hidden, form, width, kind)
        for n in (3, 6, 7, 8, 10, 15)
        for hidden in (16, 32, 64)
        for form in FORMS
        for width in WIDTHS
        for kind in ("trained", "tightened")
    ]


def instances(folder: Path, specs: list[Spec], seconds: float) -> Iterator[tuple[Spec, Problem]]:
    """The problems, trained on first use and read from `folder` afterwards."""
    folder.mkdir(parents=True, exist_ok=True)
    for spec in specs:
        base = folder / f"{_key(spec, seconds)}.npz"
        if not base.exists():
            write_problem(_trained(spec, seconds), base)
        problem = replace(read_problem(base), name=spec.name)
        if spec.kind == "tightened":
            harder = tightened(problem)
            if harder is None:
                continue
            problem = harder
        yield spec, problem


def _key(spec: Spec, seconds: float) -> str:
    text = json.dumps({**asdict(spec), "kind": "", "seconds": seconds}, sort_keys=True)
    return f"{spec.name.rsplit('_', 1)[0]}_{hashlib.sha256(text.encode()).hexdigest()[:8]}"


def _trained(spec: Spec, seconds: float) -> Problem:
    """One class of a random frozen head, trained for at most `seconds`; proved or not is for the
    engines to say."""
    import torch

    from graphkeel.lyapunov import LyapunovConfig, portfolio_oracle
    from graphkeel.lyapunov.training import train
    from graphkeel.models.head import Head

    generator = torch.Generator().manual_seed(spec.seed)
    weight = torch.randn(spec.n, FEATURES, generator=generator, dtype=torch.float64) / FEATURES**0.5
    head = Head(
        ((weight.float().double(), torch.zeros(spec.n, dtype=torch.float64)),), FEATURES, spec.n
    )
    low, high = WIDTHS[spec.width]
    logits = low + (high - low) * torch.rand(500, spec.n, generator=generator, dtype=torch.float64)
    # A general gauge, as what the contraction factor proves alone would be no benchmark; and a hole
    # of 0.1, as float solvers cannot tell violations near a smaller one from their own tolerances.
    config = LyapunovConfig(
        form=spec.form,
        hidden=spec.hidden,
        gauge="general",
        epsilon=0.1,
        contraction=0.75,
        seconds=seconds,
        verify_seconds=5.0,
    )
    return train(head, logits, [0], config, oracle=portfolio_oracle).outcomes[0].problem


def tightened(problem: Problem, share: float = 0.98, samples: int = 20_000) -> Problem | None:
    """A loop with ρ just below its worst rate, or None where no state confirms that in exact
    arithmetic."""
    rng = np.random.default_rng(0)
    points = rng.uniform(problem.lower, problem.upper, size=(samples, problem.n))
    for scale in (0.1, 0.03, 0.01):
        near = worst_states(problem, points)
        steps = (
            scale
            * (problem.upper - problem.lower)
            * rng.normal(size=(samples // len(near), len(near), problem.n))
        )
        points = np.clip((near + steps).reshape(-1, problem.n), problem.lower, problem.upper)
        points = np.concatenate([points, near])
    worst = worst_states(problem, points)[0]
    rho = share * float(rates(problem, worst[None])[0])
    if not rho > 0:
        return None
    harder = replace(problem, rho=min(rho, problem.rho))
    return harder if violates(harder, "decrease", worst) else None


def worst_states(problem: Problem, points: np.ndarray, keep: int = 50) -> np.ndarray:
    """The points (m, n) outside the hole with the highest rates, the worst first."""
    points = points[~problem.in_hole(points)]
    return points[np.argsort(-rates(problem, points))[:keep]]


def rates(problem: Problem, points: np.ndarray) -> np.ndarray:
    """V(F(y))/V(y) at points (m, n), 0 where V is not positive."""
    here = problem.lyapunov(points)[:, 0]
    after = problem.lyapunov(problem.closed_loop(points))[:, 0]
    return np.where(here > 0, after / np.where(here > 0, here, 1.0), 0.0)
