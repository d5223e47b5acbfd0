"""One real certificate for all tests of this folder."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from loops import Answer, Shipped, answers, certificate, shipped

from graphkeel.certificate.schema import loop_of


@pytest.fixture(scope="session")
def ship() -> Shipped:
    return shipped(seed=1)


@pytest.fixture(scope="session")
def proofs(ship: Shipped) -> dict[str, Answer]:
    return answers(loop_of(ship.loop))


@pytest.fixture(scope="session")
def good(ship: Shipped, proofs: dict[str, Answer]) -> dict[str, Any]:
    return certificate(ship, proofs)
