"""True certificates of the real pipeline are accepted: datasets, heads, forms, gauges.

tests/lyapunov/test_certificate.py has more heads, tests/cli/test_certify.py all of digits."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from graphkeel import checker
from graphkeel.cli.main import main
from tally import TALLY


def certified(
    folder: Path, capsys: pytest.CaptureFixture[str], *arguments: str
) -> checker.CheckResult:
    """The checker's result for the certificate that `keel certify` wrote."""
    code = main(["certify", "--json", "--out", str(folder), *arguments])
    printed = json.loads(capsys.readouterr().out)
    assert code in (0, 1, 3) and printed["certificate"], printed
    return checker.check_file(printed["certificate"])


DEFAULT = {
    "digits, three classes": ("--classes", "0,3,8"),
    "digits, homogeneous": ("--classes", "1", "--form", "homogeneous"),
    "digits, the paper's form": ("--classes", "4", "--form", "paper", "--budget", "3"),
    "digits, a GCN head": ("--classes", "5", "--model", "gcn", "--budget", "12"),
    "digits, strength and shift": ("--classes", "6", "--set", "strength=3", "--set", "shift=-0.5"),
}


SLOW = {
    "digits, general gauge": ("--classes", "2", "--set", "gauge=general", "--budget", "8"),
}


@pytest.mark.parametrize(
    "options",
    [*DEFAULT.values(), *(pytest.param(o, marks=pytest.mark.slow) for o in SLOW.values())],
    ids=[*DEFAULT, *SLOW],
)
def test_small_certificates_are_accepted(
    options: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    result = certified(tmp_path, capsys, "--dataset", "digits", *options)
    assert result.accepted, result.reason
    for entry in result.classes:
        TALLY["true certificates accepted, by verdict", entry["verdict"]] += 1


@pytest.mark.slow
@pytest.mark.parametrize("model", ["sgc", "gcn"])
def test_all_of_digits_is_accepted(
    model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    result = certified(tmp_path, capsys, "--dataset", "digits", "--model", model)
    assert result.accepted, result.reason
    for entry in result.classes:
        TALLY["true certificates accepted, by verdict", entry["verdict"]] += 1
