"""A signal whose exception compiled code swallows: nothing is printed about it, and the command
ends all the same."""

from __future__ import annotations

import ctypes
import signal
import sys

import pytest

from graphkeel.core.signals import Terminated, raise_pending, terminable


@pytest.mark.parametrize(
    ("number", "raised"), [(signal.SIGINT, KeyboardInterrupt), (signal.SIGTERM, Terminated)]
)
def test_an_exception_lost_in_a_callback_is_raised_later(
    number: signal.Signals, raised: type[BaseException], capsys: pytest.CaptureFixture[str]
) -> None:
    usual = signal.signal(
        signal.SIGINT, signal.default_int_handler
    )  # a shell's background job ignores it
    hook = sys.unraisablehook

    @ctypes.CFUNCTYPE(None)
    def callback() -> None:
        signal.raise_signal(number)

    try:
        with pytest.raises(raised), terminable():
            callback()  # ctypes cannot pass the exception on
            raise_pending()
    finally:
        signal.signal(signal.SIGINT, usual)
        sys.unraisablehook = hook
    assert capsys.readouterr().err == ""


def test_other_lost_exceptions_are_still_reported() -> None:
    heard: list[object] = []
    usual, sys.unraisablehook = sys.unraisablehook, lambda lost: heard.append(lost.exc_type)

    @ctypes.CFUNCTYPE(None)
    def callback() -> None:
        raise ValueError("lost")

    try:
        with terminable():
            callback()
    finally:
        sys.unraisablehook = usual
    assert heard == [ValueError]
