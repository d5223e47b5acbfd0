"""The contract of a reconstruction method: the frozen model stays, hidden labels do not count, the
seed decides."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache, partial

import torch
from torch import Tensor, nn

from graphkeel.core.errors import KeelError
from graphkeel.graph import GraphTask, make_sbm, make_task
from graphkeel.graph.task import UNLABELLED
from graphkeel.models import train_model
from graphkeel.models.frozen import FrozenModel
from graphkeel.runs.method import Method, MethodResult
from graphkeel.testing.checks import (
    Check,
    Conformance,
    Subject,
    Unmet,
    expect,
    expect_equal,
    expect_refusal,
    global_seed,
    left_alone,
    run_all,
)


def check_reconstruction(
    method: Method | type[Method], *, equivariant: bool | None = None, rewrites_edges: bool = False
) -> Conformance:
    """Run every check on a method.

    Args:
        method: the method, or its class. Methods that retrain are not asked what only a frozen
            model can promise.
        equivariant: renaming the nodes renames the answer; by default asked of all but those that
            retrain. Not for methods that draw nodes or edges at random.
        rewrites_edges: its scores are those of the new features on edges of its own, so they cannot
            be recomputed from the features alone.
    """
    return run_all(
        yield_reconstruction_checks(method, equivariant=equivariant, rewrites_edges=rewrites_edges)
    )


def yield_reconstruction_checks(
    method: Method | type[Method], *, equivariant: bool | None = None, rewrites_edges: bool = False
) -> Iterator[Check]:
    """The checks one by one, each to be called.

    Args:
        method, equivariant, rewrites_edges: as for `check_reconstruction`.
    """
    subject = _Subject(method() if isinstance(method, type) else method)
    whole = {f"gives whole results ({model})": ordinary(model) for model in ("sgc", "gcn")}
    whole |= {f"copes with an odd graph ({name})": case for name, case in odd_graphs().items()}
    bare = replace(ordinary(), validation=ordinary().validation[:0])
    whole |= {"manages without validation": bare, "manages with few labels": few_labels()}
    for name, case in whole.items():
        yield subject.check(name, _gives_whole_results, case)
    if not rewrites_edges and not subject.method.retrains:
        yield from subject.checks([_scores_its_features_with_the_frozen_model])
    if equivariant if equivariant is not None else not subject.method.retrains:
        yield from subject.checks([_does_not_care_what_nodes_are_called])
    functions = (
        _never_looks_at_hidden_labels,
        _leaves_the_model_alone,
        _leaves_the_task_alone,
        _leaves_its_surroundings_alone,
        _does_the_same_again,
        _ignores_the_global_generators,
        _manages_or_refuses_without_labels,
        _refuses_wrong_nodes,
    )
    yield from subject.checks(functions)


@dataclass(frozen=True)
class _Subject(Subject):
    method: Method

    @property
    def name(self) -> str:
        return self.method.name

    def run(self, case: Case, seed: int = 0) -> MethodResult:
        return self.method.fit_predict(case.frozen, case.task, case.labelled, case.validation, seed)


# ---- what comes back


def _gives_whole_results(subject: _Subject, given: Case) -> None:
    case = given.erased()
    _expect_whole(subject.run(case), case)


def _expect_whole(result: MethodResult, case: Case) -> None:
    task = case.task
    expect(isinstance(result, MethodResult), "a MethodResult", type(result).__name__)
    for name, tensor, width in (
        ("scores", result.scores, task.n_classes),
        ("features", result.features, task.n_features),
    ):
        if tensor is None:
            continue
        expect(isinstance(tensor, Tensor), f"{name} as a tensor or None", type(tensor).__name__)
        form = (tuple(tensor.shape), tensor.dtype)
        wanted = ((task.n_nodes, width), torch.float32)
        expect(form == wanted, f"{name} of shape and dtype {wanted}", form)
        expect(bool(torch.isfinite(tensor).all()), f"finite {name}", "NaN or infinity")
        expect(not tensor.requires_grad, f"{name} without a gradient history", "requires_grad")
    try:
        json.dumps(result.decision, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise Unmet("a decision of plain JSON values", error) from error


def _scores_its_features_with_the_frozen_model(subject: _Subject) -> None:
    case = ordinary().erased()
    result = subject.run(case)
    if result.features is None:
        return
    again = case.frozen.logits(result.features, case.task.edge_index)
    untouched = case.frozen.logits(case.task.x, case.task.edge_index)
    apart = float(((untouched if result.scores is None else result.scores) - again).abs().max())
    same = apart <= 1e-4 * (1 + float(again.abs().max()))
    expect(same, "the frozen model's scores of the new features", apart)


# ---- what must not count


def _never_looks_at_hidden_labels(subject: _Subject) -> None:
    case = ordinary()
    clean = subject.run(case.erased())
    for other, which in ((case.poisoned(), "wrong labels"), (case, "the true labels")):
        wanted = f"the same result with {which} on nodes it may not look at"
        _expect_same(clean, subject.run(other), wanted)


def _does_the_same_again(subject: _Subject) -> None:
    case = ordinary().erased()
    first = subject.run(case, seed=3)
    subject.run(few_labels().erased(), seed=4)
    wanted = "the same result, to the bit, from the same seed"
    _expect_same(first, subject.run(case, seed=3), wanted)


def _ignores_the_global_generators(subject: _Subject) -> None:
    results = []
    for seed in (1, 2):
        with global_seed(seed):
            results.append(subject.run(ordinary().erased()))
    _expect_same(results[0], results[1], "the same result, to the bit, under any global seed")


def _expect_same(first: MethodResult, second: MethodResult, what: str) -> None:
    for name in ("scores", "features"):
        one, other = getattr(first, name), getattr(second, name)
        expect((one is None) == (other is None), what, f"{name} once given and once not")
        if one is not None:
            expect_equal(one, other, what, name)


def _does_not_care_what_nodes_are_called(subject: _Subject, may_differ: float = 0.02) -> None:
    """But for a share of nodes whose class changes as sums are taken in another order."""
    case = ordinary().erased()
    renamed, names = case.renamed()
    before, after = _classes(subject, case), _classes(subject, renamed)[names]
    differing = float((before != after).float().mean())
    got = f"{differing:.1%} of nodes differ"
    expect(differing <= may_differ, "the same class for a node of another name", got)


def _classes(subject: _Subject, case: Case) -> Tensor:
    scores = subject.run(case).scores
    scores = case.frozen(case.task.x, case.task.edge_index) if scores is None else scores
    return scores.argmax(dim=1)


# ---- what has to stay as it was


def _leaves_the_model_alone(subject: _Subject) -> None:
    case = ordinary("gcn").erased()
    model = case.frozen.model
    if not isinstance(model, nn.Module):
        raise TypeError("the built-in model is a torch module")
    model.train()  # a model handed over in this mode comes back in it
    try:
        before = _condition_of(model)
        subject.run(case)
        after = _condition_of(model)
        for name, value in before.items():
            expect(
                after[name] == value, f"the model's {name} to be as before, bit for bit", "a change"
            )
    finally:
        model.eval()


def _condition_of(model: nn.Module) -> dict[str, object]:
    return {
        "weights": {name: tensor.numpy().tobytes() for name, tensor in model.state_dict().items()},
        "training modes": [module.training for module in model.modules()],
        "wishes for gradients": [parameter.requires_grad for parameter in model.parameters()],
        "gradients": [parameter.grad is None for parameter in model.parameters()],
        "hooks": [
            len(module._forward_hooks) + len(module._forward_pre_hooks)
            for module in model.modules()
        ],
    }


def _leaves_the_task_alone(subject: _Subject) -> None:
    case = ordinary().erased()
    before = [case.task.x, case.task.edge_index, case.task.y, case.labelled, case.validation]
    kept = [tensor.clone() for tensor in before]
    subject.run(case)
    for name, old, now in zip(
        ("x", "edge_index", "y", "labelled", "validation"), kept, before, strict=True
    ):
        expect(torch.equal(old, now), f"{name} to be left alone", "a change")


def _leaves_its_surroundings_alone(subject: _Subject) -> None:
    case = ordinary().erased()
    with left_alone():
        subject.run(case)


# ---- little to go by, and nonsense


def _manages_or_refuses_without_labels(subject: _Subject) -> None:
    case = replace(ordinary().erased(), labelled=torch.zeros(0, dtype=torch.int64))
    try:
        result = subject.run(case)
    except KeelError:
        return
    _expect_whole(result, case)


def _refuses_wrong_nodes(subject: _Subject) -> None:
    case = ordinary().erased()
    train, hidden = case.labelled, case.hidden.nonzero().flatten()[:1]
    for nodes, because in (
        (torch.tensor([0, case.task.n_nodes]), "a labelled node beyond the graph"),
        (train.float(), "node ids that are no integers"),
        (case.task.train_mask, "a mask in place of node ids"),
        (torch.cat([train, hidden]), "a labelled node without a label"),
    ):
        expect_refusal(partial(subject.run, replace(case, labelled=nodes)), because)
    for nodes, because in (
        (torch.tensor([-1]), "a negative node id"),
        (train[:1], "a node both labelled and for validation"),
    ):
        expect_refusal(partial(subject.run, replace(case, validation=nodes)), because)


# ---- the graphs: an ordinary one, odd ones, the same one with its nodes renamed

_PER_NODE = ("x", "y", "train_mask", "val_mask", "test_mask")


@dataclass(frozen=True, eq=False)
class Case:
    """A method's arguments: a frozen model, a task, and the nodes whose labels it may use or
    select on."""

    frozen: FrozenModel
    task: GraphTask
    labelled: Tensor
    validation: Tensor

    @property
    def hidden(self) -> Tensor:
        """A mask over the nodes whose labels a method must not see."""
        seen = torch.zeros(self.task.n_nodes, dtype=torch.bool)
        seen[self.labelled] = True
        seen[self.validation] = True
        return ~seen

    def erased(self) -> Case:
        """Without the hidden labels: the task as a method gets it."""
        hidden, task = self.hidden, self.task
        seen = replace(
            task,
            y=task.y.masked_fill(hidden, UNLABELLED),
            train_mask=task.train_mask & ~hidden,
            val_mask=task.val_mask & ~hidden,
            test_mask=torch.zeros_like(hidden),
        )
        return replace(self, task=seen)

    def poisoned(self) -> Case:
        """With wrong labels on all hidden nodes."""
        wrong = (self.task.y + 1) % self.task.n_classes
        return replace(
            self, task=replace(self.task, y=torch.where(self.hidden, wrong, self.task.y))
        )

    def renamed(self, seed: int = 0) -> tuple[Case, Tensor]:
        """Node v is called names[v], and the edges come in another order."""
        generator = torch.Generator().manual_seed(seed)
        names = torch.randperm(self.task.n_nodes, generator=generator)
        order = torch.randperm(self.task.n_edges, generator=generator)
        back = names.argsort()
        by_node = {field: getattr(self.task, field)[back] for field in _PER_NODE}
        task = replace(self.task, edge_index=names[self.task.edge_index][:, order], **by_node)
        return Case(self.frozen, task, names[self.labelled], names[self.validation]), names


@lru_cache(maxsize=4)
def ordinary(model: str = "sgc", seed: int = 0) -> Case:
    """A block model of 240 nodes in three classes, and a model trained on it."""
    graph = make_sbm(240, 900, n_classes=3, n_features=8, homophily=0.8, signal=1.5, seed=seed)
    return _case(make_task(graph, seed=seed, split="random", features="raw"), model)


def _case(task: GraphTask, model: str = "sgc") -> Case:
    frozen = FrozenModel(train_model(model, task, seed=0), n_classes=task.n_classes)
    return Case(
        frozen, task, task.train_mask.nonzero().flatten(), task.val_mask.nonzero().flatten()
    )


def odd_graphs() -> dict[str, Case]:
    """Graphs at the edge of what is allowed, each for the ordinary case's model."""
    case = ordinary()
    edges, n = case.task.edge_index, case.task.n_nodes
    few = (edges < n // 2).all(dim=0)
    loops = torch.arange(n).repeat(2, 1)
    changed = {
        "no edge": edges[:, :0],
        "isolated nodes": edges[:, few],
        "one-way edges": edges[:, edges[0] < edges[1]],
        "self-loops and repeated edges": torch.cat([edges, edges[:, :200], loops], dim=1),
    }
    return {
        name: replace(case, task=replace(case.task, edge_index=given))
        for name, given in changed.items()
    }


def few_labels() -> Case:
    """One label a class, and three validation nodes."""
    case = ordinary()
    first = [
        case.labelled[case.task.y[case.labelled] == label][:1]
        for label in range(case.task.n_classes)
    ]
    train = torch.zeros_like(case.task.train_mask)
    train[torch.cat(first)] = True
    task = replace(case.task, train_mask=train)
    return replace(case, task=task, labelled=torch.cat(first), validation=case.validation[:3])
