"""The facade: contracts of scikit-learn and PyG, feedback, storage, and what `fit` cannot see."""

from __future__ import annotations

import copy
import itertools

import numpy as np
import pytest
import torch
from sklearn.base import clone
from torch import nn
from torch_geometric.nn import GCNConv
from torch_geometric.transforms import Compose

import graphkeel as gk
from graphkeel.core.errors import ConfigError, DataError, ModelError
from graphkeel.graph import load, make_sbm, make_task
from graphkeel.models import train_model
from graphkeel.reconstruct.correction import held_away


@pytest.fixture(scope="module")
def task():
    return load("digits")


def accuracy(predicted, task):
    return 100 * float((predicted == task.y)[task.test_mask].float().mean())


def test_predictions_improve_and_come_from_the_same_weights(fitted, model, task, data):
    before = {name: value.clone() for name, value in model.state_dict().items()}
    untouched = accuracy(model(task.x, task.edge_index).argmax(1), task)
    assert accuracy(fitted.predict(data), task) > untouched + 5
    assert not fitted.guard_.left_alone
    assert fitted.guard_.harm < 0.05
    assert all(torch.equal(before[name], value) for name, value in model.state_dict().items())
    changed = fitted.transform(data)
    assert torch.equal(model(changed.x, changed.edge_index).argmax(1), fitted.predict(data))


def test_transform_copies_and_composes(fitted, data):
    original = data.x.clone()
    changed = fitted.transform(data)
    assert changed is not data
    assert torch.equal(data.x, original)
    assert not torch.equal(changed.x, original)
    changed.x.zero_()
    assert torch.equal(Compose([fitted])(data).x, fitted.features_)


def test_scikit_learns_contract(model, data):
    rec = gk.Reconstructor(model, method="replace", seed=3)
    assert [name for name in vars(rec) if name.endswith("_")] == []
    twin = clone(rec)
    assert twin.get_params()["method"] == "replace"
    assert twin.set_params(seed=5).seed == 5
    with pytest.raises(ConfigError, match="a parameter must be one of model, method"):
        rec.set_params(colour="red")
    out = rec.fit_transform(data)
    assert torch.equal(out.x, rec.features_)
    assert rec.n_features_in_ == 64
    assert rec.classes_.tolist() == list(range(10))


def test_test_labels_are_out_of_reach_of_fit(model, task, data):
    scrambled = copy.copy(data)
    scrambled.y = torch.where(task.test_mask, (task.y + 1) % 10, task.y)
    without = copy.copy(data)
    without.y = torch.where(task.test_mask, torch.full_like(task.y, -1), task.y)
    without.test_mask = torch.zeros_like(task.test_mask)
    first, second, third = (gk.Reconstructor(model).fit(d) for d in (data, scrambled, without))
    assert torch.equal(first.features_, second.features_)
    assert torch.equal(first.features_, third.features_)
    assert first.guard_ == second.guard_ == third.guard_


def test_the_same_seed_gives_the_same_bits(model, data):
    one, two = (gk.Reconstructor(model, seed=1).fit(data) for _ in range(2))
    assert torch.equal(one.features_, two.features_)


def test_feedback_uses_new_labels_and_reset_forgets_them(model, task, data):
    rec = gk.Reconstructor(model, labels="train").fit(data)
    before, context, scene = rec.features_.clone(), rec._context, rec._context.scene
    fresh = task.val_mask.nonzero().flatten()[::2]
    rec.feedback(fresh, task.y[fresh])
    assert len(rec.labels_) == int(task.train_mask.sum()) + len(fresh)
    assert rec.guard_.n_labels == int(task.val_mask.sum()) - len(fresh)
    assert not torch.equal(rec.features_, before)
    assert rec._context is context and rec._context.scene is scene  # what no label changes
    assert torch.equal(rec.reset().features_, before)


def test_all_validation_labels_fed_back_are_judged_by_cross_fitting(model, task, data):
    rec = gk.Reconstructor(model, labels="train").fit(data)
    assert rec.guard_.source == "labels the model was not trained on (validation)"
    val = task.val_mask.nonzero().flatten()
    rec.feedback(val, task.y[val])
    assert rec.guard_.source == "labels the model was not trained on"
    assert torch.equal(rec.features_, gk.Reconstructor(model).fit(data).features_)


@pytest.mark.parametrize(
    ("nodes", "labels", "message"),
    [
        ([1, 2], [0], "one label per node"),
        ([9999], [0], "nodes must be integers in 0..1796"),
        ([1], [17], "labels must be integers in 0..9"),
        ([1.5], [0], "nodes must be integers"),
    ],
)
def test_bad_feedback_is_refused(fitted, nodes, labels, message):
    with pytest.raises(DataError, match=message):
        fitted.feedback(torch.tensor(nodes), torch.tensor(labels))


def test_training_labels_alone_serve_and_judge_nothing(model, task, data):
    data.val_mask = torch.zeros_like(data.val_mask)
    rec = gk.Reconstructor(model).fit(data)
    assert "no label judges here" in rec.guard_.reason
    assert len(rec.labels_) == int(task.train_mask.sum())
    assert rec.guard_.accuracy is None
    with pytest.raises(ConfigError, match="no label judged the choice"):
        rec.score(data)
    with pytest.raises(ConfigError, match="how sure predictions are"):
        rec.predict_sets(data)


@pytest.mark.parametrize("count", [1, 5])
def test_few_validation_labels_judge_as_well_as_they_can(model, data, count):
    few = data.val_mask.nonzero().flatten()[:count]
    data.val_mask = torch.zeros_like(data.val_mask)
    data.val_mask[few] = True
    rec = gk.Reconstructor(model, labels="train").fit(data)
    assert rec.guard_.n_labels == count
    statement = rec.guard_.statement
    assert statement.accuracy_high - statement.accuracy_low > 30  # few labels say little
    truth = 100 * rec.score(data, mask=data.test_mask)
    assert statement.accuracy_low < truth < statement.accuracy_high
    assert rec.predict_sets(data).all()  # nothing can be ruled out


def test_validation_labels_serve_and_judge_by_default(model, task, data):
    rec = gk.Reconstructor(model).fit(data)
    assert len(rec.labels_) == int((task.train_mask | task.val_mask).sum())
    assert rec.guard_.n_labels == int(task.val_mask.sum())
    judged_only = gk.Reconstructor(model, labels="train").fit(data)
    assert accuracy(rec.predict(data), task) > accuracy(judged_only.predict(data), task)


def test_prediction_sets_hold_the_true_class_as_often_as_asked(model, task, data):
    rec = gk.Reconstructor(model).fit(data)
    y = task.y[task.test_mask].unsqueeze(1)
    held = {}
    for coverage in (0.8, 0.95):
        sets = rec.predict_sets(data, coverage)[task.test_mask]
        held[coverage] = float(sets.gather(1, y).float().mean())
        assert abs(held[coverage] - coverage) < 0.06
    assert held[0.8] < held[0.95]


def test_held_out_labels_take_no_part_in_the_choice(model, task, data, tmp_path):
    rec = gk.Reconstructor(model, guard="holdout").fit(data)
    statement = rec.guard_.statement
    assert statement.exact
    assert statement.n_labels == int(task.val_mask.sum()) // 2
    _, away = held_away(rec._known(), rec._rule())
    assert len(away.nodes) == statement.n_labels
    right = (rec.predict(data) == task.y)[away.nodes].float().mean()
    assert statement.accuracy == pytest.approx(100 * float(right))
    rec.save(tmp_path)
    back = gk.load(tmp_path, model=model).attach(data)
    assert np.abs(back._decided().posterior - rec.posterior_.numpy()).max() < 1e-4
    data.y[away.nodes] = (data.y[away.nodes] + 1) % 10  # wrong, and yet nothing changes
    assert torch.equal(gk.Reconstructor(model, guard="holdout").fit(data).features_, rec.features_)


def test_class_weight_counts_classes_alike(model, data):
    plain, fair = (gk.Reconstructor(model, class_weight=w).fit(data) for w in (None, "balanced"))
    assert plain.guard_.harm != fair.guard_.harm
    assert fair.guard_.balanced_accuracy >= fair.guard_.balanced_untouched
    with pytest.raises(ConfigError, match="class_weight must be one of balanced"):
        gk.Reconstructor(model, class_weight="even").fit(data)


def test_the_change_is_known_and_small(fitted, data):
    moved = (fitted.features_ - data.x).norm(dim=1) / data.x.norm(dim=1)
    torch.testing.assert_close(fitted.change_, moved)
    assert float(fitted.change_.median()) < 1.0
    assert len(fitted.fall_) > 1
    assert all(after <= before for before, after in itertools.pairwise(fitted.fall_))
    answered = fitted.predict(data) == fitted.posterior_.argmax(dim=1)
    assert answered.float().mean() > 0.95


def test_saved_features_come_back_without_a_model(fitted, model, data, tmp_path):
    fitted.save(tmp_path / "run")
    stored = gk.load(tmp_path / "run")
    assert torch.equal(stored.transform(data).x, fitted.transform(data).x)
    assert stored.guard_ == fitted.guard_
    assert stored.anchors_.residuals == fitted.anchors_.residuals
    assert stored.get_params()["method"] == "auto"
    with pytest.raises(ModelError, match="no model to predict with"):
        stored.predict(data)
    with pytest.raises(ConfigError, match=r"attach\(data\)"):
        stored.feedback(torch.tensor([0]), torch.tensor([0]))
    assert torch.equal(gk.load(tmp_path / "run", model=model).predict(data), fitted.predict(data))
    assert {path.suffix for path in (tmp_path / "run").iterdir()} == {".safetensors", ".json"}


def without_masks(data):
    bare = copy.copy(data)
    for name in ("y", "train_mask", "val_mask", "test_mask"):
        bare[name] = None
    return bare


@pytest.mark.parametrize("graph", [copy.copy, without_masks])
@pytest.mark.parametrize("labels", ["all", "train"])
def test_a_loaded_reconstructor_learns_on_once_it_has_its_graph(
    model, task, data, tmp_path, labels, graph
):
    """Saved in the middle of feedback, and continued elsewhere, with masks or without: nothing
    tells it from the one that stayed."""
    nodes = task.test_mask.nonzero().flatten()
    first, second = nodes[:30], nodes[30:60]
    stayed = gk.Reconstructor(model, labels=labels).fit(data).feedback(first, task.y[first])
    stayed.save(tmp_path)
    back = gk.load(tmp_path, model=model).attach(graph(data))
    for name in ("features_", "posterior_", "change_"):
        assert torch.equal(getattr(back, name), getattr(stayed, name)), name
    for name in ("guard_", "evidence_", "fall_"):
        assert getattr(back, name) == getattr(stayed, name), name
    assert back.explain(7).decided == stayed.explain(7).decided
    assert back.explain(7).margin == pytest.approx(stayed.explain(7).margin, abs=1e-3)
    assert torch.equal(back.suggest(5), stayed.suggest(5))
    assert torch.equal(back.predict_sets(data), stayed.predict_sets(data))
    for rec in (stayed, back):
        rec.feedback(second, task.y[second])
    assert torch.equal(back.features_, stayed.features_)
    assert back.guard_ == stayed.guard_
    fresh = gk.Reconstructor(model, labels=labels).fit(data)
    assert torch.equal(back.reset().features_, stayed.reset().features_)
    assert torch.equal(back.features_, fresh.features_)


def test_certified_anchors_survive_the_folder(model, data, tmp_path):
    rec = gk.Reconstructor(model, method="replace").fit(data)
    rec.certify(seconds=20.0)
    rec.save(tmp_path)
    back = gk.load(tmp_path, model=model).attach(data)
    assert back.certificate_ == rec.certificate_
    assert torch.equal(back.anchors_.features, rec.anchors_.features)
    assert torch.equal(back.features_, rec.features_)


def test_certify_changes_no_prediction_and_is_about_the_anchors_in_use(model, data):
    rec = gk.Reconstructor(model).fit(data)
    before, features = rec.predict(data), rec.features_.clone()
    result = rec.certify(budget=20.0)
    assert result and result.certificate == rec.certificate_
    assert "anchors in use" in result.remark
    assert torch.equal(result.anchors(), rec.anchors_.features)
    assert torch.equal(rec.features_, features) and torch.equal(rec.predict(data), before)


def test_certify_encloses_the_equilibrium_of_the_labelled_nodes(model, task, data, tmp_path):
    rec = gk.Reconstructor(model).fit(data)
    result = rec.certify(budget=20.0)
    facts = result.equilibrium
    assert facts["nodes"] == len(task.y) and facts["labelled"] == len(rec.labels_)
    assert facts["certain"] + len(facts["uncertain"]) == facts["nodes"]
    assert str(facts["certain"]) in " ".join(result.sentences())
    link = {"model": model, "data": data}
    kept = {"states": rec.states_, "steering": rec.steering_}
    checked = gk.check(rec.certificate_, **link, **kept)
    assert checked.accepted and checked.data_checked and checked.on_graph, checked.reason
    assert "certainly have the decided class" in " ".join(checked.on_graph)
    for missing in ("states", "steering"):
        assert not gk.check(rec.certificate_, **link, **{**kept, missing: None}).accepted
    rec.save(tmp_path)
    back = gk.load(tmp_path, model=model).attach(data)
    kept = {"states": back.states_, "steering": back.steering_}
    assert gk.check(back.certificate_, **link, **kept).accepted
    new = (~task.train_mask & ~task.val_mask).nonzero().flatten()[:20]
    back.feedback(new, task.y[new])  # other features: nothing is left that speaks of the old ones
    assert back.states_ is None and "equilibrium" not in back.certificate_["graph"]
    assert back.steering_ is None and back.certificate_["steering"]["features"] is None
    assert "shipped" not in back.certificate_["provenance"]
    assert gk.check(back.certificate_, model=model, data=data).accepted


@pytest.fixture(scope="module")
def small():
    """A model of three classes and its graph: proofs are quick."""
    task = make_task(make_sbm(300, 900, n_classes=3, n_features=6), split="random")
    return train_model("sgc", task, seed=0), task.to_data()


def test_anchors_that_are_not_proved_are_never_used(small, caplog):
    model, data = small
    rec = gk.Reconstructor(model, method="replace").fit(data)
    kept, features = rec.anchors_.features.clone(), rec.features_.clone()
    result = rec.certify(strength=3.0, rounds=1, steps=1, rho=1e-6, budget=5.0)
    assert not result and "other anchors" in result.remark
    assert torch.equal(rec.anchors_.features, kept) and torch.equal(rec.features_, features)
    assert "is not proved" in caplog.text and "other anchors" in caplog.text


def test_other_anchors_are_used_only_if_the_guard_finds_them_no_worse(small):
    model, data = small
    rec = gk.Reconstructor(model, method="replace").fit(data)
    accuracy = rec.guard_.accuracy
    result = rec.certify(strength=0.05, budget=20.0)
    used = torch.equal(result.anchors(), rec.anchors_.features)
    assert used == ("now in use" in result.remark)
    assert rec.guard_.accuracy >= accuracy


def test_attach_needs_the_model_and_the_graph_of_fit(fitted, model, data, tmp_path):
    fitted.save(tmp_path)
    with pytest.raises(ModelError, match="no model to reconstruct for"):
        gk.load(tmp_path).attach(data)
    other = copy.copy(data)
    other.x = data.x[:, :3]
    with pytest.raises(DataError, match="made for a graph with x of shape"):
        gk.load(tmp_path, model=model).attach(other)


def test_damaged_folders_are_refused(fitted, tmp_path):
    with pytest.raises(DataError, match="holds no stored reconstruction"):
        gk.load(tmp_path)
    fitted.save(tmp_path)
    (tmp_path / "reconstruction.json").write_text('{"format": 99}')
    with pytest.raises(DataError, match="written by another version"):
        gk.load(tmp_path)


class Weighted(nn.Module):
    """A model that needs an argument of its own."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.conv = GCNConv(64, 10)

    def forward(self, x, edge_index, edge_weight=None):
        return self.conv(x, edge_index, edge_weight)


def test_model_arguments_pass_through(data):
    weights = torch.rand(data.edge_index.shape[1])
    rec = gk.Reconstructor(Weighted(), risk=1.0).fit(data, edge_weight=weights)
    changed = rec.transform(data)
    expected = rec.model(changed.x, changed.edge_index, edge_weight=weights).argmax(1)
    assert torch.equal(rec.predict(data), expected)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"method": "hope"}, "method must be one of"),
        ({"controller": "hope"}, "the controller must be one of"),
        ({"risk": 0.0}, "risk must lie in"),
        ({"return_type": "vibes"}, "return_type must be one of"),
    ],
)
def test_bad_options_are_refused_by_fit_not_by_the_constructor(model, data, options, message):
    rec = gk.Reconstructor(model, **options)
    with pytest.raises((ConfigError, ModelError), match=message):
        rec.fit(data)


def test_misuse_is_explained(fitted, model, data):
    with pytest.raises(ModelError, match="there is no model"):
        gk.Reconstructor().fit(data)
    with pytest.raises(ConfigError, match="not fitted"):
        gk.Reconstructor(model).transform(data)
    data.x = data.x[:, :5]
    with pytest.raises(DataError, match="x of shape"):
        fitted.transform(data)


def test_its_representation_says_what_it_did(fitted, model):
    assert "not fitted" in repr(gk.Reconstructor(model))
    assert "changed:" in repr(fitted)


def test_neural_controllers_come_with_a_certificate(small):
    model, data = small
    rec = gk.Reconstructor(model, controller="neural", risk=1.0).fit(data)
    assert rec.anchors_.controller == "neural"
    assert len(rec.certificate_["classes"]) == 3
    closed_form = gk.Reconstructor(model, risk=1.0).fit(data)
    agree = (rec.predict(data) == closed_form.predict(data)).float().mean()
    assert agree > 0.99  # whoever finds an exact anchor, the predictions are the same
