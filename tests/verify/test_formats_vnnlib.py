"""VNN-LIB properties: boxes, disjunctions of conjunctions, exact decimals, clear refusals."""

from __future__ import annotations

import sys
from fractions import Fraction

import numpy as np
import pytest

from graphkeel.core.errors import KeelError, ProblemError
from graphkeel.verify.formats.vnnlib_reader import property_from
from graphkeel.verify.property.network import Block, BlockNetwork

HEAD = "(declare-const X_0 Real)\n(declare-const X_1 Real)\n(declare-const Y_0 Real)\n"
BOX = "(assert (<= X_0 1)) (assert (>= X_0 -0.1)) (assert (and (<= X_1 0.5) (>= X_1 -2e-1)))\n"


def test_box_and_conjunction() -> None:
    prop = property_from(f"; a comment (\n{HEAD}{BOX}(assert (<= Y_0 0.25))(assert (>= Y_0 X_1))")
    (case,) = prop.cases
    assert (prop.inputs, prop.outputs) == (2, 1)
    assert case.ends == ((Fraction(-1, 10), Fraction(1)), (Fraction(-1, 5), Fraction(1, 2)))
    assert case.weight.tolist() == [[0.0, 0.0, -1.0], [0.0, -1.0, 1.0]]
    assert case.constant.tolist() == [0.25, 0.0]


def test_a_comment_ends_at_either_line_break() -> None:
    for end in ("\n", "\r", "\r\n"):
        (case,) = property_from(f"{HEAD}{BOX}; a comment{end}(assert (<= Y_0 0.25))").cases
        assert case.constant.tolist() == [0.25]


def test_floats_enclose_decimals() -> None:
    """0.1 and 0.3 are no floats: the box grows, the inequality weakens."""
    text = f"{HEAD}{BOX}(assert (>= (* 0.1 Y_0) (+ X_0 0.3)))"
    (case,) = property_from(text).cases
    for (low, high), a, b in zip(case.ends, case.lower, case.upper, strict=True):
        assert Fraction(float(a)) <= low <= high <= Fraction(float(b))
    assert Fraction(float(case.lower[0])) < Fraction(-1, 10)
    # times 10: the coefficients are integers, and the constant −3 is exact
    assert case.weight.tolist() == [[-10.0, 0.0, 1.0]] and case.constant.tolist() == [-3.0]
    (case,) = property_from(f"{HEAD}{BOX}(assert (>= Y_0 0.3))").cases
    assert Fraction(float(case.constant[0])) > Fraction(-3, 10)


def test_disjunctions_multiply_and_keep_their_own_boxes() -> None:
    either = "(or (and (>= X_0 0.5) (<= Y_0 0)) (and (<= X_0 0) (>= Y_0 1)) (<= X_0 -7))"
    also = "(or (>= Y_0 (- X_1)) (<= (+ Y_0 X_1 X_1) 3))"
    cases = property_from(f"{HEAD}{BOX}(assert {either})(assert {also})").cases
    assert len(cases) == 4  # the third box is empty
    assert [case.lower[0] for case in cases][:2] == [0.5, 0.5]
    assert [case.upper[0] for case in cases][2:] == [0.0, 0.0]
    assert cases[1].weight[1].tolist() == [0.0, -2.0, -1.0]


def test_members_are_tested_against_the_decimals() -> None:
    network = BlockNetwork(1, (Block(((0, np.eye(1)),), np.zeros(1), False),))
    text = (
        "(declare-const X_0 Real)(declare-const Y_0 Real)"
        "(assert (>= X_0 0))(assert (<= X_0 0.1))(assert (>= Y_0 0.05))"
    )
    (case,) = property_from(text).cases
    assert float(case.upper[0]) == 0.1
    assert not case.holds_at(network, np.array([0.1]))  # the float 0.1 is more than a tenth
    assert case.holds_at(network, np.array([np.nextafter(0.1, 0.0)]))
    assert not case.holds_at(network, np.array([0.04]))


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("(assert", "never closed"),
        ("(assert (<= Y_0 0)))", "never opened"),
        ("(" * 100, "nested"),
        (f"{HEAD}(assert (<= Y_0 0))", "lower and an upper bound"),
        (f"{HEAD}{BOX}(assert (< Y_0 0))", "<= and >="),
        (f"{HEAD}{BOX}(assert (<= Y_1 0))", "not declared"),
        (f"{HEAD}{BOX}(assert (<= Z 0))", "X_i or Y_j"),
        (f"{HEAD}{BOX}(assert (<= (* X_0 Y_0) 0))", "not linear"),
        (f"{HEAD}{BOX}(assert (<= (sin X_0) 0))", "not linear"),
        (f"{HEAD}{BOX}(assert (not (<= X_0 0)))", "not understood"),
        (f"{HEAD}{BOX}(assert (<= X_0 1e9999))", "X_i or Y_j"),
        (f"{HEAD}{BOX}(assert (<= X_0 {'1' * 100}))", "digits"),
        (f"{HEAD}{BOX}(assert (or))", "not understood"),
        (f"{HEAD}{BOX}(assert (or (<= Y_0 0) (and)))", "not understood"),
        (f"{HEAD}{BOX}(assert (>= Y_0 \u0663))", "X_i or Y_j"),  # a three, in Arabic
        (f"{HEAD}{BOX}(assert (>= Y_\u0660 3))", "X_i or Y_j"),
        (f"{HEAD}{BOX}(assert (>= Y_00 3))", "X_i or Y_j"),
        (f"{HEAD}{BOX}(assert (>= Y_0\u00a03))", "not understood"),  # a space of another kind
        (f"{HEAD}{BOX}(push 1)", "command"),
        (f"{HEAD}(declare-const X_0 Real)", "twice"),
        ("(declare-const X_1 Real)(declare-const Y_0 Real)", "gap"),
        ("", "declared"),
        (f"{HEAD}{BOX}(assert (>= Y_0 (* 0.12345678901234567891 X_0)))", "digits"),
    ],
)
def test_refusals(text: str, word: str) -> None:
    with pytest.raises(ProblemError, match=word.replace("(", r"\(")):
        property_from(text)


def test_too_many_cases_are_refused_before_they_are_made() -> None:
    either = "(assert (or (<= Y_0 0) (>= Y_0 1)))"
    with pytest.raises(ProblemError, match="cases"):
        property_from(HEAD + BOX + either * 40)


VERSION_2 = """(vnnlib-version <2.0>)
(declare-network N (declare-input X float32 [1,2]) (declare-output Y float32 [1,1]))
(assert (and (<= X[0,0] 1.0) (>= X[0,0] (- 0.1)) (<= X[0,1] 0.5) (>= X[0,1] -0.2)))
(assert (or (<= Y[0,0] 0.25) (and (>= (+ Y[0,0] X[0,1]) 1.5) (<= (* 2.0 Y[0,0]) X[0,0]))))
"""


def test_version_2_without_its_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "vnnlib", None)
    with pytest.raises(KeelError, match=r"graphkeel\[vnnlib\]"):
        property_from(VERSION_2)


def test_version_2_is_turned_into_version_1() -> None:
    pytest.importorskip("vnnlib")
    one = "(or (<= Y_0 0.25) (and (>= (+ Y_0 X_1) 1.5) (<= (* 2.0 Y_0) X_0)))"
    wanted = property_from(f"{HEAD}{BOX}(assert {one})").cases
    for case, other in zip(property_from(VERSION_2).cases, wanted, strict=True):
        assert case.ends == other.ends
        assert (case.weight == other.weight).all() and (case.constant == other.constant).all()
    with pytest.raises(ProblemError, match="cannot be read"):
        property_from("(vnnlib-version <2.0>)\n(declare-network N)")
