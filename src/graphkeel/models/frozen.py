"""`FrozenModel`: a trained model that can be evaluated, but not changed."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.parameter import is_lazy
from torch_geometric.data import Data

from graphkeel.core.digests import sha256_of
from graphkeel.core.errors import ModelError
from graphkeel.core.locks import lock_of
from graphkeel.core.names import check_name
from graphkeel.models.calling import (
    CallableModule,
    Calling,
    as_module,
    forward_of,
    placement_of,
    signature_of,
    uncompiled,
)
from graphkeel.models.outputs import ReturnType, first_of, recognised, two_columns, warn_of_others
from graphkeel.models.state import ATTRIBUTES, BUFFERS, WEIGHTS, Snapshot, bits

Scores = Callable[..., Tensor]
_KEPT = (WEIGHTS, BUFFERS)  # what makes a model the same model; attributes may come and go


class FrozenModel:
    """Wraps any `nn.Module` or callable for test-time use.

    It is asked with (x, edge_index), whatever its own forward takes: `calling` turns the question
    into the model's own call, on the model's device and in its precision. Every call runs in eval
    mode without gradients into the weights, puts the modes back afterwards, and checks that weights
    and buffers are, bit for bit, what they were when the model was wrapped. Threads may share it,
    and may wrap the same model several times: one asks at a time.

    A model with one logit per node is one of two classes, with the logits (-z/2, z/2). Of a tuple
    the first entry counts. A compiled model is asked in its uncompiled form.

    Args:
        model: the trained model.
        return_type: what its scores are; `logits` undoes it (up to a constant per node, for
            probabilities).
        n_classes: checked against the output's width when given.
        graph: the graph it will be asked about; needed by models that read more of it than
            (x, edge_index).

    >>> frozen = FrozenModel(lambda x, edge_index: 2 * x)
    >>> frozen.predict(torch.tensor([[0.0, 1.0], [3.0, 2.0]]), torch.empty(2, 0, dtype=torch.long))
    tensor([1, 0])
    """

    def __init__(
        self,
        model: nn.Module | Scores,
        *,
        return_type: str | ReturnType = ReturnType.RAW,
        n_classes: int | None = None,
        graph: Data | None = None,
    ) -> None:
        if not callable(model) or isinstance(model, type):
            what, is_class = "a model must be a torch module or a callable", isinstance(model, type)
            got = f"the class {model.__name__}" if is_class else type(model).__name__
            raise ModelError(what, got=got, fix="Build the model, and load its weights into it.")
        if not isinstance(return_type, ReturnType):
            check_name("return_type", return_type, [kind.value for kind in ReturnType], ModelError)
        self.return_type = ReturnType(return_type)
        self.model = uncompiled(model)
        self.module = as_module(self.model)
        self.n_classes = n_classes
        self.calling = Calling(signature_of(forward_of(self.model)), graph)
        _check_initialised(self.module)
        self._wrapped = Snapshot(self.module).digests
        # of all weights and persistent buffers; caches of layers are neither
        self.weights_hash = sha256_of(
            part
            for name, tensor in sorted(self.module.state_dict().items())
            if isinstance(tensor, Tensor)
            for part in (f"{name}{tuple(tensor.shape)}{tensor.dtype}", bits(tensor))
        )
        self._has_warned = False

    @property
    def weight_digests(self) -> dict[str, str]:
        """SHA-256 of every parameter and buffer, by name."""
        return {name: digest for (kind, name), digest in self._wrapped.items() if kind in _KEPT}

    def __call__(self, x: Tensor, edge_index: Tensor, **kwargs: Any) -> Tensor:
        """Scores of every node, as the model gives them, on the device of x."""
        with torch.no_grad():
            return self._run(x, edge_index, **kwargs)

    def logits(self, x: Tensor, edge_index: Tensor, **kwargs: Any) -> Tensor:
        """Scores on the logit scale, in the precision of x.

        Args:
            x: features, shape (N, d).
            edge_index: edges, shape (2, E).
            kwargs: further arguments of the model.
        """
        return self.as_logits(self(x, edge_index, **kwargs)).to(x.dtype)

    def differentiable_logits(self, x: Tensor, edge_index: Tensor, **kwargs: Any) -> Tensor:
        """Logits with gradients into x (never into the weights).

        Args:
            x: features, shape (N, d).
            edge_index: edges, shape (2, E).
            kwargs: further arguments of the model.
        """
        return self.as_logits(self._run(x, edge_index, **kwargs)).to(x.dtype)

    def logits_of_copy(
        self, module: nn.Module, x: Tensor, edge_index: Tensor, **kwargs: Any
    ) -> Tensor:
        """Logits, with gradients into x, of a copy in eval mode that nobody else calls: nothing is
        put aside for it, so its layers may keep the graph's normalisation.

        Args:
            module: called as the model is.
            x: features, shape (N, d).
            edge_index: edges, shape (2, E).
            kwargs: further arguments of the model.
        """
        scores = self._checked(self.run_as(module, x, edge_index, **kwargs), x.shape[0])
        return self.as_logits(scores.to(x.device)).to(x.dtype)

    def passes_gradients(self, x: Tensor, edge_index: Tensor, **kwargs: Any) -> bool:
        """Whether the logits have gradients into x: scripts and remote models may not.

        Args:
            x: features, shape (N, d).
            edge_index: edges, shape (2, E).
            kwargs: further arguments of the model.
        """
        point = x.detach().clone().requires_grad_(True)
        try:
            return self.differentiable_logits(point, edge_index, **kwargs).requires_grad
        except RuntimeError:
            return False

    def predict(self, x: Tensor, edge_index: Tensor, **kwargs: Any) -> Tensor:
        """The class of every node.

        Args:
            x: features, shape (N, d).
            edge_index: edges, shape (2, E).
            kwargs: further arguments of the model.
        """
        return self(x, edge_index, **kwargs).argmax(dim=-1)

    def _run(self, x: Tensor, edge_index: Tensor, **kwargs: Any) -> Tensor:
        with evaluating(self.module) as state:
            self._compare(state)
            scores = self.run_as(self.module, x, edge_index, **kwargs)
        return self._checked(scores, x.shape[0]).to(x.device)

    def run_as(self, module: nn.Module, x: Tensor, edge_index: Tensor, **kwargs: Any) -> Any:
        """The output of a module that is called as the model is: the model itself, or a copy.

        Args:
            module: as it is called, no mode is set and nothing is checked.
            x: features, shape (n, d).
            edge_index: edges, shape (2, e).
            kwargs: further arguments of the forward.
        """
        graph = self.calling.graph
        placement = placement_of(module, x if graph is None else graph.x)
        returned = self.calling(module, x, edge_index, kwargs, placement)
        if not self._has_warned:
            self._has_warned = True
            warn_of_others(returned)
        return first_of(returned)

    def as_logits(self, scores: Tensor) -> Tensor:
        """Scores of the model on the logit scale.

        Args:
            scores: as a call returned them, shape (N, n).
        """
        if self.return_type is ReturnType.PROBS:
            return scores.clamp_min(torch.finfo(scores.dtype).tiny).log()
        return scores

    def _checked(self, scores: object, n_nodes: int) -> Tensor:
        if isinstance(scores, Tensor) and scores.shape == (n_nodes,):
            scores = scores.unsqueeze(1)  # a binary model whose one logit was squeezed
        if not isinstance(scores, Tensor) or scores.dim() != 2 or scores.shape[0] != n_nodes:
            raise _no_row_per_node(scores, n_nodes)
        if self.return_type is ReturnType.AUTO:
            self.return_type = recognised(scores.detach())
        if scores.shape[1] == 1:
            scores = two_columns(scores, self.return_type)
        if self.n_classes is not None and scores.shape[1] != self.n_classes:
            raise ModelError(
                f"the model's output must be as wide as there are classes, {self.n_classes}",
                got=scores.shape[1],
                fix="The model is of another task, or a class is missing from the labels.",
            )
        return scores

    def _compare(self, state: Snapshot) -> None:
        """Attributes are left out: the model's owner may set them between calls."""
        for kind, name in sorted(self._wrapped.keys() | state.digests.keys()):
            before = self._wrapped.get((kind, name))
            if kind != ATTRIBUTES and before != state.digests.get((kind, name)):
                raise ModelError(
                    f"the frozen model's {kind} have changed since it was wrapped",
                    got=repr(name),
                    fix="Wrap the model again if that was meant; its old results no longer hold.",
                )


def check_same_weights(model: nn.Module | Scores, was: dict[str, str]) -> None:
    """Refuse a model whose `weight_digests` are others; where there were none, all are taken."""
    now = FrozenModel(model).weight_digests
    names = sorted(was.keys() | now.keys())
    changed = [name for name in names if was.get(name) != now.get(name)]
    if was and changed:
        raise ModelError(
            "the model is not the one that was fitted: its weights differ",
            got=", ".join(changed[:3]) + (" and more" if len(changed) > 3 else ""),
            fix="Load the weights it had, or call fit with this model.",
        )


def _no_row_per_node(scores: object, n_nodes: int) -> ModelError:
    wanted = f"the model must return one row of scores for each of the {n_nodes} nodes"
    if not isinstance(scores, Tensor):
        return ModelError(
            wanted,
            got=type(scores).__name__,
            fix="Hand over a function that picks the scores: lambda x, edge_index: model(…)[…].",
        )
    return ModelError(
        wanted,
        got=tuple(scores.shape),
        fix="A model that pools its nodes classifies graphs; graphkeel is for nodes. Hand over a "
        "function that returns the scores of nodes.",
    )


# ---- evaluating a model without changing it


@contextlib.contextmanager
def evaluating(model: nn.Module) -> Iterator[Snapshot]:
    """Eval mode, no gradients into the weights, empty caches; all put back, whatever happens.

    Every question to a frozen model is asked in here, by one thread at a time: two that switch the
    modes of one model for a moment would each put back what the other had set.

    Tensors that the forward leaves behind where there was none are removed. A forward that changes
    a parameter, a buffer or a tensor attribute is refused: its answers would depend on the calls
    before.

    Yields the state of the model's tensors at the beginning."""
    with lock_of(_owner(model)):
        _check_initialised(model)
        with _without_caches(model):
            before = Snapshot(model)
            with _eval_mode(model):
                try:
                    yield before
                finally:
                    changed = before.changed()
                    before.put_back()
    if changed is not None:
        kind, name = changed
        raise ModelError(
            f"the model's {kind} have changed during its own forward",
            got=repr(name),
            fix="Hand over a model whose forward only computes; an attribute that merely records "
            "the last call must be None before.",
        )


def _owner(model: nn.Module) -> nn.Module:
    """Whose lock counts: two wrappers of one function share the modules inside it."""
    shared = list(model.used) if isinstance(model, CallableModule) else []
    return shared[0] if shared else model


@contextlib.contextmanager
def _eval_mode(model: nn.Module) -> Iterator[None]:
    modes = [(module, module.training) for module in model.modules()]
    wanted = [(parameter, parameter.requires_grad) for parameter in model.parameters()]
    try:
        model.eval()
        for parameter, _ in wanted:
            parameter.requires_grad_(False)
        yield
    finally:
        for module, mode in modes:
            module.training = mode
        for parameter, flag in wanted:
            parameter.requires_grad_(flag)


def _check_initialised(model: nn.Module) -> None:
    """Refuse a model with a lazy layer that has never run, and so has no weights yet."""
    for name, tensor in [*model.named_parameters(), *model.named_buffers()]:
        if is_lazy(tensor):
            raise ModelError(
                "the model has a lazy layer without weights",
                got=repr(name),
                fix="Run the model once on its graph and train it, or load its weights, first.",
            )


# Where PyG layers keep what `cached=True` makes them remember. SGConv remembers propagated
# *features*, the others normalised *edges*: with a warm cache a reconstruction would silently do
# nothing.
_CACHES = ("_cached_x", "_cached_h", "_cached_edge_index", "_cached_adj_t")


@contextlib.contextmanager
def _without_caches(model: nn.Module) -> Iterator[None]:
    """Caches emptied and switched off: a filled one would answer for the features it has seen, and
    one filled now would answer in its owner's next call."""
    slots = [(module, slot, getattr(module, slot)) for module, slot in cache_slots(model)]
    flags = [module for module in model.modules() if getattr(module, "cached", None) is True]
    try:
        for module, slot, _ in slots:
            setattr(module, slot, None)
        for module in flags:
            module.cached = False  # type: ignore[assignment]
        yield
    finally:
        for module, slot, value in slots:
            setattr(module, slot, value)
        for module in flags:
            module.cached = True  # type: ignore[assignment]


def cache_slots(model: nn.Module) -> list[tuple[nn.Module, str]]:
    """(layer, attribute) of every cache there is; a layer that keeps its cache elsewhere is
    refused, as its answers could not be trusted."""
    found = []
    for name, module in model.named_modules():
        slots = [slot for slot in _CACHES if hasattr(module, slot)]
        if getattr(module, "cached", False) and not slots:
            layer = name or type(module).__name__
            raise ModelError(
                f"layer {layer!r} has cached=True and keeps its cache in an unknown place",
                got=type(module).__name__,
                fix="Build the layer with cached=False and load the same weights.",
            )
        found += [(module, slot) for slot in slots]
    return found
