"""The guard decides on held-back labels alone, by numbers worked out by hand."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest
from small_graphs import scene_of, shifted_task

from graphkeel.reconstruct import (
    Builder,
    CrossFitJudge,
    Diffuse,
    GuardDecision,
    Labels,
    Prototype,
    Replace,
    ValidationJudge,
    choose_judge,
    decide,
    mcnemar,
)
from graphkeel.reconstruct.guard.decision import Evaluation

ONE, TWO, THREE = Prototype("labels"), Prototype("model"), Prototype("cosine")


class Scripted:
    """A judge that has its answers ready: how many of n held-back labels are right, from the first
    on."""

    source = "scripted labels"

    def __init__(
        self, n: int, base: int, right: dict[object, int], changed: dict[object, int] | None = None
    ) -> None:
        self.n, self.base, self.right, self.changed = n, base, right, changed or {}
        self.asked: list[tuple[object, ...]] = []
        self.folds = list(torch.arange(n).chunk(5))
        self.served = 1.0

    def evaluate(self, members):
        self.asked.append(tuple(members))
        count = self.base if not members else max(self.right[member] for member in members)
        changed = self.changed.get(members[0], 1) if members else 0
        correct = torch.arange(self.n) < count
        scores = torch.stack([correct.float(), 1.0 - correct.float()], dim=1)
        return Evaluation(correct, changed, torch.zeros(self.n, dtype=torch.int64), scores)


@given(st.integers(0, 60), st.integers(0, 60))
def test_mcnemar_is_the_exact_binomial_test(wins, losses):
    expected = (
        binomtest(wins, wins + losses, alternative="greater").pvalue if wins + losses else 1.0
    )
    assert mcnemar(wins, losses) == pytest.approx(expected)


def test_a_clear_winner_is_taken():
    members, decision = decide((ONE, TWO), Scripted(100, 50, {ONE: 70, TWO: 60}))
    assert members == (ONE,)
    assert decision.chosen == ("labels",)
    assert (decision.untouched, decision.accuracy) == pytest.approx((50.0, 70.0))
    assert decision.p_value == pytest.approx(2**-20)
    assert [score.name for score in decision.scores] == ["none", "labels", "model"]
    assert decision.reason.startswith("changed: 20 labels won and 0 lost")


def test_candidates_within_one_standard_error_are_averaged():
    """70 against 69 of 100: one label apart, 1 ≤ √1. 70 against 68: two labels, 2 > √2."""
    judge = Scripted(100, 50, {ONE: 70, TWO: 69, THREE: 68})
    members, decision = decide((ONE, TWO, THREE), judge)
    assert members == (ONE, TWO)
    assert (ONE, TWO) in judge.asked
    assert decision.chosen == ("labels", "model")


def test_only_prototypes_are_averaged():
    replaced, diffused = Replace(), Diffuse()
    assert decide((replaced, ONE), Scripted(100, 50, {replaced: 70, ONE: 70}, {ONE: 2}))[0] == (
        replaced,
    )
    assert decide((ONE, diffused), Scripted(100, 50, {ONE: 70, diffused: 70}, {diffused: 2}))[
        0
    ] == (ONE,)


def test_ties_go_to_the_least_change():
    judge = Scripted(100, 50, {ONE: 70, TWO: 70}, {ONE: 30, TWO: 20})
    assert decide((ONE, TWO), judge, average=False)[0] == (TWO,)


def test_a_tie_with_none_leaves_the_model_alone():
    members, decision = decide((ONE,), Scripted(100, 50, {ONE: 50}), risk=1.0)
    assert members == ()
    assert decision.left_alone
    assert decision.accuracy == decision.untouched


def test_a_difference_that_could_be_luck_leaves_the_model_alone():
    judge = Scripted(100, 50, {ONE: 54})  # 4 won, 0 lost: p = 1/16
    members, decision = decide((ONE,), judge, risk=0.05)
    assert members == ()
    assert decision.p_value == pytest.approx(1 / 16)
    assert "no candidate beat the untouched model on scripted labels" in decision.reason
    assert decide((ONE,), Scripted(100, 50, {ONE: 55}), risk=0.05)[0] == (ONE,)  # p = 1/32
    assert decide((ONE,), Scripted(100, 50, {ONE: 54}), risk=0.1)[0] == (ONE,)


def test_small_classes_are_not_traded_for_large_ones():
    """Six labels of a class of ninety won, four of a class of ten lost: more won, yet refused."""
    classes = torch.tensor([0] * 90 + [1] * 10)

    class Trading(Scripted):
        def evaluate(self, members):
            right = torch.ones(100, dtype=torch.bool)
            right[:6] = bool(members)
            right[90:94] = not members
            return Evaluation(right, 10, classes, torch.zeros(100, 2))

    members, decision = decide((ONE,), Trading(100, 0, {}), risk=1.0)
    assert members == ()
    assert "would trade small classes for large ones" in decision.reason


def test_one_label_of_a_tiny_class_does_not_decide():
    """Twelve labels of a class of sixty-eight won, one of a class of two lost."""
    classes = torch.tensor([0] * 68 + [1] * 2)

    class Tiny(Scripted):
        def evaluate(self, members):
            right = torch.ones(70, dtype=torch.bool)
            right[:12] = bool(members)
            right[68] = not members
            return Evaluation(right, 10, classes, torch.zeros(70, 2))

    assert decide((ONE,), Tiny(70, 0, {}), risk=1.0)[0] == (ONE,)


def test_where_signs_speak_against_a_change_no_class_is_outvoted():
    """Fifteen labels of a class of thirty-eight won, five of a class of twelve lost: all nodes
    went to the larger class."""
    classes = torch.tensor([0] * 38 + [1] * 12)

    class Majority(Scripted):
        def evaluate(self, members):
            right = torch.ones(50, dtype=torch.bool)
            right[:15] = bool(members)
            right[38:43] = not members
            return Evaluation(right, 20, classes, torch.zeros(50, 2))

    assert decide((ONE,), Majority(50, 0, {}))[0] == (ONE,)
    members, decision = decide((ONE,), Majority(50, 0, {}), doubted=True)
    assert members == ()
    assert "would trade small classes for large ones" in decision.reason


def test_where_signs_speak_against_a_change_labels_are_sure_of_every_class():
    """Thirty labels of a class won; the other class hardly changes, or pays for it."""
    classes = torch.tensor([0] * 60 + [1] * 40)

    class Uneven(Scripted):
        def evaluate(self, members):
            right = torch.zeros(100, dtype=torch.bool)
            right[:30] = bool(members)
            right[60 : 60 + self.won] = bool(members)
            right[80 : 80 + self.lost] = not members
            return Evaluation(right, 20, classes, torch.zeros(100, 2))

    judge = Uneven(100, 0, {})
    judge.won, judge.lost = 5, 4
    assert decide((ONE,), judge, doubted=True)[0] == (ONE,)
    judge.won, judge.lost = 0, 15
    assert decide((ONE,), judge)[0] == (ONE,)
    assert decide((ONE,), judge, doubted=True)[0] == ()


def test_where_signs_speak_against_a_change_the_best_that_is_fair_to_every_class_is_taken():
    """One wins forty labels of one class and loses twenty of the other, Two wins eighteen and loses
    none: One has more right, and takes them from the smaller class."""
    classes = torch.tensor([0] * 60 + [1] * 40)
    trades = {(ONE,): (40, 20), (TWO,): (18, 0), (): (0, 0)}

    class Two(Scripted):
        def evaluate(self, members):
            won, lost = trades[tuple(members)]
            right = torch.zeros(100, dtype=torch.bool)
            right[:won] = True
            right[80 + lost :] = True
            return Evaluation(right, 20, classes, torch.zeros(100, 2))

    assert decide((ONE, TWO), Two(100, 0, {}), average=False)[0] == (ONE,)
    members, decision = decide((ONE, TWO), Two(100, 0, {}), doubted=True)
    assert members == (TWO,)
    assert decision.accuracy == pytest.approx(38.0)


def test_where_signs_speak_against_a_change_labels_have_to_be_sure():
    judge = Scripted(100, 50, {ONE: 55, TWO: 50, THREE: 50})  # 5 won, 0 lost: p = 1/32
    assert decide((ONE, TWO, THREE), judge)[0] == (ONE,)
    assert decide((ONE,), judge, doubted=True)[0] == (ONE,)
    assert decide((ONE, TWO, THREE), judge, doubted=True)[0] == ()  # the best of three


def test_presumed_candidates_stand_until_labels_speak_against_them():
    def members(right: int) -> tuple[object, ...]:
        return decide((ONE,), Scripted(20, 10, {ONE: 20, TWO: right}), presumed=(TWO,))[0]

    assert members(10) == (TWO,)  # as good as untouched: nothing speaks against it
    assert members(2) == ()  # eight labels lost
    many = Scripted(100, 50, {ONE: 80, TWO: 60})
    assert decide((ONE,), many, presumed=(TWO,))[0] == (ONE,)  # clearly beaten by a rival


def test_the_statement_counts_what_the_choice_has_not_seen():
    """Two candidates, each right on one half: whoever leads is flattered by its own labels."""

    class Halves(Scripted):
        def evaluate(self, members):
            right = torch.zeros(100, dtype=torch.bool)
            right[:40] = ONE in members
            right[60:] = TWO in members
            scores = torch.zeros(100, 2)
            return Evaluation(right, 1, torch.zeros(100, dtype=torch.int64), scores)

    judge = Halves(100, 0, {})
    _, decision = decide((ONE, TWO), judge, average=False)
    assert decision.accuracy == pytest.approx(40.0)
    assert decision.statement.accuracy <= 40.0
    assert decision.statement.accuracy_low < decision.statement.accuracy_high


def test_too_few_labels_to_judge_by_are_said_to_be_so():
    members, decision = decide((ONE,), Scripted(9, 0, {ONE: 9}))
    assert members == ()
    assert "9 labels are too few to judge by" in decision.reason


def test_a_decision_survives_json():
    _, decision = decide((ONE, TWO), Scripted(100, 50, {ONE: 70, TWO: 69}))
    assert GuardDecision.from_dict(decision.to_dict()) == decision


@pytest.fixture(scope="module")
def situation():
    task = shifted_task()
    return task, *scene_of(task)


def labels_of(task, mask):
    nodes = mask.nonzero().flatten()
    return Labels(nodes, task.y[nodes], task.n_classes)


def test_validation_labels_judge_where_there_are_any(situation):
    task, context, labels = situation
    judge = choose_judge(
        Builder(context, labels), labels_of(task, task.val_mask), task.train_mask, 0
    )
    assert isinstance(judge, ValidationJudge)
    untouched = judge.evaluate(())
    expected = (context.logits.argmax(1) == task.y)[task.val_mask]
    assert torch.equal(untouched.correct, expected)
    assert untouched.changed == 0


def test_without_validation_the_training_labels_are_cross_fitted_and_it_says_so(situation):
    task, context, labels = situation
    nobody = labels_of(task, torch.zeros_like(task.val_mask))
    judge = choose_judge(Builder(context, labels), nobody, task.train_mask, 0)
    assert isinstance(judge, CrossFitJudge)
    _, decision = decide((ONE, THREE), judge)
    assert decision.source.startswith("training labels, cross-fitted")
    assert decision.n_labels == len(labels)


def test_labels_the_model_has_not_seen_are_preferred_for_cross_fitting(situation):
    task, context, _ = situation
    both = labels_of(task, task.train_mask | task.val_mask)
    judge = choose_judge(
        Builder(context, both), both.without(torch.arange(len(both))), task.train_mask, 0
    )
    assert judge.source == "labels the model was not trained on, cross-fitted"
    assert len(judge.evaluate(()).correct) == int(task.val_mask.sum())


def test_a_cross_fitted_label_is_not_in_its_own_candidates(situation):
    _, context, labels = situation
    judge = CrossFitJudge(
        lambda part: Builder(context, part), labels, torch.arange(len(labels)), "test", 0
    )
    for fold, builder in zip(judge.folds, judge.builders, strict=True):
        assert not torch.isin(judge.nodes[fold], builder.labels.nodes).any()
    assert sorted(torch.cat(judge.folds).tolist()) == list(range(len(labels)))
