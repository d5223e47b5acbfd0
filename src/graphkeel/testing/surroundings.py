"""Global state that a part leaves as it found it: random generators, numerical settings, the
working folder."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch

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
        torch.manual_seed(seed)
        yield
    finally:
        random.setstate(kept["python"])
        np.random.set_state(kept["numpy"])
        torch.random.set_rng_state(kept["torch"])


def _generators() -> dict[str, Any]:
    return {
        "python": random.getstate(),
        "numpy": np.random.get_state(),
        "torch": torch.random.get_rng_state(),
    }


def _state() -> dict[str, object]:
    kept = _generators()
    kind, key, *rest = kept["numpy"]
    return {
        "Python's global random generator": kept["python"],
        "NumPy's global random generator": (kind, key.tobytes(), *rest),
        "NumPy's error handling": np.geterr(),
        "the working folder": Path.cwd(),
        "torch's global random generator": kept["torch"].numpy().tobytes(),
        "torch's number of threads": torch.get_num_threads(),
        "torch's default dtype": torch.get_default_dtype(),
        "torch's gradient mode": torch.is_grad_enabled(),
        "torch's determinism": torch.are_deterministic_algorithms_enabled(),
    }
