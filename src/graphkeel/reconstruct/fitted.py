"""A fitted reconstruction in use: scikit-learn's and PyG's contracts, and who may call what."""

from __future__ import annotations

import copy
from typing import Any, TypeVar

from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError
from torch import Tensor, nn
from torch_geometric.data import Data

from graphkeel.core.errors import ConfigError, DataError, ModelError
from graphkeel.core.locks import one_at_a_time
from graphkeel.core.names import check_name
from graphkeel.graph.fingerprint import Fingerprint
from graphkeel.graph.node_graph import check_graph, node_graph
from graphkeel.models.batched import AskedInBatches, Inference
from graphkeel.models.binding import bind
from graphkeel.models.frozen import FrozenModel, Scores, check_same_weights
from graphkeel.reconstruct.context import Context
from graphkeel.reconstruct.guard import GuardDecision

_Self = TypeVar("_Self", bound="Fitted")


class NotFitted(ConfigError, NotFittedError):
    """`fit` has not been called; scikit-learn's own error as well."""


class Fitted(BaseEstimator):
    """A fitted reconstruction, which answers; `Reconstructor` fits it.

    Threads may share one: a call waits until the one before it has ended."""

    model: nn.Module | Scores | None
    method: str
    controller: Any
    inference: Inference | None
    return_type: str
    guard_: GuardDecision
    features_: Tensor
    _context: Context
    _held: tuple[Any, Any]
    _rounds: tuple[Any, ...]
    _fingerprint: Fingerprint
    _weight_digests: dict[str, str]

    def set_params(self: _Self, **params: Any) -> _Self:
        """Change arguments of the constructor; `fit` checks them.

        Args:
            params: by name.
        """
        known = self._get_param_names()
        for name in params:
            check_name("a parameter", name, known)
        for name, value in params.items():
            setattr(self, name, value)
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "n_features_in_")

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        state = self.guard_.reason if hasattr(self, "guard_") else "not fitted"
        name = type(self.model).__name__ if isinstance(self.model, nn.Module) else "a stored model"
        settings = f"method={self.method!r}, controller={self.controller!r}"
        return f"Reconstructor({name}, {settings}: {state})"

    def __getstate__(self) -> dict[str, Any]:
        """Without the decision's evidence, which is computed again when it is asked for."""
        state = dict(super().__getstate__())
        if "_decision" in state:
            state["_decision"] = None
        return state

    @one_at_a_time
    def transform(self, data: Data) -> Data:
        """A copy of the data with the new features; the data itself is left as it was.

        Args:
            data: the graph that was fitted.
        """
        data = self._same_graph(data)
        changed = copy.copy(data)
        if self.guard_.left_alone:
            changed.x = data.x.clone()  # to the last bit, whatever its precision
        else:
            changed.x = self.features_.to(data.x.device, data.x.dtype, copy=True)
        return changed

    __call__ = transform

    def scores(self, data: Data, **model_kwargs: Any) -> Tensor:
        """The frozen model's own output on the new features.

        Args:
            data, model_kwargs: the graph that was fitted; further arguments of the model.
        """
        return self._answers(data, model_kwargs)[1]

    def _answers(self, data: Data, model_kwargs: dict[str, Any]) -> tuple[FrozenModel, Tensor]:
        """The frozen model and its scores on the new features; arguments of `fit` hold unless they
        are given anew."""
        graph = node_graph(self.transform(data))
        if hasattr(self, "_context"):
            frozen, arguments = self._context.frozen, self._context.model_kwargs | model_kwargs
        elif self.model is not None:
            self._check_same_model()
            frozen, arguments = self._bind(graph, model_kwargs)
        else:
            raise ModelError(
                "a loaded reconstructor has no model to predict with",
                fix="Hand it over: load(folder, model=model).",
            )
        return frozen, frozen(graph.x, graph.edge_index, **arguments)

    def predict(self, data: Data, **model_kwargs: Any) -> Tensor:
        """The class of every node.

        Args:
            data, model_kwargs: the graph that was fitted; further arguments of the model.
        """
        return self.scores(data, **model_kwargs).argmax(dim=-1)

    def predict_proba(self, data: Data, **model_kwargs: Any) -> Tensor:
        """The probability of every class, shape (N, n_classes).

        Args:
            data, model_kwargs: the graph that was fitted; further arguments of the model.
        """
        return self.decision_function(data, **model_kwargs).softmax(dim=-1)

    def decision_function(self, data: Data, **model_kwargs: Any) -> Tensor:
        """The logits of every class, shape (N, n_classes), whatever the model itself returns.

        Args:
            data, model_kwargs: the graph that was fitted; further arguments of the model.
        """
        frozen, scores = self._answers(data, model_kwargs)
        return frozen.as_logits(scores).to(node_graph(data).x.dtype)

    def score(
        self,
        data: Data,
        y: Tensor | None = None,
        *,
        mask: Tensor | None = None,
        **model_kwargs: Any,
    ) -> float:
        """The share of nodes whose class is predicted rightly, between 0 and 1.

        By default the guard's own estimate, from labels that were held back, so that a grid search
        never sees a test label.

        Args:
            data, model_kwargs: the graph that was fitted; further arguments of the model.
            y: labels to compare with, int64, shape (N,); by default those of the graph.
            mask: which nodes count, bool, shape (N,), for instance `data.test_mask`.
        """
        if mask is None:
            self._same_graph(data)
            if self.guard_.accuracy is None:
                raise ConfigError(
                    "no label judged the choice, so that nothing says how good it is",
                    fix="Pass mask= with nodes whose labels are known.",
                )
            return self.guard_.accuracy / 100
        labels = node_graph(data).y if y is None else y
        return float((self.predict(data, **model_kwargs) == labels)[mask].float().mean())

    # ---- checks

    def _bind(self, data: Data, model_kwargs: dict[str, Any]) -> tuple[FrozenModel, dict[str, Any]]:
        return bind(self._asked_model(), data, model_kwargs, return_type=self.return_type)

    def _asked_model(self) -> Any:
        """The model, or what asks it in batches."""
        if self.inference is None or self.model is None:
            return self.model
        return AskedInBatches(self.model, self.inference)  # type: ignore[arg-type]

    def _check_fitted(self) -> None:
        if not self.__sklearn_is_fitted__():
            raise NotFitted("this Reconstructor is not fitted", fix="Call fit(data) first.")

    def _check_context(self) -> None:
        self._check_fitted()
        if not hasattr(self, "_context"):
            raise ConfigError(
                "a loaded reconstructor has no graph to choose features for",
                fix="Call attach(data) first, or update(data) where it has grown or changed.",
            )

    def _check_whole(self) -> None:
        self._check_fitted()
        if not hasattr(self, "features_"):
            raise ConfigError(
                "this folder holds the summary of a source graph, not its features",
                fix="Call adapt(target).",
            )

    def _same_graph(self, data: Data) -> Data:
        """The graph, if it is the one that was fitted; another one is refused with the
        difference."""
        self._check_whole()
        data = data[0] if isinstance(data, list | tuple) and len(data) == 1 else data
        graph = node_graph(data)
        check_graph(graph)
        got, expected = tuple(graph.x.shape), tuple(self.features_.shape)
        if got != expected:
            raise DataError(
                f"the features were made for a graph with x of shape {expected}",
                got=got,
                fix="Call update(data) where it has grown, adapt(data) where it is another.",
            )
        self._fingerprint.check(graph)
        return data

    def _check_same_model(self) -> None:
        """Refuse a model with other weights than the one that was fitted."""
        if self.model is not None and not hasattr(self, "_context"):
            # a fitted one checks at every call
            check_same_weights(self._asked_model(), self._weight_digests)
