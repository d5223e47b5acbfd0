"""No false certificate about a real graph is accepted."""

from __future__ import annotations

from pathlib import Path

import pytest
from graph_forgeries import LIES, Shown, bases, forgeries

from graphkeel.certificate import CheckResult, check_certificate, write_certificate
from graphkeel.certificate.equilibrium import STATES
from graphkeel.core.errors import CertificateError
from graphkeel.core.tensors import save_tensors
from tally import TALLY


def checked(shown: Shown, folder: Path) -> CheckResult:
    save_tensors(folder / STATES, shown.states)
    write_certificate(shown.certificate, folder / "certificate.json")
    return check_certificate(folder / "certificate.json", model=shown.model, data=shown.data)


@pytest.mark.parametrize("name", bases())
def test_what_a_forgery_starts_from_is_accepted(name: str, tmp_path: Path) -> None:
    found = checked(bases()[name], tmp_path)
    assert found.accepted, found.reason
    uncertain = bases()[name].certificate["graph"]["equilibrium"]["uncertain"]
    assert bool(uncertain) == name.endswith("loose")


def refuse_all(seed: int, count: int, folder: Path) -> None:
    refused = 0
    for number, shown in enumerate(forgeries(seed, count)):
        try:
            found = checked(shown, folder)
        except CertificateError:
            outcome = "unreadable"
        else:
            assert not found.accepted, f"{number}: {shown.lie} was accepted"
            outcome = "rejected"
        refused += 1
        TALLY["graph forgeries refused, by lie", shown.lie] += 1
        TALLY["graph forgeries refused, by outcome", outcome] += 1
    assert refused == count


def test_no_graph_forgery_is_accepted(tmp_path: Path) -> None:
    refuse_all(0, 2 * len(LIES), tmp_path)


@pytest.mark.slow
def test_none_of_a_thousand_graph_forgeries_is_accepted(tmp_path: Path) -> None:
    refuse_all(1, 1000, tmp_path)


@pytest.mark.parametrize("lie", ["edge added", "edge removed", "feature changed by one ulp"])
def test_another_graph_is_named_even_where_the_enclosure_would_hold(
    lie: str, tmp_path: Path
) -> None:
    """A loop that the aggregation sets itself, the feature of a controlled node: nothing that the
    loop reads; the hash says all the same that it is another graph."""
    for shown in forgeries(2, len(LIES)):
        if shown.lie == lie:
            found = checked(shown, tmp_path)
            assert not found.accepted and "another graph" in found.reason
