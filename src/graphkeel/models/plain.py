"""Any callable as a module: a function that closes over modules holds their weights and modes."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

from torch import nn


def uncompiled(model: Any) -> Any:
    """The module inside a `torch.compile`d one, with the same weights; others as they are.

    Hooks and changed modes would compile it anew at every call."""
    return getattr(model, "_orig_mod", model)


def as_module(model: nn.Module | Callable[..., Any]) -> nn.Module:
    """A module that calls the model; a module is one already."""
    return model if isinstance(model, nn.Module) else CallableModule(model)


def forward_of(model: nn.Module | Callable[..., Any]) -> Callable[..., Any]:
    """The function whose parameters are those of a call."""
    return model.forward if isinstance(model, nn.Module) else model


class CallableModule(nn.Module):
    """Calls a function, and holds the modules that it uses.

    Args:
        function: any callable.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.used = nn.ModuleList(_modules_within(function))
        self._function = function

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self._function(*args, **kwargs)


def _modules_within(function: Callable[..., Any]) -> list[nn.Module]:
    """The modules that a callable holds, by its closure, its object, its arguments or the globals
    it names."""
    found: dict[int, nn.Module] = {}
    for value in _held(function):
        if isinstance(value, nn.Module):
            found[id(value)] = value
        elif inspect.isfunction(value) and value is not function:
            found |= {id(module): module for module in _direct(value)}
    return list(found.values())


def _held(function: Callable[..., Any]) -> list[Any]:
    if isinstance(function, functools.partial):
        given = [*function.args, *function.keywords.values()]
        return [*given, function.func, *_held(function.func)]
    if inspect.ismethod(function):
        return [function.__self__, *_vars_of(function.__self__), *_held(function.__func__)]
    if inspect.isfunction(function):
        named = inspect.getclosurevars(function)
        defaults = [*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()]
        return [*named.nonlocals.values(), *named.globals.values(), *defaults]
    return _vars_of(function)


def _direct(function: Callable[..., Any]) -> list[nn.Module]:
    return [value for value in _held(function) if isinstance(value, nn.Module)]


def _vars_of(value: Any) -> list[Any]:
    """The attributes of an object, by name."""
    return list(getattr(value, "__dict__", {}).values())
