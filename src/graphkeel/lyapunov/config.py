"""The configuration of training and proof, where `None` means the form's own default, and the
settings that no configuration has to name."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from math import inf
from typing import Any

from graphkeel.control.neural import FORMS
from graphkeel.core.errors import ConfigError
from graphkeel.core.names import check_name

_LOSSES = ("margin", "paper")
_GAUGES = ("l1", "general")

# The paper states neither ε, δ nor the domain; these are ours. Its condition is ΔV < 0, i.e. ρ = 1,
# and V > 0.
_OURS = {
    "loss": "margin",
    "epsilon": 1e-3,
    "delta": 1e-3,
    "rho": 0.9,
    "positivity": 0.1,
    "learning_rate": 0.02,
}
_PAPERS = {
    "loss": "paper",
    "epsilon": 0.1,
    "delta": 0.1,
    "rho": 1.0,
    "positivity": 0.0,
    "learning_rate": 1e-3,
}
_DEFAULTS: dict[str, dict[str, Any]] = {"anchored": _OURS, "homogeneous": _OURS, "paper": _PAPERS}


@dataclass(frozen=True)
class LyapunovConfig:
    """Symbols: m = strength, ε = epsilon, ρ = rho, c = positivity, δ = delta (the representative's
    tolerance).

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
    loss: str | None = None
    hidden: int = 16
    gauge: str = "l1"
    lyapunov_hidden: int | None = None
    strength: float = 1.0
    shift: float = 0.0
    epsilon: float | None = None
    rho: float | None = None
    positivity: float | None = None
    delta: float | None = None
    margin: float = 0.0
    learning_rate: float | None = None
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
        check_name("gauge", self.gauge, _GAUGES)
        if self.loss is not None:
            check_name("loss", self.loss, _LOSSES)
        for name in (
            "hidden",
            "rounds",
            "steps",
            "batch",
            "samples",
            "seconds",
            "verify_seconds",
            "strength",
        ):
            if not 0 < getattr(self, name) < inf:
                raise ConfigError(f"{name} must be positive", got=getattr(self, name))
        if self.start_node is not None and self.start_node < 0:
            raise ConfigError("start_node must be the id of a node", got=self.start_node)
        if not -inf < self.shift < inf:
            raise ConfigError("shift must be finite", got=self.shift)
        if self.rho is not None and not 0 < self.rho <= 1:
            raise ConfigError("rho must lie in (0, 1]", got=self.rho)
        if self.epsilon is not None and not 0 <= self.epsilon < self.strength:
            raise ConfigError(
                f"epsilon must lie in [0, strength), here below {self.strength:g}",
                got=self.epsilon,
                fix="A larger hole leaves out what was to be proved.",
            )
        if self.positivity is not None and not 0 <= self.positivity < inf:
            raise ConfigError("positivity must not be negative", got=self.positivity)
        if not 0 <= self.margin < self.strength:
            raise ConfigError(
                "margin must lie in [0, strength), or no region holds its own Y", got=self.margin
            )

    def resolved(self) -> ResolvedConfig:
        values = asdict(self)
        for name, value in _DEFAULTS[self.form].items():
            values[name] = value if values[name] is None else values[name]
        return ResolvedConfig(**values)


@dataclass(frozen=True)
class ResolvedConfig(LyapunovConfig):
    """A configuration with every default filled in, for training and the certificate."""

    loss: str = "margin"
    epsilon: float = 1e-3
    rho: float = 0.9
    positivity: float = 0.1
    delta: float = 1e-3
    learning_rate: float = 0.02

    def resolved(self) -> ResolvedConfig:
        return self

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
