"""Every rule of docs/formats.md: a case that holds, and one that just fails."""

from __future__ import annotations

import graph_cases  # noqa: F401 (adds its cases)
import mutant_cases  # noqa: F401
import mutant_cases_more  # noqa: F401
import property_cases  # noqa: F401
import pytest
import random_properties  # noqa: F401
import square_cases  # noqa: F401
import steering_cases  # noqa: F401
import sublevel_cases  # noqa: F401
from checker_cases import CASES
from run_cases import as_expected, outcome

from graphkeel import checker


@pytest.mark.parametrize("name", CASES)
def test_case(name: str) -> None:
    make, expected = CASES[name]
    found = outcome(checker, make())
    assert as_expected(found, expected), found
