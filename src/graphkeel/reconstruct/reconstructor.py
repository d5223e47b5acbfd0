"""`Reconstructor`, the facade: hand over a frozen model and its graph, get better features for it,
or a refusal."""

from __future__ import annotations

import copy
import inspect
import logging
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import numpy as np
import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from graphkeel.control import Controller
from graphkeel.control.anchors import Anchors
from graphkeel.core.errors import ConfigError, DataError, ModelError
from graphkeel.core.locks import one_at_a_time
from graphkeel.core.memory import require_memory
from graphkeel.core.steps import Callback, step
from graphkeel.graph import GraphTask
from graphkeel.graph.fingerprint import Fingerprint, carried_by
from graphkeel.graph.label_sets import Known
from graphkeel.graph.labels import Ids, Labels, checked_labels, known_labels, warn_of_labels
from graphkeel.graph.node_graph import check_graph, check_grown, check_width, node_graph
from graphkeel.graph.propagate.propagator import Propagator
from graphkeel.graph.suggest import suggested_nodes
from graphkeel.models.batched import Inference
from graphkeel.models.binding import arguments_again, check_scores, first_scores, is_plain
from graphkeel.models.frozen import Scores
from graphkeel.models.linear_map import LinearMap
from graphkeel.models.narrowed import narrowed_by_weights
from graphkeel.models.networks import share_convolution
from graphkeel.models.outputs import ReturnType
from graphkeel.models.units import relative_change
from graphkeel.monitor import DriftReport, MonitorSettings, monitor
from graphkeel.monitor.history import keep_report
from graphkeel.monitor.profile import Profile
from graphkeel.reconstruct.context import Context
from graphkeel.reconstruct.correction import (
    Correction,
    Rule,
    correct,
    held_away,
    known_from,
    written,
)
from graphkeel.reconstruct.decide import Decision, Resumable, decide, decide_again
from graphkeel.reconstruct.explain import Explanation, Source, explain_node, sources_of
from graphkeel.reconstruct.fitted import Fitted
from graphkeel.reconstruct.inputs import (
    ClassWeight,
    ControllerName,
    GuardName,
    KeepName,
    LabelUse,
    MethodName,
    check_choice,
    check_parameters,
)
from graphkeel.reconstruct.proofs import certified
from graphkeel.reconstruct.statement import allowed_margin, margins_behind
from graphkeel.reconstruct.steer import Earlier
from graphkeel.reconstruct.storage import FOLDER, contents, restore

if TYPE_CHECKING:
    from graphkeel.lyapunov import CertifyResult

_log = logging.getLogger(__name__)
_UPDATED = " (judged before the graph was updated)"


class Reconstructor(Fitted):
    """Rewrites node features so that a frozen model predicts better on its graph.

    Follows scikit-learn's contract (the constructor only stores, `fit` checks, fitted attributes
    end in `_`) and PyG's for transforms (`rec(data)` returns a changed copy). Threads may share
    one: a call waits until the one before it has ended, so no label is lost.

    Args:
        model: a trained `nn.Module` or callable `(x, edge_index, **kwargs) -> scores`; never
            changed.
        method: `auto` (decide, then steer), or the paper's `replace` or `diffuse`.
        controller: who finds the class anchors: `deadbeat` (closed form), `lqr`, `pid`, `mfac`, or
            `neural`, which trains and proves a controller per class first, and so takes its time.
        verifier: who proves the neural controllers; `auto` asks all engines in the order of their
            cost.
        labels: what labels in `val_mask` do: with `all` they serve and judge, by cross-fitting,
            as do those that `feedback` brings; with `train` they only judge, the paper's protocol.
        guard: `cross-fit`, or `holdout`: half of the labels that judge take no part in the choice,
            and the statement in `guard_` is exact, at the price of those labels.
        class_weight: None, or `balanced`: every class counts alike, however large.
        risk: the probability of harm up to which a change is kept; 0.5 keeps what is more likely
            better than worse, 1 all.
        inference: None, or how all nodes are asked where the whole graph is too much for one call:
            a function `(model, x, edge_index) -> scores`, such as
            `graphkeel.models.Batches.of(model)`. Gradients then come from the receptive fields of
            nodes that need a change.
        return_type: what the model's scores are: `raw` (logits), `log_probs` or `probs`; `auto`
            recognises them by their values.
        seed: of everything random.
        verbose: say on stderr what happens. `logging` (logger `graphkeel`, level INFO) hears it in
            any case.
        callbacks: functions that are called with each `Step` that has ended: `fit`, `feedback`,
            `update`, `adapt`, `suggest`, `certify`.

    Attributes:
        guard_: whether the change was kept, and why.
        posterior_: what was decided, class probabilities, shape (N, n_classes); None for methods by
            name.
        evidence_: what the decision rests on: weight and share of each source, the model's own
            among them.
        change_: |x' − x| / |x| of every node, shape (N,).
        fall_: V of the steering at the start, after each accepted step and each lowering of the
            ridge; it never rises.
        features_: the features to use in place of `data.x`.
        anchors_: the class anchors.
        labels_: the labels in use; `feedback` adds to them.
        certificate_: of the controllers, once `certify` (or a fit with `controller="neural"`) has
            run; else None. New labels take out what it says of the graph's equilibrium.
        states_: of the nodes at that equilibrium, for `check`; None where it was not enclosed.
        notes_: what `save` was given to keep, after `load`.
        n_features_in_, classes_: as scikit-learn has them.
    """

    def __init__(
        self,
        model: nn.Module | Scores | None = None,
        *,
        method: MethodName = "auto",
        controller: ControllerName | Controller = "deadbeat",
        verifier: str = "auto",
        labels: LabelUse = "all",
        guard: GuardName = "cross-fit",
        class_weight: ClassWeight = None,
        risk: float = 0.5,
        inference: Inference | None = None,
        return_type: str = ReturnType.AUTO.value,
        seed: int = 0,
        verbose: bool = False,
        callbacks: Sequence[Callback] = (),
    ) -> None:
        self.model = model
        self.method = method
        self.controller = controller
        self.verifier = verifier
        self.labels = labels
        self.guard = guard
        self.class_weight = class_weight
        self.risk = risk
        self.inference = inference
        self.return_type = return_type
        self.seed = seed
        self.verbose = verbose
        self.callbacks = callbacks

    @classmethod
    def _get_param_names(cls) -> list[str]:
        """In the order of the constructor."""
        return list(inspect.signature(Reconstructor).parameters)

    notes_: dict[str, Any]
    labels_: Labels
    evidence_: tuple[Source, ...]
    certificate_: dict[str, Any] | None
    states_: dict[str, Tensor] | None
    n_features_in_: int
    _stored_arguments: dict[str, Any]  # of the forward, of a loaded one
    _without: tuple[str, ...] = ()  # sources of evidence that a control leaves out
    _fitted_profile: Profile | None = None  # of the graph that was last decided on
    _resumable: Resumable | None = None  # of a large graph

    # ---- fitting

    @one_at_a_time
    def fit(
        self,
        data: Data,
        y: None = None,
        *,
        nodes: Ids | None = None,
        labels: Ids | None = None,
        **model_kwargs: Any,
    ) -> Reconstructor:
        """Decide what the model should answer, and write features under which it does.

        Only labels in `train_mask` and `val_mask` are looked at; all others are erased before
        anything is computed.

        Args:
            data: with x and edge_index; y, train_mask (what the model was trained on) and val_mask
                where there are any.
            y: unused, there for scikit-learn's contract.
            nodes: ids of further nodes whose label is known, int64, shape (k,): as `feedback` would
                take them in, but in one step.
            labels: their classes, int64, shape (k,).
            model_kwargs: passed to the model on every call, e.g. `edge_weight=…`.
        """
        with self._step("fit") as facts:
            self._fit(data, model_kwargs, nodes, labels)
            facts.update(self._facts())
        if self.controller == "neural":
            self.certify()
        return self

    def _fit(
        self,
        data: Data,
        model_kwargs: dict[str, Any],
        nodes: Ids | None,
        labels: Ids | None,
        n_classes: int | None = None,
    ) -> None:
        """The choice on a graph, with further labels where there are any."""
        task = self._make_context(data, model_kwargs, n_classes)
        self.__dict__.pop("n_features_in_", None)  # a fit that is interrupted is no fit
        warn_of_labels(data, task, self._context.logits)
        known = known_labels(task, task.train_mask.nonzero().flatten())
        validation = known_labels(task, task.val_mask.nonzero().flatten())
        if self.labels == "all":
            known = known.with_more(validation.nodes, validation.classes)
            validation = validation.none()
        self._start = (known, validation)
        self._trained_on = task.train_mask
        self.certificate_ = None
        self.states_ = None
        new = None if nodes is None and labels is None else (nodes, labels)
        self._choose(known, validation, new)

    def _step(self, name: str) -> AbstractContextManager[dict[str, Any]]:
        return step(name, self.callbacks, verbose=self.verbose)

    def _facts(self) -> dict[str, Any]:
        """The state after a choice, for a log."""
        guard = self.guard_
        before, now = guard.untouched, guard.accuracy
        return {
            "nodes": len(self.features_),
            "labels": len(self.labels_),
            "untouched": before,
            "accuracy": now,
            "gain": None if before is None or now is None else now - before,
            "harm": guard.harm,
            "kept": guard.kept,
            "change": float(self.change_.median()),
            "reason": guard.reason,
        }

    @one_at_a_time
    def fit_transform(self, data: Data, y: None = None, **model_kwargs: Any) -> Data:
        """`fit`, then `transform`.

        Args:
            data, y, model_kwargs: as for `fit`.
        """
        return self.fit(data, y, **model_kwargs).transform(data)

    @one_at_a_time
    def fit_predict(self, data: Data, y: None = None, **model_kwargs: Any) -> Tensor:
        """`fit`, then `predict`.

        Args:
            data, y, model_kwargs: as for `fit`.
        """
        return self.fit(data, y, **model_kwargs).predict(data)

    @one_at_a_time
    def attach(self, data: Data, **model_kwargs: Any) -> Reconstructor:
        """Give a loaded reconstructor its graph back: from then on it takes feedback as if it had
        never been away.

        Nothing is chosen anew: weights, labels, features and the guard's word are those that were
        saved, whatever masks the graph has.

        Args:
            data, model_kwargs: the graph that was fitted; further arguments of the model.
        """
        data = self._same_graph(data)
        self._check_same_model()
        anchors = self.anchors_
        self._make_context(data, model_kwargs, len(self.classes_))
        self._context.use_anchors(anchors)
        return self

    def _make_context(
        self,
        data: Data,
        model_kwargs: dict[str, Any],
        n_classes: int | None = None,
        *,
        again: bool = False,
    ) -> GraphTask:
        """Model and graph, checked; a model with another number of classes is refused. A model that
        is asked again may answer by products (`narrowed_by_weights`)."""
        check_parameters(self.get_params())
        data = node_graph(data)
        check_graph(data)
        frozen, model_kwargs = self._bind(data, model_kwargs)
        asked_with = (frozen, data.x, data.edge_index, model_kwargs)
        again = again and data.x.dtype == torch.float32 and data.x.device.type == "cpu"
        narrow = scores = None
        if again and LinearMap.read(frozen) is None:  # a linear one is asked by products anyway
            narrow = narrowed_by_weights(*asked_with)
        if narrow is not None:
            scores = narrow.logits
        if scores is None:
            scores = frozen.as_logits(first_scores(frozen, data, model_kwargs))
        if n_classes not in (None, scores.shape[1]):
            raise ModelError(
                f"this reconstruction was made for a model with {n_classes} classes",
                got=int(scores.shape[1]),
            )
        task = GraphTask.from_data(data, n_classes=int(scores.shape[1])).without_test_labels()
        check_scores(scores)
        share_convolution(data.edge_index, task.edge_index)
        _check_room(task)
        classical = "deadbeat" if self.controller == "neural" else self.controller
        self._context = Context(
            frozen,
            task.x,
            task.edge_index,
            model_kwargs=model_kwargs,
            controller=classical,
            seed=self.seed,
        )
        self._context._narrow = narrow
        if data.x.dtype == task.x.dtype:
            self._context.logits = scores.to("cpu", task.x.dtype)  # asked already
        self.classes_ = torch.arange(task.n_classes)
        self._fingerprint = Fingerprint.of(data.x, data.edge_index, carried_by(data))
        self._weight_digests = frozen.weight_digests
        return task

    @one_at_a_time
    def reset(self) -> Reconstructor:
        """Forget all feedback: back to the labels that `fit` saw."""
        self._check_context()
        return self._choose(*self._start)

    @one_at_a_time
    def feedback(self, nodes: Ids, labels: Ids) -> Reconstructor:
        """Take in new labels and decide anew; what no label changes is not computed again.

        On a large graph a few labels (`DecideSettings.few`) are judged by the evidence there is,
        and only the last round is drawn anew.

        A validation node whose label is fed back is used from now on, and no longer only judges.

        Args:
            nodes: node ids, int64, shape (k,).
            labels: their classes, int64, shape (k,).
        """
        self._check_context()
        with self._step("feedback") as facts:
            self._choose(self.labels_, self._validation, (nodes, labels))
            facts.update(self._facts())
        return self

    def _choose(
        self, labels: Labels, validation: Labels, new: tuple[Any, Any] | None = None
    ) -> Reconstructor:
        """Decide with these labels, and with new ones, (nodes, classes), where there are any."""
        if new is not None:
            nodes, classes = checked_labels(*new, len(self._context.x), len(self.classes_))
            labels = labels.with_more(nodes, classes)
            fed_back = torch.isin(validation.nodes, nodes).nonzero().flatten()
            validation = validation.without(fed_back)
        known = known_from(labels, validation, self._trained_on)
        start = () if new is None else self._start_of(labels, known)
        found = correct(self._context, known, self._rule(), *start)
        if self.certificate_ is not None and not self.labels_.equals(labels):
            from graphkeel.lyapunov.on_graph import released  # loads the verifiers

            self.certificate_ = released(self.certificate_)  # the loop on this graph is another
            self.states_ = None
        self._fitted_profile = None
        self.labels_ = labels
        self._validation = validation
        self._keep(found)
        return self

    def _start_of(self, labels: Labels, known: Known) -> tuple[Any, ...]:
        """The start of a decision with a few more labels that judge, on a large graph; all else
        starts from nothing."""
        if self._resumable is None or self.guard == "holdout" or not known.cross_fitted:
            return ()
        n_old = len(self.labels_)
        as_before = self.labels_.equals(Labels(labels.nodes[:n_old], labels.classes[:n_old], 0))
        most = (1.0 + self._rule().decide.few) * self._resumable.chosen
        if not as_before or not known.judging[n_old:].all() or known.judging.sum() > most:
            return ()
        return self._decided(), self._earlier()

    def _earlier(self) -> Earlier | None:
        """The features there are, as a beginning of others."""
        if self._resumable is None or not self.fall_:
            return None
        return Earlier(self.features_, self.change_, self._context.logits)

    def _rule(self) -> Rule:
        return Rule(
            method=self.method,
            risk=self.risk,
            balanced=self.class_weight == "balanced",
            holdout=self.guard == "holdout",
            seed=int(self.seed),
            without=self._without,
        )

    def _keep(self, found: Correction) -> None:
        decision, steered = found.decision, found.steered
        self.guard_ = found.guard
        self.features_ = found.features if found.guard.kept else self._context.x.clone()
        self.n_features_in_ = int(self.features_.shape[1])
        moved = steered if found.guard.kept else None
        self.change_ = moved.change if moved else relative_change(self.features_, self._context.x)
        self.fall_ = () if steered is None else steered.fall
        self._passes = 0 if steered is None else steered.passes
        self._held = (found.held, found.judged)
        self._decision = decision
        self._rounds = () if decision is None else decision.rounds
        self._resumable = None if decision is None else decision.resumable
        self.posterior_ = None if decision is None else torch.from_numpy(decision.posterior)
        self.evidence_ = () if decision is None else sources_of(decision)

    @property
    def anchors_(self) -> Anchors:
        """The class anchors, solved for when they are first asked for."""
        return self._context.anchors() if hasattr(self, "_context") else self._stored_anchors

    @one_at_a_time
    def explain(self, node: int) -> Explanation:
        """Why a node is answered as it is: the terms of the sum, its neighbours, the labelled nodes
        it is like.

        Args:
            node: its id.
        """
        self._check_context()
        if not self._rounds:
            raise ConfigError(
                "only method='auto' decides by a sum that can be explained", got=repr(self.method)
            )
        return explain_node(self._context.scene, self._decided(), self._known(), node)

    def _known(self, labels: Labels | None = None) -> Known:
        labels = self.labels_ if labels is None else labels
        return known_from(labels, self._validation, self._trained_on)

    def _decide_again(self, labels: Labels | None = None) -> Decision:
        """By the weights there are, with these labels instead of the own ones; labels that are held
        out for the statement do not serve."""
        rule, context = self._rule(), self._context
        serving, _ = held_away(self._known(labels), rule)
        # what edges carry changes answers where neither features nor links have changed
        by_links = not self._fingerprint.carried and all(map(is_plain, self._arguments().values()))
        posterior = self.posterior_.numpy() if by_links else None  # type: ignore[union-attr]
        return decide_again(
            context.scene, serving, self._rounds, rule.decide, self._resumable, posterior
        )

    def _decide_alone(self, count: int) -> Decision:
        """From so many of the labels, drawn at random, and without the model's answers."""
        known = self._known()
        some = np.random.default_rng(self.seed).permutation(len(known.nodes)) < count
        alone = replace(known.chosen(some), judging=some[some])
        return decide(self._context.scene, alone, without=("model", "model~"))

    def _decided(self) -> Decision:
        """The decision; computed again, with the same weights, after `load` and `attach`."""
        if self._decision is None:
            self._decision = self._decide_again()
        return self._decision

    # ---- the same graph, later

    @one_at_a_time
    def update(self, data: Data, *, rechoose: bool = False, **model_kwargs: Any) -> Reconstructor:
        """Follow a graph to which nodes, edges or features were added, or in which they changed.

        The weights and the labels stay; the features are those that a fresh fit with these weights
        would write on the graph as it is now. A large graph is taken up from the round before the
        last (`DecideSettings.large`) and from the features it has. `guard_` still tells of the
        graph that was judged; `feedback`, or `rechoose`, judges on the new one. A certificate is
        about one graph, and is dropped.

        Args:
            data: the whole graph as it is now; old nodes keep their ids, new ones come after them.
                Labels and masks are not looked at: new labels go to `feedback`.
            rechoose: decide and judge anew with the labels there are.
            model_kwargs: passed to the model on the new graph, as in `fit`.
        """
        self._check_whole()
        self._check_same_model()
        graph = node_graph(data)
        check_graph(graph)
        check_grown(self.features_, graph.x)
        arguments = arguments_again(self._arguments(), model_kwargs, graph)
        with self._step("update") as facts:
            self._profile()  # what later graphs are compared with stays the fitted one
            bare = copy.copy(graph)
            for name in ("y", "train_mask", "val_mask", "test_mask"):
                bare[name] = None
            again = self._resumable is not None
            self._make_context(bare, arguments, len(self.classes_), again=again)
            n_new = len(graph.x) - len(self._trained_on)
            self._trained_on = torch.cat([self._trained_on, torch.zeros(n_new, dtype=torch.bool)])
            if self.certificate_ is not None:
                _log.warning("the certificate was about the graph before the update: certify again")
                self.certificate_ = None
                self.states_ = None
            if rechoose or self.method != "auto":
                self._choose(self.labels_, self._validation)
            else:
                self._write_again()
            facts["nodes"] = len(self.features_)
        return self

    def _arguments(self) -> dict[str, Any]:
        """Of the model's forward on the graph there was."""
        return self._context.model_kwargs if hasattr(self, "_context") else self._stored_arguments

    def _write_again(self) -> None:
        """Features by the weights there are."""
        decision, guard = self._decide_again(), self.guard_
        features, steered = self._context.x, None
        if guard.kept:
            earlier = self._earlier()
            features, steered = written(self._context, decision, self._rule().steer, earlier)
        guard = replace(guard, reason=guard.reason.removesuffix(_UPDATED) + _UPDATED)
        self._keep(Correction(guard, features, decision, steered, *self._held))

    @one_at_a_time
    def monitor(
        self,
        data: Data,
        folder: str | Path | None = None,
        *,
        another: bool = False,
        settings: MonitorSettings | None = None,
        **model_kwargs: Any,
    ) -> DriftReport:
        """Compare the graph as it is now with the fitted one, without labels: what has drifted, how
        right the answers still are, and what to do. Changes nothing.

        Args:
            data: the fitted graph as it is now, as for `update`.
            folder: where a line of history is added, and the page with the trend is written.
            another: it is a graph of its own instead, whose nodes are others.
            settings: of the comparison and of the advice, for instance the prices of the steps.
            model_kwargs: passed to the model on this graph, as in `fit`.
        """
        self._check_whole()
        found = monitor(self, data, another=another, settings=settings, **model_kwargs)
        return found if folder is None else keep_report(Path(folder), found)

    def _profile(self) -> Profile:
        """Of the graph that was last decided on."""
        if self._fitted_profile is None:
            self._check_context()
            self._fitted_profile = Profile.of(self)
        return self._fitted_profile

    @one_at_a_time
    def suggest(self, k: int = 50, *, among: Tensor | None = None) -> Tensor:
        """The nodes whose labels would help most, best first.

        Uncertain nodes count, as far as no label is near them; nodes with a label are left out.

        Args:
            k: how many.
            among: the nodes to choose from, bool, shape (N,), or ids, int64; None: all.

        Returns:
            Node ids, int64, shape (k,), fewer where there are no more: label them, and hand them to
            `feedback`.
        """
        self._check_context()
        with self._step("suggest") as facts:
            propagator = Propagator.of_matrix(self._context.scene.matrix)
            labelled = (self.labels_.nodes, self._validation.nodes)
            nodes = suggested_nodes(propagator, self._probabilities(), *labelled, k, among)
            facts["nodes"] = len(nodes)
        return nodes

    def _probabilities(self) -> Tensor:
        """Of the classes as decided, shape (N, n_classes)."""
        if self._rounds:
            return torch.from_numpy(self._decided().posterior)
        return self._context.logits_for(self.features_).softmax(dim=1)

    @one_at_a_time
    def report(
        self, path: str | Path, data: Data | None = None, *, classes: Sequence[str] = ()
    ) -> Path:
        """One self-contained HTML page about this fit: what was decided and why, what changed, for
        which nodes, and what is proved.

        Args:
            path: the HTML file to write.
            data: the graph with `y` and `test_mask`, to score by labels that took no part; None:
                the page shows the guard's own estimate.
            classes: the names of the classes, in their order; by default their numbers.
        """
        self._check_context()
        if data is not None:
            data = node_graph(self._same_graph(data))
        from graphkeel.report.fit_facts import fit_facts
        from graphkeel.report.page import write_own_report  # needs the extra `report`

        facts = fit_facts(self, data)
        return write_own_report(facts, self.certificate_, Path(path), tuple(classes))

    # ---- another graph

    @one_at_a_time
    def adapt(
        self,
        target: Data,
        nodes: Ids | None = None,
        labels: Ids | None = None,
        *,
        keep: KeepName | None = None,
        **model_kwargs: Any,
    ) -> Reconstructor:
        """Decide and steer on another graph than the one the model was trained on.

        No label of the target is needed: without any, what is believed before labels speak decides,
        and `guard_.reason` says so. Labels there serve, judge, and move the weights. `target.y` and
        masks are not looked at.

        Args:
            target: with x of shape (N, d), edge_index of shape (2, E); the same d features as the
                source, prepared in the same way.
            nodes: ids of target nodes whose label is known, int64, shape (k,).
            labels: their classes, int64, shape (k,); a class may be missing.
            keep: what is compared with the source: with `graph` and `summary` the numbers of
                features and classes, with `model` nothing; the answers are the same. None: what
                there is; a Reconstructor that was never fitted has the model alone.
            model_kwargs: passed to the model on the target, e.g. `edge_weight=…`.

        Returns:
            A fitted Reconstructor of the target: `predict(target)`, `feedback`, `guard_`, ….
        """
        if keep is None:
            keep = "graph" if self.__sklearn_is_fitted__() else "model"
        check_choice("keep", keep, get_args(KeepName))
        with self._step("adapt") as facts:
            adapted = Reconstructor(**self.get_params())
            adapted._without = self._without
            check_graph(target)
            n_classes = None
            if keep != "model":
                self._check_fitted()
                check_width(target.x, self.n_features_in_)
                n_classes = len(self.classes_)
            bare = Data(x=target.x, edge_index=target.edge_index, **carried_by(target))
            adapted._fit(bare, model_kwargs, nodes, labels, n_classes)
            if self.controller == "neural":
                adapted.certify()
            facts.update(adapted._facts())
        return adapted

    @one_at_a_time
    def predict_sets(self, data: Data, coverage: float = 0.9, **model_kwargs: Any) -> Tensor:
        """For every node the classes that cannot be ruled out: they hold the true one as often as
        asked for.

        Split conformal prediction with the labels that judged: it assumes that those are a random
        sample of the nodes asked about. A set may be empty.

        Args:
            data, model_kwargs: the graph that was fitted; further arguments of the model.
            coverage: how often a set is to hold the true class, in (0, 1).

        Returns:
            Bool, shape (N, n_classes).
        """
        self._check_context()
        held, classes = self._held
        if not len(classes):
            raise ConfigError(
                "no label of this graph says how sure predictions are",
                fix="Call feedback(nodes, labels) with ten labels or more first.",
            )
        allowed = allowed_margin(held, classes, coverage)
        graph = node_graph(self._same_graph(data))
        if self.guard_.kept and self._rounds:
            scores = self._decided().scores
        else:
            frozen, found = self._answers(graph, model_kwargs)
            scores = frozen.as_logits(found).numpy()
        return torch.from_numpy(margins_behind(scores) <= allowed)

    @one_at_a_time
    def certify(self, *, budget: float | None = None, **config: Any) -> CertifyResult:
        """Prove a controller per class around the anchors in use; predictions stay what they are.

        Where the loop with message passing contracts, its equilibrium on this graph is enclosed:
        `result.equilibrium` counts the nodes whose class is certain there; labelled nodes are
        controlled. Of steered features the certificate says which nodes they lead to the decided
        class and, for a linear model, that steering contracts; `check` needs `steering_` for that.

        Where an anchor in use cannot be certified, or where `config` asks for other ones, the
        certificate is about other anchors. These replace those in use only if every class is
        proved and the guard finds them no worse on the same labels; else they stand beside. The
        result's `remark` says which.

        Args:
            budget: seconds for training and proofs; by default 45.
            config: fields of `LyapunovConfig`.

        Returns:
            Verdicts, reasons and the certificate (also in `certificate_`, None where the head
            cannot be proved anything about); false unless every class is proved.
        """
        self._check_context()
        limits = {} if budget is None else {"seconds": budget}
        with self._step("certify") as facts:
            result = certified(self, {"seed": self.seed, **limits, **config})
            facts["proved"] = len(self.classes_) - len(result.reasons) if result.certificate else 0
            facts["classes"] = len(self.classes_)
        return result

    @property
    def steering_(self) -> dict[str, Tensor] | None:
        """The features that ship and the decided classes, for `check`; None where the certificate
        says nothing of them."""
        said = ((self.certificate_ or {}).get("steering") or {}).get("features")
        if said is None or self.posterior_ is None:
            return None
        return {"features": self.features_, "wanted": self.posterior_.argmax(dim=1)}

    # ---- keeping

    @one_at_a_time
    def save(
        self, folder: str | Path, notes: dict[str, Any] | None = None, *, keep: str = "graph"
    ) -> None:
        """Features, anchors and labels as safetensors, the rest as JSON; the model is yours to
        keep.

        It is all that `update` needs: 4·N·(d + C + 1) bytes for N nodes, d features and C classes,
        at most 4·N·C more for a large graph, 100·C for each of its labels that judge. A save that
        is killed leaves what was in the folder before. `notes` are kept in the same breath; `load`
        gives them back as `notes_`.

        Args:
            folder: where to write.
            notes: JSON values of your own.
            keep: `graph`, or `summary`: arguments and sizes, with no feature, label or edge of the
                graph; what is loaded can then only `adapt`.
        """
        self._check_fitted()
        check_choice("keep", keep, ("graph", "summary"))
        FOLDER.save(Path(folder), *contents(self, keep, notes or {}))


def load_reconstructor(
    folder: str | Path,
    model: nn.Module | Scores | None = None,
    *,
    inference: Inference | None = None,
) -> Reconstructor:
    """A reconstructor from `save`: it transforms at once; with the model it predicts and, after
    `attach`, learns on.

    Args:
        folder: what `save` wrote.
        model: the trained model, needed to predict.
        inference: as it was fitted with.
    """
    tensors, facts = FOLDER.load(Path(folder))
    try:
        rec = Reconstructor(model, inference=inference, **facts["parameters"])
        restore(rec, tensors, facts)
    except (LookupError, TypeError, ValueError, AttributeError, RuntimeError) as error:
        raise DataError(
            f"{folder} holds no whole reconstruction", got=repr(error)[:200], fix="Save again."
        ) from error
    rec._check_same_model()
    return rec


def _check_room(task: GraphTask) -> None:
    """A few copies of the features, and evidence for six sets of labels."""
    n, d = task.n_nodes, task.n_features
    require_memory(
        4 * n * (4 * d + 6 * min(d, 64) + 70 * task.n_classes),
        f"reconstructing a {n} × {d} feature matrix",
        "Reduce the features by PCA, or take a smaller graph.",
    )
