"""Runs of the paper's protocol: the library's specifications with the paper's datasets, base
models and rivals. Light to import."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar

from graphkeel.core.names import check_name
from graphkeel.runs import specs
from graphkeel.runs.specs import split_number

if TYPE_CHECKING:
    from torch import nn

    from graphkeel.graph import GraphTask, RawGraph
    from graphkeel.graph.features import FittedPca
    from graphkeel.runs.adapt_case import Case
    from graphkeel.runs.method import Method, MethodResult

# how names of models and methods end
TUNED = "-tuned"  # on validation
AVERAGED = "+avg"  # a rival's settings under our averaging rule
SELF_TRAINED = "+self"  # a rival's settings, before and after a round of self-training


class _WithBases:
    """A specification of the paper: its datasets' names, and the bases of its tables."""

    PROGRAM: ClassVar[str] = "keel-paper"
    model: str
    model_options: dict[str, Any]

    def trained(self, task: GraphTask, seed: int) -> nn.Module:
        from graphkeel_paper.baselines.bases import train_base

        return train_base(self.model, task, seed=seed, **self.model_options)

    def code_version(self) -> str:
        """SHA-256 of the code that the number may depend on."""
        from graphkeel_paper.fingerprint import code_version

        return code_version()


@dataclass(frozen=True)
class RunSpec(_WithBases, specs.RunSpec):
    """One method, ours or a rival, on one dataset; also with a base of `baselines.bases` and the
    split `outside`."""

    def graph(self) -> RawGraph:
        from graphkeel_paper.datasets import load_graph

        return load_graph(self.dataset)

    def task(self, seed: int) -> GraphTask:
        from graphkeel_paper.datasets import load

        kind, number = split_number(self.split, seed)
        return load(self.dataset, seed=number, split=kind, features=self.features, pca=self.pca)

    def find_method(self) -> Method:
        from graphkeel_paper.baselines.registry import find_method

        return find_method(self.method, self.method_options)

    def published(self) -> dict[str, list[float]]:
        """The paper's figures, where the run follows its protocol."""
        from graphkeel_paper.tables.published import published_for

        if not self.follows_the_paper:
            return {}
        return {row: list(figure) for row, figure in published_for(self.dataset).items()}

    def check_names(self) -> None:
        from graphkeel.graph.datasets.registry import FEATURES
        from graphkeel.graph.splits import KINDS
        from graphkeel.models.zoo import MODELS, OWN
        from graphkeel_paper.baselines.bases import NAMED
        from graphkeel_paper.datasets.registry import OUTSIDE

        if self.model not in (OWN, *NAMED):
            check_name("the model", self.model.removesuffix(TUNED), MODELS)
        check_name("the split", self.split.partition(":")[0], (*KINDS, OUTSIDE))
        check_name("features", self.features, FEATURES)

    @property
    def follows_the_paper(self) -> bool:
        """Whether the paper's published figures are about such runs."""
        features = self.features in ("auto", "pca") and self.pca == 20
        return self.model == "sgc" and self.split == "biased" and features


@dataclass(frozen=True)
class InformedSpec(RunSpec):
    """A reading of the paper's row that knows the labels of the test nodes: what could be reached,
    never a result."""

    def find_method(self) -> Method:
        from graphkeel_paper.baselines.frozen.readings import READINGS, Informed

        check_name("the reading", self.method, READINGS)
        return Informed(self.method, READINGS[self.method], self)


@dataclass(frozen=True)
class AdaptSpec(_WithBases, specs.AdaptSpec):
    """One method, ours or a rival, that takes a model from a source graph to a target graph."""

    def graph(self, name: str) -> RawGraph:
        from graphkeel_paper.datasets import load_graph

        return load_graph(name)

    def adapted(self, case: Case) -> MethodResult:
        from graphkeel_paper.adapt_methods import adapted

        return adapted(self, case)

    def check_method(self) -> None:
        from graphkeel_paper.adapt_methods import check_method

        check_method(self.method)


@dataclass(frozen=True)
class CentredSpec(AdaptSpec):
    """Another graph, on components that are fitted on the source, each graph's about their own
    mean, rows of length one."""

    def graph(self, name: str) -> RawGraph:
        import numpy as np
        from scipy import sparse

        words = super().graph(name)
        kept = _components(self.source, self.components).transform(sparse.csr_matrix(words.x))
        kept -= kept.mean(axis=0)
        kept /= np.maximum(np.linalg.norm(kept, axis=1, keepdims=True), 1e-12)
        return replace(words, x=kept)


@lru_cache(maxsize=1)
def _components(source: str, count: int) -> FittedPca:
    from scipy import sparse

    from graphkeel.graph.features import FittedPca
    from graphkeel_paper.datasets import load_graph

    return FittedPca.fit(sparse.csr_matrix(load_graph(source).x), count)
