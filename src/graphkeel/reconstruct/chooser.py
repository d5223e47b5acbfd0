"""From labels to features: make the candidates, let the guard choose, keep what the next labels can
be added to."""

from __future__ import annotations

import copy
import time
from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor

from graphkeel.reconstruct.candidates.builder import (
    HETEROPHILOUS,
    PROBES,
    TRANSFER,
    WITHOUT_SOURCE,
    Builder,
    Candidate,
    grid,
    joined,
    presumed,
    sized,
    taught,
    with_class_shares,
)
from graphkeel.reconstruct.context import Context
from graphkeel.reconstruct.guard.decision import (
    MIN_LABELS,
    GuardDecision,
    Judge,
    Round,
    decide,
)
from graphkeel.reconstruct.guard.judges import PropagatedRowsJudge, choose_judge, cross_fit
from graphkeel.reconstruct.guard.signs import decide_by_signs
from graphkeel.reconstruct.guard.statement import exact_statement
from graphkeel.reconstruct.labels import Labels
from graphkeel.reconstruct.large.linear import LinearModel, PropagatedRows
from graphkeel.reconstruct.large.local import LOCAL, LocalBuilder, LocalContext
from graphkeel.reconstruct.later.budget import tried, within
from graphkeel.reconstruct.summary import edge_agreement

LARGE = 200_000  # nodes beyond which `auto` keeps to candidates that labels change locally
ALIKE = 0.5  # agreement of neighbours beyond chance, below which a graph counts as heterophilous
# The share of the risk that is taken there: most recipes lean on neighbours being alike, so the
# best of them is more often the luckiest.
UNLIKE_SHARE = 0.3
NEWS = 1 / 3  # share of labels that the model was not trained on
ENOUGH_EDGES = 20  # with a label at both ends, to tell that from labels


class Chooser:
    """Chooses features for one context, again and again as labels arrive.

    Reads the context; keeps the builder of the last choice and, on large graphs, its state.

    Args:
        context: the model on its graph.
        method: the name of a grid of candidates.
        risk: the p-value up to which the guard accepts a change.
        trained_on: bool mask of the nodes whose labels the model was trained on, shape (N,).
        seed: of the folds, where known labels have to judge.
        elsewhere: the model was trained on another graph.
        holdout: keep half of the labels that judge out of the choice, for exact bounds on it.
        class_shares: of the classes on this graph, shape (n_classes,), or `labels`: as among the
            labels that the model was not trained on; None: unknown.
    """

    def __init__(
        self,
        context: Context,
        method: str,
        risk: float,
        trained_on: Tensor,
        seed: int,
        *,
        elsewhere: bool = False,
        holdout: bool = False,
        class_shares: str | Tensor | None = None,
    ) -> None:
        self.context = context
        self.method = method
        self.risk = risk
        self.trained_on = trained_on
        self.seed = seed
        self.elsewhere = elsewhere
        self.holdout = holdout
        self.budget: float | None = None  # seconds for trying candidates
        self.class_shares = class_shares
        self._held: Labels | None = None
        self.transfer = TRANSFER if context.source is not None else WITHOUT_SOURCE
        self.candidates: tuple[Candidate, ...] = grid(method)
        if elsewhere and method == "auto":
            self.candidates = (*self.transfer, *joined(self.transfer), *self.candidates)
        self._fixed = self._local_context()
        self._builder: Builder | LocalBuilder | None = None
        self._validation_rows: PropagatedRows | None = None
        self._judged_by: Judge | None = None
        self._asked: tuple[Labels, Labels] | None = None  # what a judge would be made of
        self.members: tuple[Candidate, ...] = ()

    def choose(self, labels: Labels, validation: Labels) -> GuardDecision:
        """Choose for these labels; `features` are then those of the choice.

        Args:
            labels: the labels to use.
            validation: the labels to judge by.
        """
        self._held = None
        if not self.holdout:
            return self._choose(labels, validation)
        labels, validation, self._held = self._hold_out(labels, validation)
        decision = self._choose(labels, validation)
        correct, base = (
            self._scores_at(self._held.nodes, members).argmax(dim=1) == self._held.classes
            for members in (self.members, ())
        )
        reason = f"{decision.reason}; {len(self._held)} labels held out for the statement"
        return replace(decision, reason=reason, statement=exact_statement(correct, base))

    def _hold_out(self, labels: Labels, validation: Labels) -> tuple[Labels, Labels, Labels]:
        """Half of the labels that judge, at random, leave; the rest serve and judge."""
        pool = validation if len(validation) else labels
        judging = torch.arange(len(pool))
        if pool is labels:
            judging = (~self.trained_on[labels.nodes]).nonzero().flatten()
        generator = torch.Generator().manual_seed(int(self.seed))
        order = judging[torch.randperm(len(judging), generator=generator)]
        held = order[: len(order) // 2]
        kept = torch.ones(len(pool), dtype=torch.bool)
        kept[held] = False
        rest = pool.without(held)
        away = pool.without(kept.nonzero().flatten())
        return (rest, validation, away) if pool is labels else (labels, rest, away)

    def _scores_at(self, nodes: Tensor, members: tuple[Candidate, ...]) -> Tensor:
        if self._builder is None or not members:
            return self.context.logits[nodes]
        return self._builder.scores(members)[nodes]

    def _choose(self, labels: Labels, validation: Labels) -> GuardDecision:
        by_signs = None
        self._judged_by = None
        few = max(len(labels), len(validation)) < MIN_LABELS
        if self.method == "auto" and (self.elsewhere or few):
            self._builder = self._make(labels, validation)
            members = presumed(self.transfer, len(labels))
            self.members, by_signs = decide_by_signs(self._builder, members)
            if few:
                self._asked = None
                return by_signs
        self._asked = (labels, validation)
        self._judged_by = judge = self._judge(labels, validation, self._fixed)
        by_sign = self.members if by_signs is not None else ()
        wanted = self._candidates_for(labels)
        deadline = None if self.budget is None else time.monotonic() + self.budget
        candidates, judge = tried(wanted, judge, self.budget)
        is_whole = len(candidates) == len(wanted)
        self.members, decision = decide(
            candidates,
            judge,
            risk=self.risk_for(labels),
            presumed=by_sign,
            doubted=by_signs is not None and by_signs.left_alone,
            rounds=within(self._rounds(), deadline) if is_whole else (),
            n_predicted=self.context.x.shape[0] - len(labels) - len(validation),
            steered_first=self._neighbours_differ(labels),
        )
        if not is_whole:
            share = f"{len(candidates)} of {len(wanted)} candidates"
            decision = replace(decision, reason=f"{decision.reason}; {share} within the budget")
        return decision

    def _candidates_for(self, labels: Labels) -> tuple[Candidate, ...]:
        candidates = self.candidates
        if self.method != "auto" or self._fixed is not None:
            return candidates
        if self.context.is_wide or self._has_news(labels):
            candidates = (*candidates, *PROBES)
        if self._neighbours_differ(labels):
            candidates = tuple(dict.fromkeys((*candidates, *HETEROPHILOUS)))
        if self.class_shares is not None:
            candidates = (*candidates, *with_class_shares(candidates))
        return candidates

    def _neighbours_differ(self, labels: Labels) -> bool:
        """Whether candidates are tried that do not lean on neighbours being alike."""
        if self.method != "auto" or self._fixed is not None:
            return False
        return self._agreement(labels)[0] < ALIKE

    def _has_news(self, labels: Labels) -> bool:
        """Whether enough labels are others than the model's own for a probe of few features: what
        it learns is worth as much as the labels are like all nodes."""
        if self.elsewhere or not len(labels):
            return False
        return float((~self.trained_on[labels.nodes]).float().mean()) >= NEWS

    def risk_for(self, labels: Labels) -> float:
        """The p-value up to which a change is accepted. On large graphs, where all edges would have
        to be looked at with every label that comes in, it is the risk itself.

        Args:
            labels: the labels to use.
        """
        if self.risk >= 1.0 or self._fixed is not None:
            return self.risk
        agreement, doubt = self._agreement(labels)
        return self.risk if agreement + doubt >= ALIKE else UNLIKE_SHARE * self.risk

    def _agreement(self, labels: Labels) -> tuple[float, float]:
        """Of neighbours' classes beyond chance: those known, else those predicted; and about two
        standard errors of it."""
        context = self.context
        known = torch.full((len(context.x),), -1)
        known[labels.nodes] = labels.classes
        source, target = context.edge_index
        seen = (known[source] >= 0) & (known[target] >= 0) & (source != target)
        n_seen = int(seen.sum())
        if n_seen >= ENOUGH_EDGES:
            known_edges = context.edge_index[:, seen]
            return edge_agreement(known, known_edges, context.n_classes), (n_seen / 2.0) ** -0.5
        classes = context.logits.argmax(dim=1)
        return edge_agreement(classes, context.edge_index, context.n_classes), 0.0

    def _rounds(self) -> tuple[Round, ...]:
        """Self-training and sizes by consensus, where they were found to pay: on the model's own
        graph."""
        if self.method != "auto" or self.elsewhere or self._fixed is not None:
            return ()
        return (self._taught, sized)

    def _taught(self, leaders: Sequence[Candidate], _: Sequence[Candidate]) -> list[Candidate]:
        found = taught(leaders, grid(self.method))
        return found if self.class_shares is None else [*found, *with_class_shares(found)]

    def _make(self, labels: Labels, validation: Labels) -> Builder:
        return Builder(self.context, labels, self._shares(labels, validation))

    def _shares(self, labels: Labels, validation: Labels) -> Tensor | None:
        """One more of each class than seen, so that none is ruled out."""
        if not isinstance(self.class_shares, str):
            return self.class_shares
        classes = labels.classes[~self.trained_on[labels.nodes]]
        counts = torch.bincount(
            torch.cat([classes, validation.classes]), minlength=labels.n_classes
        )
        return (counts + 1.0) / float(counts.sum() + labels.n_classes)

    def calibration(self) -> tuple[Tensor, Tensor] | None:
        """Logits (k, n_classes) and classes (k,) of labels that had no part in these logits."""
        if self._held is not None:
            return self._scores_at(self._held.nodes, self.members), self._held.classes
        if self._judged_by is None and self._asked is not None:  # the graph has changed since
            self._judged_by = self._judge(*self._asked, self._fixed)
        if self._judged_by is None:
            return None
        evaluation = self._judged_by.evaluate(self.members)
        return evaluation.scores, evaluation.classes

    def probabilities(self) -> Tensor:
        """How sure the classes of every node are, rows summing to one, shape (N, n_classes).

        An anchor is answered by its strength, far beyond what a softmax can tell apart; the logits
        as shares of it are what the neighbourhood says."""
        if self._builder is None or not self.members:
            return self.context.beliefs
        shares = (self._builder.scores(self.members) / self.context.typical_strength).clamp_min(0)
        return shares / shares.sum(dim=1, keepdim=True).clamp_min(1e-9)

    def features(self) -> Tensor:
        """The chosen features; the context's own where they are left alone."""
        return self.context.x if self._builder is None else self._builder.features(self.members)

    @property
    def local_state(self) -> LocalContext | None:
        """What no label changes, where candidates are local; else None."""
        return self._fixed

    def moved(self, context: Context, fixed: LocalContext | None) -> Chooser:
        """The same choice on a later state of the graph; this one is of no use afterwards.

        Args:
            context: the model on the graph as it is now.
            fixed: its state, where candidates are local.
        """
        later = copy.copy(self)
        later.context = context
        later._fixed = fixed
        later._validation_rows = None
        later._judged_by = None
        later.trained_on = torch.zeros(context.x.shape[0], dtype=torch.bool)
        later.trained_on[: len(self.trained_on)] = self.trained_on
        if isinstance(self._builder, LocalBuilder) and not self.members:
            later._builder = None  # features are left alone; the next labels begin anew
        elif isinstance(self._builder, LocalBuilder) and fixed is not None:
            later._builder = LocalBuilder(fixed, self._builder.labels, self._builder)
        elif isinstance(self._builder, Builder):
            shares = self._builder.posteriors.class_shares
            later._builder = Builder(context, self._builder.labels, shares)
        return later

    def shares(self) -> Tensor | None:
        """The share of each anchor in every node's chosen feature, shape (N, n_classes); None where
        the chosen features are no blend of anchors."""
        if self._builder is None:
            return None
        posterior = self._builder.posterior(self.members)
        return None if posterior is None else self.context.shares(posterior)

    def reset(self) -> None:
        """The context's anchors are others now: begin anew."""
        self._fixed = self._local_context()
        self._builder = None
        self._validation_rows = None

    def _local_context(self) -> LocalContext | None:
        context = self.context
        if (
            self.elsewhere
            or self.method != "auto"
            or context.x.shape[0] <= LARGE
            or context.model_kwargs
        ):
            return None
        model = LinearModel.of(context.frozen, context.edge_index, context.x.shape[0])
        if model is None:
            return None
        self.candidates = LOCAL
        context.make_room()
        fixed = LocalContext(context, model)
        fixed.first_hop  # noqa: B018 - kept for when the graph changes
        return fixed

    def _judge(self, labels: Labels, validation: Labels, fixed: LocalContext | None) -> Judge:
        if fixed is None:
            self._builder = self._make(labels, validation)
            return choose_judge(
                self._builder,
                validation,
                self.trained_on,
                self.seed,
                lambda part: self._make(part, validation),
            )
        if isinstance(self._builder, LocalBuilder):
            self._builder.update_labels(labels)
        else:
            self._builder = LocalBuilder(fixed, labels)
        if not len(validation):
            # folds leave few labels out: they begin with all of them, and take those back
            return cross_fit(self._builder.with_labels, labels, self.trained_on, self.seed)
        self._validation_rows = (
            fixed.model.rows_at(validation.nodes)
            if self._validation_rows is None
            else self._validation_rows.at(validation.nodes)
        )
        return PropagatedRowsJudge(self._builder, validation, self._validation_rows)
