"""From labels to features: make the candidates, let the guard choose, keep what the next labels can
be added to."""

from __future__ import annotations

from torch import Tensor

from graphkeel.reconstruct.candidates.builder import Builder, Candidate, grid
from graphkeel.reconstruct.context import Context
from graphkeel.reconstruct.guard.decision import GuardDecision, Judge, decide
from graphkeel.reconstruct.guard.judges import PropagatedRowsJudge, choose_judge, cross_fit
from graphkeel.reconstruct.labels import Labels
from graphkeel.reconstruct.large.linear import LinearModel, PropagatedRows
from graphkeel.reconstruct.large.local import LOCAL, LocalBuilder, LocalContext

LARGE = 200_000  # nodes beyond which `auto` keeps to candidates that labels change locally


class Chooser:
    """Chooses features for one context, again and again as labels arrive.

    Args:
        method: the name of a grid of candidates.
        trained_on: bool mask of the nodes whose labels the model was trained on.
        seed: of the folds, where known labels have to judge.
    """

    def __init__(
        self, context: Context, method: str, significance: float, trained_on: Tensor, seed: int
    ) -> None:
        self.context = context
        self.method = method
        self.significance = significance
        self.trained_on = trained_on
        self.seed = seed
        self.candidates: tuple[Candidate, ...] = grid(method)
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
        judge = self._judge(labels, validation, self._fixed)
        self.members, decision = decide(self.candidates, judge, significance=self.significance)
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
        if self.method != "auto" or context.x.shape[0] <= LARGE or context.model_kwargs:
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
