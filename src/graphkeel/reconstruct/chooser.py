"""From labels to features: make the candidates, let the guard choose, keep what the next labels can
be added to."""

from __future__ import annotations

from torch import Tensor

from graphkeel.reconstruct.candidates import Builder, Candidate, grid
from graphkeel.reconstruct.guard import GuardDecision, Judge, decide
from graphkeel.reconstruct.judges import LensJudge, choose_judge, cross_fit
from graphkeel.reconstruct.labels import Labels
from graphkeel.reconstruct.linear import Lens, LinearModel
from graphkeel.reconstruct.local import LOCAL, LocalBuilder, LocalScene
from graphkeel.reconstruct.scene import Scene

LARGE = 200_000  # nodes beyond which `auto` keeps to candidates that labels change locally


class Chooser:
    """Chooses features for one scene, again and again as labels arrive.

    Args:
        method: the name of a grid of candidates.
        trained_on: bool mask of the nodes whose labels the model was trained on.
        seed: of the folds, where known labels have to judge.
    """

    def __init__(
        self, scene: Scene, method: str, significance: float, trained_on: Tensor, seed: int
    ) -> None:
        self.scene, self.method, self.significance = scene, method, significance
        self.trained_on, self.seed = trained_on, seed
        self.candidates: tuple[Candidate, ...] = grid(method)
        self._fixed = self._local_scene()
        self._builder: Builder | LocalBuilder | None = None
        self._lens: Lens | None = None
        self.members: tuple[Candidate, ...] = ()

    def choose(self, labels: Labels, validation: Labels) -> GuardDecision:
        """Choose for these labels; `features` are then those of the choice."""
        judge = self._judge(labels, validation, self._fixed)
        self.members, decision = decide(self.candidates, judge, significance=self.significance)
        return decision

    def features(self) -> Tensor:
        """The chosen features; the scene's own where they are left alone."""
        return self.scene.x if self._builder is None else self._builder.features(self.members)

    def forget(self) -> None:
        """The scene's anchors are others now: begin anew."""
        self._fixed, self._builder, self._lens = self._local_scene(), None, None

    def _local_scene(self) -> LocalScene | None:
        scene = self.scene
        if self.method != "auto" or scene.x.shape[0] <= LARGE or scene.model_kwargs:
            return None
        model = LinearModel.of(scene.frozen, scene.edge_index, scene.x.shape[0])
        if model is None:
            return None
        self.candidates = LOCAL
        return LocalScene(scene, model)

    def _judge(self, labels: Labels, validation: Labels, fixed: LocalScene | None) -> Judge:
        if fixed is None:
            self._builder = Builder(self.scene, labels)
            return choose_judge(self._builder, validation, self.trained_on, self.seed)
        if isinstance(self._builder, LocalBuilder):
            self._builder.become(labels)
        else:
            self._builder = LocalBuilder(fixed, labels)
        if not len(validation):
            return cross_fit(
                lambda part: LocalBuilder(fixed, part), labels, self.trained_on, self.seed
            )
        self._lens = (
            fixed.model.lens(validation.nodes)
            if self._lens is None
            else self._lens.at(validation.nodes)
        )
        return LensJudge(self._builder, validation, self._lens)
