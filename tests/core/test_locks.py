"""One lock an object, which neither hinders its copying nor outlives it."""

from __future__ import annotations

import copy
import gc
import pickle

from graphkeel.core import locks
from graphkeel.core.locks import lock_of, one_at_a_time
from threads import Meeting, WatchedLock, at_once


class Account:
    def __init__(self) -> None:
        self.balance = 0
        self.between = lambda: None

    @one_at_a_time
    def add(self, amount: int = 1) -> int:
        """Add it."""
        read = self.balance
        self.between()
        self.balance = read + amount
        return self.balance

    @one_at_a_time
    def add_twice(self) -> int:
        self.add()
        return self.add()


def test_no_addition_is_lost(monkeypatch) -> None:
    meeting = Meeting(parties=3)
    lock = WatchedLock(meeting)
    monkeypatch.setattr(locks, "lock_of", lambda owner: lock)
    account = Account()
    account.between = meeting.wait
    at_once(account.add, account.add, account.add)
    assert account.balance == 3


def test_a_holder_may_enter_again_and_the_method_stays_itself() -> None:
    assert Account().add_twice() == 2
    assert Account.add.__doc__ == "Add it."
    assert Account().add(amount=5) == 5


def test_each_object_has_a_lock_of_its_own_that_dies_with_it() -> None:
    one, other = Account(), Account()
    assert lock_of(one) is lock_of(one)
    assert lock_of(one) is not lock_of(other)
    before = len(locks._locks)
    del one
    gc.collect()
    assert len(locks._locks) < before


class Plain:
    value = 3


def test_locked_objects_can_be_copied_and_pickled() -> None:
    plain = Plain()
    lock_of(plain)
    assert copy.deepcopy(plain).value == 3
    assert pickle.dumps(plain)
