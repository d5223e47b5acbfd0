"""Reconstruction: rewrite node features so that the same frozen weights predict better, where that
is more likely than harm."""

from graphkeel.control.anchors import Anchors, solve_anchors
from graphkeel.graph.label_sets import Known
from graphkeel.graph.labels import Labels, known_labels
from graphkeel.graph.propagate.diffusion import Diffusion, diffuse
from graphkeel.reconstruct.context import Context
from graphkeel.reconstruct.correction import Correction, Rule, correct, replace
from graphkeel.reconstruct.decide import DecideSettings, Decision
from graphkeel.reconstruct.explain import Explanation, Source
from graphkeel.reconstruct.guard import GuardDecision, probability_of_harm
from graphkeel.reconstruct.reconstructor import Reconstructor, load_reconstructor
from graphkeel.reconstruct.statement import Statement
from graphkeel.reconstruct.steer import Steered, SteerSettings

__all__ = [
    "Anchors",
    "Context",
    "Correction",
    "DecideSettings",
    "Decision",
    "Diffusion",
    "Explanation",
    "GuardDecision",
    "Known",
    "Labels",
    "Reconstructor",
    "Rule",
    "Source",
    "Statement",
    "SteerSettings",
    "Steered",
    "correct",
    "diffuse",
    "known_labels",
    "load_reconstructor",
    "probability_of_harm",
    "replace",
    "solve_anchors",
]
