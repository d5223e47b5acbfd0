"""Tables in a narrow terminal."""

from __future__ import annotations

from pathlib import Path

from graphkeel.cli.shared.width import fitted
from graphkeel_paper.cli.columns import in_columns

ROOT = Path(__file__).parents[2]


def test_a_whole_table() -> None:
    stored = (ROOT / "benchmarks" / "results" / "table-1.txt").read_text().splitlines()
    assert max(map(len, stored)) > 80
    lines = fitted(in_columns(stored, 80), 80)  # as the command prints it
    assert max(map(len, lines)) <= 80
    assert set(" ".join(stored).split()) == set(" ".join(lines).split()), "nothing is lost or cut"
    untouched = [line for line in lines if line.startswith("SGC, untouched")]
    assert sum(line.count("±") for line in untouched[:3]) == 5, "three groups of columns at most"


def test_columns_below_each_other() -> None:
    table = ["name       one    two  three", "a      1.25e-9  12.00  30.00"]
    lines = in_columns(table, 24)
    assert max(map(len, lines)) <= 24
    assert [line.split() for line in lines] == [
        ["name", "one", "two"],
        ["a", "1.25e-9", "12.00"],
        [],
        ["name", "three"],
        ["a", "30.00"],
    ]
