"""Controllers with Lyapunov functions: the loss, Algorithm 1, and the exact question put to the
verifier."""

from __future__ import annotations

from graphkeel.lyapunov.ask import Ask, ask_engine, ask_portfolio
from graphkeel.lyapunov.certify import certify
from graphkeel.lyapunov.config import LyapunovConfig, ResolvedConfig
from graphkeel.lyapunov.domain import Domain, DomainSettings, shared_domains
from graphkeel.lyapunov.evidence import anchor_of, certificate_of, class_proof
from graphkeel.lyapunov.fit_settings import FitSettings
from graphkeel.lyapunov.function import LyapunovWeights
from graphkeel.lyapunov.records import ClassOutcome, RoundLog, TrainResult, TrainState
from graphkeel.lyapunov.result import CertifyResult
from graphkeel.lyapunov.training import train

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
