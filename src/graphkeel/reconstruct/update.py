"""The same graph, later: what it has to keep, and the model's arguments on it."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from graphkeel.core.errors import DataError


def check_grown(x: Tensor, new_x: Tensor) -> None:
    """Refuse a graph that cannot be the same one later.

    Args:
        x: features as they were, shape (n, d).
    """
    if new_x.shape[1] != x.shape[1]:
        raise DataError(
            f"update needs the {x.shape[1]} features of the graph that was fitted",
            got=int(new_x.shape[1]),
            fix="Prepare them in the same way, or call fit.",
        )
    if new_x.shape[0] < x.shape[0]:
        raise DataError(
            f"update keeps the ids of all {x.shape[0]} nodes that were fitted",
            got=f"{new_x.shape[0]} nodes",
            fix="Leave nodes that are gone in place, without edges; or call fit.",
        )


def arguments_again(before: dict[str, Any], given: dict[str, Any], graph: Any) -> dict[str, Any]:
    """Arguments of the model's forward on the new graph; a tensor of the old one is of no use."""
    arguments = dict(given)
    for name, value in before.items():
        if name in given:
            continue
        held = getattr(graph, name, None)
        if callable(value) or isinstance(value, bool | int | float | str) or value is None:
            arguments[name] = value
        elif held is not None:
            arguments[name] = held
        else:
            raise DataError(
                f"the model was fitted with {name}, and the new graph needs one of its own",
                got=f"no {name}",
                fix=f"Pass it on: update(data, {name}=…).",
            )
    return arguments
