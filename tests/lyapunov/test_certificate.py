"""From a head to a certificate that the independent check accepts, in every form and for deeper
heads."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from small_models import logits_of, random_head

from graphkeel.certificate import check_certificate, write_certificate
from graphkeel.core.errors import ConfigError
from graphkeel.lyapunov import LyapunovConfig, engine_oracle, portfolio_oracle
from graphkeel.lyapunov.certify import certificate_of
from graphkeel.lyapunov.result import TrainResult
from graphkeel.lyapunov.training import train
from graphkeel.verify.portfolio import on_whole_box
from graphkeel.verify.problem import Affine, Network, Problem
from graphkeel.verify.result import Verdict


def trained(sizes: tuple[int, ...], **options: object) -> tuple[object, TrainResult]:
    head = random_head(sizes, seed=4)
    config = LyapunovConfig(**{"samples": 240, "seconds": 600.0, **options})  # type: ignore[arg-type]
    return head, train(head, logits_of(head), config=config, oracle=portfolio_oracle)


@pytest.mark.parametrize(
    ("sizes", "options"),
    [
        ((30, 3), {}),
        ((300, 9), {}),
        ((30, 3), {"form": "homogeneous"}),
        ((30, 3), {"gauge": "general", "lyapunov_hidden": 8}),
        ((30, 10, 3), {}),
        ((30, 3), {"strength": 5.0, "shift": -0.5}),
    ],
    ids=[
        "affine",
        "nine-classes",
        "homogeneous",
        "general-gauge",
        "perceptron",
        "strong-and-shifted",
    ],
)
def test_every_class_is_proved_and_the_check_agrees(tmp_path, sizes, options) -> None:
    head, result = trained(sizes, **options)
    assert result.stopped == "proved"
    path = tmp_path / "certificate.json"
    write_certificate(certificate_of(head, result), path)
    checked = check_certificate(str(path))
    assert checked.accepted, checked.reason


def test_the_papers_form_is_certified_whatever_its_verdict(tmp_path) -> None:
    head, result = trained((8, 3), form="paper", seconds=4.0, verify_seconds=1.0)
    path = tmp_path / "certificate.json"
    write_certificate(certificate_of(head, result), path)
    checked = check_certificate(str(path))
    assert checked.accepted, checked.reason


def test_a_proof_that_was_not_kept_is_not_certified() -> None:
    head, result = trained((30, 3))
    first = result.outcomes[0]
    lost = replace(
        first.report, conditions=tuple(replace(c, proof=None) for c in first.report.conditions)
    )
    changed = replace(result, outcomes=(replace(first, report=lost), *result.outcomes[1:]))
    entries = certificate_of(head, changed)["classes"]
    assert [entry["verdict"] for entry in entries] == ["unknown", "proved", "proved"]


@pytest.mark.parametrize(
    ("engine", "verdict"), [("auto", "proved"), ("branch", "proved"), ("contraction", "unknown")]
)
def test_one_engine_alone_may_be_asked(engine: str, verdict: str) -> None:
    head = random_head((30, 3), seed=4)
    config = LyapunovConfig(samples=240, rounds=1)
    result = train(head, logits_of(head), [0], config, oracle=engine_oracle(engine))
    (entry,) = certificate_of(head, result)["classes"]
    assert entry["verdict"] == verdict  # the closed form alone has nothing to say about invariance
    assert {
        c.engine for c in result.outcomes[0].report.conditions if c.condition == "decrease"
    } <= {
        engine,
        "contraction",
    }


def test_an_engine_that_does_not_exist_is_refused_at_once() -> None:
    with pytest.raises(ConfigError, match="engine"):
        engine_oracle("oracle")


def test_a_deep_head_is_proved_by_contraction_alone() -> None:
    """A hidden layer of the head, two of the loop: no search, and stable from everywhere."""
    head, result = trained((30, 10, 3))
    assert result.stopped == "proved"
    assert all(outcome.report["decrease"].engine == "contraction" for outcome in result.outcomes)
    entries = certificate_of(head, result)["classes"]
    assert {entry["conclusion"]["region"] for entry in entries} == {"everywhere"}


def scaled_loop(factor: float) -> Problem:
    """F(y) = factor·y on [−1, 1]², written with ReLU pairs."""
    eye = np.eye(2)
    pairs = Affine(np.concatenate([eye, -eye]), np.zeros(4))
    loop = Network((pairs, Affine(factor * np.concatenate([eye, -eye], axis=1), np.zeros(2))))
    value = Network((pairs, Affine(np.ones((1, 4)), np.zeros(1))))
    return Problem(loop, value, -np.ones(2), np.ones(2), np.zeros(2), rho=0.9)


def test_one_bound_proves_a_shrinking_box_and_leaves_a_growing_one_open() -> None:
    assert on_whole_box(scaled_loop(0.5), "invariance").verdict is Verdict.PROVED
    assert on_whole_box(scaled_loop(1.5), "invariance").verdict is Verdict.UNKNOWN
