"""Evidence for classes: from features (class means, discriminants) and from the graph (spread
labels)."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from graphkeel.graph.propagate.propagator import Propagator
from graphkeel.reconstruct.labels import Labels

SHARPNESS = 10.0  # typical gap between class scores, in nats, of `cosine_evidence`
SHRINKAGE = (
    0.03  # share of the overall covariance in the within-class one: few labels do not determine it
)
CORRECTION_STEPS = 50  # for errors to settle between labelled nodes
FLOOR = 1e-9  # no evidence rules a class out


def class_means(features: Tensor, memberships: Tensor) -> Tensor:
    """Means of the classes, each node counting as much as it belongs: (M, d), (M, n) -> (n, d).

    Args:
        features: shape (M, d).
        memberships: how much a node belongs to a class, shape (M, n_classes).
    """
    mass = memberships.sum(dim=0).clamp_min(FLOOR)
    return (memberships.T @ features) / mass.unsqueeze(1)


def cosine_evidence(directions: Tensor, members: Tensor, memberships: Tensor) -> Tensor:
    """Nearness of unit vectors to the class means of `members`, as probabilities.

    Args:
        directions: of all nodes, unit vectors, shape (N, d).
        members: of those with a class, shape (M, d).
        memberships: how much a node belongs to a class, shape (M, n_classes).
    """
    means = class_means(members, memberships)
    squared = (directions**2).sum(1, keepdim=True) - 2 * directions @ means.T + (means**2).sum(1)
    return (-SHARPNESS * squared / squared.median().clamp_min(FLOOR)).softmax(dim=-1)


@dataclass(frozen=True)
class ClassStatistics:
    """Gaussian classes with one covariance: all that a linear discriminant needs of its sample.

    Attributes:
        means: float64, shape (n_classes, d).
        covariance: within the classes, float64, shape (d, d).
        shares: of the classes, summing to one, float64, shape (n_classes,).
    """

    means: Tensor
    covariance: Tensor
    shares: Tensor


def class_statistics(members: Tensor, memberships: Tensor) -> ClassStatistics:
    """Means, shared covariance and shares of soft classes.

    Args:
        members: features, shape (M, d).
        memberships: how much a node belongs to a class, shape (M, n_classes).
    """
    narrow = members.double()
    weights = memberships.double()
    means = class_means(narrow, weights)
    mass = weights.sum(dim=0)
    scatter = (narrow * weights.sum(1, keepdim=True)).T @ narrow - (
        means * mass.unsqueeze(1)
    ).T @ means
    return ClassStatistics(means, scatter / mass.sum(), mass / mass.sum())


def gaussian_evidence(
    features: Tensor, statistics: ClassStatistics, *, shares: bool = False
) -> Tensor:
    """The classes' probabilities under Gaussian classes with one covariance, shrunken a little.

    Args:
        features: of all nodes, shape (N, d).
        statistics: of the classes, in the same d dimensions.
        shares: classes are as likely beforehand as their shares say; else all the same.
    """
    wide = features.double()
    overall = torch.cov(wide.T).reshape(wide.shape[1], wide.shape[1])
    covariance = (1 - SHRINKAGE) * statistics.covariance + SHRINKAGE * overall
    covariance.diagonal().add_(1e-9 * float(overall.diagonal().mean()) + 1e-30)
    slopes = torch.linalg.solve(covariance, statistics.means.T)
    offsets = 0.5 * (statistics.means.T * slopes).sum(dim=0)
    if shares:
        offsets = offsets - statistics.shares.clamp_min(FLOOR).log()
    return (wide @ slopes - offsets).softmax(dim=-1).float()


def discriminant_evidence(features: Tensor, members: Tensor, memberships: Tensor) -> Tensor:
    """Linear discriminant analysis, all classes equally likely beforehand.

    Args:
        features: of all nodes, shape (N, d).
        members: of those with a class, shape (M, d).
        memberships: how much a node belongs to a class, shape (M, n_classes).
    """
    return gaussian_evidence(features, class_statistics(members, memberships))


def sized_discriminant_evidence(features: Tensor, members: Tensor, memberships: Tensor) -> Tensor:
    """The same with classes as likely beforehand as they are large among the members.

    Args:
        features: of all nodes, shape (N, d).
        members: of those with a class, shape (M, d).
        memberships: how much a node belongs to a class, shape (M, n_classes).
    """
    return gaussian_evidence(features, class_statistics(members, memberships), shares=True)


def label_evidence(propagator: Propagator, labels: Labels, teleport: float, steps: int) -> Tensor:
    """Which classes' labels are near in the graph, as probabilities; undecided where none is.

    Args:
        propagator: multiplies by Ŝ.
        labels: the labels to use.
        teleport: the share a that stays at its source.
        steps: how many times.
    """
    known = torch.zeros(propagator.n_nodes, labels.n_classes)
    known[labels.nodes] = labels.one_hot()
    near = propagator.smooth(known, teleport, steps) + 1e-6
    return near / near.sum(dim=1, keepdim=True)


def corrected_evidence(propagator: Propagator, beliefs: Tensor, labels: Labels) -> Tensor:
    """Probabilities with the errors seen at labelled nodes taken out, there and in between.

    The first half of Correct & Smooth (Huang et al. 2021): labelled nodes hold their errors, all
    others take the mean of their neighbours'.

    Args:
        propagator: multiplies by Ŝ.
        beliefs: the model's own probabilities, shape (N, n_classes).
        labels: the labels to use.
    """
    seen = labels.one_hot() - beliefs[labels.nodes]
    error = torch.zeros_like(beliefs)
    for _ in range(CORRECTION_STEPS):
        error[labels.nodes] = seen
        error = propagator(error)
    right = (beliefs + error).clamp_min(FLOOR)
    return right / right.sum(dim=1, keepdim=True)


def balanced(evidence: Tensor, rounds: int = 20) -> Tensor:
    """Evidence reweighted by class until every class holds the same share of the nodes.

    Labels from one corner of the graph reach some classes' nodes better than others'; this takes
    that out again, at the price of believing the classes equally large.

    Args:
        evidence: shape (N, n_classes), rows summing to one.
        rounds: how often shares are rescaled.
    """
    n_classes = evidence.shape[1]
    return with_shares(evidence, evidence.new_full((n_classes,), 1.0 / n_classes), rounds)


def with_shares(evidence: Tensor, shares: Tensor, rounds: int = 20) -> Tensor:
    """Evidence reweighted by class until the classes hold these shares of the nodes (Sinkhorn).

    Args:
        evidence: shape (N, n_classes), rows summing to one.
        shares: of the classes, summing to one, shape (n_classes,).
        rounds: how often shares are rescaled.
    """
    weights = evidence.new_ones(evidence.shape[1])
    for _ in range(rounds):
        held = _weighted(evidence, weights).mean(dim=0)
        weights = weights * shares / held.clamp_min(FLOOR)
    return _weighted(evidence, weights)


def both(first: Tensor, second: Tensor) -> Tensor:
    """Two sources of evidence as one: their geometric mean, so each can veto.

    Args:
        first: shape (N, n_classes).
        second: shape (N, n_classes).
    """
    return (0.5 * (first.clamp_min(FLOOR).log() + second.clamp_min(FLOOR).log())).softmax(dim=-1)


def _weighted(evidence: Tensor, weights: Tensor) -> Tensor:
    scaled = evidence * weights
    return scaled / scaled.sum(dim=1, keepdim=True).clamp_min(FLOOR)
