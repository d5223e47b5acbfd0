"""Algorithm 1 as printed: one node, one gradient step a round, the paper's two conditions."""

from __future__ import annotations

import json

import pytest
import torch

from graphkeel.cli.main import main
from graphkeel.core.errors import ConfigError
from graphkeel.lyapunov import LyapunovConfig
from graphkeel.lyapunov.loop_batch import LoopBatch
from graphkeel.lyapunov.states import NodeStates


def test_the_states_are_one_prediction_and_the_counterexamples_as_they_are():
    logits = torch.arange(6.0).reshape(3, 2)
    states = NodeStates(logits, node=1, classes=1)
    generator = torch.Generator()
    active = torch.tensor([0])
    assert states.batch(active, 512, generator).tolist() == [[[2.0, 3.0]]]
    states.learn(0, torch.tensor([7.0, 8.0], dtype=torch.float64), generator)
    assert states.batch(active, 512, generator).tolist() == [[[2.0, 3.0], [7.0, 8.0]]]
    with pytest.raises(ConfigError, match="3 nodes to start from"):
        NodeStates(logits, node=3, classes=1)


class _Plant:
    """C(x) = x, in two dimensions."""

    n_in = n_out = 2
    layers = ((torch.eye(2, dtype=torch.float64), torch.zeros(2, dtype=torch.float64)),)

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        return x


def _config(**changes) -> LyapunovConfig:
    return LyapunovConfig(form="paper", hidden=3, steps=1, start_node=0, **changes)


def test_a_round_is_one_step_of_one_optimiser():
    batch = LoopBatch(_Plant(), torch.randn(5, 2), [1], _config().resolved())
    terms, steps = batch.fit([0], lambda: True)
    first = batch._optimiser
    assert steps == 1
    assert set(terms) == {"positivity", "decrease", "origin"}
    batch.fit([0], lambda: True)
    assert batch._optimiser is first  # Adam keeps its moments from round to round


def test_a_node_belongs_to_one_class():
    with pytest.raises(ConfigError, match="one class"):
        LoopBatch(_Plant(), torch.randn(5, 2), [0, 1], _config().resolved())
    with pytest.raises(ConfigError, match="start_node"):
        LyapunovConfig(start_node=-1)


def test_the_command_says_how_it_ended(tmp_path, capsys):
    pytest.importorskip("z3")
    literal = ["--form", "paper", "--engine", "smt", "--set", "steps=1"]
    case = ["--dataset", "digits:0,1", "--set", "hidden=2", "--set", "rounds=2"]
    node = ["--set", "start_node=random", "--budget", "600"]
    code = main(["certify", *case, *literal, *node, "--json", "--out", str(tmp_path)])
    shown = json.loads(capsys.readouterr().out)
    printed = shown["as_printed"]
    assert (printed["solver"], printed["rounds"], printed["steps"]) == ("smt", 2, 2)
    assert set(printed["conditions"]) == {"positivity", "decrease"}
    assert code == {"proof": 0, "refutation": 1, "budget": 3}[printed["ended"]]
    assert [row["class"] for row in shown["classes"]] == [printed["class"]]
    assert shown["classes"][0]["engine"] == "smt"  # nobody else was asked anything
    rounds = json.loads((tmp_path / "training.json").read_text())["rounds"]
    learnt = sum(sum(one["counterexamples"]) for one in rounds)
    assert printed["counterexamples"] == learnt > 0


@pytest.mark.parametrize("engine", ["smt", "branch"])
def test_a_small_case_ends_by_proof(tmp_path, capsys, engine):
    pytest.importorskip("z3")
    literal = ["--form", "paper", "--engine", engine, "--set", "steps=1"]
    case = ["--dataset", "digits:0,1", "--features", "rownorm", "--seed", "5", "--set", "hidden=4"]
    started = ["certify", *case, *literal, "--set", "start_node=random", "--budget", "600"]
    assert main([*started, "--out", str(tmp_path)]) == 0
    shown = capsys.readouterr().out
    assert "it ended by proof" in shown
    assert ("its word is not in the certificate" in shown) == (engine == "smt")
