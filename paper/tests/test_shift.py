"""The distance between samples is zero where nothing shifted, and sees a biased split."""

from __future__ import annotations

import pytest
import torch

from graphkeel_paper.baselines.retrained.srgnn import central_moment_discrepancy
from graphkeel_paper.datasets import load


def test_the_discrepancy_by_hand():
    a, b = torch.tensor([[0.0], [1.0]]), torch.tensor([[0.0], [0.0]])
    # means differ by 1/2; central moments of a are 1/4, 0, 1/16, 0, those of b are zero
    found = central_moment_discrepancy(a, b).item()
    assert found == pytest.approx(0.5 + 0.25 + 0.0 + 0.0625 + 0.0)
    assert central_moment_discrepancy(a, a).item() == 0


def test_a_biased_split_is_more_shifted_than_a_random_one():
    apart = {}
    for split in ("biased", "random"):
        task = load("digits", split=split)
        spread = (task.x.max(dim=0).values - task.x.min(dim=0).values).clamp_min(1e-12)
        x = (task.x / spread).double()
        apart[split] = central_moment_discrepancy(x[task.train_mask], x[task.test_mask]).item()
    assert apart["biased"] > 1.5 * apart["random"]
