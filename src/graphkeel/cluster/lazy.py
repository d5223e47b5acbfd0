"""Tensors whose rows live on a cluster: functions of rows are described, and computed when a sum
over all rows is asked for, or when they are stored."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from graphkeel.cluster.stored import Stored


class Lazy:
    """A tensor of shape (N, …), row by row a function of others.

    Every function of torch that acts on rows can be called with it, and gives another one. Sums,
    means, `all` and medians over everything are computed at once, by the cluster.

    Args:
        home: the cluster.
        n_rows: N.
        function: of the same rows of all values.
        values: lazy or stored ones of as many rows; others are passed on as they are.
    """

    def __init__(
        self, home: Any, n_rows: int, function: Callable[..., Any], values: Sequence[Any]
    ) -> None:
        self.home = home
        self._n_rows = n_rows
        self._function = function
        self._values = tuple(values)
        self._lengths: Lazy | None = None

    @classmethod
    def of(cls, array: Stored, home: Any) -> Lazy:
        """The array as a tensor."""
        return cls(home, len(array), torch.from_numpy, (array,))

    def rows(self, rows: Any, known: dict[int, Any] | None = None) -> Any:
        """Rows of it, computed here; what occurs several times is computed once."""
        known = {} if known is None else known
        if id(self) not in known:
            values = [
                value.rows(rows, known)
                if isinstance(value, Lazy)
                else value[rows]
                if isinstance(value, Stored)
                else value
                for value in self._values
            ]
            known[id(self)] = self._function(*values)
        return known[id(self)]

    def numpy(self) -> Stored:
        """Its values in files."""
        if self._function is torch.from_numpy and isinstance(self._values[0], Stored):
            return self._values[0]
        found: Stored = self.home.rowwise(_as_array, [_Rows(self)])
        return found

    def stored(self) -> Lazy:
        """Computed, and read from files from now on."""
        return Lazy.of(self.numpy(), self.home)

    # ---- as torch has it

    @classmethod
    def __torch_function__(
        cls, function: Any, _types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        lazy = next(one for one in args if isinstance(one, Lazy))
        if function is torch.equal:
            return bool((args[0] == args[1]).all())
        return lazy._mapped(function, *args, **(kwargs or {}))

    def _mapped(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Lazy:
        def call(*values: Any) -> Any:
            return function(*values, **kwargs)

        return Lazy(self.home, self._n_rows, call, args)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or not hasattr(Tensor, name):
            raise AttributeError(name)
        method = getattr(Tensor, name)

        def call(*args: Any, **kwargs: Any) -> Lazy:
            return self._mapped(method, self, *args, **kwargs)

        return call

    def __len__(self) -> int:
        return self._n_rows

    @property
    def shape(self) -> torch.Size:
        return torch.Size((self._n_rows, *self.rows(slice(0, 1)).shape[1:]))

    @property
    def nbytes(self) -> int:
        one = self.rows(slice(0, 1))
        return self._n_rows * int(one.nbytes)

    @property
    def device(self) -> torch.device:
        return torch.device("cpu")

    def new_ones(self, *shape: int) -> Tensor:
        """A tensor that is here, as the rows are."""
        return torch.ones(*shape)

    def __getitem__(self, key: Any) -> Any:
        """Chosen rows are a tensor that is here; else a function of every row."""
        if isinstance(key, Lazy):
            parts = self.home.fold(_chosen, [_Rows(self), _Rows(key)], _joined)
            return torch.from_numpy(np.concatenate(parts))
        if isinstance(key, slice | np.ndarray | Tensor):
            return self.rows(key.numpy() if isinstance(key, Tensor) else key)
        return self._mapped(_item, self, key)

    def _folded(self, function: Callable[..., Any]) -> Tensor:
        return torch.as_tensor(self.home.fold(function, [_Rows(self)], _added))

    def sum(self, *args: Any, **kwargs: Any) -> Any:
        """Of all rows; or of each, along a dimension."""
        if args or kwargs:
            return self._mapped(torch.sum, self, *args, **kwargs)
        return self._folded(_sum)

    def mean(self) -> Tensor:
        """Of all values."""
        return self._folded(_sum) / (self._n_rows * self.shape[1:].numel())

    def norm(self, dim: int | None = None) -> Any:
        """Of all rows; or of each (dim=1), computed once."""
        if dim is None:
            return self.double().square().sum().sqrt()
        if self._lengths is None:
            self._lengths = self._mapped(torch.norm, self, dim=dim).stored()
        return self._lengths

    def all(self) -> Tensor:
        """Whether all values are true."""
        return self._folded(_count_false) == 0

    def median(self) -> Tensor:
        """Of one value a row; all of them come here for it."""
        return self[self == self].median()

    def __bool__(self) -> bool:
        raise TypeError("ask all() of it, or any row")


class _Rows:
    """A lazy tensor as the array that a task reads."""

    def __init__(self, value: Lazy) -> None:
        self._value = value

    def __getitem__(self, rows: slice) -> Any:
        return self._value.rows(rows)


def _operator(name: str) -> Callable[..., Lazy]:
    function = getattr(torch.Tensor, name)

    def apply(self: Lazy, *others: Any) -> Lazy:
        return self._mapped(function, self, *others)

    return apply


for _name in ("add", "radd", "sub", "rsub", "mul", "rmul", "truediv", "neg", "matmul", "invert",
              "and", "or", "gt", "ge", "lt", "le", "eq", "ne"):  # fmt: skip
    setattr(Lazy, f"__{_name}__", _operator(f"__{_name}__"))
Lazy.__hash__ = object.__hash__  # type: ignore[method-assign]


def _as_array(rows: Tensor) -> Any:
    return rows.numpy()


def _item(rows: Any, key: Any) -> Any:
    return rows[key]


def _chosen(rows: Tensor, which: Tensor) -> list[Any]:
    return [rows[which].numpy()]


def _joined(some: list[Any], more: list[Any]) -> list[Any]:
    return some + more


def _added(a: Any, b: Any) -> Any:
    return a + b


def _sum(rows: Tensor) -> float:
    return float(rows.sum(dtype=torch.float64))


def _count_false(rows: Tensor) -> Any:
    return np.int64((~rows.bool()).sum())
