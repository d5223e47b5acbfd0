"""The attack: a counterexample by random inputs, gradient steps, a linear program in the cell.

All of it is in floats and decides nothing; a point counts once `Case.holds_at` has replayed it."""

from __future__ import annotations

import numpy as np

from graphkeel.verify.problem import Array
from graphkeel.verify.property.network import BlockNetwork
from graphkeel.verify.property.question import Case
from graphkeel.verify.rational import rounded_down
from graphkeel.verify.settings import PROPERTY, PropertySettings


class Attack:
    """The search for a member of one case, from seeded random inputs."""

    def __init__(
        self,
        network: BlockNetwork,
        case: Case,
        settings: PropertySettings = PROPERTY,
    ) -> None:
        self.settings = settings
        self.network = network
        self.case = case
        self.joined = case.joined(network)
        self.lower, self.upper = _inner_box(case)
        self.rng = np.random.default_rng(0)
        self.searched = False

    def search(self) -> Array | None:
        """A member of the case, once; None proves nothing."""
        if self.searched:
            return None
        self.searched = True
        return self.search_again()

    def search_again(self) -> Array | None:
        """A member of the case, from new inputs."""
        if not (self.lower <= self.upper).all():
            return None  # thinner than a float can be
        shape = (self.settings.samples, self.network.inputs)
        points = self.rng.uniform(self.lower, self.upper, shape)
        points[0] = 0.5 * self.lower + 0.5 * self.upper
        points = np.clip(points, self.lower, self.upper)
        values = self._margins(points)
        order = np.argsort(-values)[: self.settings.starts]
        found = self._confirmed(points[order[0]], values[order[0]])
        return self._gradient_search(points[order]) if found is None else found

    def __call__(self, point: Array) -> Array | None:
        """The point, or one that a climb in its cell reaches, if that is a member; float32 numbers
        inside the box if they do.

        Args:
            point: an input, shape (inputs,).
        """
        inside = np.clip(point, self.lower, self.upper)
        if self._is_member(short := self._in_float32(inside)):
            return short
        higher = self._climb(inside)
        if higher is not None and self._is_member(short := self._in_float32(higher)):
            return short
        return next((x for x in (inside, higher) if x is not None and self._is_member(x)), None)

    def _is_member(self, point: Array) -> bool:
        """Whether a point is a member; exact arithmetic decides where floats leave a doubt."""
        with np.errstate(over="ignore", invalid="ignore"):
            values = self.joined.forward(point[None])
            size = max(float(np.abs(part).max(initial=0.0)) for part in values)
            margin = float(values[-1].min())
        clearly_not = np.isfinite(size) and margin < -self.settings.near_zero * (1.0 + size)
        return not clearly_not and self.case.holds_at(self.network, point)

    def _in_float32(self, point: Array) -> Array:
        """The nearest float32 numbers inside the box; where there are none, those outside."""
        with np.errstate(over="ignore"):
            short = point.astype(np.float32)
            lowered, raised = (np.nextafter(short, np.float32(end)) for end in (-np.inf, np.inf))
        short = np.where(short > self.upper, lowered, np.where(short < self.lower, raised, short))
        return np.asarray(short, dtype=np.float64)

    def _margins(self, points: Array) -> Array:
        """The smallest inequality at each point."""
        values: Array = self.joined.outputs_at(points).min(axis=1)
        return values

    def _confirmed(self, point: Array, value: float) -> Array | None:
        return self(point) if value >= -self.settings.near_zero else None

    def _gradient_search(self, points: Array) -> Array | None:
        """Signed gradient steps that get shorter."""
        widths = self.upper - self.lower
        for step in range(self.settings.ascent_steps):
            values = self.joined.forward(points)
            gradient = self.joined.gradients(values, values[-1].argmin(axis=1))
            length = 0.25 * 0.75**step
            points = np.clip(points + length * widths * np.sign(gradient), self.lower, self.upper)
            margins = self._margins(points)
            best = int(np.argmax(margins))
            found = self._confirmed(points[best], margins[best])
            if found is not None:
                return found
        return None

    def _climb(self, point: Array) -> Array | None:
        """The input of the point's activation cell where the smallest inequality is largest."""
        from scipy.optimize import linprog

        rows, ends, forms, constants = self.joined.cell(point)
        n = point.shape[0]
        above = np.hstack([-forms, np.ones((forms.shape[0], 1))])  # t ≤ s_j
        inside = np.hstack([rows, np.zeros((rows.shape[0], 1))])
        goal = np.zeros(n + 1)
        goal[-1] = -1.0
        bounds = [*zip(self.lower, self.upper, strict=True), (None, 1.0)]
        try:
            answer = linprog(
                goal, np.vstack([above, inside]), np.concatenate([constants, ends]), bounds=bounds
            )
        except ValueError:
            return None
        if answer.x is None:
            return None
        return np.clip(answer.x[:n], self.lower, self.upper)


def _inner_box(case: Case) -> tuple[Array, Array]:
    """The floats inside a case's box: its ends rounded inward."""
    lower = np.array([-rounded_down(-low) for low, _ in case.ends])
    upper = np.array([rounded_down(high) for _, high in case.ends])
    return lower, upper
