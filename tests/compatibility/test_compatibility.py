"""Every model of the compatibility page: it works, or it is refused with a sentence that says what
to do; and the page says just that."""

from __future__ import annotations

import sys
import warnings
from functools import cache
from pathlib import Path

import pytest
import torch

import graphkeel as gk

sys.path.insert(0, str(Path(__file__).parent))
from page import PAGE, PROVABLE, Outcome, outcome_of, page
from people import ROWS, Row

found = cache(outcome_of)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_it_works_or_says_what_to_do(row: Row) -> None:
    outcome = found(row)  # a raw exception ends here
    if not outcome.works:
        sentences = outcome.fit.removeprefix("refused: ").rstrip(".").split(". ")
        assert len(sentences) >= 2, "what is wrong, and what to do about it"
        assert "\n" not in outcome.fit


def test_there_are_enough_rows() -> None:
    assert len({row.name for row in ROWS}) == len(ROWS) >= 40


def test_the_page_is_up_to_date() -> None:
    outcomes: dict[str, Outcome] = {row.name: found(row) for row in ROWS}
    assert PAGE.read_text(encoding="utf-8") == page(outcomes), "make compatibility writes it anew"


@pytest.mark.parametrize("name", ["SGConv, K = 2", "required `edge_weight`, in the graph"])
def test_what_the_page_calls_provable_is_certified(name: str) -> None:
    """Not that every class is proved in a second, but that there is something to check."""
    row = next(row for row in ROWS if row.name == name)
    assert found(row).certify == PROVABLE
    torch.manual_seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        case = row.make()
        rec = gk.Reconstructor(case.model).fit(case.data, **case.arguments)
        result = rec.certify(budget=1.0)
    assert result.certificate is not None
    assert gk.check(result.certificate).accepted
