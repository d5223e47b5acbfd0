"""The guard where no label judges: signs on the graph itself and from the source.

Weaker than labels, and said so. Two signs must hold: neighbours are predicted alike, beyond chance
(all transfer candidates lean on neighbours); and the same candidates helped at the source, on
labels that nothing saw, where a source is known."""

from __future__ import annotations

from collections.abc import Sequence

from graphkeel.reconstruct.candidates.builder import Builder, Candidate
from graphkeel.reconstruct.guard.decision import GuardDecision, mcnemar
from graphkeel.reconstruct.summary import SourceTrial, edge_agreement

AGREEMENT = 0.6  # of neighbours' predicted classes beyond chance, that the model alone asks for
SHARE = 0.8  # of the source's own agreement, that suffices where the trial there went well
SURE = 0.05  # the p-value up to which the trial at the source counts as a gain
WITHOUT_LABELS = "no label of this graph"


def decide_by_signs(
    builder: Builder, members: Sequence[Candidate]
) -> tuple[tuple[Candidate, ...], GuardDecision]:
    """Take the candidates, averaged, where both signs speak for them.

    Args:
        builder: makes them for the labels there are, if any.
        members: the candidates.
    """
    context = builder.context
    agreement = edge_agreement(context.logits.argmax(dim=1), context.edge_index, context.n_classes)
    trial = None if context.source is None else context.source.trial
    against = _objection(agreement, trial)
    p_value = 1.0 if trial is None else mcnemar(trial.wins, trial.losses)
    verdict = "changed" if against is None else f"left unchanged: {against}"
    reason = f"{verdict}, judged by {WITHOUT_LABELS}: {_signs(agreement, trial)}"
    before = None if trial is None else trial.untouched
    after = before
    if trial is not None and against is None:
        after = trial.untouched + 100.0 * (trial.wins - trial.losses) / trial.n_labels
    names = () if against is not None else tuple(member.name for member in members)
    decision = GuardDecision(
        names,
        reason,
        WITHOUT_LABELS if trial is None else f"{WITHOUT_LABELS}; the source's validation labels",
        0 if trial is None else trial.n_labels,
        before,
        after,
        p_value,
        (),
    )
    return (tuple(members) if against is None else ()), decision


def _objection(agreement: float, trial: SourceTrial | None) -> str | None:
    if agreement < _asked(trial):
        return "neighbours are not predicted alike often enough"
    if trial is not None and (
        mcnemar(trial.wins, trial.losses) > SURE or trial.balanced_gain < 0.0
    ):
        return "the same change did not help at the source"
    return None


def _asked(trial: SourceTrial | None) -> float:
    """The agreement that is asked for."""
    return AGREEMENT if trial is None else min(AGREEMENT, SHARE * trial.agreement)


def _signs(agreement: float, trial: SourceTrial | None) -> str:
    text = f"agreement of neighbours {agreement:.2f} (at least {_asked(trial):.2f} is asked for)"
    if trial is None:
        return f"{text}; no trial at the source"
    return f"{text}; at the source {trial.wins} labels won, {trial.losses} lost"
