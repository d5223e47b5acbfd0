"""Reconstruction: rewrite node features so that the same frozen weights predict better, where that
shows on held-back labels."""

from graphkeel.graph.propagate.propagator import Propagator
from graphkeel.reconstruct.anchors import Anchors, solve_anchors
from graphkeel.reconstruct.candidates.builder import GRIDS, Builder, Candidate, Diffuse, Replace
from graphkeel.reconstruct.candidates.diffuse import Diffusion, diffuse
from graphkeel.reconstruct.candidates.prototype import Posteriors, Prototype
from graphkeel.reconstruct.candidates.replace import replace
from graphkeel.reconstruct.context import Context
from graphkeel.reconstruct.guard.decision import GuardDecision, Score, decide, mcnemar
from graphkeel.reconstruct.guard.judges import CrossFitJudge, ValidationJudge, choose_judge
from graphkeel.reconstruct.labels import Labels, known_labels
from graphkeel.reconstruct.methods import METHODS, get_method
from graphkeel.reconstruct.reconstructor import Reconstructor, load_reconstructor

__all__ = [
    "GRIDS",
    "METHODS",
    "Anchors",
    "Builder",
    "Candidate",
    "Context",
    "CrossFitJudge",
    "Diffuse",
    "Diffusion",
    "GuardDecision",
    "Labels",
    "Posteriors",
    "Propagator",
    "Prototype",
    "Reconstructor",
    "Replace",
    "Score",
    "ValidationJudge",
    "choose_judge",
    "decide",
    "diffuse",
    "get_method",
    "known_labels",
    "load_reconstructor",
    "mcnemar",
    "replace",
    "solve_anchors",
]
