"""The rule: decide what the model should answer, test it against the untouched model on labels that
had no part in it, and steer the features until the frozen model says so.

By name, the paper's way: class anchors at labelled nodes (`replace`), spread over the graph
(`diffuse`). What held-back labels prefer of a few settings is tested likewise."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from dataclasses import replace as changed
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from graphkeel.core.memory import release_memory
from graphkeel.core.statistics import percent
from graphkeel.graph.label_sets import Known
from graphkeel.graph.labels import Labels
from graphkeel.graph.propagate.diffusion import diffuse
from graphkeel.graph.propagate.propagator import Propagator
from graphkeel.graph.propagate.rowwise import fold
from graphkeel.graph.rows import expected_accuracy
from graphkeel.reconstruct.context import Context
from graphkeel.reconstruct.decide import (
    DecideSettings,
    Decision,
    decide,
    decide_with_more,
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
)
from graphkeel.reconstruct.steer import Earlier, Steered, SteerSettings, steer

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


def correct(
    context: Context,
    known: Known,
    rule: Rule,
    made: Decision | None = None,
    earlier: Earlier | None = None,
) -> Correction:
    """Features under which the frozen model answers better, or those it has.

    Args:
        context: the model on its graph.
        known: the labels at hand.
        rule: how.
        made: what was decided before a few of these labels came; None: all is decided anew.
        earlier: the features of then.
    """
    rule = changed(rule, decide=rule.decide.at_size(len(context.x)))
    known, away = held_away(known, rule)
    if rule.method == "auto":
        found = _decided(context, known, rule, made, earlier)
    else:
        found = _by_name(context, known, rule)
    judges = known.nodes[known.judging]
    shipped, held = context.answers, context.logits.numpy()[judges]
    answer = shipped[judges]
    if found.guard.kept:
        held = found.held
        answer = held.argmax(axis=1)
        if found.steered is not None:  # steering has asked the model already
            shipped = found.steered.answer.numpy()
        else:
            shipped = context.logits_for(found.features).argmax(dim=1).numpy()
        if found.decision is not None:
            # Where the model could not be steered to the decided class, what it says counts.
            missed = shipped[judges] != found.decision.scores[judges].argmax(axis=1)
            answer = np.where(missed, shipped[judges], answer)
    right = answer == found.judged
    guard = _stated(context, known, right, found.guard, rule, away, shipped)
    return changed(found, guard=guard, held=held)


def _decided(
    context: Context, known: Known, rule: Rule, made: Decision | None, earlier: Earlier | None
) -> Correction:
    """Decide, test, steer."""
    how: dict[str, Any] = {"settings": rule.decide, "balanced": rule.balanced}
    if made is None:
        decision = decide(context.scene, known, seed=rule.seed, without=rule.without, **how)
    else:
        decision = decide_with_more(context.scene, known, made, **how)
    guard = _guarded(context, known, decision.held, rule, decision.posterior)
    features, steered = context.x, None
    if guard.kept:
        features, steered = written(context, decision, rule.steer, earlier)
        if torch.equal(features, context.x):
            guard = _unmoved(context, decision, guard)
    answers = None if guard.kept else context.answers
    guard = changed(guard, expected=expected_accuracy(decision.posterior, answers))
    judged = known.classes[known.judging]
    return Correction(guard, features, decision, steered, decision.held, judged)


def _by_name(context: Context, known: Known, rule: Rule) -> Correction:
    """Try the settings of a method by name, test the best."""
    setting, features, held = best_setting(context, known, rule)
    guard = _guarded(context, known, held, rule, what=str(setting))
    features = features if guard.kept else context.x
    return Correction(guard, features, None, None, held, known.classes[known.judging])


def written(
    context: Context, decision: Decision, settings: SteerSettings, earlier: Earlier | None = None
) -> tuple[Tensor, Steered | None]:
    """Features under which the model answers what was decided.

    A model that passes no gradients back gets the blend of class anchors, its user a warning."""
    release_memory()
    posterior = context.tensor(decision.posterior)
    x, is_linear = context.x, context.linear is not None
    narrow = None if is_linear else context.narrowed(settings.rank)
    if narrow is None and not is_linear:
        _log.warning(
            "the model passes no gradients to its features, so they are blends of class anchors"
            " instead of the smallest change"
        )
        return context.blend(posterior), None
    steered = steer(
        context.differentiable_logits_for,
        x,
        posterior.argmax(dim=1),
        posterior,
        settings,
        linear=context.linear,
        narrow=narrow,
        propagation=None if is_linear or earlier is not None else context.propagation,
        earlier=earlier,
    )
    return steered.features, steered


def _unmoved(context: Context, decision: Decision, guard: GuardDecision) -> GuardDecision:
    """The decision where steering found nothing to change: no word of a change is left in it."""
    asked = fold(lambda z, was: (z.argmax(axis=1) != was).sum(), decision.scores, context.answers)
    why = "no change of them moves the model" if asked else "the model answers as decided"
    return changed(
        guard,
        kept=False,
        reason=f"left unchanged: {why}",
        accuracy=guard.untouched,
        balanced_accuracy=guard.balanced_untouched,
    )


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
    before = context.answers[known.nodes[known.judging]] == classes
    after = held.argmax(axis=1) == classes
    weights = class_weights(classes, known.n_classes) if rule.balanced else None
    wins, losses = contests(after, before, weights)
    if posterior is None:
        harm = probability_of_harm(wins, losses)
    else:
        believed = believed_share(posterior, context.answers)
        harm = probability_of_harm(wins, losses, believed, rule.guard.trust)
    kept = harm <= rule.risk
    verdict = f"changed{f' to {what}' if what else ''}" if kept else "left unchanged"
    if not len(classes):
        reason = f"{verdict}: no label judges here (probability of harm {harm:.2g})"
        return GuardDecision(kept, reason, harm=harm)
    won, lost = int((after & ~before).sum()), int((before & ~after).sum())
    source = "labels the model was not trained on" + ("" if known.cross_fitted else " (validation)")
    seen = f"{won} won, {lost} lost on {len(classes)} {source}"
    few = posterior is not None and won + lost < rule.guard.trust
    by = ", mostly by the answers' own account" * few
    return GuardDecision(
        kept=kept,
        reason=f"{verdict}: {seen}, probability of harm {harm:.2g}{by}",
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
    untouched = context.answers
    if away is not None:
        right = shipped[away.nodes] == away.classes
        statement = exact_statement(right, untouched[away.nodes] == away.classes, rule.statement)
        reason = f"{guard.reason}; {len(right)} labels held out for the statement"
        return changed(guard, statement=statement, reason=reason)
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
    return changed(guard, statement=statement)


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


# ---- by name


def replace(x: Tensor, labels: Labels, anchors: Tensor, only: int | None = None) -> Tensor:
    """r(h*, X): a copy of x whose labelled rows are anchors.

    Args:
        x: features, shape (N, d).
        labels: which nodes are replaced, and by which anchor.
        anchors: h*_c, shape (n_classes, d).
        only: replace this class alone, as the paper does; all classes when None.
    """
    nodes = labels.nodes
    classes = labels.classes
    if only is not None:
        nodes = nodes[classes == only]
        classes = classes[classes == only]
    replaced = x.clone()
    replaced[nodes] = anchors[classes].to(x.dtype)
    return replaced


@dataclass(frozen=True)
class Setting:
    """Anchors of strength m (None: typical), diffused with weight alpha (None: not at all)."""

    strength: float | None = None
    alpha: float | None = None

    def __str__(self) -> str:
        strength = "typical" if self.strength is None else f"{self.strength:g}"
        name = "replace(" if self.alpha is None else f"diffuse(alpha={self.alpha:g}, "
        return f"{name}m={strength})"


def settings_of(method: str) -> tuple[Setting, ...]:
    """The settings that a method tries."""
    if method == "replace":
        return tuple(Setting(strength) for strength in (1.0, 5.0, 20.0, None))
    alphas = (0.5, 0.8, 0.9, 0.95)
    return tuple(Setting(strength, alpha) for alpha in alphas for strength in (5.0, None))


def best_setting(
    context: Context, known: Known, rule: Rule
) -> tuple[Setting, Tensor, NDArray[np.float32]]:
    """The setting that is right at most judging labels; of several, the one that changes least.

    Returns:
        The setting, its features, and its scores at labels that it was made without.
    """
    sets, judged_by = known.sets(rule.decide.folds, rule.seed)
    nodes, classes = torch.from_numpy(sets.nodes), torch.from_numpy(sets.classes)
    served = [Labels(nodes[used], classes[used], known.n_classes) for used in sets.used]
    judges = known.nodes[known.judging]
    found = []
    for setting in settings_of(rule.method):
        answers = [context.logits_for(features_of(context, part, setting)) for part in served]
        held = np.stack([answer.numpy() for answer in answers], axis=1)[judges, judged_by]
        right = int((held.argmax(axis=1) == known.classes[known.judging]).sum())
        moved = sum(int((a.numpy().argmax(axis=1) != context.answers).sum()) for a in answers)
        found.append((right, -moved, setting, held))
    _, _, setting, held = max(found, key=lambda one: one[:2])
    return setting, features_of(context, served[-1], setting), held


def features_of(context: Context, labels: Labels, setting: Setting) -> Tensor:
    """The features of a setting."""
    replaced = replace(context.x, labels, context.anchors(setting.strength).features)
    if setting.alpha is None:
        return replaced
    return diffuse(replaced, Propagator.of_matrix(context.scene.matrix), setting.alpha).features
