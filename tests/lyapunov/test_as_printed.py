"""Algorithm 1 as printed: one node, one gradient step a round, the paper's two conditions."""

from __future__ import annotations

import pytest
import torch

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
    batch = LoopBatch(_Plant(), torch.randn(5, 2), [1], _config())
    terms, steps = batch.fit([0], lambda: True)
    first = batch._optimiser
    assert steps == 1
    assert set(terms) == {"positivity", "decrease", "origin"}
    batch.fit([0], lambda: True)
    assert batch._optimiser is first  # Adam keeps its moments from round to round


def test_a_node_belongs_to_one_class():
    with pytest.raises(ConfigError, match="one class"):
        LoopBatch(_Plant(), torch.randn(5, 2), [0, 1], _config())
    with pytest.raises(ConfigError, match="start_node"):
        LyapunovConfig(start_node=-1)
