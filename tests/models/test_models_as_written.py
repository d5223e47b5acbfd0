"""Models as people write them: every way of calling, every kind of output, any place, any
precision; and tasks of another kind. What refuses a whole kind of model is in compatibility/."""

from __future__ import annotations

import copy
import functools
import warnings

import pytest
import torch
import torch_geometric.transforms as T
from torch import Tensor, nn
from torch.utils._pytree import tree_map
from torch_geometric.data import Batch, Data, HeteroData
from torch_geometric.nn import GCN, GCNConv, GraphNorm, GraphSAGE, SAGEConv, SGConv, to_hetero
from torch_geometric.utils import subgraph

import graphkeel as gk
from fake_device import FAKE, FakeAccelerator, is_there, put_there
from graphkeel.core.errors import DataError, KeelWarning, ModelError
from graphkeel.graph import make_sbm, make_task
from graphkeel.models.calling import Style, signature_of
from graphkeel.models.frozen import FrozenModel
from graphkeel.models.head import extract_head

N, D, C = 90, 6, 3


@pytest.fixture(scope="module")
def task():
    return make_task(make_sbm(N, 400, n_classes=C, n_features=D), split="random")


@pytest.fixture
def data(task) -> Data:
    return task.to_data()


@pytest.fixture(autouse=True)
def _same_weights() -> None:
    torch.manual_seed(0)


class Net(nn.Module):
    """Two convolutions; subclasses say how they are called."""

    def __init__(self, out: int = C) -> None:
        super().__init__()
        self.first = GCNConv(D, 8)
        self.second = GCNConv(8, out)

    def scores(self, x: Tensor, edges: Tensor, weight: Tensor | None = None) -> Tensor:
        return self.second(self.first(x, edges, weight).relu(), edges, weight)


class Plain(Net):
    def forward(self, x, edge_index):
        return self.scores(x, edge_index)


class Weighted(Net):
    def forward(self, x, edge_index, edge_weight):
        return self.scores(x, edge_index, edge_weight)


class TakesData(Net):
    def forward(self, data):
        return self.scores(data.x, data.edge_index, data.edge_weight)


class Swapped(Net):
    def forward(self, edge_index, x):
        return self.scores(x, edge_index)


class Adjacency(Net):
    def forward(self, x, adj_t):
        return self.scores(x, adj_t)


# ---- how a model is called


@pytest.mark.parametrize(
    ("forward", "style"),
    [
        (lambda x, edge_index: x, Style.TENSORS),
        (lambda features, edges, weight=None: features, Style.TENSORS),
        (lambda *args: args, Style.TENSORS),
        (lambda edge_index, x: x, Style.SWAPPED),
        (lambda x: x, Style.FEATURES),
        (lambda data: data, Style.DATA),
        (lambda anything: anything, Style.DATA),
        (lambda batch, training=False: batch, Style.DATA),
        (lambda x, adj_t: x, Style.ADJACENCY),
        (torch.jit.script(nn.Linear(2, 2)).forward, Style.FEATURES),
    ],
)
def test_the_style_is_read_off_the_names(forward, style) -> None:
    assert signature_of(forward).style is style


def test_every_style_gives_the_same_answers(data) -> None:
    weight = torch.rand(data.edge_index.shape[1])
    expected = None
    for kind in (Weighted, TakesData):
        torch.manual_seed(0)
        data.edge_weight = weight
        rec = gk.Reconstructor(kind()).fit(data)
        found = rec.predict(data)
        assert rec._context.plant.unsupported is None
        assert expected is None or torch.equal(found, expected)
        expected = found
    torch.manual_seed(0)
    passed = gk.Reconstructor(Weighted()).fit(data, edge_weight=weight).predict(data)
    assert torch.equal(passed, expected)


@pytest.mark.parametrize("layout", [torch.sparse_csr, torch.sparse_coo])
def test_a_sparse_adjacency_is_an_edge_list_in_other_clothes(data, layout) -> None:
    sparse = T.ToSparseTensor(layout=layout)(copy.copy(data))
    assert sparse.get("edge_index") is None
    torch.manual_seed(0)
    expected = gk.Reconstructor(Swapped()).fit(data)
    for kind in (Plain, Adjacency):
        torch.manual_seed(0)
        rec = gk.Reconstructor(kind()).fit(sparse)
        torch.testing.assert_close(rec.scores(sparse), expected.scores(data), rtol=1e-4, atol=1e-4)
        assert rec._context.plant.hidden == (8,)


def test_an_adjacency_of_another_library_is_taken_by_its_methods(data) -> None:
    """As torch_sparse's SparseTensor has them; that package is not needed for the test."""

    class SparseMatrix:
        def __init__(self, row, col, sparse_sizes):
            self.row, self.col, self.sizes = row, col, sparse_sizes

        def coo(self):
            return self.row, self.col, None

        def sparse_sizes(self):
            return self.sizes

    class Summing(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(D, C)

        def forward(self, x, adj_t):
            row, column, _ = adj_t.coo()
            return x.new_zeros(x.shape[0], C).index_add(0, row, self.layer(x)[column])

    source, target = data.edge_index
    data.adj_t = SparseMatrix(target, source, (N, N))
    del data.edge_index
    rec = gk.Reconstructor(Summing()).fit(data)
    assert rec.predict(data).shape == (N,)
    assert rec._context.plant.layers != ()


def test_edge_weights_that_are_not_passed_are_warned_of(data) -> None:
    data.edge_weight = torch.rand(data.edge_index.shape[1])
    with pytest.warns(KeelWarning, match=r"fit\(data, edge_weight=data.edge_weight\)"):
        gk.Reconstructor(GCN(D, 8, 2, C)).fit(data)
    with warnings.catch_warnings():
        warnings.simplefilter("error", KeelWarning)
        gk.Reconstructor(GCN(D, 8, 2, C)).fit(data, edge_weight=data.edge_weight)
        gk.Reconstructor(Plain()).fit(data)  # its forward takes none: nothing to pass


def test_a_model_that_reads_the_data_cannot_read_hidden_labels(data, task) -> None:
    seen = []

    class Peeking(Net):
        def forward(self, data):
            seen.append(data.y.clone())
            return self.scores(data.x, data.edge_index)

    gk.Reconstructor(Peeking()).fit(data)
    assert bool((seen[0][task.test_mask] == -1).all())
    assert torch.equal(seen[0][task.train_mask], task.y[task.train_mask])


# ---- functions


def closure(net):
    return lambda x, edge_index: net(x, edge_index)


@pytest.mark.parametrize(
    "wrap", [closure, lambda net: functools.partial(net), lambda net: net.forward]
)
def test_modules_inside_a_function_are_frozen_too(data, wrap) -> None:
    net = GCN(D, 8, 2, C, dropout=0.5).train()
    frozen = FrozenModel(wrap(net))
    first = frozen(data.x, data.edge_index)
    assert torch.equal(frozen(data.x, data.edge_index), first)  # no dropout
    assert net.training
    assert frozen.weights_hash != FrozenModel(wrap(GCN(D, 8, 2, C))).weights_hash
    with torch.no_grad():
        next(net.parameters()).add_(1)
    with pytest.raises(ModelError, match="weights have changed"):
        frozen(data.x, data.edge_index)


def test_a_function_gets_anchors_and_no_proof(data) -> None:
    rec = gk.Reconstructor(closure(Plain())).fit(data)
    assert torch.isfinite(rec.anchors_.features).all()
    assert rec.certify().certificate is None
    assert "a plain function has no layers" in rec._context.plant.unsupported


def test_a_compiled_model_is_asked_uncompiled(data) -> None:
    model = Plain()
    compiled = torch.compile(model)
    frozen = FrozenModel(compiled)
    assert frozen.model is model
    assert torch.equal(frozen(data.x, data.edge_index), FrozenModel(model)(data.x, data.edge_index))


def test_weights_in_adj_t_that_are_not_passed_are_warned_of(data) -> None:
    model = GCN(D, 8, 2, C).eval()
    values = torch.rand(data.edge_index.shape[1])
    matrix = torch.sparse_coo_tensor(data.edge_index.flip(0), values, (N, N)).coalesce()
    data.adj_t = matrix.to_sparse_csr()
    data.edge_index = None
    with pytest.warns(KeelWarning, match=r"Reconstructor\(lambda x, adj_t: model\(x, adj_t\)\)"):
        gk.Reconstructor(model).fit(data)
    with warnings.catch_warnings():
        warnings.simplefilter("error", KeelWarning)
        rec = gk.Reconstructor(lambda x, adj_t: model(x, adj_t)).fit(data)
        expected = model(data.x, data.adj_t).detach()
        torch.testing.assert_close(rec._context.logits, expected, rtol=1e-4, atol=1e-5)
        data.adj_t = torch.sparse_coo_tensor(matrix.indices(), torch.ones(len(values)), (N, N))
        gk.Reconstructor(model).fit(data)


# ---- outputs


def test_of_a_tuple_the_first_entry_counts_and_that_is_said(data) -> None:
    class Pair(Net):
        def forward(self, x, edge_index):
            return self.scores(x, edge_index), x

    with pytest.warns(KeelWarning, match="returns 2 values; the first is taken"):
        rec = gk.Reconstructor(Pair()).fit(data)
    assert rec._context.plant.hidden == (8,)


@pytest.mark.parametrize("squeezed", [False, True])
def test_one_logit_is_two_classes(data, squeezed) -> None:
    class Binary(Net):
        def forward(self, x, edge_index):
            z = self.scores(x, edge_index) - 0.2
            return z.squeeze(-1) if squeezed else z

    data.y = (data.y > 0).float()  # as binary cross-entropy wants it
    model = Binary(out=1)
    rec = gk.Reconstructor(model).fit(data)
    z = model(data.x, data.edge_index).detach().reshape(-1)
    logits = rec._context.logits
    assert logits.shape == (N, 2)
    torch.testing.assert_close(logits[:, 1] - logits[:, 0], z)
    assert torch.equal(logits.argmax(1), (z > 0).long())
    assert set(rec.predict(data).tolist()) <= {0, 1}


def test_one_logit_keeps_an_exact_head() -> None:
    head = extract_head(SGConv(D, 1, K=2), D)
    assert head.n_out == 2
    logits = head(torch.randn(5, D))
    torch.testing.assert_close(logits[:, 0], -logits[:, 1])


def test_one_probability_must_be_said_to_be_one(data) -> None:
    data.y = (data.y > 0).long()
    net = SGConv(D, 1, K=2)

    def probability(x, edge_index):
        return net(x, edge_index).sigmoid()

    rec = gk.Reconstructor(probability, return_type="probs").fit(data)
    expected = net(data.x, data.edge_index).flatten()
    difference = rec._context.logits[:, 1] - rec._context.logits[:, 0]
    torch.testing.assert_close(difference, expected.detach(), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("last", "kind"),
    [(nn.Identity(), "raw"), (nn.LogSoftmax(-1), "log_probs"), (nn.Softmax(-1), "probs")],
)
def test_probabilities_are_recognised(data, last, kind) -> None:
    class Ending(Net):
        def __init__(self):
            super().__init__()
            self.last = last

        def forward(self, x, edge_index):
            return self.last(self.scores(x, edge_index))

    rec = gk.Reconstructor(Ending()).fit(data)
    assert rec._context.frozen.return_type == kind
    assert rec._context.plant.unsupported is None


# ---- the fallback: whatever goes wrong, the model can be asked


class Embedded(Net):
    """Has a vector per node, so that it runs on its own graph only."""

    def __init__(self):
        super().__init__()
        self.own = nn.Embedding(N, D)

    def forward(self, x, edge_index):
        return self.scores(x + self.own.weight, edge_index)


class Normalised(Net):
    """Every answer depends on all nodes."""

    def __init__(self):
        super().__init__()
        self.norm = GraphNorm(8)

    def forward(self, x, edge_index):
        return self.second(self.norm(self.first(x, edge_index)).relu(), edge_index)


class Odd(Net):
    """Raises what nobody expects when its layers are watched in double precision."""

    def forward(self, x, edge_index):
        if x.dtype == torch.float64:
            raise ZeroDivisionError("no doubles here")
        return self.scores(x, edge_index)


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        (Embedded, "cannot be run on a single node"),
        (Normalised, "depends on nodes that it has no edge to"),
        (Odd, "could not be watched"),
    ],
)
def test_where_no_head_can_be_read_off_the_model_is_asked(data, kind, reason) -> None:
    rec = gk.Reconstructor(kind()).fit(data)
    assert reason in rec._context.plant.unsupported
    assert rec.anchors_.features.shape == (C, D)
    assert torch.isfinite(rec.anchors_.features).all()
    assert rec.predict(data).shape == (N,)
    assert rec.certify().certificate is None


def test_a_model_that_fails_on_its_own_graph_is_the_named_cause(data) -> None:
    class Broken(nn.Module):
        def forward(self, x, edge_index):
            return {}["nothing"]

    with pytest.raises(ModelError, match=r"cannot be run .* called as model\(x, edge_index\).*Key"):
        gk.Reconstructor(Broken()).fit(data)


# ---- precision and place


@pytest.mark.parametrize("model_type", [torch.float64, torch.bfloat16, torch.float32])
@pytest.mark.parametrize("data_type", [torch.float32, torch.float64])
def test_precision_is_kept_on_both_sides(data, model_type, data_type) -> None:
    data.x = data.x.to(data_type)
    model = GraphSAGE(D, 8, 2, C).to(model_type)
    rec = gk.Reconstructor(model).fit(data)
    assert rec.transform(data).x.dtype is data_type
    assert rec.scores(data).dtype is model_type
    assert {one.dtype for one in model.parameters()} == {model_type}


def test_features_left_alone_are_left_alone_to_the_last_bit(data) -> None:
    data.x = data.x.double() + 1e-12
    rec = gk.Reconstructor(Plain().double(), risk=1e-12).fit(data)  # no gain is as sure as that
    assert rec.guard_.left_alone
    assert torch.equal(rec.transform(data).x, data.x)


def test_a_model_on_another_device_gets_its_inputs_there(data) -> None:
    """On a fake device: torch offers no second real one here."""
    model = put_there(Plain())
    with FakeAccelerator() as device:
        with pytest.raises(RuntimeError, match="same device"):
            model(data.x, data.edge_index)
        rec = gk.Reconstructor(model).fit(data)
        assert device.calls > 0
        assert not is_there(rec.predict(data))
        there = copy.copy(data).apply(lambda value: value.to(FAKE))
        assert rec.transform(there).x.device == FAKE
        assert is_there(rec.predict(there))
        assert torch.equal(gk.Reconstructor(model).fit(there).features_, rec.features_)


# ---- tasks of another kind


def test_a_label_per_graph_is_refused(data) -> None:
    data.y = torch.ones(1)
    with pytest.raises(DataError, match=r"a label per graph.*not whole graphs"):
        gk.Reconstructor(Plain()).fit(data)


def test_a_list_of_graphs_is_refused_and_a_batch_is_one(data) -> None:
    with pytest.raises(DataError, match=r"one graph is taken at a time \(got list of 2\)"):
        gk.Reconstructor(Plain()).fit([data, data])
    both = Batch.from_data_list([data, data])
    assert gk.Reconstructor(Plain()).fit(both).predict(both).shape == (2 * N,)


# ---- several node types


@pytest.fixture
def papers(data) -> HeteroData:
    graph = HeteroData()
    for name in ("x", "y", "train_mask", "val_mask", "test_mask"):
        graph["paper"][name] = data[name]
    graph["author"].x = torch.randn(30, 4)
    writes = torch.stack([torch.arange(N) % 30, torch.arange(N)])
    graph["author", "writes", "paper"].edge_index = writes
    graph["paper", "written_by", "author"].edge_index = writes.flip(0)
    graph["paper", "cites", "paper"].edge_index = data.edge_index
    return graph


def hetero_model(graph: HeteroData) -> nn.Module:
    class Two(nn.Module):
        def __init__(self):
            super().__init__()
            self.first = SAGEConv((-1, -1), 8)
            self.second = SAGEConv((-1, -1), C)

        def forward(self, x, edge_index):
            return self.second(self.first(x, edge_index).relu(), edge_index)

    model = to_hetero(Two(), graph.metadata())
    with torch.no_grad():
        model(graph.x_dict, graph.edge_index_dict)
    return model


def test_one_node_type_at_a_time(papers) -> None:
    model = hetero_model(papers)
    view = gk.for_node_type(model, papers, "paper")
    expected = model(papers.x_dict, papers.edge_index_dict)["paper"]
    assert torch.equal(view.model.eval()(view.graph.x, view.graph.edge_index), expected)
    rec = gk.Reconstructor(view.model).fit(view.graph)
    assert rec.predict(view.graph).shape == (N,)
    assert "cannot be run on a single node" in rec._context.plant.unsupported


def test_a_type_without_relations_of_its_own_is_joined_by_its_neighbours(papers) -> None:
    del papers["paper", "cites", "paper"]
    edges = gk.for_node_type(hetero_model(papers), papers, "paper").graph.edge_index
    source, target = edges
    assert bool((source % 30 == target % 30).all())  # the same author
    assert edges.shape[1] == N * 2


def test_an_unknown_type_is_refused_with_the_known_ones(papers) -> None:
    with pytest.raises(DataError, match=r"the node types are paper, author \(got 'venue'\)"):
        gk.for_node_type(Plain(), papers, "venue")
    with pytest.raises(DataError, match="takes a HeteroData"):
        gk.for_node_type(Plain(), Data(), "paper")


# ---- small batches


def test_features_are_taken_batch_by_batch(data) -> None:
    """As with a subgraph loader: `n_id` says which nodes a batch holds."""
    model = Plain()
    rec = gk.Reconstructor(model).fit(data)
    whole = rec.predict(data)
    right = 0
    for seeds in torch.arange(N).split(30):
        n_id, edges, mapping = _two_hops(seeds, data.edge_index)
        scores = FrozenModel(model)(rec.features_[n_id], edges)
        right += int((scores[mapping].argmax(1) == whole[seeds]).sum())
    assert right == N


def _two_hops(seeds: Tensor, edge_index: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """One hop more than the model sees, so that its degrees are those of the whole graph."""
    n_id = seeds
    for _ in range(3):
        into = torch.isin(edge_index[1], n_id)
        n_id = torch.cat([n_id, edge_index[0, into]]).unique()
    edges, _ = subgraph(n_id, edge_index, relabel_nodes=True, num_nodes=N)
    return n_id, edges, torch.searchsorted(n_id, seeds)


def test_arguments_in_containers_are_moved_too() -> None:
    from graphkeel.models.calling import Placement

    place = Placement(torch.device("cpu"), torch.float64)
    given = {"a": [torch.ones(1)], "b": (torch.ones(1, dtype=torch.long), None)}
    found = tree_map(lambda value: getattr(value, "dtype", None), place.moved(given))
    assert found == {"a": [torch.float64], "b": (torch.int64, None)}
