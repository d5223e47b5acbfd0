"""From labels to features: make the candidates, let the guard choose, keep what the next labels can
be added to."""

from __future__ import annotations

from torch import Tensor

from graphkeel.reconstruct.candidates.builder import (
    JOINED,
    TRANSFER,
    WITHOUT_SOURCE,
    Builder,
    Candidate,
    grid,
)
from graphkeel.reconstruct.context import Context
from graphkeel.reconstruct.guard.decision import MIN_LABELS, GuardDecision, Judge, decide
from graphkeel.reconstruct.guard.judges import PropagatedRowsJudge, choose_judge, cross_fit
from graphkeel.reconstruct.guard.signs import decide_by_signs
from graphkeel.reconstruct.labels import Labels
from graphkeel.reconstruct.large.linear import LinearModel, PropagatedRows
from graphkeel.reconstruct.large.local import LOCAL, LocalBuilder, LocalContext

LARGE = 200_000  # nodes beyond which `auto` keeps to candidates that labels change locally


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
    ) -> None:
        self.context = context
        self.method = method
        self.risk = risk
        self.trained_on = trained_on
        self.seed = seed
        self.elsewhere = elsewhere
        self.transfer = TRANSFER if context.source is not None else WITHOUT_SOURCE
        self.candidates: tuple[Candidate, ...] = grid(method)
        if elsewhere and method == "auto":
            self.candidates = (*self.transfer, *JOINED, *self.candidates)
        self._fixed = self._local_context()
        self._builder: Builder | LocalBuilder | None = None
        self._validation_rows: PropagatedRows | None = None
        self.members: tuple[Candidate, ...] = ()

    def choose(self, labels: Labels, validation: Labels) -> GuardDecision:
        """Choose for these labels; `features` are then those of the choice.

        Args:
            labels: the labels to use.
            validation: the labels to judge by.
        """
        by_signs = None
        few = max(len(labels), len(validation)) < MIN_LABELS
        if self.method == "auto" and (self.elsewhere or few):
            self._builder = Builder(self.context, labels)
            self.members, by_signs = decide_by_signs(self._builder, self.transfer)
            if few:
                return by_signs
        judge = self._judge(labels, validation, self._fixed)
        presumed = by_signs is not None and not by_signs.left_alone
        self.members, decision = decide(self.candidates, judge, risk=self.risk, presumed=presumed)
        return decision

    def features(self) -> Tensor:
        """The chosen features; the context's own where they are left alone."""
        return self.context.x if self._builder is None else self._builder.features(self.members)

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
        return LocalContext(context, model)

    def _judge(self, labels: Labels, validation: Labels, fixed: LocalContext | None) -> Judge:
        if fixed is None:
            self._builder = Builder(self.context, labels)
            return choose_judge(self._builder, validation, self.trained_on, self.seed)
        if isinstance(self._builder, LocalBuilder):
            self._builder.update_labels(labels)
        else:
            self._builder = LocalBuilder(fixed, labels)
        if not len(validation):
            return cross_fit(
                lambda part: LocalBuilder(fixed, part), labels, self.trained_on, self.seed
            )
        self._validation_rows = (
            fixed.model.rows_at(validation.nodes)
            if self._validation_rows is None
            else self._validation_rows.at(validation.nodes)
        )
        return PropagatedRowsJudge(self._builder, validation, self._validation_rows)
