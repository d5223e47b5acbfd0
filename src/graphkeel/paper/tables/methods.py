"""A method by name: a controller, one of ours, or one it is compared with."""

from __future__ import annotations

from typing import Any

from graphkeel.core.errors import ConfigError
from graphkeel.reconstruct.method import Method


def find_method(name: str, options: dict[str, Any] | None = None) -> Method:
    """The method behind a row of a table."""
    if name == "controller":
        from graphkeel.paper.tables.controllers import ControllerMethod

        return ControllerMethod(**(options or {}))  # type: ignore[return-value]
    if options:
        raise ConfigError(f"the method {name!r} takes no options", got=sorted(options))
    from graphkeel.paper.baselines.registry import BASELINES, get_baseline
    from graphkeel.reconstruct import get_method

    return get_baseline(name) if name in BASELINES else get_method(name)  # type: ignore[return-value]
