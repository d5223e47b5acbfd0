"""The source's own labels as evidence on another graph."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

import graphkeel as gk
from graphkeel.graph import make_sbm, make_task
from graphkeel.models import train_model
from graphkeel.reconstruct.scene import Scene
from graphkeel.reconstruct.source import SourceProbe
from graphkeel.reconstruct.storage import FOLDER


def graph(seed: int, homophily: float = 0.9, n_features: int = 8):
    sbm = make_sbm(
        n_nodes=400,
        n_edges=1600,
        n_features=n_features,
        n_classes=3,
        signal=0.5,
        homophily=homophily,
        seed=0,
    )
    return make_task(sbm, seed=seed, split="random")


def scene(task, shift: float = 0.0, logits=None) -> Scene:
    nothing = np.zeros((task.n_nodes, 3), np.float32)
    x = task.x.numpy() + np.float32(shift)
    return Scene(nothing if logits is None else logits, x, task.edge_index.numpy())


def probe_of(source, target: Scene) -> SourceProbe | None:
    nodes = np.arange(source.n_nodes)
    return SourceProbe.fit(scene(source), nodes, source.y.numpy(), target)


@pytest.mark.parametrize("n_features", [8, 300])
def test_a_shift_of_all_features_does_not_matter(n_features) -> None:
    source, other = graph(0, n_features=n_features), graph(1, n_features=n_features)
    found = []
    for shift in (0.0, 0.5):
        target = scene(other, shift)
        logs = probe_of(source, target).logs(target)
        np.testing.assert_allclose(np.exp(logs).sum(axis=1), 1.0, atol=1e-3)
        found.append((logs.argmax(axis=1) == other.y.numpy()).mean())
    assert min(found) > 0.9


def test_where_neighbours_differ_nothing_is_said() -> None:
    """Far hops mix the classes there: the source's own labels tell."""
    alike, unlike = graph(0), graph(0, homophily=0.33)
    assert probe_of(alike, scene(alike)).sharpness >= 5.0
    assert probe_of(unlike, scene(unlike)) is None


def test_it_is_evidence_on_another_graph_alone() -> None:
    task, other = graph(0), graph(1)
    model = train_model("sgc", task, seed=0, k=2)
    data = Data(x=other.x + 0.05, edge_index=other.edge_index)
    fitted = gk.Reconstructor(model).fit(task.to_data())
    names = {
        keep: {source.name for source in fitted.adapt(data, keep=keep).evidence_}
        for keep in ("graph", "summary", "model")
    }
    assert "source~" in names["graph"]
    assert "source~" not in names["summary"] | names["model"]
    assert "source~" not in {source.name for source in fitted.evidence_}


def test_it_stays_through_folder_feedback_and_growth(tmp_path) -> None:
    task, other = graph(0), graph(1)
    model = train_model("sgc", task, seed=0, k=2)
    data = Data(x=other.x + 0.05, edge_index=other.edge_index)
    stayed = gk.Reconstructor(model).fit(task.to_data()).adapt(data)
    stayed.save(tmp_path)
    names = FOLDER.load(tmp_path)[0]
    assert {"source.slopes", "source.centre", "source.directions"} <= set(names)
    back = gk.load(tmp_path, model=model)
    grown = Data(
        x=torch.cat([data.x, data.x[:1]]),
        edge_index=torch.cat([data.edge_index, torch.tensor([[0, 400], [400, 0]])], dim=1),
    )
    for rec in (stayed, back):
        rec.update(grown)
        assert "source~" in {source.name for source in rec.evidence_}
    assert torch.equal(stayed.posterior_, back.posterior_)
    nodes = torch.arange(0, 400, 10)
    for rec in (stayed, back):
        rec.feedback(nodes, other.y[nodes])
    assert torch.equal(stayed.features_, back.features_)
    assert "source~" in {source.name for source in back.evidence_}
