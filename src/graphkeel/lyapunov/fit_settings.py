"""Settings of training that no configuration has to name."""

from __future__ import annotations

from dataclasses import dataclass


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
