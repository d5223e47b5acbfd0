"""A case of `adapt`: labels of the target from a file."""

from __future__ import annotations

import pytest
import torch

from graphkeel.core.errors import DataError
from graphkeel.runs.adapt import _auc
from graphkeel.runs.adapt_case import make_case
from graphkeel.runs.specs import AdaptSpec


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ("999999,0", r"nodes must be integers in 0\.\."),
        ("0,7", r"labels must be integers in 0\.\.2"),
        ("5,1\n5,2", "node 5 has two labels"),
        ("5,1\n5,1", "name a node twice"),
    ],
)
def test_wrong_labels_in_a_file_are_refused(tmp_path, lines, message) -> None:
    path = tmp_path / "known.csv"
    path.write_text(f"node,label\n{lines}\n")
    spec = AdaptSpec("digits:0,1,2", "digits:0,1,2", target_labels=str(path))
    with pytest.raises(DataError, match=message):
        make_case(spec, 0)


def test_labels_in_a_file_are_taken_and_not_scored(tmp_path) -> None:
    path = tmp_path / "known.csv"
    path.write_text("node,label\n5,1\n9,\n7,2\n")
    known = make_case(AdaptSpec("digits:0,1,2", "digits:0,1,2", target_labels=str(path)), 0)
    assert known.case.nodes.tolist() == [5, 7]
    assert known.case.target.y[known.case.nodes].tolist() == [1, 2]
    assert not known.scored[known.case.nodes].any()


def test_two_classes_are_also_scored_by_the_area_under_the_roc_curve() -> None:
    """Half the pairs of a 0 and a 1 stand in the right order: 50 percent."""
    scores = torch.tensor([[0.0, 5.0], [0.0, 1.0], [0.0, 2.0], [0.0, 9.0]])
    assert _auc(scores, torch.tensor([1, 0, 1, 0])) == 50.0
    row = AdaptSpec("digits:0,1", "digits:0,1", method="none").outcome(0).row
    assert 50.0 < row["auc"] == row["auc_base"] <= 100.0
    assert "auc" not in AdaptSpec("digits:0,1,2", "digits:0,1,2", method="none").outcome(0).row
