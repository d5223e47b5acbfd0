"""Conventions of scikit-learn and PyG that an estimator keeps, and that nothing is silently wrong:
another graph, other weights, are refused with the difference."""

from __future__ import annotations

import copy
import io
import pickle

import joblib
import pytest
import torch
import torch_geometric.transforms as T
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted
from torch_geometric.nn import GCN

import graphkeel as gk
from graphkeel.core.errors import DataError, ModelError
from graphkeel.graph import make_sbm, make_task
from graphkeel.graph.fingerprint import Fingerprint
from graphkeel.models import train_model


@pytest.fixture(scope="module")
def task():
    return make_task(make_sbm(200, 700, n_classes=3, n_features=6), split="random")


@pytest.fixture(scope="module")
def model(task):
    return train_model("gcn", task, seed=0)


# ---- scikit-learn


def test_clone_and_check_is_fitted(fitted, model, data) -> None:
    check_is_fitted(fitted)
    twin = clone(fitted.set_params(seed=0))
    with pytest.raises(NotFittedError):
        check_is_fitted(twin)
    with pytest.raises(NotFittedError, match="not fitted"):
        twin.predict(data)
    assert torch.equal(twin.fit(data).features_, fitted.features_)


def test_it_shows_itself_in_a_notebook(fitted, model) -> None:
    for rec in (fitted, gk.Reconstructor(model)):
        page = rec._repr_html_()
        assert "Reconstructor" in page
        assert "risk" in page
    assert "text/html" in fitted._repr_mimebundle_()


class Scaling(TransformerMixin, BaseEstimator):
    """A transform of PyG's as a step; scikit-learn's FunctionTransformer takes tables only."""

    def fit(self, data, y=None):
        return self

    def transform(self, data):
        return T.NormalizeFeatures()(copy.copy(data))


def test_a_pipeline_ends_in_it(model, data) -> None:
    steps = [("scale", Scaling()), ("keel", gk.Reconstructor(model))]
    pipeline = Pipeline(steps).fit(data)
    assert pipeline.predict(data).shape == (200,)
    assert pipeline.predict_proba(data).shape == (200, 3)
    assert 0.0 <= pipeline.score(data) <= 1.0
    scaled = T.NormalizeFeatures()(copy.copy(data))
    assert torch.equal(pipeline.predict(data), gk.Reconstructor(model).fit(scaled).predict(scaled))


def test_a_grid_is_searched_by_the_guards_own_estimate(model, data) -> None:
    grid = {"method": ["replace", "auto"], "seed": [0]}
    search = GridSearchCV(gk.Reconstructor(model), grid, cv=[([0], [0])]).fit([data])
    best = max(gk.Reconstructor(model, method=m).fit(data).guard_.accuracy for m in grid["method"])
    assert search.best_score_ == pytest.approx(best / 100)
    assert search.predict([data]).shape == (200,)
    scrambled = copy.copy(data)
    scrambled.y = torch.where(data.test_mask, (data.y + 1) % 3, data.y)
    again = GridSearchCV(gk.Reconstructor(model), grid, cv=[([0], [0])]).fit([scrambled])
    assert list(again.cv_results_["mean_test_score"]) == list(search.cv_results_["mean_test_score"])


def test_score_and_probabilities(fitted, data) -> None:
    probabilities = fitted.predict_proba(data)
    assert torch.equal(probabilities.argmax(1), fitted.predict(data))
    torch.testing.assert_close(probabilities.sum(1), torch.ones(200))
    right = (fitted.predict(data) == data.y)[data.test_mask].float().mean()
    assert fitted.score(data, mask=data.test_mask) == pytest.approx(float(right))
    wrong = (data.y + 1) % 3
    assert fitted.score(data, wrong, mask=data.test_mask) <= 1 - float(right)
    assert fitted.score(data) == fitted.guard_.accuracy / 100


# ---- copies


def through_torch(rec):
    file = io.BytesIO()
    torch.save(rec, file)
    file.seek(0)
    return torch.load(file, weights_only=False)


def through_joblib(rec):
    file = io.BytesIO()
    joblib.dump(rec, file)
    file.seek(0)
    return joblib.load(file)


COPIES = {
    "deepcopy": copy.deepcopy,
    "pickle": lambda rec: pickle.loads(pickle.dumps(rec)),  # noqa: S301  our own bytes
    "joblib": through_joblib,
    "torch.save": through_torch,
}


@pytest.fixture(scope="module", params=["list", "sparse"])
def learner(request, task):
    """A fit, its graph, labels that come later, and the features that they lead to."""
    data = task.to_data()
    if request.param == "sparse":
        data = T.ToSparseTensor(layout=torch.sparse_csr)(data)
    torch.manual_seed(0)
    rec = gk.Reconstructor(GCN(6, 4, 2, 3)).fit(data)
    nodes = task.test_mask.nonzero().flatten()[:20]
    later = nodes, task.y[nodes]
    learned = gk.Reconstructor(rec.model).fit(data).feedback(*later).features_
    return rec, data, later, learned


@pytest.mark.parametrize("how", COPIES)
def test_copies_predict_and_learn_on(learner, how) -> None:
    rec, data, later, learned = learner
    before = rec.features_.clone()
    twin = COPIES[how](rec)
    assert twin is not rec
    assert torch.equal(twin.predict(data), rec.predict(data))
    twin.feedback(*later)
    assert torch.equal(rec.features_, before), "what a copy learns is its own"
    assert torch.equal(twin.features_, learned)


# ---- nothing silently wrong


def permuted(data):
    order = torch.randperm(200, generator=torch.Generator().manual_seed(0))
    place = torch.argsort(order)
    changed = copy.copy(data)
    for name in ("x", "y", "train_mask", "val_mask", "test_mask"):
        changed[name] = data[name][order]
    changed.edge_index = place[data.edge_index]
    return changed


def other_features(data):
    changed = copy.copy(data)
    changed.x = data.x.clone()
    changed.x[7, 3] += 1e-3
    return changed


def rewired(data):
    changed = copy.copy(data)
    changed.edge_index = data.edge_index.clone()
    changed.edge_index[0, 0] = (changed.edge_index[0, 0] + 1) % 200
    return changed


def reordered(data):
    changed = copy.copy(data)
    changed.edge_index = data.edge_index.flip(1)
    return changed


def fewer_edges(data):
    changed = copy.copy(data)
    changed.edge_index = data.edge_index[:, :-2]
    return changed


OTHERS = {
    permuted: "the same nodes in another order",
    other_features: "other features",
    rewired: "other edges",
    reordered: "the same edges in another order",
    fewer_edges: r"\d+ edges instead of \d+",
}


@pytest.mark.parametrize("change", OTHERS, ids=lambda change: change.__name__)
@pytest.mark.parametrize("call", ["transform", "predict", "predict_proba", "score", "attach"])
def test_another_graph_of_the_same_shape_is_refused(fitted, data, tmp_path, change, call) -> None:
    message = rf"not the graph that the features were made for \(got {OTHERS[change]}\)"
    with pytest.raises(DataError, match=message):
        getattr(fitted, call)(change(data))
    fitted.save(tmp_path)
    stored = gk.load(tmp_path, model=fitted.model)
    with pytest.raises(DataError, match=message):
        getattr(stored, call)(change(data))


def test_other_labels_and_masks_are_the_same_graph(fitted, data) -> None:
    expected = fitted.predict(data)
    data.y = None
    data.train_mask = None
    assert torch.equal(fitted.predict(data), expected)


def test_other_weights_are_refused_with_their_names(fitted, model, data, tmp_path) -> None:
    fitted.save(tmp_path)
    other = copy.deepcopy(model)
    with torch.no_grad():
        next(other.parameters())[0] += 1
    name = next(name for name, _ in other.named_parameters())
    with pytest.raises(ModelError, match=rf"its weights differ \(got {name}\)"):
        gk.load(tmp_path, model=other)
    rec = copy.deepcopy(fitted)
    with torch.no_grad():
        next(rec.model.parameters())[0] += 1
    with pytest.raises(ModelError, match="weights have changed"):
        rec.predict(data)


def test_a_fingerprint_survives_precision_and_place(data) -> None:
    one = Fingerprint.of(data.x, data.edge_index)
    assert one.difference(Fingerprint.of(data.x.double(), data.edge_index.int())) is None
    assert Fingerprint(**one.to_dict()) == one
