"""A device that this machine does not have, for tests: tensors carry a mark that says where they
are, and an operation on tensors of two places fails as it does on a real accelerator.

torch has no second device with numbers in it on a machine without an accelerator ("meta" has none),
so the mark is kept beside the tensors, and all numbers stay in main memory."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_flatten, tree_map

FAKE = torch.device("cuda", 0)


class FakeAccelerator(TorchFunctionMode):
    """While it is active, `tensor.to(FAKE)` marks, `tensor.device` reads the mark, and operations
    refuse to mix; `calls` counts those made there."""

    def __init__(self) -> None:
        super().__init__()
        self.calls = 0

    def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None):
        kwargs = dict(kwargs or {})
        tensors = [one for one in tree_flatten((args, kwargs))[0] if isinstance(one, Tensor)]
        if function == Tensor.device.__get__:
            return FAKE if is_there(args[0]) else function(*args, **kwargs)
        if function in (Tensor.to, Tensor.cpu):
            return self._moved(function, args, kwargs)
        there = _takes_device(kwargs)
        places = {is_there(one) for one in tensors if one.dim() > 0}
        if len(places) > 1 and function not in (Tensor.__setattr__,):
            raise RuntimeError(f"Expected all tensors to be on the same device ({function})")
        result = function(*args, **kwargs)
        there = there or any(is_there(one) for one in tensors)
        self.calls += there
        return tree_map(_marked, result) if there else result

    def _moved(self, function: Any, args: Any, kwargs: Any) -> Any:
        wanted = [one for one in (*args[1:], *kwargs.values()) if _is_place(one)]
        to_there = bool(wanted) and torch.device(wanted[0]) == FAKE
        stays = function is Tensor.to and not wanted
        rest = tuple("cpu" if _is_place(one) else one for one in args[1:])
        named = {name: "cpu" if _is_place(one) else one for name, one in kwargs.items()}
        result = function(args[0], *rest, **named)
        if to_there or (stays and is_there(args[0])):
            return _marked(result if result is not args[0] else result.view_as(result))
        if is_there(result) and not stays:
            result = result.clone()
        return result


def _is_place(value: Any) -> bool:
    return isinstance(value, torch.device) or (isinstance(value, str) and value in ("cpu", "cuda"))


def _takes_device(kwargs: dict[str, Any]) -> bool:
    if kwargs.get("device") == FAKE:
        kwargs["device"] = torch.device("cpu")
        return True
    return False


def is_there(tensor: Tensor) -> bool:
    return getattr(tensor, "_there", False)


def _marked(value: Any) -> Any:
    if isinstance(value, Tensor):
        with suppress(AttributeError):
            value._there = True
    return value


def put_there(model: nn.Module) -> nn.Module:
    """The model, all of whose parameters and buffers are marked."""
    for tensor in (*model.parameters(), *model.buffers()):
        _marked(tensor)
    return model
