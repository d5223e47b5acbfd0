"""A person who knows the classes."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from graphkeel.label import Session


def give(session: Session, y: Tensor, count: int, *, wait: bool = True) -> list[dict[str, Any]]:
    """Answer this many nodes rightly; the tasks that were shown."""
    tasks = []
    for _ in range(count):
        state = session.state()
        task = state["task"]
        session.answer(state["version"], task["node"], int(y[task["node"]]))
        tasks.append(task)
        if wait:
            session.wait()
    return tasks


def skip(session: Session) -> int:
    state = session.state()
    session.answer(state["version"], state["task"]["node"], None)
    return int(state["task"]["node"])


def undo(session: Session) -> None:
    session.undo(session.state()["version"])
