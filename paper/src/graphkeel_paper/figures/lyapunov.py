"""Figure 5: the Lyapunov surface around the equilibrium and, beside it, what the paper does not
show: trajectories of the closed loop, and the counterexamples that training met.

The first row is the default (anchored) form, the second the paper's free form with its own loss.
States have as many dimensions as there are classes; the pictures show the plane through Y along the
two leading principal directions of the model's logits, onto which trajectories and counterexamples
are projected."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphkeel.graph import GraphTask
from graphkeel.lyapunov import LyapunovConfig, certify
from graphkeel.models.frozen import FrozenModel
from graphkeel.runs.run import prepare
from graphkeel.verify.problem import Problem
from graphkeel.verify.result import VerifyReport
from graphkeel_paper.baselines.frozen.controllers import boxes_oracle
from graphkeel_paper.baselines.rival import drawn_class
from graphkeel_paper.figures import BAD, GOOD, INK, SOFT, Drawn, canvas, heading, save
from graphkeel_paper.specs import RunSpec

Array = NDArray[np.float64]

FORMS = {"anchored": "anchored form (ours)", "paper": "the paper's free form"}
CONDITIONS = {  # colour and marker of their counterexamples
    "positivity": ("#cc79a7", "x"),
    "decrease": (BAD, "+"),
    "invariance": ("#e69f00", "1"),
}


@dataclass(frozen=True)
class _SurfaceSettings:
    """Size and cost of the picture."""

    grid: int = 90  # points of a side of the surface
    steps: int = 12  # of the trajectories
    starts: int = 60
    seconds: float = 1e9  # for Algorithm 1; more than it takes, so that rounds and boxes end it
    paper_rounds: int = 6  # of the paper's free form, which has never ended in a proof
    ticks: int = 4  # of an axis, at most


SETTINGS = _SurfaceSettings()


@dataclass(frozen=True, eq=False)
class Loop:
    """A trained closed loop: the question about it, its verdict, and the counterexamples on the
    way."""

    form: str
    problem: Problem
    verdict: str
    rounds: int
    met: list[tuple[str, Array]]  # the condition that a state violates


@dataclass(frozen=True, eq=False)
class Plane:
    """Y + a·u + b·w, and how states fall onto it."""

    centre: Array
    axes: Array  # (2, n), orthonormal
    radius: Array  # (2,), half-widths shown

    @staticmethod
    def of(logits: Array, centre: Array, lower: Array, upper: Array) -> Plane:
        """The plane through Y along the two leading principal directions of the logits, as far as
        the box and the logits reach."""
        _, _, directions = np.linalg.svd(logits - logits.mean(axis=0), full_matrices=False)
        axes = directions[:2]
        corners = np.stack([lower, upper]) - centre
        room = np.abs(corners).min(axis=0)[None] / np.maximum(np.abs(axes), 1e-9)
        reach = np.minimum(room, 1e9).min(axis=1)
        radius = np.minimum(reach, 1.2 * np.abs((logits - centre) @ axes.T).max(axis=0))
        return Plane(centre, axes, np.maximum(radius, 1e-3))

    def grid(self) -> tuple[Array, Array, Array]:
        """(a, b, states) of a grid over the plane's window."""
        a, b = (np.linspace(-r, r, SETTINGS.grid) for r in self.radius)
        first, second = np.meshgrid(a, b)
        states = self.centre + first[..., None] * self.axes[0] + second[..., None] * self.axes[1]
        return first, second, states

    def flat(self, states: Array) -> Array:
        """States as coordinates in the plane."""
        return (states - self.centre) @ self.axes.T


def _train_loop(frozen: FrozenModel, task: GraphTask, label: int, form: str, seed: int) -> Loop:
    """Algorithm 1 for one class, writing down every counterexample."""
    met: list[tuple[str, Array]] = []

    def verify(problem: Problem, *, seconds: float, complete: bool) -> VerifyReport:
        report = boxes_oracle(problem, seconds=seconds, complete=complete)
        for one in report.conditions:
            if one.counterexample is not None:
                met.append((one.condition, np.asarray(one.counterexample)))
        return report

    seconds = SETTINGS.seconds
    config = LyapunovConfig(form=form, seed=seed, seconds=seconds, verify_seconds=seconds)
    config = replace(config, rounds=SETTINGS.paper_rounds) if form == "paper" else config
    graph = (task.x, task.edge_index)
    result = certify(frozen, *graph, config, classes=[label], verifier=verify)
    outcome = result.outcomes[0]
    return Loop(form, outcome.problem, outcome.verdict.value, len(result.log), met)


def trajectories(loop: Loop, starts: Array, steps: int = SETTINGS.steps) -> Array:
    """States y, F(y), F(F(y)), … of shape (starts, steps + 1, n)."""
    states = [starts]
    for _ in range(steps):
        states.append(loop.problem.closed_loop(states[-1]))
    return np.stack(states, axis=1)


def draw_lyapunov(spec: RunSpec, seed: int, out: Path) -> Drawn:
    """Surface, trajectories with the counterexamples, V along them; a row for each form."""
    prepared = prepare(spec, seed)
    task = prepared.task
    label = drawn_class(task, task.train_mask.nonzero().flatten(), seed)
    logits = prepared.frozen.logits(task.x, task.edge_index).double().numpy()
    loops = [_train_loop(prepared.frozen, task, label, form, seed) for form in FORMS]
    count = min(SETTINGS.starts, task.n_nodes)
    starts = logits[np.random.default_rng(seed).choice(task.n_nodes, count, replace=False)]
    with canvas(3, len(loops), width=4.4, height=3.6, squeeze=False) as (figure, axes):
        numbers = {}
        for row, loop in zip(axes, loops, strict=True):
            problem = loop.problem
            plane = Plane.of(logits, problem.equilibrium, problem.lower, problem.upper)
            paths = trajectories(loop, starts)
            numbers[loop.form] = loop_numbers(loop, paths)
            _surface(figure, row[0], loop, plane)
            _phase(row[1], loop, plane, paths)
            _decline(row[2], loop, paths)
        _legend(figure, axes)
        title = "the Lyapunov function around Y, and its closed loop"
        heading(figure, f"{task.name}, class {label}: {title}")
        files = save(figure, out, "figure-5")
    return Drawn(files, {"figure": 5, "dataset": task.name, "class": label, "forms": numbers})


def loop_numbers(loop: Loop, paths: Array) -> dict[str, Any]:
    """The picture in numbers."""
    values = _values(loop, paths)
    outside = ~loop.problem.in_hole(paths[:, :-1])
    rising = (values[:, 1:] >= values[:, :-1]) & outside
    distance = np.linalg.norm(paths[:, -1] - loop.problem.equilibrium, axis=1)
    return {
        "verdict": loop.verdict,
        "rounds": loop.rounds,
        "counterexamples": len(loop.met),
        "steps_on_which_V_does_not_fall": int(rising.sum()),
        "steps_looked_at": int(outside.sum()),
        "farthest_end_from_Y": float(distance.max()),
    }


def _values(loop: Loop, states: Array) -> Array:
    return loop.problem.lyapunov(states)[..., 0]


# ---- panels


def _surface(figure: Any, axes: Any, loop: Loop, plane: Plane) -> None:
    from matplotlib.ticker import MaxNLocator

    spot = axes.get_subplotspec()
    axes.remove()
    solid = figure.add_subplot(spot, projection="3d")
    first, second, states = plane.grid()
    heights = _values(loop, states)
    solid.plot_surface(
        first, second, heights, cmap="viridis", rcount=45, ccount=45, linewidth=0, rasterized=True
    )
    bottom = float(_values(loop, plane.centre[None])[0])
    solid.scatter([0], [0], [bottom], color=BAD, s=28, depthshade=False)
    solid.view_init(elev=32, azim=-58)
    solid.tick_params(labelsize=7, pad=-2)
    for axis in (solid.xaxis, solid.yaxis, solid.zaxis):
        axis.set_major_locator(MaxNLocator(SETTINGS.ticks - 1))
        axis.set_pane_color((0.97, 0.97, 0.98, 1.0))
    solid.set_title(f"V, {FORMS[loop.form]}", color=INK)


def _phase(axes: Any, loop: Loop, plane: Plane, paths: Array) -> None:
    from matplotlib.ticker import MaxNLocator

    first, second, states = plane.grid()
    axes.contourf(first, second, _values(loop, states), levels=18, cmap="viridis", alpha=0.35)
    flat = plane.flat(paths)
    for path in flat:
        axes.plot(path[:, 0], path[:, 1], color=INK, linewidth=0.7, alpha=0.55)
    label = "starts: logits of nodes"
    axes.scatter(flat[:, 0, 0], flat[:, 0, 1], s=8, color=INK, linewidths=0, label=label)
    for condition, (colour, marker) in CONDITIONS.items():
        found = [state for violated, state in loop.met if violated == condition]
        if found:
            points = plane.flat(np.stack(found))
            label = f"counterexample to {condition}"
            axes.scatter(points[:, 0], points[:, 1], s=34, marker=marker, color=colour, label=label)
    axes.scatter([0], [0], s=70, marker="*", color=BAD, zorder=5, label="Y")
    reach = np.maximum(plane.radius, 1.05 * np.abs(flat[:, 0]).max(axis=0))
    axes.set_xlim(-reach[0], reach[0])
    axes.set_ylim(-reach[1], reach[1])
    axes.xaxis.set_major_locator(MaxNLocator(SETTINGS.ticks))
    axes.yaxis.set_major_locator(MaxNLocator(SETTINGS.ticks))
    axes.set_title("trajectories of y⁺ = F(y)\n", color=INK)
    count = len(loop.met) or "no"
    rounds = f"{loop.rounds} round{'s' if loop.rounds > 1 else ''}"
    said = f"{loop.verdict}; {count} counterexamples in {rounds}"
    axes.text(0, 1.02, said, transform=axes.transAxes, fontsize=8.5, color=SOFT)


def _decline(axes: Any, loop: Loop, paths: Array) -> None:
    """V step by step; a trajectory on which it rises outside the hole is dashed."""
    from matplotlib.ticker import FixedLocator, LogLocator, MaxNLocator, NullLocator

    values = _values(loop, paths)
    rising = (np.diff(values, axis=1) >= 0) & ~loop.problem.in_hole(paths[:, :-1])
    for line, bad in zip(values, np.asarray(rising.any(axis=1)), strict=True):
        look: dict[str, Any] = {"color": GOOD, "label": "V falls at every step"}
        if bad:
            look = {"color": BAD, "linestyle": "--", "label": "V rises at some step"}
        axes.plot(np.arange(len(line)), line, linewidth=0.8, alpha=0.6, **look)
    if (values > 0).all():
        axes.set_yscale("log")
        axes.yaxis.set_major_locator(LogLocator(numticks=SETTINGS.ticks))
    else:  # V of the free form may be negative, and grow beyond bounds along the loop
        axes.set_yscale("symlog", linthresh=1.0)
        largest = 10.0 ** np.floor(np.log10(max(float(np.abs(values).max()), 1.0)))
        axes.yaxis.set_major_locator(FixedLocator([-largest, 0.0, largest]))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_locator(MaxNLocator(SETTINGS.ticks, integer=True))
    axes.set_xlabel("step")
    axes.set_title("V along them\n", color=INK)


def _legend(figure: Any, axes: Any) -> None:
    """One legend below all panels, so that it covers none of the curves."""
    found: dict[str, Any] = {}
    for place in axes[:, 1:].ravel():
        for handle, label in zip(*place.get_legend_handles_labels(), strict=True):
            found.setdefault(label, handle)
    figure.legend(found.values(), found.keys(), loc="outside lower center", ncols=4, fontsize=9)
