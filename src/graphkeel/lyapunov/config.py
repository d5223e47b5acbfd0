"""The configuration of training and proof, and the settings that no configuration has to name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import inf
from typing import Any

from graphkeel.control.neural import FORMS
from graphkeel.core.errors import ConfigError
from graphkeel.core.names import check_name

_OF_FORM: Any = None  # a field whose default the form has


@dataclass(frozen=True)
class _FormDefaults:
    """The paper states neither ε, δ nor the domain: these are ours, for the forms in which a proof
    is sought."""

    loss: str = "margin"
    epsilon: float = 1e-3
    delta: float = 1e-3
    rho: float = 0.9
    positivity: float = 0.1
    learning_rate: float = 0.02


# The paper's condition is ΔV < 0, i.e. ρ = 1, and V > 0; ε and δ are ours here, too.
_PAPERS = _FormDefaults("paper", 0.1, 0.1, rho=1.0, positivity=0.0, learning_rate=1e-3)


@dataclass(frozen=True)
class LyapunovConfig:
    """Symbols: m = strength, ε = epsilon, ρ = rho, c = positivity, δ = delta (the representative's
    tolerance). A field that is None by default gets the form's own value.

    Attributes:
        shift: Y = m·one-hot + shift in every logit. A common shift changes no prediction, and a
            head with ReLU units may reach the shifted target but not the one-hot itself.
        hidden: units of f, and of V in the paper's form.
        gauge: V of the other forms: `l1` is Σ rᵢ|yᵢ−Yᵢ| (2n units); `general` has free positively
            spanning rows.
        lyapunov_hidden: units of a `general` gauge; at least n + 1.
        margin: a state belongs to a class's region if its margin is at least this.
        contraction: the factor that training aims at, below ρ by a margin that rounding and search
            can live on.
        rounds, steps: of Algorithm 1, and of Adam within a round.
        start_node: Algorithm 1 as printed: the prediction of this node is the only state that
            training starts from, counterexamples are added as they are, every step uses all
            states, Adam keeps its moments between rounds, and the verifier is asked the paper's two
            conditions and nothing else. None: many states, as the other fields say.
        falsify_rounds: so many first rounds ask for counterexamples first, and for a proof only if
            there are none.
        seconds: the whole training's budget; verify_seconds: of one class's first proof, doubled
            after each that ran out of time.
    """

    form: str = "anchored"
    loss: str = _OF_FORM
    hidden: int = 16
    gauge: str = "l1"
    lyapunov_hidden: int | None = None
    strength: float = 1.0
    shift: float = 0.0
    epsilon: float = _OF_FORM
    rho: float = _OF_FORM
    positivity: float = _OF_FORM
    delta: float = _OF_FORM
    margin: float = 0.0
    learning_rate: float = _OF_FORM
    contraction: float = 0.6
    rounds: int = 40
    steps: int = 500
    batch: int = 512
    samples: int = 2048
    falsify_rounds: int = 2
    start_node: int | None = None
    seconds: float = 45.0
    verify_seconds: float = 5.0
    seed: int = 0

    def __post_init__(self) -> None:
        check_name("form", self.form, FORMS)
        check_name("gauge", self.gauge, ("l1", "general"))
        if self.loss is not None:
            check_name("loss", self.loss, ("margin", "paper"))
        counts = ("hidden", "rounds", "steps", "batch", "samples")
        for name in (*counts, "seconds", "verify_seconds", "strength"):
            self._check(name, lambda value: 0 < value < inf, "be positive")
        self._check("start_node", lambda value: value >= 0, "be the id of a node")
        self._check("shift", lambda value: -inf < value < inf, "be finite")
        self._check("rho", lambda value: 0 < value <= 1, "lie in (0, 1]")
        self._check(
            "epsilon",
            lambda value: 0 <= value < self.strength,
            f"lie in [0, strength), here below {self.strength:g}",
            fix="A larger hole leaves out what was to be proved.",
        )
        self._check("positivity", lambda value: 0 <= value < inf, "not be negative")
        region = "lie in [0, strength), or no region holds its own Y"
        self._check("margin", lambda value: 0 <= value < self.strength, region)
        defaults = _PAPERS if self.form == "paper" else _FormDefaults()
        for name, value in vars(defaults).items():
            if getattr(self, name) is None:
                object.__setattr__(self, name, value)

    def _check(
        self, name: str, holds: Callable[[Any], bool], wanted: str, fix: str | None = None
    ) -> None:
        value = getattr(self, name)
        if value is not None and not holds(value):
            raise ConfigError(f"{name} must {wanted}", got=value, fix=fix)

    @property
    def goals(self) -> tuple[str, ...]:
        """Conditions that training works for; Eq. 11 knows nothing of the last two, which are
        verified all the same."""
        known = ("positivity", "decrease")
        return known if self.loss == "paper" else (*known, "invariance", "region")


@dataclass(frozen=True)
class FitSettings:
    """How loops are trained between two proofs.

    Attributes:
        aim: the decrease factor that training aims at is at most this share of ρ.
        tighten: times the aim, after a question that ended without a proof and a counterexample.
        satisfied: a loss below it has nothing left to teach.
        inside: how far inside D training wants F(D) to stay, as a share of D's half-width.
        margin: by how much more than γ a class is to keep its margin, as a share of Y's own.
        replay: tolerance of a counterexample's replay on float32 weights, relative.
        jitter: radius of a counterexample's neighbourhood, which is mostly wrong too, as a
            share of D's half-width.
        neighbours: states that are drawn from it.
        kept: newest counterexamples of a class.
        passing: the factor of the loop with message passing that controllers are scaled down to.
    """

    aim: float = 0.95
    tighten: float = 0.6
    satisfied: float = 1e-9
    inside: float = 0.1
    margin: float = 0.1
    replay: float = 1e-6
    jitter: float = 0.02
    neighbours: int = 15
    kept: int = 2048
    passing: float = 0.9
