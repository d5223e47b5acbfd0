"""`FrozenModel`: a trained model that can be asked, but not changed."""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Callable, Iterator
from enum import StrEnum
from typing import Any

import torch
from torch import Tensor, nn

from graphkeel.core.errors import ModelError

Scores = Callable[..., Tensor]


class ReturnType(StrEnum):
    """What the model's output means."""

    RAW = "raw"  # logits
    LOG_PROBS = "log_probs"  # log-softmax of the logits
    PROBS = "probs"  # softmax of the logits


class FrozenModel:
    """Wraps any `nn.Module` or callable `(x, edge_index, **kwargs) -> scores` for test-time use.

    Every call runs in eval mode without gradients into the weights, puts the modes back afterwards,
    and checks that the weights are, bit for bit, what they were when the model was wrapped.

    Args:
        model: the trained model.
        return_type: what its scores are; `logits` undoes it (up to a constant per node, for
        probabilities). n_classes: checked against the output's width when given.

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
    ) -> None:
        if not callable(model):
            raise ModelError(
                "a model must be a torch module or a callable", got=type(model).__name__
            )
        try:
            self.return_type = ReturnType(return_type)
        except ValueError:
            choices = ", ".join(kind.value for kind in ReturnType)
            raise ModelError(
                f"return_type must be one of {choices}", got=repr(return_type)
            ) from None
        self.model, self.n_classes = model, n_classes
        self.weights_hash = self._hash()

    def __call__(self, x: Tensor, edge_index: Tensor, **kwargs: Any) -> Tensor:
        """Scores of every node, as the model gives them."""
        with torch.no_grad():
            return self._run(x, edge_index, **kwargs)

    def logits(self, x: Tensor, edge_index: Tensor, **kwargs: Any) -> Tensor:
        """Scores on the logit scale."""
        return self._as_logits(self(x, edge_index, **kwargs))

    def differentiable_logits(self, x: Tensor, edge_index: Tensor, **kwargs: Any) -> Tensor:
        """Logits with gradients into x (never into the weights)."""
        return self._as_logits(self._run(x, edge_index, **kwargs))

    def predict(self, x: Tensor, edge_index: Tensor, **kwargs: Any) -> Tensor:
        """The class of every node."""
        return self(x, edge_index, **kwargs).argmax(dim=-1)

    def _run(self, x: Tensor, edge_index: Tensor, **kwargs: Any) -> Tensor:
        self.check_unchanged()
        with self._eval_mode():
            scores = self.model(x, edge_index, **kwargs)
        self.check_unchanged()
        return self._checked(scores, x.shape[0])

    def _as_logits(self, scores: Tensor) -> Tensor:
        if self.return_type is ReturnType.PROBS:
            return scores.clamp_min(torch.finfo(scores.dtype).tiny).log()
        return scores

    def _checked(self, scores: object, n_nodes: int) -> Tensor:
        if not isinstance(scores, Tensor) or scores.dim() != 2 or scores.shape[0] != n_nodes:
            got = tuple(scores.shape) if isinstance(scores, Tensor) else type(scores).__name__
            raise ModelError(
                f"the model must return one row of scores for each of the {n_nodes} nodes", got=got
            )
        if self.n_classes is not None and scores.shape[1] != self.n_classes:
            raise ModelError(
                f"the model's output must be as wide as there are classes, {self.n_classes}",
                got=scores.shape[1],
                fix="The model was trained for another task, or a class is missing from the labels.",
            )
        return scores

    @contextlib.contextmanager
    def _eval_mode(self) -> Iterator[None]:
        """Eval mode, no weight gradients, empty caches; all put back, whatever the model does."""
        if not isinstance(self.model, nn.Module):
            yield
            return
        modes = [(module, module.training) for module in self.model.modules()]
        wanted = [(parameter, parameter.requires_grad) for parameter in self.model.parameters()]
        try:
            self.model.eval()
            for parameter, _ in wanted:
                parameter.requires_grad_(False)
            clear_caches(self.model)
            yield
        finally:
            # A cache filled now would answer for these features in the user's next call, too.
            clear_caches(self.model)
            for module, mode in modes:
                module.training = mode
            for parameter, flag in wanted:
                parameter.requires_grad_(flag)

    def check_unchanged(self) -> None:
        """Refuse to go on if somebody changed the weights."""
        if self._hash() != self.weights_hash:
            raise ModelError(
                "the frozen model's weights have changed since it was wrapped",
                fix="Wrap the model again if that was meant; its old results no longer hold.",
            )

    def _hash(self) -> str:
        """SHA-256 of all weights and buffers; caches of layers are neither."""
        digest = hashlib.sha256()
        if isinstance(self.model, nn.Module):
            for name, tensor in sorted(self.model.state_dict().items()):
                if isinstance(tensor, Tensor):
                    digest.update(f"{name}{tuple(tensor.shape)}{tensor.dtype}".encode())
                    digest.update(
                        tensor.detach()
                        .cpu()
                        .contiguous()
                        .flatten()
                        .view(torch.uint8)
                        .numpy()
                        .tobytes()
                    )
        return digest.hexdigest()


# Where PyG layers keep what `cached=True` makes them remember. SGConv remembers propagated
# *features*, the others normalised *edges*: with a warm cache a reconstruction would silently do
# nothing.
_CACHES = ("_cached_x", "_cached_h", "_cached_edge_index", "_cached_adj_t")


def clear_caches(model: nn.Module) -> int:
    """Empty the caches of `cached=True` layers; returns how many there were.

    A cached layer whose cache is none of the known ones is refused: its answers could not be
    trusted."""
    cleared = 0
    for name, module in model.named_modules():
        if not getattr(module, "cached", False):
            continue
        slots = [slot for slot in _CACHES if hasattr(module, slot)]
        if not slots:
            raise ModelError(
                f"layer {name or type(module).__name__!r} has cached=True and keeps its cache in an unknown place",
                got=type(module).__name__,
                fix="Build the layer with cached=False and load the same weights.",
            )
        for slot in slots:
            cleared += getattr(module, slot) is not None
            setattr(module, slot, None)
    return cleared
