"""Names that do not exist: refused with the known ones, and with the one that was meant."""

from __future__ import annotations

import pytest

from graphkeel import KeelError, Reconstructor
from graphkeel.core.errors import ConfigError, DataError
from graphkeel.core.names import check_name, class_names, did_you_mean
from graphkeel.graph import load, make_sbm, make_split, make_task
from graphkeel.graph.propagate.adjacency import normalise
from graphkeel.lyapunov import LyapunovConfig
from graphkeel.models import FrozenModel, build_model
from graphkeel.runs.specs import AdaptSpec, RunSpec
from graphkeel.verify import load_engine


def test_a_near_name_is_asked_about_and_a_far_one_is_not() -> None:
    assert did_you_mean("certfy", ["certify", "check"]) == "Did you mean certify?"
    assert did_you_mean("gnc", ["sgc", "gcn", "sage"]) == "Did you mean gcn?", "the same letters"
    assert did_you_mean("zzz", ["certify", "check"]) is None
    check_name("the fruit", "pear", ("apple", "pear"))
    with pytest.raises(ConfigError, match=r"one of apple, pear \(got 'paer'\)\. Did you mean pear"):
        check_name("the fruit", "paer", ("apple", "pear"))
    with pytest.raises(DataError, match=r"\(got 7\)\.$"):
        check_name("the fruit", 7, ("apple", "pear"), DataError)


GRAPH = make_sbm(60, 200, n_classes=2, n_features=4)
SGC = build_model("sgc", 4, 2)


def fit(**parameters: object) -> None:
    Reconstructor(SGC, **parameters).fit(make_task(GRAPH, split="random").to_data())


@pytest.mark.parametrize(
    ("call", "meant"),
    [
        (lambda: fit(method="replase"), "replace"),
        (lambda: fit(labels="tran"), "train"),
        (lambda: fit(guard="holdut"), "holdout"),
        (lambda: fit(class_weight="balancd"), "balanced"),
        (lambda: fit(controller="deadbeet"), "deadbeat"),
        (lambda: fit(verifier="branh"), "branch"),
        (lambda: fit(return_type="rww"), "raw"),
        (lambda: Reconstructor(SGC).set_params(metod="auto"), "method"),
        (lambda: load("digitss"), "digits"),
        (lambda: make_split(GRAPH, "biasd", 0), "biased"),
        (lambda: make_task(GRAPH, split="random", features="rownom"), "rownorm"),
        (lambda: normalise(GRAPH.edge_index, 60, "syn"), "sym"),
        (lambda: build_model("sgcc", 4, 2), "sgc"),
        (lambda: FrozenModel(SGC, return_type="prob"), "probs"),
        (lambda: load_engine("contracton"), "contraction"),
        (lambda: LyapunovConfig(loss="margn"), "margin"),
        (lambda: RunSpec(labels="trian"), "train"),
        (lambda: RunSpec(method="difuse").find_method(), "diffuse"),
        (lambda: AdaptSpec("a", "b", split="radnom"), "random"),
    ],
)
def test_values_that_were_mistyped(call, meant) -> None:
    with pytest.raises(KeelError, match=rf"Did you mean {meant}\?"):
        call()


def test_settings_of_certify() -> None:
    rec = Reconstructor(SGC).fit(make_task(GRAPH, split="random").to_data())
    with pytest.raises(ConfigError, match=r"got 'secnds'\)\. Did you mean seconds"):
        rec.certify(secnds=3)


@pytest.mark.parametrize("names", [["cat"], ["cat", "cat"], ["cat", "dog", "eel"]])
def test_classes_have_one_name_each(names):
    assert class_names(["cat", "dog"], 2) == ("cat", "dog")
    assert class_names([], 2) == ()
    with pytest.raises(ConfigError, match="2 classes need as many names"):
        class_names(names, 2)
