"""The tensors that a module holds: which there are, their digests, and their return to what they
were after a call.

A module can keep tensors as parameters, as buffers (a non-persistent one is not in its
`state_dict`), as plain attributes, and in lists and dicts that are attributes. A forward that
writes into any of them has a memory: its answers depend on the calls before."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn

from graphkeel.core.digests import sha256_of

_Container = dict | list

WEIGHTS = "weights"
BUFFERS = "buffers"
ATTRIBUTES = "tensor attributes"
_KINDS = {"_parameters": WEIGHTS, "_buffers": BUFFERS}
# Hooks, the mode and the submodules, which are visited on their own.
_INTERNALS = frozenset(vars(nn.Module())) - frozenset(_KINDS)


class Snapshot:
    """The tensors of a model at one moment: their digests by (kind, name), the kinds being
    `WEIGHTS`, `BUFFERS` and `ATTRIBUTES`."""

    def __init__(self, model: nn.Module) -> None:
        self.model = model
        self.digests = {key: digest(tensor) for key, tensor in _tensors(model)}
        self._bound = [(module, dict(_attributes(module))) for module in model.modules()]
        self._members = [
            (value, value.copy())
            for _, attributes in self._bound
            for value in attributes.values()
            if isinstance(value, _Container)
        ]

    def changed(self) -> tuple[str, str] | None:
        """(kind, name) of a tensor that is gone or has other contents now."""
        now = dict(_tensors(self.model))
        for key, before in self.digests.items():
            if key not in now or digest(now[key]) != before:
                return key
        return None

    def put_back(self) -> None:
        """Remove the tensors that have appeared since, and give every name the tensor it had.

        What was written into a tensor stays: `changed` finds it."""
        for container, members in self._members:
            if _tensors_in(container) != _tensors_in(members):
                _refill(container, members)
        for module, before in self._bound:
            for name, value in list(_attributes(module)):
                if isinstance(value, Tensor) and name not in before:
                    del module.__dict__[name]
            for name, value in before.items():
                now = module.__dict__.get(name)
                of_interest = isinstance(value, Tensor | _Container) or isinstance(now, Tensor)
                if of_interest and now is not value:
                    module.__dict__[name] = value


def digest(tensor: Tensor) -> str:
    """SHA-256 of a tensor's type, shape and bits, wherever and however it is laid out."""
    parts = (bits(part) for part in _dense_parts(tensor))
    return sha256_of([f"{tuple(tensor.shape)}{tensor.dtype}", *parts])


def bits(tensor: Tensor) -> memoryview:
    """The bits of a dense tensor, in the order of its entries."""
    whole = tensor.detach().cpu().resolve_conj().resolve_neg().contiguous()
    return whole.flatten().view(torch.uint8).numpy().data


def _dense_parts(tensor: Tensor) -> tuple[Tensor, ...]:
    tensor = tensor.detach()
    if tensor.layout == torch.strided:
        return (tensor,)
    if tensor.layout == torch.sparse_coo:
        return tensor._indices(), tensor._values()
    if tensor.layout in (torch.sparse_csr, torch.sparse_bsr):
        return tensor.crow_indices(), tensor.col_indices(), tensor.values()
    return tensor.ccol_indices(), tensor.row_indices(), tensor.values()


def _tensors(model: nn.Module) -> Iterator[tuple[tuple[str, str], Tensor]]:
    for prefix, module in model.named_modules():
        start = f"{prefix}." if prefix else ""
        for name, value in _attributes(module):
            kind = _KINDS.get(name, ATTRIBUTES)
            if isinstance(value, Tensor):
                yield (kind, f"{start}{name}"), value
            elif isinstance(value, _Container):
                inner = start if name in _KINDS else f"{start}{name}."
                yield from (((kind, f"{inner}{key}"), member) for key, member in _members(value))


def _attributes(module: nn.Module) -> Iterator[tuple[str, Any]]:
    """The attributes that a module holds itself."""
    return ((name, value) for name, value in vars(module).items() if name not in _INTERNALS)


def _members(container: _Container) -> Iterator[tuple[Any, Tensor]]:
    named = container.items() if isinstance(container, dict) else enumerate(container)
    return ((key, member) for key, member in named if isinstance(member, Tensor))


def _tensors_in(container: _Container) -> list[tuple[Any, int]]:
    """Which tensors there are under which keys; the tensors themselves, not their contents."""
    return [(key, id(member)) for key, member in _members(container)]


def _refill(container: _Container, members: _Container) -> None:
    container.clear()
    if isinstance(container, dict):
        container.update(members)  # type: ignore[arg-type]
    else:
        container.extend(members)
