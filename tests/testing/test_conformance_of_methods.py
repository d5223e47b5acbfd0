"""Every method of ours keeps the contract; methods that break it are caught."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from graphkeel.runs import METHODS, get_method
from graphkeel.runs.method import MethodResult
from graphkeel.testing import ConformanceError, check_reconstruction, yield_reconstruction_checks

CHECKS = [check for name in METHODS for check in yield_reconstruction_checks(get_method(name))]


@pytest.mark.parametrize("check", CHECKS, ids=str)
def test_ours_conform(check) -> None:
    check()


class Broken:
    """Adds a little to every feature, with a fault."""

    name, retrains = "broken", False

    def fit_predict(self, frozen, task, labelled, validation, seed):
        features = self.rewrite(frozen, task, labelled, seed)
        return MethodResult(frozen.logits(features, task.edge_index), features, {"chosen": []})

    def rewrite(self, frozen, task, labelled, seed):
        return task.x + 0.1


class Peeker(Broken):
    def rewrite(self, frozen, task, labelled, seed):
        return task.x + 0.01 * task.y.unsqueeze(1)


class Trainer(Broken):
    def fit_predict(self, frozen, task, labelled, validation, seed):
        for parameter in frozen.model.parameters():
            parameter.data.mul_(1.0)
            parameter.requires_grad_(False)
        return super().fit_predict(frozen, task, labelled, validation, seed)


class Tuner(Broken):
    def fit_predict(self, frozen, task, labelled, validation, seed):
        result = super().fit_predict(frozen, task, labelled, validation, seed)
        next(iter(frozen.model.parameters())).data[0] += 1e-7
        return result


class InPlace(Broken):
    def rewrite(self, frozen, task, labelled, seed):
        return task.x.add_(1e-3)


class Gambler(Broken):
    def rewrite(self, frozen, task, labelled, seed):
        return task.x + 1e-3 * torch.randn(task.x.shape)


class Boaster(Broken):
    """Its scores are not those of its features."""

    def fit_predict(self, frozen, task, labelled, validation, seed):
        result = super().fit_predict(frozen, task, labelled, validation, seed)
        return replace(result, scores=result.scores + torch.arange(task.n_classes))


class Numberer(Broken):
    """Believes that a node's number means something."""

    def rewrite(self, frozen, task, labelled, seed):
        return task.x + torch.linspace(-4, 4, task.n_nodes).unsqueeze(1)


class Divider(Broken):
    """Divides by degrees, and some nodes have none."""

    def rewrite(self, frozen, task, labelled, seed):
        degree = torch.bincount(task.edge_index[1], minlength=task.n_nodes).unsqueeze(1)
        return task.x / degree


class Wordy(Broken):
    def fit_predict(self, frozen, task, labelled, validation, seed):
        result = super().fit_predict(frozen, task, labelled, validation, seed)
        return replace(result, decision={"labelled": labelled})


class Double(Broken):
    def fit_predict(self, frozen, task, labelled, validation, seed):
        result = super().fit_predict(frozen, task, labelled, validation, seed)
        return replace(result, features=result.features.double())


class Picky(Broken):
    def fit_predict(self, frozen, task, labelled, validation, seed):
        _ = validation[0]
        return super().fit_predict(frozen, task, labelled, validation, seed)


@pytest.mark.parametrize(
    ("broken", "check", "message"),
    [
        (
            Peeker,
            "never looks at hidden labels",
            "expected the same result with wrong labels on nodes it may not",
        ),
        (
            Trainer,
            "leaves the model alone",
            "expected the model's wishes for gradients to be as before",
        ),
        (
            Tuner,
            "leaves the model alone",
            "expected the model's weights to be as before, bit for bit",
        ),
        (InPlace, "leaves the task alone", "expected x to be left alone"),
        (
            Gambler,
            "does the same again",
            "expected the same result, to the bit, from the same seed",
        ),
        (
            Gambler,
            "ignores the global generators",
            "expected the same result, to the bit, under any global seed",
        ),
        (
            Gambler,
            "leaves its surroundings alone",
            "expected torch's global random generator to be left alone",
        ),
        (
            Boaster,
            "scores its features with the frozen model",
            "expected the frozen model's scores of the new",
        ),
        (
            Numberer,
            "does not care what nodes are called",
            "expected the same class for a node of another name",
        ),
        (
            Divider,
            "copes with an odd graph (isolated nodes)",
            "expected finite scores (got NaN or infinity)",
        ),
        (Wordy, "gives whole results (sgc)", "expected a decision of plain JSON values"),
        (Double, "gives whole results (gcn)", "expected features of shape and dtype"),
        (Picky, "manages without validation", "expected no exception (got IndexError"),
        (
            Broken,
            "refuses wrong nodes",
            "expected a KeelError for a labelled node beyond the graph (got an answer",
        ),
    ],
)
def test_faults_are_found_and_named(broken, check, message) -> None:
    from graphkeel.testing.reconstruction import ordinary

    ordinary.cache_clear()  # some faults damage the case they are given
    (found,) = [one for one in yield_reconstruction_checks(broken()) if one.name == check]
    try:
        with pytest.raises(ConformanceError) as caught:
            found()
    finally:
        ordinary.cache_clear()
    assert str(caught.value).startswith(f"broken does not pass the check {check!r}: ")
    assert message in str(caught.value)


def test_a_whole_method_in_one_call() -> None:
    summary = check_reconstruction(get_method("replace"))
    assert "never looks at hidden labels" in summary.passed
    assert not summary.skipped
