"""Steering: known least changes, a V that never rises, and the theorem for linear models."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
import torch
from linear_facts import linear_facts, propagation_bound
from scipy import sparse
from torch import Tensor

from graphkeel.core.errors import DataError
from graphkeel.graph import GraphTask, make_sbm, make_task
from graphkeel.models import FrozenModel, train_model
from graphkeel.models.linear_map import LinearMap, Propagation
from graphkeel.models.networks import SGC
from graphkeel.models.units import typical_margin
from graphkeel.models.zoo import TrainingConfig
from graphkeel.reconstruct.steer import Earlier, Steered, SteerSettings, steer

BRIEF = TrainingConfig(epochs=40)
EXACT = SteerSettings(passes=400, most_passes=400, goal=2.0)


def task_of(seed: int = 0) -> GraphTask:
    graph = make_sbm(300, 900, n_classes=3, n_features=8, homophily=0.7, signal=1.0, seed=seed)
    return make_task(graph, split="random")


def sure(wanted: Tensor, n_classes: int) -> Tensor:
    return torch.nn.functional.one_hot(wanted, n_classes).float()


def steered_model(name: str, seed: int = 0) -> tuple[Steered, GraphTask, FrozenModel, Tensor]:
    """A model of the zoo, steered to the true classes."""
    task = task_of(seed)
    data = task.to_data()
    frozen = FrozenModel(train_model(name, task, seed=seed, config=BRIEF))
    wanted = data.y
    found = steer(
        lambda x: frozen.differentiable_logits(x, data.edge_index),
        data.x,
        wanted,
        sure(wanted, task.n_classes),
        linear=LinearMap.of(frozen, data.edge_index, data.num_nodes),
    )
    return found, task, frozen, wanted


def random_map(seed: int, n: int = 12, d: int = 5, n_classes: int = 3) -> tuple[LinearMap, Tensor]:
    generator = np.random.default_rng(seed)
    upper = np.triu(generator.random((n, n)) < 0.3, 1)
    dense = (upper | upper.T).astype(float) + np.eye(n)
    scale = dense.sum(1) ** -0.5
    matrix = sparse.csr_matrix((scale[:, None] * dense * scale).astype(np.float32))
    weight = torch.tensor(generator.normal(size=(n_classes, d)), dtype=torch.float32)
    bias = torch.tensor(generator.normal(size=n_classes), dtype=torch.float32)
    x = torch.tensor(generator.normal(size=(n, d)), dtype=torch.float32)
    return LinearMap(matrix, 2, weight, bias), x


def answers(linear: LinearMap, x: Tensor) -> Tensor:
    """By dense products."""
    dense = torch.from_numpy(linear.matrix.toarray())
    found = x @ linear.weight.T
    for _ in range(linear.hops):
        found = dense @ found
    return found + linear.bias


def map_case(seed: int) -> tuple[LinearMap, Tensor, Tensor, Tensor]:
    linear, x = random_map(seed)
    wanted = torch.arange(len(x)) % 3
    return linear, x, wanted, sure(wanted, 3)


# ---- known answers


def test_least_change_of_two_nodes_by_hand() -> None:
    """No edges, answers = features. Node 0, (1, 0), wants class 0 and stays. Node 1, (1, 0), wants
    class 1: along (-1, 1)/√2 by t its shortfall is margin + 1 - √2 t, so with the ridge λ
    √2 (margin + 1 - √2 t) = λ t, t = √2 (margin + 1)/(2 + λ)."""
    x = torch.tensor([[1.0, 0.0], [1.0, 0.0]])
    settings = SteerSettings(margin=0.5, ridge=0.1, passes=100, most_passes=100)
    wanted = torch.tensor([0, 1])
    linear = LinearMap(
        sparse.eye(2, format="csr", dtype=np.float32), 1, torch.eye(2), x.new_zeros(2)
    )
    for given in (None, linear):
        found = steer(lambda y: 1.0 * y, x, wanted, sure(wanted, 2), settings, linear=given)
        size = 2**0.5 * 1.5 / 2.1
        expected = x + torch.tensor([[0.0, 0.0], [-size, size]]) / 2**0.5
        torch.testing.assert_close(found.features, expected, atol=2e-3, rtol=0)
        assert torch.equal(found.features[0], x[0])
        assert found.agreement == 1.0
        assert found.change[1] == pytest.approx(size, abs=2e-3)


def test_nodes_with_the_same_neighbours_are_tied_and_the_surer_one_wins() -> None:
    matrix = sparse.csr_matrix(np.full((2, 2), 0.5, dtype=np.float32))
    linear = LinearMap(matrix, 1, torch.eye(2), torch.zeros(2))
    posterior = torch.tensor([[0.9, 0.1], [0.4, 0.6]])
    found = steer(
        lambda y: torch.from_numpy(matrix.toarray()) @ y,
        torch.tensor([[0.1, 0.2], [0.3, 0.5]]),
        posterior.argmax(dim=1),
        posterior,
        linear=linear,
    )
    assert (found.margins > 0).tolist() == [True, False]
    assert (found.agreement, found.tied) == (0.5, 0.5)


def test_features_stay_to_the_bit_where_nothing_needs_to_change() -> None:
    linear, x = random_map(3)
    logits = answers(linear, x)
    best = logits.topk(2, dim=1).values
    wanted = logits.argmax(dim=1)
    settings = SteerSettings(margin=0.5 * float((best[:, 0] - best[:, 1]).min()))
    before = x.clone()
    found = steer(lambda y: answers(linear, y), x, wanted, sure(wanted, 3), settings)
    assert torch.equal(found.features, x)
    assert torch.equal(x, before)
    assert float(found.change.max()) == 0.0
    assert found.agreement == 1.0


# ---- models


@pytest.mark.parametrize("name", ["sgc", "gcn", "sage", "gat", "appnp"])
def test_models_answer_as_wanted_and_v_never_rises(name: str) -> None:
    found, task, frozen, wanted = steered_model(name)
    assert found.agreement >= 0.97
    assert found.features.dtype == torch.float32
    assert all(later < before for before, later in zip(found.fall, found.fall[1:], strict=False))
    data = task.to_data()
    answered = frozen.predict(found.features, data.edge_index)
    assert float((answered == wanted).float().mean()) == pytest.approx(found.agreement, abs=0.01)


def test_the_budget_of_passes_is_kept() -> None:
    linear, x, wanted, posterior = map_case(1)
    for passes in (5, 9):
        settings = SteerSettings(passes=passes, most_passes=passes)
        asked = []

        def ask(y: Tensor, asked: list[int] = asked, linear: LinearMap = linear) -> Tensor:
            asked.append(1)
            return answers(linear, y)

        found = steer(ask, x, wanted, posterior, settings)
        assert len(asked) <= found.passes <= passes


def test_change_costs_less_where_too_few_nodes_answer_as_wanted() -> None:
    """At this price of a change hardly any node is won over; other models may lower it."""
    linear, x, wanted, posterior = map_case(2)
    dear = SteerSettings(ridge=100.0, least_ridge=100.0, goal=1.0)
    cheaper = SteerSettings(ridge=100.0, least_ridge=1e-4, goal=1.0, most_passes=400)
    stays = steer(lambda y: answers(linear, y), x, wanted, posterior, dear)
    gives = steer(lambda y: answers(linear, y), x, wanted, posterior, cheaper)
    assert gives.agreement > stays.agreement + 0.3
    falls = zip(gives.fall, gives.fall[1:], strict=False)
    assert all(later < before for before, later in falls)
    fixed = steer(lambda y: answers(linear, y), x, wanted, posterior, cheaper, linear=linear)
    assert fixed.agreement < gives.agreement  # a linear model's V is the one its theorem is about


def test_the_same_twice() -> None:
    first, second = steered_model("gcn")[0], steered_model("gcn")[0]
    assert torch.equal(first.features, second.features)
    assert first.fall == second.fall


def test_linear_map_of_sgc_alone() -> None:
    task = task_of()
    data = task.to_data()
    frozen = FrozenModel(train_model("sgc", task, config=BRIEF))
    linear = LinearMap.of(frozen, data.edge_index, data.num_nodes)
    assert linear is not None
    torch.testing.assert_close(
        answers(linear, data.x), frozen.logits(data.x, data.edge_index), atol=1e-4, rtol=1e-4
    )
    gcn = FrozenModel(train_model("gcn", task, config=BRIEF))
    assert LinearMap.of(gcn, data.edge_index, data.num_nodes) is None
    assert LinearMap.of(FrozenModel(SGC(8, 1)), data.edge_index, data.num_nodes) is None


# ---- odd features


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_features_that_are_not_finite_are_refused(value: float) -> None:
    linear, x, wanted, posterior = map_case(0)
    x[2, 1] = value
    with pytest.raises(DataError, match="finite"):
        steer(lambda y: answers(linear, y), x, wanted, posterior)


def test_features_of_zeros() -> None:
    linear, x, wanted, posterior = map_case(0)
    for some in (torch.zeros_like(x), torch.cat([torch.zeros_like(x[:6]), x[6:]])):
        found = steer(lambda y: answers(linear, y), some, wanted, posterior, EXACT)
        assert bool(torch.isfinite(found.features).all())
        assert bool(torch.isfinite(found.change).all())
        assert found.fall[-1] < found.fall[0]


def test_a_model_that_ignores_its_features() -> None:
    x = torch.ones(4, 3)
    wanted = torch.tensor([0, 1, 0, 1])
    found = steer(lambda y: 0.0 * y[:, :2], x, wanted, sure(wanted, 2))
    assert torch.equal(found.features, x)


# ---- the preconditioner


@pytest.mark.parametrize("hops", [1, 2, 3])
@pytest.mark.parametrize("directed", [False, True])
def test_the_preconditioner_is_positive_definite_and_near_the_inverse(
    hops: int, directed: bool
) -> None:
    linear, _ = random_map(hops, n=30)
    dense = linear.matrix.toarray()
    dense = np.tril(2 * dense) if directed else dense
    propagation = Propagation(sparse.csr_matrix(dense), hops)
    one = torch.from_numpy(np.linalg.matrix_power(dense, hops)).double()
    hessian = 4.0 * one.T @ one + 0.5 * torch.eye(30).double()
    found = propagation.inverse(torch.full((1,), 2.0), 0.5)(torch.eye(30)).double()
    torch.testing.assert_close(found, found.T, atol=1e-5, rtol=0)
    assert torch.linalg.eigvalsh(found).min() > 0
    if not directed:
        root = torch.linalg.cholesky(found)
        after, before = (torch.linalg.cond(root.T @ hessian @ root), torch.linalg.cond(hessian))
        assert after < 0.7 * before


def test_the_preconditioner_moves_nothing_that_is_not_pulled_at() -> None:
    linear, x = random_map(2)
    x[3:7] = 0.0
    found = linear.propagation.inverse(torch.ones(1), 0.1)(x)
    assert not found[3:7].any() and bool(found[:3].any(dim=1).all())


def test_other_models_take_fewer_passes_with_it() -> None:
    linear, x, wanted, posterior = map_case(6)
    settings = SteerSettings(passes=12, most_passes=12)
    given = (lambda y: answers(linear, y), x, wanted, posterior, settings)
    assert steer(*given, propagation=linear.propagation).fall[-1] < steer(*given).fall[-1]


# ---- the theorem


def gradient_of(
    linear: LinearMap, x: Tensor, change: Tensor, wanted: Tensor, settings: SteerSettings
) -> Tensor:
    """∇V by automatic differentiation of its definition, in double precision."""
    logits = answers(linear, x)
    best = logits.topk(2, dim=1).values
    unit = (best[:, 0] - best[:, 1]).median().double()
    length = x.norm(dim=1).median().double()
    exact = LinearMap(
        linear.matrix.astype(np.float64), linear.hops, linear.weight.double(), linear.bias.double()
    )
    leaf = change.clone().requires_grad_(True)
    z = answers(exact, x.double() + length * leaf) / unit
    missing = settings.margin - z.gather(1, wanted[:, None]) + z
    missing = missing.scatter(1, wanted[:, None], 0.0).relu()
    value = 0.5 * missing.square().sum() + 0.5 * settings.ridge * leaf.square().sum()
    return torch.autograd.grad(value, leaf)[0]


@pytest.mark.parametrize("seed", range(5))
def test_the_gradient_map_contracts_by_its_factor(seed: int) -> None:
    linear, x, wanted, posterior = map_case(seed)
    settings = SteerSettings(ridge=0.5)
    facts = linear_facts(linear, x, x, wanted, posterior, settings)
    assert facts.propagation == pytest.approx(1.0, abs=1e-5)
    assert 0 < facts.factor < 1
    generator = torch.Generator().manual_seed(seed)
    for size in (0.01, 1.0, 100.0):
        one, two = size * torch.randn(2, *x.shape, generator=generator, dtype=torch.float64)
        moved = [
            at - facts.step * gradient_of(linear, x, at, wanted, settings) for at in (one, two)
        ]
        ratio = float((moved[0] - moved[1]).norm() / (one - two).norm())
        assert ratio <= facts.factor * (1 + 1e-9)


@pytest.mark.parametrize("seed", range(2))
def test_the_distance_to_the_minimum_is_within_its_bound(seed: int) -> None:
    linear, x, wanted, posterior = map_case(seed)
    settings = SteerSettings(ridge=0.5, passes=8, most_passes=8)
    found = steer(lambda y: answers(linear, y), x, wanted, posterior, settings, linear=linear)
    facts = linear_facts(linear, x, found.features, wanted, posterior, settings)
    assert facts.value == pytest.approx(found.fall[-1], rel=1e-3)
    length = x.norm(dim=1).median().double()
    at = torch.zeros_like(x, dtype=torch.float64)
    for _ in range(4000):  # the gradient map, from elsewhere
        at = at - facts.step * gradient_of(linear, x, at, wanted, settings)
    change = (found.features.double() - x.double()) / length
    assert float((change - at).norm()) <= facts.bound
    near = linear_facts(linear, x, (x + length * at).float(), wanted, posterior, settings)
    assert near.bound < 1e-2 * near.change


def test_a_long_run_ends_at_the_one_minimum() -> None:
    linear, x, wanted, posterior = map_case(4)
    settings = SteerSettings(ridge=0.5, passes=300, most_passes=300, goal=2.0, progress=-1.0)
    found = steer(lambda y: answers(linear, y), x, wanted, posterior, settings, linear=linear)
    facts = linear_facts(linear, x, found.features, wanted, posterior, settings)
    assert facts.bound < 0.01 * facts.change


def test_the_bound_of_propagation_holds_for_edges_of_one_direction() -> None:
    leaves = 20  # one node that twenty others hear
    dense = np.eye(leaves + 1)
    dense[1:, 0] = 1
    scale = dense.sum(1) ** -0.5
    matrix = sparse.csr_matrix(scale[:, None] * dense * scale)
    assert propagation_bound(matrix) >= np.linalg.norm(matrix.toarray(), 2) > 1


def test_large_graphs_have_fewer_passes() -> None:
    """The result of few passes can be used: V has fallen, and answers are those of the features."""
    torch.manual_seed(0)
    x, wanted = torch.randn(200, 6), torch.randint(0, 3, (200,))
    weight = torch.randn(6, 3)
    posterior = torch.nn.functional.one_hot(wanted, 3).float()
    few = SteerSettings(work=200 * 9, fewest_passes=4, goal=1.1, progress=-1.0)
    found = steer(lambda a: (a @ weight).tanh(), x, wanted, posterior, few)
    assert found.passes <= 9
    assert found.fall[-1] < found.fall[0]
    assert torch.equal(((found.features @ weight).tanh()).argmax(dim=1), found.answer)
    more = steer(lambda a: (a @ weight).tanh(), x, wanted, posterior, replace(few, work=200 * 30))
    assert more.passes > 9


# ---- from features that were steered before


def test_wherever_it_begins_a_linear_model_has_one_least_change() -> None:
    linear, x, wanted, posterior = map_case(3)
    logits = answers(linear, x)
    settings = replace(EXACT, progress=-1.0, ridge=1.0, least_ridge=1.0)  # nobody is ever content

    def run(earlier=None):
        ask = lambda y: answers(linear, y)  # noqa: E731
        return steer(ask, x, wanted, posterior, settings, earlier=earlier, linear=linear)

    cold = run()
    far = x + 0.3 * torch.randn(x.shape, generator=torch.Generator().manual_seed(0))
    warm = run(Earlier(far, (far - x).norm(dim=1) / x.norm(dim=1), logits))
    assert warm.fall[-1] == pytest.approx(cold.fall[-1], rel=1e-3)
    assert all(later <= before for before, later in pairwise(warm.fall))
    torch.testing.assert_close(warm.features, cold.features, atol=2e-2, rtol=0)


def test_few_nodes_that_are_missing_take_steps_of_their_own() -> None:
    """The others are content where they are, and stay there."""
    torch.manual_seed(0)
    x, weight = torch.randn(300, 6), torch.randn(6, 3)
    ask = lambda y: 3 * ((y @ weight) / 3).tanh()  # noqa: E731
    wanted = torch.randint(0, 3, (300,))
    posterior = torch.nn.functional.one_hot(wanted, 3).float()
    settings = SteerSettings(passes=60, goal=1.1, progress=-1.0)
    before = steer(ask, x, wanted, posterior, settings)
    assert before.agreement >= 0.99
    wanted[:9] = (wanted[:9] + 1) % 3
    posterior = torch.nn.functional.one_hot(wanted, 3).float()
    earlier = Earlier(before.features, before.change, ask(x))
    found = steer(ask, x, wanted, posterior, replace(settings, again=6, goal=0.9), earlier=earlier)
    assert found.passes <= 8 and found.agreement >= 0.99
    assert all(later <= first for first, later in pairwise(found.fall))
    stayed = (found.features - before.features).abs().amax(dim=1) < 1e-5
    content = before.margins >= settings.margin * typical_margin(ask(x))
    assert stayed[9:][content[9:]].all() and content.sum() > 30
    assert torch.equal(ask(found.features).argmax(dim=1), found.answer)


def test_it_begins_where_it_was_left() -> None:
    x = torch.eye(4)
    features = x[:3].clone()
    features[:2, 3] += torch.tensor([0.2, 0.4])
    change = (features - x[:3]).norm(dim=1)
    now = x.clone()
    now[1] *= 2.0  # its features are others by now
    answers = torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 0.0]])
    wanted = torch.tensor([0, 0, 1, 0])  # the second and the third are answered otherwise
    earlier = Earlier(features, change, answers)
    expected = torch.zeros(4, 4)
    expected[:2, 3] = 0.2  # the second as the only other one of its class
    begin = earlier.coefficients(now, wanted, 1.0, torch.eye(4))
    torch.testing.assert_close(begin, expected)
