"""`keel check` in a process of its own: exit codes, one JSON object, and no heavy import."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graphkeel.certificate import ClassProof, build_certificate, mlp, write_certificate
from graphkeel.certificate.sources import anchored_controller, collapsed, collapsed_loop
from graphkeel.cli import check
from graphkeel.verify.problem import Network, Problem
from hand_networks import anchored_lyapunov


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A loop that quarters the distance to Y: proved by its contraction factor, but for the
    invariance, not asked."""
    eye, Y = np.eye(2), np.array([1.0, 0.0])
    both = np.concatenate([eye, -eye])
    head = mlp([(eye, np.zeros(2))])
    controller = anchored_controller(both, np.zeros(4), 0.25 * both.T, Y, Y)
    lyapunov = anchored_lyapunov(both, np.ones(4), Y)
    networks = [
        Network.of(*layers) for layers in (collapsed_loop(controller, head), collapsed(lyapunov))
    ]
    problem = Problem(
        *networks,
        lower=Y - 1,
        upper=Y + 1,
        equilibrium=Y,
        hole_radius=0.1,
        rho=0.75,
        positivity=0.5,
    )

    class Proved:
        verdict, engine, reason, seconds, nodes, counterexample = (
            "proved",
            "contraction",
            "",
            0.0,
            0,
            None,
        )

        def __init__(self, condition: str) -> None:
            self.proof = {"version": 4, "kind": "contraction", "condition": condition}

    conditions = {name: Proved(name) for name in ("positivity", "decrease")}
    proof = ClassProof(0, "anchored", controller, lyapunov, Y, problem, conditions, 1e-9)
    path = tmp_path_factory.mktemp("check") / "certificate.json"
    write_certificate(build_certificate(head, [proof]), path)
    return path


def keel_check(path: Path, *flags: str) -> subprocess.CompletedProcess[str]:
    code = (
        "import sys, argparse\nfrom graphkeel.cli import check\n"
        "parser = argparse.ArgumentParser()\ncheck.add_arguments(parser)\n"
        "code = check.run(parser.parse_args(sys.argv[1:]))\n"
        "names = ('torch', 'scipy', 'numba', 'highspy', 'z3', 'rich')\n"
        "heavy = [m for m in sys.modules if m.split('.')[0] in names]\n"
        "heavy += [m for m in sys.modules if m.startswith('graphkeel.verify')]\n"
        "sys.stderr.write(repr(heavy))\nsys.exit(code)"
    )
    return subprocess.run(
        [sys.executable, "-c", code, str(path), *flags], capture_output=True, text=True, check=False
    )


def test_accepted(certificate: Path) -> None:
    done = keel_check(certificate, "--json")
    assert done.returncode == 0 and done.stderr == "[]", done.stderr
    payload: dict[str, Any] = json.loads(done.stdout)
    assert payload["command"] == "check" and payload["accepted"] is True
    assert payload["reason"] and payload["seconds"] >= 0
    assert payload["classes"][0]["sentence"].startswith("Every trajectory that starts anywhere in")


def test_rejected_with_a_reason(
    certificate: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    changed = tmp_path / "certificate.json"
    changed.write_text(certificate.read_text().replace('"rho": 0.75', '"rho": 0.2'))
    code, payload = in_process(changed, "--json", capsys=capsys)
    assert code == 1
    assert json.loads(payload)["accepted"] is False and "SHA-256" in json.loads(payload)["reason"]
    code, text = in_process(changed, capsys=capsys)
    assert code == 1 and text.startswith("REJECTED")


def test_unreadable(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "c.json").write_text("{")
    code, payload = in_process(tmp_path / "c.json", "--json", capsys=capsys)
    assert code == 2 and json.loads(payload)["accepted"] is False


def in_process(path: Path, *flags: str, capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    import argparse

    parser = argparse.ArgumentParser()
    check.add_arguments(parser)
    code = check.run(parser.parse_args([str(path), *flags]))
    return code, capsys.readouterr().out
