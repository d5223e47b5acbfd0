"""One thread at a time for an object whose calls change it for a moment. Standard library only."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import Any, Concatenate, ParamSpec, TypeVar
from weakref import WeakKeyDictionary

_Arguments = ParamSpec("_Arguments")
_Owner = TypeVar("_Owner")
_Result = TypeVar("_Result")

# Beside the objects and not in them, so that they can still be copied and pickled.
_locks: WeakKeyDictionary[Any, threading.RLock] = WeakKeyDictionary()
_table = threading.Lock()


def lock_of(owner: object) -> threading.RLock:
    """The lock of this very object, for as long as it lives; its holder may take it again."""
    with _table:
        return _locks.setdefault(owner, threading.RLock())


def one_at_a_time(
    method: Callable[Concatenate[_Owner, _Arguments], _Result],
) -> Callable[Concatenate[_Owner, _Arguments], _Result]:
    """Decorates methods: of all that have it, an object runs one at a time; other threads wait."""

    @functools.wraps(method)
    def locked(self: _Owner, /, *args: _Arguments.args, **kwargs: _Arguments.kwargs) -> _Result:
        with lock_of(self):
            return method(self, *args, **kwargs)

    return locked
