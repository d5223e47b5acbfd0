"""`keel demo`, as the README promises it: the table, the gain, the picture."""

from __future__ import annotations

import json

from graphkeel.cli.main import main


def test_the_demo_gains_ten_points_and_draws_its_picture(capsys, tmp_path):
    arguments = ["demo", "--seeds", "2", "--out", str(tmp_path)]
    assert main([*arguments, "--json"]) == 0
    steps = json.loads(capsys.readouterr().out)["steps"]
    assert steps["training labels only"]["gain_mean"] > 10
    assert steps["half of the validation labels fed back"]["gain_mean"] > 15
    assert (tmp_path / "demo.png").read_bytes().startswith(b"\x89PNG")
    assert main(arguments) == 0  # from the stored rows, as a table
    assert "untouched frozen model" in capsys.readouterr().out
