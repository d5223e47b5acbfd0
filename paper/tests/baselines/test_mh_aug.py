"""MH-Aug: the chain by hand on a path of four nodes, its stationary law, and the training
contract."""

from __future__ import annotations

import pytest
import torch
from scipy.stats import truncnorm
from shifted_graph import check_contract, share_right, small_task

from graphkeel_paper.baselines.retrained.mh_aug import (
    Chain,
    MHAug,
    State,
    truncated_draw,
    truncated_log_density,
)
from graphkeel_paper.baselines.retrained.sparse import Pattern

ONE_WAY = torch.tensor([[0, 1, 2], [1, 2, 3]])
PATH = Pattern(torch.cat([ONE_WAY, ONE_WAY.flip(0)], dim=1), 4)  # 0 - 1 - 2 - 3


def without_last_edge_and_node(edge_share: float = 1 / 3, node_share: float = 1 / 4) -> State:
    last = (PATH.rows[PATH.edges] + PATH.columns[PATH.edges] == 5).nonzero().flatten()
    return State(
        edge_share, node_share, PATH.without_edges(last), torch.tensor([[1.0], [1.0], [1.0], [0.0]])
    )


def test_ego_change_by_hand():
    """Two-hop walks with self-loops number 5, 8, 8, 5; without edge 2-3: 5, 7, 5, 1; without node
    3: 5, 7, 6, 3."""
    edges, nodes = Chain(PATH, MHAug(), seed=0).ego_change(without_last_edge_and_node())
    assert torch.allclose(edges, torch.tensor([0.0, 1 / 8, 3 / 8, 4 / 5]))
    assert torch.allclose(nodes, torch.tensor([0.0, 1 / 8, 2 / 8, 2 / 5]))


@pytest.mark.parametrize("mean", [0.0, 0.02, 0.5, 1.0])
def test_truncated_normal_agrees_with_scipy(mean):
    sigma = 0.03
    law = truncnorm((0 - mean) / sigma, (1 - mean) / sigma, loc=mean, scale=sigma)
    for uniform in (0.01, 0.3, 0.9):
        drawn = truncated_draw(mean, sigma, uniform)
        assert drawn == pytest.approx(law.ppf(uniform), abs=1e-9)
        assert truncated_log_density(drawn, mean, sigma) == pytest.approx(
            law.logpdf(drawn), rel=1e-9
        )


def test_acceptance_ratio_by_hand():
    """All terms: ego-graph targets with their widths, and the proposal both ways."""
    chain = Chain(PATH, MHAug(), seed=0)
    old, new = chain.state, without_last_edge_and_node(edge_share=2 / 6)
    uncertainty = torch.tensor([0.0, 0.1, 0.5, 1.0])
    expected = 0.0
    changes = ((0.0, 0.0), (1 / 8, 1 / 8), (3 / 8, 2 / 8), (4 / 5, 2 / 5))
    for (edges, nodes), entropy in zip(changes, uncertainty.tolist(), strict=True):
        width = 100 * entropy + 1
        expected += ((0.6**2 - (edges - 0.6) ** 2) + (0.2**2 - (nodes - 0.2) ** 2)) / (2 * width**2)

    def log_q(start: float, end: float) -> float:
        return float(
            truncnorm.logpdf(end, -start / 0.03, (1 - start) / 0.03, loc=start, scale=0.03)
        )

    expected -= log_q(0.0, 1 / 3) + log_q(0.0, 1 / 4)
    expected += log_q(1 / 3, 0.0) + log_q(1 / 4, 0.0)
    assert chain.log_acceptance(old, new, uncertainty) == pytest.approx(expected, rel=1e-5)


def test_a_proposal_drops_the_shares_it_names():
    task = small_task()
    pattern = Pattern(task.edge_index, task.n_nodes)
    chain = Chain(pattern, MHAug(sigma_edges=0.5, sigma_nodes=0.5), seed=3)
    for _ in range(20):
        new = chain.propose()
        assert int((~new.entries).sum()) == int(pattern.n_edges * new.edge_share)
        assert int((new.nodes == 0).sum()) == int(task.n_nodes * new.node_share)
        assert new.entries[pattern.rows == pattern.columns].all()


def test_a_flat_target_leaves_the_shares_uniform():
    """Only the proposal's correction is left, and without it the shares would not be uniform near 0
    and 1."""
    task = small_task(100)
    config = MHAug(weight_edges=0.0, weight_nodes=0.0, sigma_edges=0.4, sigma_nodes=0.4)
    chain = Chain(Pattern(task.edge_index, task.n_nodes), config, seed=0)
    shares = []
    for _ in range(4000):
        chain.step(torch.zeros(task.n_nodes))
        shares.append(chain.state.edge_share)
    thirds = torch.histc(torch.tensor(shares), bins=3, min=0, max=1) / len(shares)
    assert (thirds - 1 / 3).abs().max() < 0.04


def test_a_target_far_away_pulls_the_chain_there():
    task = small_task()
    chain = Chain(Pattern(task.edge_index, task.n_nodes), MHAug(), seed=0)
    for _ in range(300):
        chain.step(torch.zeros(task.n_nodes))  # certain everywhere: narrow targets
    edges, nodes = chain.ego_change(chain.state)
    assert abs(float(edges.mean()) - 0.6) < 0.1
    assert abs(float(nodes.mean()) - 0.2) < 0.1


def test_the_training_keeps_the_contract_and_learns():
    task = small_task()
    method = MHAug(accepted=60, lr=0.02)
    result = check_contract(method, task)
    assert result.decision["steps"] == 60 <= result.decision["proposed"]
    assert share_right(result, task) > 0.7  # a third by chance


def test_without_validation_the_last_weights_count():
    task = small_task()
    labelled, none = task.train_mask.nonzero().flatten(), torch.empty(0, dtype=torch.long)
    result = MHAug(accepted=5).fit_predict(None, task, labelled, none, 0)  # type: ignore[arg-type]
    assert result.decision["best_step"] == 4
