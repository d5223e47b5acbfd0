"""`keel demo`, as the README promises it: the gain, a bar a split, the table."""

from __future__ import annotations

import json

from graphkeel.cli.main import main


def test_the_demo_gains_ten_points_and_keeps_its_rows(capsys, tmp_path):
    arguments = ["demo", "--seeds", "2", "--out", str(tmp_path)]
    assert main([*arguments, "--json"]) == 0
    steps = json.loads(capsys.readouterr().out)["steps"]
    assert steps["training labels only"]["gain_mean"] > 10
    assert steps["half of the validation labels fed back"]["gain_mean"] > 15
    assert main(arguments) == 0  # from the stored rows, as a table
    shown = capsys.readouterr()
    assert shown.out.count("split ") == 3  # a bar each, and the table's column
    assert "untouched frozen model" in shown.out
    assert shown.err.count("2 of 2 splits were in") == 2
