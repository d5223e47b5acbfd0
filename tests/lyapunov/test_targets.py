"""Equilibria that the head can answer, and certificates for features as they are."""

from __future__ import annotations

import torch
from small_models import logits_of, random_head
from torch_geometric.nn import GraphSAGE

from graphkeel.certificate import check_certificate
from graphkeel.lyapunov import LyapunovConfig, certify, portfolio_oracle
from graphkeel.lyapunov.certify import certificate_of
from graphkeel.lyapunov.targets import Target, choose_targets, class_margins
from graphkeel.lyapunov.training import train
from graphkeel.models.frozen import FrozenModel
from graphkeel.models.head import Head

LABELS = [0, 1, 2]


def capped_head() -> Head:
    """C(x) = −relu(x): no logit is above zero, so m·e_c is out of reach for every m > 0."""
    eye = torch.eye(3, dtype=torch.float64)
    zero = torch.zeros(3, dtype=torch.float64)
    return Head(((eye, zero), (-eye, zero)), 3, 3)


def one_class_head() -> Head:
    """Class 2 loses to class 0 whatever the feature."""
    head = random_head((5, 8, 3))
    first, (weight, bias) = head.layers
    weight = weight.clone()
    bias = bias.clone()
    weight[2] = weight[0]
    bias[2] = bias[0] - 1.0
    return Head((first, (weight, bias)), 5, 3)


def equilibria(chosen: list[Target]) -> torch.Tensor:
    return torch.stack([one.equilibrium for one in chosen])


def anchors(chosen: list[Target]) -> torch.Tensor:
    return torch.stack([one.anchor for one in chosen])


def test_a_target_within_reach_is_the_one_asked_for() -> None:
    config = LyapunovConfig(strength=2.0, shift=-0.5)
    chosen = choose_targets(random_head((30, 3)), LABELS, config)
    assert torch.equal(equilibria(chosen), 2.0 * torch.eye(3, dtype=torch.float64) - 0.5)
    assert all(one.note == "" and one.reachable for one in chosen)


def test_a_target_out_of_reach_gives_way_to_an_answer_of_the_same_class() -> None:
    head = capped_head()
    chosen = choose_targets(head, LABELS, LyapunovConfig())
    assert all(one.reachable for one in chosen)
    assert torch.equal(head(anchors(chosen).double()), equilibria(chosen))
    # −relu reaches the one-hot but for a shift
    assert bool((class_margins(equilibria(chosen), torch.tensor(LABELS)) >= 0.9).all())
    assert all("does not reach" in one.note for one in chosen)


def test_moved_targets_are_proved_and_the_check_agrees() -> None:
    head = capped_head()
    config = LyapunovConfig(samples=240, seconds=60.0)
    logits = -torch.rand(50, 3, generator=torch.Generator().manual_seed(0))
    result = train(head, logits, config=config, oracle=portfolio_oracle)
    certificate = certificate_of(head, result)
    assert [entry["verdict"] for entry in certificate["classes"]] == ["proved"] * 3
    assert check_certificate(certificate).accepted


def test_a_class_that_no_feature_leads_to_is_named_and_refuted() -> None:
    head = one_class_head()
    config = LyapunovConfig(samples=240, seconds=20.0)
    result = train(head, logits_of(head), config=config, oracle=portfolio_oracle)
    assert "answers with class 2" in result.outcomes[2].note
    entries = certificate_of(head, result)["classes"]
    assert entries[2]["conditions"]["representative"]["verdict"] == "refuted"
    assert [entry["verdict"] for entry in entries[:2]] == ["proved", "proved"]


def test_given_features_rest_where_the_head_answers_them() -> None:
    head = random_head((6, 8, 3))
    features = torch.randn(40, 6, generator=torch.Generator().manual_seed(3))
    answers = head(features.double())
    rows = [int((answers.argmax(dim=1) == label).nonzero()[0]) for label in LABELS]
    given = choose_targets(head, LABELS, LyapunovConfig(), features[rows])
    assert torch.equal(anchors(given), features[rows])
    assert torch.equal(equilibria(given), head(features[rows].double()))  # sums of as many rows


def test_a_feature_of_another_class_gives_way_and_is_named() -> None:
    head = random_head((30, 3))
    config = LyapunovConfig()
    solved = anchors(choose_targets(head, LABELS, config))
    swapped = choose_targets(head, LABELS, config, solved[[1, 0, 2]])
    assert "answered with class 1" in swapped[0].note
    assert bool((class_margins(equilibria(swapped), torch.tensor(LABELS)) > 0).all())


def test_constant_controllers_prove_what_training_had_no_time_for() -> None:
    head = random_head((30, 10, 3), seed=4)
    config = LyapunovConfig(samples=240, rounds=1, steps=1, seconds=60.0)
    short = train(head, logits_of(head), config=config, oracle=portfolio_oracle)
    held = train(head, logits_of(head), config=config, oracle=portfolio_oracle, constant=True)
    assert any(entry["verdict"] != "proved" for entry in certificate_of(head, short)["classes"])
    certificate = certificate_of(head, held)
    assert all(entry["verdict"] == "proved" for entry in certificate["classes"])
    assert any("constant" in note for note in certificate["provenance"]["notes"].values())
    assert check_certificate(certificate).accepted


def test_a_result_says_what_failed_and_why() -> None:
    torch.manual_seed(0)
    model = GraphSAGE(6, 8, 2, 3)
    x = torch.randn(20, 6)
    edges = torch.randint(20, (2, 60))
    config = LyapunovConfig(rounds=1, steps=1, samples=240, rho=0.001)
    result = certify(FrozenModel(model), x, edges, config)
    assert set(result.reasons) == {k for k, v in result.verdicts.items() if v != "proved"}
    assert result.reasons and not result
    remarked = result.with_remark("about others")
    assert remarked.certificate["provenance"]["anchors"] == "about others"
    assert check_certificate(remarked.certificate).accepted
