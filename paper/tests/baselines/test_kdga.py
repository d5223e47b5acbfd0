"""KDGA: tiles against the dense reference, the distilling loss by hand, and the training
contract."""

from __future__ import annotations

import gc
import subprocess
import sys
import weakref

import pytest
import torch
from dense_kdga import dense_adjacency, dense_edge_loss, dense_sample
from shifted_graph import check_contract, share_right, small_task
from torch import Tensor, nn

from graphkeel_paper.baselines.retrained.kdga import (
    KDGA,
    PRESETS,
    KDGAConfig,
    distilling_loss,
    propagated,
)
from graphkeel_paper.baselines.retrained.kdga_tiles import SampledGraph, Tiles, edge_loss
from graphkeel_paper.baselines.retrained.sparse import Pattern

SEED = 7


def random_graph(n: int = 70, dtype: torch.dtype = torch.float64) -> tuple[Tensor, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(1)
    edges = torch.randint(n, (2, 2 * n), generator=generator)
    hidden = torch.randn(n, 6, generator=generator).relu().to(dtype)
    return edges, hidden, torch.randn(n, 3, generator=generator).to(dtype)


def uniforms(tiles: Tiles, dtype: torch.dtype) -> Tensor:
    drawn = torch.zeros(tiles.n_nodes, tiles.n_nodes, dtype=dtype)
    for tile in tiles:
        drawn[tile.rows, tile.columns] = tile.uniforms(SEED, dtype)
    return drawn


def two_layers(product, x: Tensor) -> Tensor:
    """A stand-in for the teacher: two products with something nonlinear between them."""
    return (product(torch.tanh(product(x))) * torch.linspace(-1, 2, x.shape[1])).square().sum()


def tiled(
    hidden: Tensor, x: Tensor, tiles: Tiles, alpha: float, temperature: float
) -> tuple[Tensor, Tensor, Tensor]:
    hidden, x = hidden.clone().requires_grad_(), x.clone().requires_grad_()
    graph = SampledGraph(hidden, tiles, alpha, temperature, SEED)
    value = two_layers(graph.product, x) + 0.3 * graph.loss
    value.backward()
    return value.detach(), hidden.grad, x.grad


def dense(
    hidden: Tensor, x: Tensor, tiles: Tiles, adjacency: Tensor, alpha: float, temperature: float
):
    hidden, x = hidden.clone().requires_grad_(), x.clone().requires_grad_()
    graph = dense_sample(hidden, adjacency, uniforms(tiles, hidden.dtype), alpha, temperature)
    value = two_layers(lambda z: graph @ z, x) + 0.3 * dense_edge_loss(hidden, adjacency)
    value.backward()
    return value.detach(), hidden.grad, x.grad


@pytest.mark.parametrize("alpha, temperature", [(0.3, 1.0), (0.5, 0.7), (1.0, 1.0)])
@pytest.mark.parametrize("size", [16, 1000])
def test_tiles_are_the_dense_version(alpha, temperature, size):
    """In double precision nothing but the order of the sums differs: loss, sample and all
    gradients."""
    edges, hidden, x = random_graph()
    tiles = Tiles(edges, len(x), size=size)
    ours = tiled(hidden, x, tiles, alpha, temperature)
    reference = dense(hidden, x, tiles, dense_adjacency(edges, len(x)), alpha, temperature)
    for mine, theirs in zip(ours, reference, strict=True):
        assert torch.allclose(mine, theirs, rtol=1e-10, atol=1e-12)
    assert float(reference[1].abs().max()) > 0.01  # the predictor does get a gradient


def test_single_precision_differs_by_rounding():
    edges, hidden, x = random_graph(dtype=torch.float32)
    tiles = Tiles(edges, len(x), size=32)
    ours = tiled(hidden, x, tiles, 0.3, 1.0)
    reference = tiled(hidden.double(), x.double(), tiles, 0.3, 1.0)
    for mine, theirs in zip(ours, reference, strict=True):
        assert torch.allclose(
            mine.double(), theirs, rtol=1e-4, atol=1e-4 * float(theirs.abs().max())
        )


def test_the_edge_loss_alone():
    edges, hidden, _ = random_graph()
    ours, reference = hidden.clone().requires_grad_(), hidden.clone().requires_grad_()
    mine = edge_loss(ours, Tiles(edges, len(hidden), size=16))
    theirs = dense_edge_loss(reference, dense_adjacency(edges, len(hidden)))
    (3 * mine).backward()
    (3 * theirs).backward()
    assert mine.item() == pytest.approx(theirs.item(), rel=1e-12)
    assert torch.allclose(ours.grad, reference.grad, rtol=1e-10, atol=1e-14)


def test_the_sample_is_symmetric_has_loops_and_names_its_kept_edges():
    edges, hidden, _ = random_graph()
    tiles = Tiles(edges, len(hidden), size=16)
    graph = SampledGraph(hidden, tiles, 0.3, 1.0, SEED)
    matrix = graph.product(torch.eye(len(hidden), dtype=hidden.dtype))
    assert torch.allclose(matrix, matrix.T) and (matrix.diagonal() > 0).all()
    assert int((matrix.triu(1) > 0).sum()) == graph.n_edges
    kept = (matrix > 0) & (dense_adjacency(edges, len(hidden)) > 0)
    listed = torch.zeros_like(kept)
    listed[graph.kept_edges[0], graph.kept_edges[1]] = True
    assert torch.equal(kept, listed) and graph.kept_edges.shape[1] == int(kept.sum())


def test_a_draw_is_freed_with_its_graph():
    """Autograd's references are invisible to Python's collector: a cycle through them would leak
    every epoch."""
    edges, hidden, x = random_graph()
    graph = SampledGraph(hidden.requires_grad_(), Tiles(edges, len(x)), 0.3, 1.0, SEED)
    (two_layers(graph.product, x) + graph.loss).backward()
    draw = weakref.ref(graph._draw)
    del graph
    gc.collect()
    assert draw() is None


def test_a_teacher_that_is_quite_sure_has_finite_gradients():
    """Its other probabilities underflow to zero, whose logarithm is not finite: it happens on
    Amazon Photo."""
    teacher = torch.tensor([[200.0, 0.0], [0.0, 1.0]], requires_grad=True)
    student = torch.zeros(2, 2, requires_grad=True)
    distilling_loss(teacher, student, torch.tensor([[0, 1], [1, 0]]), 1.0).backward()
    assert torch.isfinite(teacher.grad).all() and torch.isfinite(student.grad).all()


def test_the_distilling_loss_by_hand():
    """Teacher (3/4, 1/4) and (1/2, 1/2), student (1/2, 1/2) twice; one pair: the student at 1, the
    teacher at 0."""
    teacher = torch.tensor([[0.75, 0.25], [0.5, 0.5]]).log()
    student = torch.zeros(2, 2)
    gap = 0.75 * torch.tensor(1.5).log() + 0.25 * torch.tensor(0.5).log()
    pair = torch.tensor([[1], [0]])
    assert torch.allclose(distilling_loss(teacher, student, pair, 1.0), gap / 4 + gap / 2)
    assert torch.allclose(
        distilling_loss(2 * teacher, 2 * student, pair, 2.0), 4 * (gap / 4 + gap / 2)
    )  # halved again by the temperature, weighted by its square


@pytest.mark.parametrize("wide", [2, 9])
def test_layers_propagate_on_their_narrow_side(wide):
    edges, _, x = random_graph(dtype=torch.float32)
    pattern = Pattern(edges, len(x))
    matrix = pattern.matrix(pattern.gcn_weights()).to_dense()
    layer = nn.Linear(3, wide)
    assert torch.allclose(propagated(layer, lambda z: matrix @ z, x), matrix @ layer(x), atol=1e-5)


def test_presets_are_the_published_ones():
    assert (PRESETS["cora"].alpha, PRESETS["cora"].weight_distilling, PRESETS["cora"].epochs) == (
        0.3,
        20.0,
        500,
    )
    assert (PRESETS["citeseer"].alpha, PRESETS["citeseer"].weight_edges) == (0.5, 1.0)


def test_the_training_keeps_the_contract_and_learns():
    task = small_task(200)
    config = KDGAConfig(hidden=32, edge_epochs=5, classifier_epochs=10, epochs=15)
    result = check_contract(KDGA(config=config), task)
    assert share_right(result, task) > 0.7
    assert result.decision["epochs_run"] == 15 and result.decision["drawn_edges"] > 0


def test_patience_ends_both_phases():
    config = KDGAConfig(
        hidden=8, edge_epochs=0, classifier_epochs=50, classifier_patience=2, epochs=50, patience=3
    )
    decision = check_contract(KDGA(config=config), small_task(100)).decision
    assert decision["classifier_epochs_run"] < 50 and decision["epochs_run"] < 50


@pytest.mark.slow
def test_tiles_are_the_dense_version_on_cora(data_folder):
    """One draw on the real graph with a predictor of the published width: differences are numerical
    noise."""
    from graphkeel_paper.baselines.retrained.kdga import EdgePredictor
    from graphkeel_paper.datasets import load

    task = load("cora", seed=0)
    torch.manual_seed(0)
    hidden = EdgePredictor(20, 256)(10 * task.x).detach()
    tiles = Tiles(task.edge_index, task.n_nodes)
    adjacency = dense_adjacency(task.edge_index, task.n_nodes)
    reference = dense(hidden.double(), task.x.double(), tiles, adjacency, 0.3, 1.0)
    for mine, theirs in zip(
        tiled(hidden.double(), task.x.double(), tiles, 0.3, 1.0), reference, strict=True
    ):
        assert torch.allclose(mine, theirs, rtol=1e-9, atol=1e-12)
    value, by_hidden, _ = tiled(hidden, task.x, tiles, 0.3, 1.0)
    assert value.item() == pytest.approx(reference[0].item(), rel=1e-4)
    assert float((by_hidden - reference[1]).abs().max()) < 1e-3 * float(reference[1].abs().max())
    # Of 3.7 million pairs, those whose noise falls within rounding of the probability may be drawn
    # differently.
    single, double = (
        SampledGraph(h, tiles, 0.3, 1.0, SEED).n_edges for h in (hidden, hidden.double())
    )
    assert abs(single - double) <= 2


@pytest.mark.slow
def test_twenty_thousand_nodes_fit_into_four_gigabytes():
    """As many nodes as Pubmed has: one epoch of everything, in a process of its own."""
    script = """
import resource, torch
from graphkeel_paper.baselines.retrained.kdga import KDGA, KDGAConfig
from graphkeel.graph import make_sbm, make_task
task = make_task(make_sbm(20000, 45000, n_features=20), split="random", features="raw")
config = KDGAConfig(edge_epochs=1, classifier_epochs=1, epochs=1)
nodes = [mask.nonzero().flatten() for mask in (task.train_mask, task.val_mask)]
KDGA(config=config).fit_predict(None, task.without_test_labels(), *nodes, 0)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20)
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert float(done.stdout.split()[-1]) < 4.0
