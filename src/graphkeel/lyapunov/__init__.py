"""Controllers with Lyapunov functions: the loss, Algorithm 1, and the exact question put to the
verifier."""

from __future__ import annotations

from graphkeel.lyapunov.certify import certify
from graphkeel.lyapunov.config import LyapunovConfig
from graphkeel.lyapunov.result import CertifyResult, ClassOutcome, RoundLog
from graphkeel.lyapunov.training import Oracle, engine_oracle, portfolio_oracle

__all__ = [
    "CertifyResult",
    "ClassOutcome",
    "LyapunovConfig",
    "Oracle",
    "RoundLog",
    "certify",
    "engine_oracle",
    "portfolio_oracle",
]
