"""Steering: the smallest change of the features under which the frozen model answers as decided.

The state is what the model answers at all nodes, the control is the features. With Δ = (X' - X)/s,
s the median length of a feature, z the logits in units of the model's median margin, w(v) the
wanted class and p_v its probability,

    V(X') = ½ Σ_v p_v Σ_{k ≠ w(v)} max(0, margin - (z_v,w(v) - z_v,k))² + ½ ridge |Δ|²

falls at every accepted step of L-BFGS. Nodes whose margin suffices pull at nothing: where they and
the nodes that hear them are content, features stay as they are, to the bit. Where two nodes cannot
both be served, the surer one is. For a linear model V is strongly convex and has one minimum. Where
another model would leave too many nodes with another answer, the ridge is lowered on the way; V
falls by that, too. Steps are preconditioned by a polynomial of the graph's propagation: it changes
the path, not V.

Where features were steered before, few nodes are missing, and few of these are neighbours. Of a
model that is not linear each of them then takes Newton's step on its own part of V."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial

import torch
from torch import Tensor

from graphkeel.core.memory import release_memory
from graphkeel.core.steps import stage
from graphkeel.graph.propagate.rowwise import fold, rowwise, stored
from graphkeel.models.linear_map import LinearMap, Propagation
from graphkeel.models.narrowed import Forward, Narrowed
from graphkeel.models.units import (
    check_finite,
    moved_along,
    relative_change,
    typical_length,
    typical_margin,
)


@dataclass(frozen=True)
class SteerSettings:
    """Numbers that decide how features are steered.

    The preconditioner and `goal` were chosen on split 0 of cases of `benchmarks/bench_steer.py`;
    figures are means of splits 20 and 21. `margin` was chosen before there was a preconditioner.

    Attributes:
        margin: by which the wanted class should win, in median margins of the untouched model. On
            citation graphs 0.3, 0.6, 1 and 2 agree within 0.2 points, on Photo and chameleon within
            0.3; the change is ten times larger with 2.
        ridge: what change costs beside missing margin. Photo and chameleon SGC: 98.0 and 97.5 % at
            changes of 0.29 and 0.22 with 0.003, 97.9 and 97.1 at 0.23 and 0.17 with 0.01, 97.3 and
            96.2 at 0.16 and 0.13 with 0.03.
        least_ridge: to which the ridge falls, by tenths, where a model that is not linear would
            otherwise stay below `goal`. GCN on words of Photo, split 0: 89 % with 0.01, 92.8 with
            0.001, 93.2 with 0.0001 at 1.3 times the passes; splits 20 and 21 need 0.001: 98 %.
        passes: of the model, forward and backward, that every fit may spend.
        most_passes: spent where nodes still disagree and further passes win some of them over.
        work: passes times nodes that both are cut to on large graphs, where a pass takes seconds:
            200 passes up to 25,000 nodes, 50 at 100,000, but never fewer than
        fewest_passes: at any size, and twice as many where nodes still disagree. What they buy can
            be used: V falls at every step.
        goal: share of nodes, answered as wanted or tied, from which `passes` are enough; 0.99 takes
            85 passes instead of 45 on Computers SGC for 0.3 points, 144 for 75 on chameleon GCN.
        progress: share of nodes that the last `passes` must have won over.
        rank: directions in which features may move if the model's weights do not tell them.
        memory: steps that L-BFGS remembers; SGC with 5, 20 and 40, GCN with 10, 20 and 40 agree
            within 0.2 points; fewer where they take more than
        memory_bytes: a GraphSAGE on 300,000 nodes keeps three of them; but at least
        least_memory: of them.
        again: passes that are spent in any case where features were steered before.
        damping: of a linear model's preconditioner, in ridges; 1 and 100 agree within 0.2 points,
            1 at a fifth more change on Cora, 100 and 1000 after 1.2 and 1.8 times the passes.
        softening: of other models' preconditioner, beside the largest eigenvalue 1. Chameleon GCN
            takes 98 passes with 0.3, 75 with 0.03, 61 with 0.003 at a tenth more change.
        first_step: mean relative change of the first trial step.
        tried: trials of a line search, whose lengths are guessed on about
        searched: evenly spaced nodes; whether V falls is seen on all.
        is_cut: the graph is so large that `passes` are cut: then the answers are those that the
            loop has seen last, with no further pass.
    """

    margin: float = 0.3
    ridge: float = 0.01
    least_ridge: float = 1e-3
    passes: int = 20
    most_passes: int = 200
    work: int = 5_000_000
    fewest_passes: int = 15
    goal: float = 0.98
    progress: float = 0.003
    rank: int = 64
    memory: int = 10
    memory_bytes: int = 2**28
    least_memory: int = 3
    again: int = 4
    damping: float = 10.0
    softening: float = 0.03
    first_step: float = 0.01
    tried: int = 6
    searched: int = 20_000
    is_cut: bool = False

    def at_size(self, n_nodes: int) -> SteerSettings:
        """With the passes that a graph may spend.

        Args:
            n_nodes: of the graph.
        """
        budget = max(self.fewest_passes, self.work // max(1, n_nodes))
        most = max(2 * self.fewest_passes, budget)
        fewer = {"passes": min(self.passes, budget), "most_passes": min(self.most_passes, most)}
        return replace(self, **fewer, is_cut=budget < self.passes)


@dataclass(frozen=True)
class Steered:
    """Features under which the model answers as wanted, as far as it can.

    Attributes:
        features: float32, shape (N, d); rows that need no change are those of x to the bit.
        fall: V at the start, after every accepted step and after every lowering of the ridge;
            never rises.
        passes: of the model.
        agreement: share of nodes answered as wanted.
        tied: share of nodes that are not, and that the model answers exactly as a node of another
            wanted class: nodes with the same neighbours are all one to most models.
        answer: the model's class of every node, shape (N,).
        margins: of the wanted class over the best other one, in logits, shape (N,).
        change: |x' - x| / |x| of every node, shape (N,); for x = 0 relative to the median length.
    """

    features: Tensor
    fall: tuple[float, ...]
    passes: int
    agreement: float
    tied: float
    answer: Tensor = field(repr=False)
    margins: Tensor = field(repr=False)
    change: Tensor = field(repr=False)


def steer(
    forward: Forward,
    x: Tensor,
    wanted: Tensor,
    posterior: Tensor,
    settings: SteerSettings | None = None,
    *,
    linear: LinearMap | None = None,
    narrow: Narrowed | None = None,
    propagation: Propagation | None = None,
    earlier: Earlier | None = None,
) -> Steered:
    """Change the features as little as the model needs to answer with the wanted classes.

    Args:
        x: the features as they are, float32, shape (N, d); not changed.
        wanted: the class that every node should be answered with, int64, shape (N,).
        posterior: class probabilities; a node counts by its wanted class's, shape (N, C).
        propagation: roughly how the model blurs features; steps undo some of that.
        earlier: where to begin, by default at the features as they are.
    """
    chosen = (settings or SteerSettings()).at_size(len(x))
    check_finite(x, "features")
    length = typical_length(x)
    loss = _Loss(wanted, posterior.to(x).gather(1, wanted[:, None]), chosen.margin)
    model: _Affine | _Asked
    if linear is not None:
        model = _Affine(linear, x, length, chosen.damping * chosen.ridge)
        basis = model.directions
    else:
        narrow = narrow or Narrowed.not_at_all(forward, x)
        inverse: Forward = torch.clone
        if propagation is not None:
            inverse = propagation.inverse(x.new_ones(1), chosen.softening)
        model = _Asked(narrow, length, inverse, earlier)
        basis = narrow.directions
    if earlier is None:
        loop = _Loop(model, loss, chosen)
    else:
        start = earlier.coefficients(x, wanted, length, basis)
        chosen = replace(chosen, passes=min(chosen.again, chosen.passes))
        loop = _Loop(model, loss, chosen, start)
        del start
    moves = length * loop.run()
    is_asked = earlier is None and not chosen.is_cut
    fall, unit, passes = tuple(loop.fall), model.unit, model.passes + is_asked
    last = None if is_asked else loop.logits * unit  # asked as the loop has found it may be
    del loop, model, linear, narrow  # the whole model needs the room for its messages
    release_memory()
    features = moved_along(x, moves, basis)
    with torch.no_grad():
        logits = forward(features) if last is None else last
    margins = loss.margins(logits)
    return Steered(
        features=features,
        fall=fall,
        passes=passes,
        agreement=float((margins > 0).float().mean()),
        tied=loss.tied(logits / unit, margins),
        answer=logits.argmax(dim=1),
        margins=margins,
        change=relative_change(features, x),
    )


@dataclass(frozen=True)
class Earlier:
    """Features that were steered before, on the graph as it was or by fewer labels.

    Attributes:
        features: shape (M, d), of the first M nodes.
        change: |x' - x| / |x| then, shape (M,): a node whose own features are others by now begins
            as one that has come.
        logits: of the untouched model on the graph as it is, shape (N, C).
    """

    features: Tensor
    change: Tensor
    logits: Tensor

    def coefficients(self, x: Tensor, wanted: Tensor, length: float, basis: Tensor) -> Tensor:
        """Moves to begin with: those there were; of nodes that have come and are not answered as
        wanted the mean of those of their class."""
        n_old = len(self.features)
        then = x[:n_old]
        found = x.new_zeros(len(x), basis.shape[1])
        found[:n_old] = rowwise(lambda part, was: (part - was) @ basis, self.features, then)
        away = (relative_change(self.features, then) - self.change).abs()
        is_new = torch.ones(len(x), dtype=torch.bool)
        is_new[:n_old] = away > 1e-3 * self.change + 1e-6
        found[is_new] = 0.0
        sums = x.new_zeros(self.logits.shape[1], basis.shape[1]).index_add_(0, wanted, found)
        counts = wanted[~is_new].bincount(minlength=len(sums)).clamp_min(1)
        missing = is_new & (self.logits.argmax(dim=1) != wanted)
        found[missing] = (sums / counts[:, None])[wanted[missing]]
        return found / length


@dataclass(frozen=True)
class _Loss:
    """½ Σ_v p_v Σ_k max(0, margin - (z_w - z_k))²: convex, its gradient C-Lipschitz as p <= 1."""

    wanted: Tensor
    weight: Tensor  # (N, 1)
    margin: float

    def value(self, logits: Tensor) -> float:
        return float(fold(lambda part: float(part.sum()), self.of_nodes(logits)))

    def of_nodes(self, logits: Tensor) -> Tensor:
        """The terms of the nodes, float64, shape (N,)."""
        return self._of_rows(_terms, logits)

    def gradient(self, logits: Tensor) -> Tensor:
        return self._of_rows(_slopes, logits)

    def _of_rows(self, function: Callable[..., Tensor], logits: Tensor) -> Tensor:
        arrays = (logits, self.wanted, self.weight)
        return rowwise(partial(function, self.margin), *arrays)  # type: ignore[no-any-return]

    def margins(self, logits: Tensor) -> Tensor:
        """Of the wanted class over the best other one, shape (N,)."""
        return stored(rowwise(_margins, logits, self.wanted))  # type: ignore[no-any-return]

    def tied(self, logits: Tensor, margins: Tensor) -> float:
        """Share of nodes that disagree and have the logits of a node that agrees."""
        agrees = margins > 0
        group = rowwise(_hashed, logits)
        return int(torch.isin(group[~agrees], group[agrees]).sum()) / max(1, len(logits))


def _shortfall(margin: float, logits: Tensor, wanted: Tensor) -> Tensor:
    """By how much the wanted class misses its margin over every other; negative: has more."""
    column = wanted[:, None]
    missing = margin - logits.gather(1, column) + logits
    return missing.scatter_(1, column, 0.0)


def _terms(margin: float, logits: Tensor, wanted: Tensor, weight: Tensor) -> Tensor:
    missing = _shortfall(margin, logits, wanted).clamp_min_(0.0)
    return 0.5 * weight[:, 0].double() * missing.double().square().sum(dim=1)


def _slopes(margin: float, logits: Tensor, wanted: Tensor, weight: Tensor) -> Tensor:
    missing = _shortfall(margin, logits, wanted).clamp_min_(0.0).mul_(weight)
    return missing.scatter_(1, wanted[:, None], -missing.sum(dim=1, keepdim=True))


def _margins(logits: Tensor, wanted: Tensor) -> Tensor:
    column = wanted[:, None]
    others = logits.scatter(1, column, -math.inf).amax(dim=1)
    return logits.gather(1, column).squeeze(1) - others


def _hashed(logits: Tensor) -> Tensor:
    factors = [pow(6364136223846793005, k + 1, 2**63) for k in range(logits.shape[1])]
    return ((1e4 * logits).round().long() * torch.tensor(factors).to(logits.device)).sum(dim=1)


class _Affine:
    """A linear model: its answers to coefficients M, the features being X + s M Qᵀ."""

    is_affine = True

    def __init__(self, linear: LinearMap, x: Tensor, length: float, ridge: float) -> None:
        raw = linear.logits(x)
        self.unit = typical_margin(raw)
        self.logits = raw / self.unit
        left, sizes, self.directions = linear.directions()
        gains = sizes * (length / self.unit)
        self._hops = linear.propagation
        self._upper = gains[:, None] * left
        self.precondition = self._hops.inverse(gains, ridge)
        self.passes = 1

    def answer(self, coefficients: Tensor) -> Tensor:
        self.passes += 2  # with `pull` one, with `precondition` another
        return self.logits + self._hops.forth(coefficients @ self._upper)

    def pull(self, gradient: Tensor) -> Tensor:
        """The gradient of the logits, carried back to the coefficients."""
        return self._hops.back(gradient) @ self._upper.T


class _Asked:
    """Any model that passes gradients back: its answers to the start plus s M."""

    is_affine = False

    logits: Tensor
    _back: Forward

    def __init__(
        self, narrow: Narrowed, length: float, precondition: Forward, earlier: Earlier | None
    ) -> None:
        self._ask = narrow.ask
        self._start = narrow.start
        self._length = length
        self.precondition = precondition
        self.passes = narrow.passes
        self.unit = 1.0
        if earlier is not None:  # the answers at zero are known
            self.unit = typical_margin(earlier.logits)
            return
        raw = self.answer(torch.zeros_like(self._start))
        self.unit = typical_margin(raw)
        self.logits = raw / self.unit

    def answer(self, coefficients: Tensor) -> Tensor:
        self.passes += 1
        found, self._back = self._ask(self._start + self._length * coefficients)
        return found / self.unit

    def pull(self, gradient: Tensor) -> Tensor:
        """The gradient of the logits, at the point that was asked last."""
        return self._length * self._back(gradient / self.unit)


class _Loop:
    """Minimises V over coefficients of the model's own directions.

    `logits`, `gradient` and the last of `fall` belong to `coefficients`."""

    def __init__(
        self,
        model: _Affine | _Asked,
        loss: _Loss,
        settings: SteerSettings,
        start: Tensor | None = None,
    ) -> None:
        self.model = model
        self.loss = loss
        self.settings = settings
        self.ridge = settings.ridge
        self._by_node = start is not None and not model.is_affine
        self._see(model.logits if start is None else model.answer(start))
        pull = model.pull(loss.gradient(self.logits))
        self.coefficients = torch.zeros_like(pull) if start is None else start
        self.gradient = pull if start is None else pull + self.ridge * start
        self._is_behind = False
        self.fall = [self._value(self.logits, self.coefficients)]
        self.won = [self.agreement]
        fitting = settings.memory_bytes // (2 * self.gradient.nbytes + 1)
        kept = min(settings.memory, max(settings.least_memory, fitting))
        kept = 0 if self._by_node else kept
        self.pairs: deque[tuple[Tensor, Tensor, float]] = deque(maxlen=kept)
        self._relaxed_at = 0

    def run(self) -> Tensor:
        """The coefficients, when all nodes are content or no more passes pay."""
        while not self._is_done() and (self._step() or self._relax()):
            stage(f"steering, {self.model.passes} passes, {100 * self.won[-1]:.1f} % as wanted")
            self.won += [self.agreement] * (self.model.passes - 1 - len(self.won))
        return self.coefficients

    def _is_done(self) -> bool:
        chosen = self.settings
        if bool((self.margins >= chosen.margin / 2).all()):
            return True
        if self._left(chosen.passes) > 0:
            return False
        if self._has_won() or self._left(chosen.most_passes) <= 0:
            return True
        return self._is_stuck() and not self._relax()

    def _has_won(self) -> bool:
        missing = self.settings.goal - self.won[-1]
        return missing <= 0 or self.loss.tied(self.logits, self.margins) >= missing

    def _is_stuck(self) -> bool:
        before = len(self.won) - 1 - self.settings.passes
        if before < self._relaxed_at:
            return False
        return self.won[-1] - self.won[before] < self.settings.progress

    def _relax(self) -> bool:
        """Let change cost less, so that V falls; False where it costs as little as it may. A linear
        model keeps the V that its theorem is about."""
        if self.model.is_affine or self.ridge <= self.settings.least_ridge or self._has_won():
            return False
        less = 0.9 * self.ridge
        self.ridge -= less
        if not self._is_behind:
            self.gradient = self.gradient - less * self.coefficients
        known = [(step, curved - less * step) for step, curved, _ in self.pairs]
        self.pairs.clear()
        for step, curved in known:
            self._remember(step, curved)
        self.fall.append(self._value(self.logits, self.coefficients))
        self._relaxed_at = len(self.won) - 1
        return True

    def _left(self, passes: int) -> int:
        """Steps; one pass is kept for the features that ship, a linear model's step takes two."""
        return (passes - 1 - self.model.passes) // (1 + self.model.is_affine)

    def _is_last(self) -> bool:
        return 0 in (self._left(self.settings.passes), self._left(self.settings.most_passes))

    def _step(self) -> bool:
        """One step of L-BFGS with a line search; False where V does not fall.

        The logits of a linear model along a line are known from two of its points."""
        direction = self._direction()
        is_affine = self.model.is_affine
        length = 1.0
        if not (self.pairs or is_affine or self._by_node):
            size = float(direction.norm()) or 1.0
            length = self.settings.first_step * len(direction) ** 0.5 / size
        for _ in range(self.settings.tried):
            logits = self.model.answer(self.coefficients + length * direction)
            best = self._line_minimum(direction, logits, length)
            ratio = best / length
            is_near = 0.3 <= ratio <= 3
            if is_affine and 1e-3 <= ratio <= 5:
                logits = self.logits + ratio * (logits - self.logits)
                length = best
                is_near = True
            step = length * direction
            value = self._value(logits, self.coefficients + step)
            if value < self.fall[-1] and (is_near or self._is_last()):
                self._accept(logits, step)
                self.fall.append(value)
                return True
            if self._is_last():
                return False
            length = min(max(best, 0.1 * length), 10 * length)
        return False

    def _accept(self, logits: Tensor, step: Tensor) -> None:
        self.coefficients = stored(self.coefficients + step)
        self._see(logits)
        self._is_behind = self._by_node
        if not self._is_behind:
            before = self.gradient
            self.gradient = self._gradient()
            self._remember(step, self.gradient - before)

    def _gradient(self) -> Tensor:
        """Of V, at the point that was asked last."""
        pull = self.model.pull(self.loss.gradient(self.logits))
        return stored(pull + self.ridge * self.coefficients)

    def _remember(self, step: Tensor, curved: Tensor) -> None:
        along = float((step * curved).sum())
        if along > 0:
            self.pairs.append((stored(step), stored(curved), 1 / along))

    def _direction(self) -> Tensor:
        """Minus the inverse Hessian that L-BFGS has seen, times the gradient; by nodes Newton's
        step, as if each were alone, but none longer than a feature."""
        if self._is_behind:
            self.gradient = self._gradient()
            self._is_behind = False
        if self._by_node:
            squares = self.gradient.square().sum(dim=1, keepdim=True).clamp_min(1e-30)
            factor = 2 * self.loss.of_nodes(self.logits)[:, None].float() / squares
            return -factor.minimum(squares.rsqrt()) * self.gradient
        found = -self.gradient
        shares = []
        for step, curved, inverse in reversed(self.pairs):
            shares.append(inverse * float((step * found).sum()))
            found = found - shares[-1] * curved
        found = self.model.precondition(found)
        if self.pairs and not self.model.is_affine:  # a linear model's own scale is known
            _, curved, inverse = self.pairs[-1]
            found = found / (inverse * float((curved * self.model.precondition(curved)).sum()))
        for (step, curved, inverse), share in zip(self.pairs, reversed(shares), strict=True):
            found = found + (share - inverse * float((curved * found).sum())) * step
        return stored(found)

    def _line_minimum(self, direction: Tensor, logits: Tensor, start: float) -> float:
        """Where V is least along a line on which logits change as they do up to `start`
        (Newton)."""
        some = slice(None, None, max(1, len(direction) // self.settings.searched))
        wanted, weight = self.loss.wanted[some], self.loss.weight[some]
        missing = _shortfall(self.loss.margin, self.logits[some], wanted)
        slope = (logits[some] - self.logits[some]) / start
        rate = slope - slope.gather(1, wanted[:, None])
        cost = self.ridge * len(weight) / len(direction)
        pull = cost * float((direction * self.coefficients).sum())
        bend = cost * float(direction.square().sum())
        place = start
        for _ in range(8):
            now = missing + place * rate
            active = weight * rate * (now > 0)
            first = float((active * now).sum()) + pull + place * bend
            second = float((active * rate).sum()) + bend
            if second <= 0:
                break
            before, place = place, max(place - first / second, 0.0)
            if abs(place - before) <= 0.01 * place:
                break
        return place

    def _value(self, logits: Tensor, coefficients: Tensor) -> float:
        change = fold(lambda part: float(part.double().square().sum()), coefficients)
        return self.loss.value(logits) + 0.5 * self.ridge * float(change)

    def _see(self, logits: Tensor) -> None:
        """Take these answers for those to the coefficients."""
        self.logits = stored(logits)
        self.margins = self.loss.margins(self.logits)
        self.agreement = float((self.margins > 0).float().mean())


def linear_units(linear: LinearMap, x: Tensor, settings: SteerSettings) -> dict[str, float]:
    """The numbers of V for a linear model that its contraction depends on.

    Args:
        x: the features as they are, shape (N, d).
    """
    unit = typical_margin(linear.logits(x))
    length = typical_length(x)
    return {"ridge": settings.ridge, "hops": linear.hops, "length": length, "unit": unit}
