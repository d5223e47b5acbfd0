"""The rule: decide what the model should answer, test it against the untouched model on labels that
had no part in it, and steer the features until the frozen model says so."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from graphkeel.core.statistics import percent
from graphkeel.graph.labels import Labels
from graphkeel.models.linear_map import LinearMap, Propagation
from graphkeel.models.narrowed import narrowed
from graphkeel.reconstruct.by_name import best_setting
from graphkeel.reconstruct.context import Context
from graphkeel.reconstruct.decide import (
    DecideSettings,
    Decision,
    Known,
    decide,
)
from graphkeel.reconstruct.guard import (
    GuardDecision,
    GuardSettings,
    balanced,
    believed_share,
    class_weights,
    contests,
    probability_of_harm,
)
from graphkeel.reconstruct.statement import (
    StatementSettings,
    approximate_statement,
    exact_statement,
    expected_accuracy,
)
from graphkeel.reconstruct.steer import Steered, SteerSettings, steer

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Rule:
    """How features are corrected.

    Attributes:
        method: `auto` (decide, then steer), `replace` or `diffuse`.
        risk: the probability of harm up to which a change is kept.
        balanced: classes count alike.
        holdout: half of the judging labels take no part, so that the statement is exact.
        seed: of folds.
        without: sources of evidence that are left out.
    """

    method: str = "auto"
    risk: float = 0.5
    balanced: bool = False
    holdout: bool = False
    seed: int = 0
    without: tuple[str, ...] = ()
    decide: DecideSettings = field(default_factory=DecideSettings)
    guard: GuardSettings = field(default_factory=GuardSettings)
    steer: SteerSettings = field(default_factory=SteerSettings)
    statement: StatementSettings = field(default_factory=StatementSettings)


@dataclass(frozen=True, eq=False)
class Correction:
    """The features to use, and how they were found.

    Attributes:
        guard: whether the change is kept, and why.
        features: those to use, shape (N, d).
        decision: what was decided; None for methods by name.
        steered: how the features were found; None where none were changed, or not by steering.
        held: scores at judging labels from what they had no part in, shape (n, C).
        judged: these labels.
    """

    guard: GuardDecision
    features: Tensor
    decision: Decision | None
    steered: Steered | None
    held: NDArray[np.float32]
    judged: NDArray[np.int64]


def correct(context: Context, known: Known, rule: Rule) -> Correction:
    """Features under which the frozen model answers better, or those it has.

    Args:
        context: the model on its graph.
        known: the labels at hand.
        rule: how.
    """
    known, away = held_away(known, rule)
    found = (_decided if rule.method == "auto" else _by_name)(context, known, rule)
    untouched = context.logits.numpy()
    shipped = untouched.argmax(axis=1)
    judges = known.nodes[known.judging]
    held = found.held if found.guard.kept else untouched[judges]
    answer = held.argmax(axis=1)
    if found.guard.kept:
        shipped = _answer(context, found).numpy()
        if found.decision is not None:
            # Where the model could not be steered to the decided class, what it says counts.
            missed = shipped[judges] != found.decision.scores[judges].argmax(axis=1)
            answer = np.where(missed, shipped[judges], answer)
    right = answer == found.judged
    guard = _stated(context, known, right, found.guard, rule, away, shipped)
    return replace(found, guard=guard, held=held)


def _decided(context: Context, known: Known, rule: Rule) -> Correction:
    """Decide, test, steer."""
    decision = decide(
        context.scene,
        known,
        seed=rule.seed,
        settings=rule.decide,
        balanced=rule.balanced,
        without=rule.without,
    )
    guard = _guarded(context, known, decision.held, rule, decision.posterior)
    features, steered = context.x, None
    if guard.kept:
        features, steered = written(context, decision, rule.steer)
        if torch.equal(features, context.x):
            guard = _unmoved(context, decision, guard)
    guard = replace(guard, expected=_expected(context, decision, guard))
    judged = known.classes[known.judging]
    return Correction(guard, features, decision, steered, decision.held, judged)


def _by_name(context: Context, known: Known, rule: Rule) -> Correction:
    """Try the settings of a method by name, test the best."""
    tried = best_setting(context, known, rule.method, rule.decide.folds, rule.seed)
    guard = _guarded(context, known, tried.held, rule, what=str(tried.setting))
    features = tried.features if guard.kept else context.x
    return Correction(guard, features, None, None, tried.held, known.classes[known.judging])


def _answer(context: Context, found: Correction) -> Tensor:
    """The model's classes under new features; steering has asked it already."""
    if found.steered is not None:
        return found.steered.answer
    return context.logits_for(found.features).argmax(dim=1)


def written(
    context: Context, decision: Decision, settings: SteerSettings
) -> tuple[Tensor, Steered | None]:
    """Features under which the model answers what was decided.

    A model that passes no gradients back gets the blend of class anchors, its user a warning."""
    posterior = torch.from_numpy(decision.posterior)
    x, edge_index = context.x, context.edge_index
    linear = None if context.model_kwargs else LinearMap.of(context.frozen, edge_index, len(x))
    if linear is None and not _is_differentiable(context):
        _log.warning(
            "the model passes no gradients to its features, so they are blends of class anchors"
            " instead of the smallest change"
        )
        return context.blend(posterior), None
    narrow = propagation = None
    if linear is None:
        narrow = narrowed(context.frozen, x, edge_index, context.model_kwargs, settings.rank)
        propagation = Propagation.of(edge_index, len(x))
    steered = steer(
        context.differentiable_logits_for,
        x,
        posterior.argmax(dim=1),
        posterior,
        settings,
        linear=linear,
        narrow=narrow,
        propagation=propagation,
    )
    return steered.features, steered


def _unmoved(context: Context, decision: Decision, guard: GuardDecision) -> GuardDecision:
    """The decision where steering found nothing to change: no word of a change is left in it."""
    asked = decision.scores.argmax(axis=1) != context.logits.numpy().argmax(axis=1)
    why = "no change of them moves the model" if asked.any() else "the model answers as decided"
    return replace(
        guard,
        kept=False,
        reason=f"left unchanged: {why}",
        accuracy=guard.untouched,
        balanced_accuracy=guard.balanced_untouched,
    )


def _is_differentiable(context: Context) -> bool:
    asked = context.x.detach().clone().requires_grad_(True)
    try:
        return bool(context.differentiable_logits_for(asked).requires_grad)
    except RuntimeError:
        return False


def held_away(known: Known, rule: Rule) -> tuple[Known, Known | None]:
    """Half of the judging labels, at random, leave, if some are to be held out.

    Returns:
        Those that take part, and those that do not.
    """
    if not rule.holdout:
        return known, None
    places = np.flatnonzero(known.judging)
    order = np.random.default_rng(rule.seed).permutation(places)
    out = np.zeros(len(known.nodes), bool)
    out[order[: len(order) // 2]] = True
    return known.chosen(~out), known.chosen(out)


def _guarded(
    context: Context,
    known: Known,
    held: NDArray[np.float32],
    rule: Rule,
    posterior: NDArray[np.float32] | None = None,
    what: str = "",
) -> GuardDecision:
    """The one test; methods by name have no posterior, so there only labels speak."""
    classes = known.classes[known.judging]
    answers = context.logits.numpy().argmax(axis=1)
    before = answers[known.nodes[known.judging]] == classes
    after = held.argmax(axis=1) == classes
    weights = class_weights(classes, known.n_classes) if rule.balanced else None
    wins, losses = contests(after, before, weights)
    if posterior is None:
        harm = probability_of_harm(wins, losses)
    else:
        believed = believed_share(posterior, answers)
        harm = probability_of_harm(wins, losses, believed, rule.guard.trust)
    kept = harm <= rule.risk
    changed = f"changed{f' to {what}' if what else ''}" if kept else "left unchanged"
    if not len(classes):
        reason = f"{changed}: no label judges here (probability of harm {harm:.2g})"
        return GuardDecision(kept, reason, harm=harm)
    won, lost = int((after & ~before).sum()), int((before & ~after).sum())
    source = "labels the model was not trained on" + ("" if known.cross_fitted else " (validation)")
    seen = f"{won} won, {lost} lost on {len(classes)} {source}"
    return GuardDecision(
        kept=kept,
        reason=f"{changed}: {seen}, probability of harm {harm:.2g}",
        source=source,
        n_labels=len(classes),
        wins=won,
        losses=lost,
        harm=harm,
        untouched=percent(torch.from_numpy(before)),
        accuracy=percent(torch.from_numpy(after if kept else before)),
        balanced_untouched=balanced(before, classes),
        balanced_accuracy=balanced(after if kept else before, classes),
    )


def _stated(
    context: Context,
    known: Known,
    right: NDArray[np.bool_],
    guard: GuardDecision,
    rule: Rule,
    away: Known | None,
    shipped: NDArray[np.int64],
) -> GuardDecision:
    """The decision with what can be said of the nodes that are predicted."""
    untouched = context.logits.numpy().argmax(axis=1)
    if away is not None:
        right = shipped[away.nodes] == away.classes
        statement = exact_statement(right, untouched[away.nodes] == away.classes, rule.statement)
        reason = f"{guard.reason}; {len(right)} labels held out for the statement"
        return replace(guard, statement=statement, reason=reason)
    judges = known.nodes[known.judging]
    n_folds = max(1, min(rule.decide.folds, len(judges)))
    crossed = known.cross_fitted and guard.kept and len(judges)
    statement = approximate_statement(
        right,
        untouched[judges] == known.classes[known.judging],
        n_predicted=len(untouched) - len(known.nodes),
        served=1.0 - len(judges) / (n_folds * len(known.nodes)) if crossed else 1.0,
        settings=rule.statement,
    )
    return replace(guard, statement=statement)


def _expected(context: Context, decision: Decision, guard: GuardDecision) -> float:
    """By the posterior's own account, of what is answered."""
    if guard.kept:
        return expected_accuracy(decision.posterior)
    answers = context.logits.numpy().argmax(axis=1)
    own = decision.posterior[np.arange(len(answers)), answers]
    return expected_accuracy(own[:, None])


def known_from(labels: Labels, validation: Labels, trained_on: Tensor) -> Known:
    """The labels at hand as the rule takes them.

    Args:
        trained_on: bool, shape (N,): labels that the model has seen in training.
    """
    nodes = torch.cat([labels.nodes, validation.nodes]).numpy()
    classes = torch.cat([labels.classes, validation.classes]).numpy()
    crossed = not len(validation)
    fresh = ~trained_on.numpy()[nodes]
    judging = fresh if crossed else np.arange(len(nodes)) >= len(labels)
    return Known(nodes, classes, judging, labels.n_classes, crossed)
