"""Baselines by name."""

from __future__ import annotations

import pytest

from graphkeel.core.errors import ConfigError
from graphkeel_paper.baselines.registry import BASELINES, get_baseline


@pytest.mark.parametrize("name", BASELINES)
def test_every_name_is_a_method_of_that_name(name):
    method = get_baseline(name)
    assert method.name == name
    assert callable(method.fit_predict)


def test_those_that_train_say_so():
    training = {name for name in BASELINES if getattr(get_baseline(name), "retrains", False)}
    own = {"frgnn-gcn", "frgnn-gcn-all", "mh-aug", "kdga", "srgnn", "retrain", "pool"}
    own |= {"gcn-words", "appnp-words", "a2gnn", "udagcn"}
    assert training == own | {"soga", "soga-200", "homottt", "finetune"}


def test_an_unknown_name_is_refused_with_the_list():
    with pytest.raises(ConfigError, match="the baseline must be one of lp, cs"):
        get_baseline("magic")
