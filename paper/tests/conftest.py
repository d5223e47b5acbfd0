"""Cells whose answers are known without computing anything."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from fixtures import _private_cache, data_folder, make_task  # noqa: F401
from graphkeel.store.job import Job, Measurement
from graphkeel_paper.specs import RunSpec


@pytest.fixture
def job() -> Callable[..., Job]:
    def build(
        row: str = "sgc",
        seed: int = 0,
        dataset: str = "digits",
        code: str = "v1",
        method: str = "none",
    ) -> Job:
        return Job(row, RunSpec(dataset=dataset, method=method), seed, data="d" * 64, code=code)

    return build


@pytest.fixture
def measured() -> Callable[..., Measurement]:
    def build(accuracy: float = 70.0, base: float = 65.0, **decision: object) -> Measurement:
        result = {
            "seed": 0,
            "base": base,
            "accuracy": accuracy,
            "kept": False,
            "decision": decision,
        }
        return Measurement("done", 1.5, 100.0, result)

    return build
