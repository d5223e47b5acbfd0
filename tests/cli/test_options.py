"""Every option of every command: what cannot be meant is refused in one message, exit code 2."""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from graphkeel.cli.main import KEEL, main
from graphkeel.cli.shared.common import dataset_type, number, path_type, seed_type, whole_number

# What has to be there beside an option, so that only the option can be wrong.
REQUIRED = {
    "check": ["c.json"],
    "verify": ["p.json"],
    "export": ["p.json", "--out", "o"],
    "report": ["folder"],
    "fit": ["folder", "--out", "o"],
    "label": ["folder"],
    "monitor": ["folder", "--data", "digits"],
    "feedback": ["--simulate", "9"],
    "adapt": ["--source", "digits", "--target", "digits"],
}
UNHEARD_OF = ["nan", "inf", "-inf", "1e400", "-1", str(-(2**70)), str(10**30), "", "x", "9" * 5000]


def commands() -> dict[str, argparse.ArgumentParser]:
    (found,) = [
        action
        for action in KEEL.parser()._actions
        if isinstance(action, argparse._SubParsersAction)
    ]
    return dict(found.choices)


def options() -> Iterator[tuple[str, argparse.Action]]:
    for name, parser in commands().items():
        for action in parser._actions:
            if action.type is not None:
                yield name, action


def is_number(action: argparse.Action) -> bool:
    if action.dest == "target_labels":
        return False  # a number or a file: any word is one or the other
    return isinstance(action.default, int | float) or action.dest in ("simulate", "rho", "epsilon")


NUMBERS = [
    pytest.param(name, action, id=f"{name} {action.option_strings[0]}")
    for name, action in options()
    if action.option_strings and is_number(action)
]
PATHS = [
    pytest.param(name, action, id=f"{name} {action.dest}")
    for name, action in options()
    if action.type in (path_type, dataset_type)
]


def refusal(words: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    """The message with which the command ends with exit code 2."""
    with pytest.raises(SystemExit) as ended:
        main(words)
    assert ended.value.code == 2
    return capsys.readouterr().err.splitlines()[-1]


def words_for(command: str, action: argparse.Action, value: str) -> list[str]:
    if action.option_strings:
        return [command, *REQUIRED.get(command, []), f"{action.option_strings[0]}={value}"]
    return [command, value, *REQUIRED[command][1:]]


def test_no_command_takes_a_bare_integer_float_or_path() -> None:
    bare = [
        (name, action.dest)
        for name, action in options()
        if action.type in (int, float, Path) and not action.choices
    ]
    assert bare == []


def test_there_are_options_to_try() -> None:
    tried = {f"{case.values[0]} {case.values[1].dest}" for case in [*NUMBERS, *PATHS]}
    assert {"run seed", "certify budget", "export source", "run dataset"} <= tried


@pytest.mark.parametrize(("command", "action"), NUMBERS)
def test_numbers_out_of_range_are_refused(
    command: str, action: argparse.Action, capsys: pytest.CaptureFixture[str]
) -> None:
    for value in UNHEARD_OF:
        if value == "-1" and action.dest == "shift":
            continue  # a shift may well be negative
        message = refusal(words_for(command, action, value), capsys)
        assert f"argument {'/'.join(action.option_strings)}: must be a" in message
        assert " to " in message and "(got " in message and len(message) < 300


@pytest.mark.parametrize(("command", "action"), PATHS)
def test_paths_that_no_file_system_has_are_refused(
    command: str, action: argparse.Action, capsys: pytest.CaptureFixture[str]
) -> None:
    for value in ("a\0b", ""):
        message = refusal(words_for(command, action, value), capsys)
        assert f"must be a path, not empty and without NUL characters (got {value!r})" in message


@pytest.mark.parametrize("value", ["-1", str(2**70), "1.5", "٣.٥"])
def test_a_bad_seed_is_one_message(value: str, capsys: pytest.CaptureFixture[str]) -> None:
    message = refusal(["run", "--seed", value], capsys)
    assert message.endswith(f"must be a whole number from 0 to 2147483647 (got {value!r})")


def test_both_ends_of_a_range() -> None:
    assert [seed_type(text) for text in ("0", str(2**31 - 1))] == [0, 2**31 - 1]
    assert whole_number(-2, 3)("-2") == -2
    assert number(0.0, 1.0)("0") == 0.0
    with pytest.raises(argparse.ArgumentTypeError, match="above 0 up to 1"):
        number(0.0, 1.0, above=True)("0")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--features", "pca²"], "pcaN needs? a number"),
        (["--set", "epsilon=2.5"], r"epsilon must lie in \[0, strength\)"),
        (
            ["--set", "stength=2"],
            r"strength, verify_seconds \(got 'stength=2'\). Did you mean stren",
        ),
        (["--set", "rho"], "--set takes NAME=VALUE"),
        (["--set", "seed=1"], "--set takes NAME=VALUE"),
        (["--set", "rho=nan"], "--set rho: must be a number from"),
        (["--set", "hidden=2.5"], "--set hidden: must be a whole number from"),
        (["--set", "hidden=0"], "hidden must be positive"),
        (["--set", "loss=nope"], "loss must be"),
        (["--set", "gauge=nope"], "gauge must be"),
        (["--set", "start_node=99999"], "a labelled node of the graph"),
    ],
)
def test_certify_refuses_what_only_it_can_know(
    words: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["certify", *words, "--out", str(tmp_path)]) == 2
    assert re.search(message, capsys.readouterr().err)


def test_algorithm_1_as_printed_takes_one_node_and_one_step_a_round(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    printed = ["steps=1", "falsify_rounds=0", "start_node=3", "rounds=2", "hidden=2"]
    words = [word for one in printed for word in ("--set", one)]
    case = ["--dataset", "digits:0,1", "--form", "paper", "--engine", "branch"]
    main(["certify", *case, *words, "--json", "--out", str(tmp_path)])
    shown = json.loads(capsys.readouterr().out)
    (row,) = shown["classes"]  # the node's
    rounds = json.loads((tmp_path / "training.json").read_text())["rounds"]
    assert [one["steps"] for one in rounds] == [1] * len(rounds) and 1 <= len(rounds) <= 2
    assert row["verdict"] in ("proved", "refuted", "unknown")
