"""Controllers with Lyapunov functions: the loss, Algorithm 1, and the exact question put to the
verifier."""

from __future__ import annotations

from graphkeel.lyapunov.certify import certify
from graphkeel.lyapunov.config import FitSettings, LyapunovConfig, ResolvedConfig
from graphkeel.lyapunov.evidence import certificate_of, class_proof
from graphkeel.lyapunov.function import LyapunovWeights
from graphkeel.lyapunov.result import (
    CertifyResult,
    ClassOutcome,
    RoundLog,
    TrainResult,
    TrainState,
    anchor_of,
)
from graphkeel.lyapunov.states import Domain, DomainSettings, shared_domains
from graphkeel.lyapunov.training import Ask, ask_engine, ask_portfolio, train

__all__ = [
    "Ask",
    "CertifyResult",
    "ClassOutcome",
    "Domain",
    "DomainSettings",
    "FitSettings",
    "LyapunovConfig",
    "LyapunovWeights",
    "ResolvedConfig",
    "RoundLog",
    "TrainResult",
    "TrainState",
    "anchor_of",
    "ask_engine",
    "ask_portfolio",
    "certificate_of",
    "certify",
    "class_proof",
    "shared_domains",
    "train",
]
