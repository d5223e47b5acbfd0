"""Distances between samples are zero where nothing shifted, and see a biased split."""

from __future__ import annotations

import numpy as np
import pytest

from graphkeel_paper.datasets import load
from graphkeel_paper.figures.embeddings import cmd, mmd


def test_cmd_by_hand():
    a, b = np.array([[0.0], [1.0]]), np.array([[0.0], [0.0]])
    # means differ by 1/2; central moments of a are 1/4, 0, 1/16, 0, those of b are zero
    assert cmd(a, b) == pytest.approx(0.5 + 0.25 + 0.0 + 0.0625 + 0.0)
    assert cmd(a, a) == 0


def test_mmd_is_near_zero_for_one_distribution_and_large_for_two():
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((400, 3)), rng.standard_normal((400, 3))
    assert abs(mmd(a, b, rng)) < 0.01
    assert mmd(a, b + 2, rng) > 0.3


def test_a_biased_split_is_more_shifted_than_a_random_one():
    rng = np.random.default_rng(0)
    apart = {}
    for split in ("biased", "random"):
        task = load("digits", split=split)
        train, test = (task.x[mask].double().numpy() for mask in (task.train_mask, task.test_mask))
        apart[split] = cmd(train, test), mmd(train, test, rng)
    assert apart["biased"][0] > 1.5 * apart["random"][0]
    assert apart["biased"][1] > 5 * abs(apart["random"][1])
