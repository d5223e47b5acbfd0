"""The control before steering: what was decided, in the run's own graph and on another one."""

from __future__ import annotations

import torch

from graphkeel.runs.methods import get_method
from graphkeel.runs.run import label_budget, prepare
from graphkeel_paper.baselines.registry import get_baseline
from graphkeel_paper.specs import AdaptSpec, RunSpec


def test_it_is_what_auto_leads_the_model_to():
    prepared = prepare(RunSpec(dataset="digits:0,1,2"), seed=0)
    task = prepared.task.without_test_labels()
    nodes = label_budget(task, "train+half-val", 0)
    alone = get_baseline("posterior-alone").fit_predict(prepared.frozen, task, *nodes, 0)
    steered = get_method("auto").fit_predict(prepared.frozen, task, *nodes, 0)
    assert torch.allclose(alone.scores.sum(dim=1), torch.ones(task.n_nodes), atol=1e-4)
    assert alone.features is None
    # the same labels, guard and choice; features are another matter
    assert alone.decision.items() <= steered.decision.items()
    agree = (alone.scores.argmax(dim=1) == steered.scores.argmax(dim=1)).float().mean()
    assert float(agree) > 0.95


def test_on_another_graph_it_is_the_decision_of_auto():
    spec = AdaptSpec("sbm", "sbm", method="posterior-alone", target_labels=20)
    auto = AdaptSpec("sbm", "sbm", method="auto", target_labels=20)
    row, steered = spec.measure(0), auto.measure(0)
    assert row["decision"].items() <= steered["decision"].items()
    assert abs(row["accuracy"] - steered["accuracy"]) < 5.0
    assert spec.code_version() != "" and row["kept"] is False
