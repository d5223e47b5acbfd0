"""The shift report is zero where nothing shifted, and sees a biased split."""

from __future__ import annotations

import numpy as np
import pytest

from graphkeel_paper.datasets import load
from graphkeel_paper.shift import cmd, mmd, shift_report


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
    biased, random = shift_report(load("digits")), shift_report(load("digits", split="random"))
    assert biased.mmd > 5 * abs(random.mmd)
    assert biased.cmd > 1.5 * random.cmd
    assert biased.conditional_cmd > 1.5 * random.conditional_cmd


def test_without_labels_the_label_measures_are_absent():
    report = shift_report(load("digits"), use_labels=False)
    assert report.class_balance is None
    assert report.conditional_cmd is None
    hidden = shift_report(load("digits").without_test_labels())
    assert hidden.class_balance is None
    assert set(report.as_dict()) >= {"cmd", "mmd", "ppr_distance"}
