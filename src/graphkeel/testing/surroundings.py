"""Global state that a part leaves as it found it: random generators, numerical settings, the
working folder.

Torch counts only where somebody has imported it: an engine's checks do not need it.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from graphkeel.testing.checks import expect


@contextmanager
def left_alone() -> Iterator[None]:
    """Fails if the block moves a global generator or changes a global setting."""
    before = _state()
    yield
    after = _state()
    for name, value in before.items():
        expect(after[name] == value, f"{name} to be left alone", "a change")


@contextmanager
def global_seed(seed: int) -> Iterator[None]:
    """All global generators started from `seed`, and put back afterwards."""
    kept = _generators()
    try:
        random.seed(seed)
        np.random.seed(seed)
        if _torch() is not None:
            _torch().manual_seed(seed)
        yield
    finally:
        random.setstate(kept["python"])
        np.random.set_state(kept["numpy"])
        if "torch" in kept:
            _torch().random.set_rng_state(kept["torch"])


def _torch() -> Any:
    return sys.modules.get("torch")


def _generators() -> dict[str, Any]:
    kept: dict[str, Any] = {"python": random.getstate(), "numpy": np.random.get_state()}
    if _torch() is not None:
        kept["torch"] = _torch().random.get_rng_state()
    return kept


def _state() -> dict[str, object]:
    kept, torch = _generators(), _torch()
    kind, key, *rest = kept["numpy"]
    state: dict[str, object] = {
        "Python's global random generator": kept["python"],
        "NumPy's global random generator": (kind, key.tobytes(), *rest),
        "NumPy's error handling": np.geterr(),
        "the working folder": Path.cwd(),
    }
    if torch is not None:
        state |= {
            "torch's global random generator": kept["torch"].numpy().tobytes(),
            "torch's number of threads": torch.get_num_threads(),
            "torch's default dtype": torch.get_default_dtype(),
            "torch's gradient mode": torch.is_grad_enabled(),
            "torch's determinism": torch.are_deterministic_algorithms_enabled(),
        }
    return state
