"""certify: from a frozen model on a graph to controllers, their proofs and a certificate.

The one way there: the command line, `Reconstructor.certify`, the tables and the figures call it.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from graphkeel.certificate import decode_array, sealed
from graphkeel.certificate.equilibrium import (
    graph_sentences,
    with_equilibrium,
    without_equilibrium,
)
from graphkeel.certificate.graph_check import GraphStates
from graphkeel.certificate.graph_link import (
    answers_difference,
    given_array,
    is_undirected,
    model_layers,
)
from graphkeel.certificate.steering import (
    ShippedFeatures,
    linear_contraction,
    with_steering,
    without_features,
)
from graphkeel.certificate.steering_link import linear_difference
from graphkeel.core.errors import CertificateError
from graphkeel.graph.task import graph_sha256
from graphkeel.lyapunov.ask import Ask, ask_engine, ask_region
from graphkeel.lyapunov.config import LyapunovConfig
from graphkeel.lyapunov.evidence import anchor_of, certificate_of
from graphkeel.lyapunov.graph_loop import GraphLoop, GraphRun
from graphkeel.lyapunov.message_passing import Passing, graph_proof
from graphkeel.lyapunov.targets import targets_at
from graphkeel.lyapunov.training.records import ClassOutcome, RoundLog, TrainResult, TrainState
from graphkeel.lyapunov.training.train import OnRound, train
from graphkeel.models.aggregation import Aggregation, recognise
from graphkeel.models.frozen import FrozenModel
from graphkeel.models.head import Head, extract_head
from graphkeel.verify.problem import CONDITIONS

log = logging.getLogger(__name__)


@dataclass(frozen=True, eq=False)
class CertifyResult:
    """What was trained and proved; false unless every class is proved.

    Attributes:
        head: the plant C that was taken out of the model.
        certificate: the JSON object, or None where the head cannot be proved anything about.
        training: controllers, answers and log of Algorithm 1, or None likewise.
        reason: why there is no certificate, or an empty text.
        seconds: for everything but the model's own training.
        remark: whether the certificate is about the anchors in use, where there are any.
        states: of the graph at its equilibrium, `states` (N, n), with the labelled `nodes` and
            their `labels`, and the controllers' shares `mix` (N, n) where they are mixed; None
            where that was not asked for or cannot be proved.
        passing: the model with its message passing.
        steering: the `features` that ship (N, d) and the decided classes `wanted` (N,), where the
            certificate speaks of them.
    """

    head: Head
    certificate: dict[str, Any] | None
    training: TrainResult | None
    reason: str
    seconds: float
    remark: str = ""
    states: dict[str, Tensor] | None = None
    passing: Aggregation = field(default_factory=Aggregation)
    steering: dict[str, Tensor] | None = None

    def __bool__(self) -> bool:
        return bool(self.verdicts) and set(self.verdicts.values()) == {"proved"}

    def with_remark(self, remark: str) -> CertifyResult:
        """The same with a remark, which the certificate carries too.

        Args:
            remark: whether the certificate is about the anchors in use.
        """
        if self.certificate is None:
            return replace(self, remark=remark)
        provenance = {**self.certificate["provenance"], "anchors": remark}
        certificate = sealed({**self.certificate, "provenance": provenance})
        return replace(self, remark=remark, certificate=certificate)

    @property
    def verdicts(self) -> dict[int, str]:
        """Proved, refuted or unknown, by class."""
        entries = self.certificate["classes"] if self.certificate else []
        return {entry["class"]: entry["verdict"] for entry in entries}

    @property
    def graph(self) -> dict[str, Any]:
        """What holds with message passing, with `contraction` first, then κ or the reason."""
        unknown = {"contraction": "unknown", "reason": self.reason or "not looked at"}
        return dict((self.certificate or {}).get("graph", unknown))

    @property
    def equilibrium(self) -> dict[str, Any]:
        """What holds on this graph, with certain nodes counted, uncertain ones listed and the
        distance of the features; empty where no equilibrium was enclosed."""
        return dict(self.graph.get("equilibrium", {}))

    @property
    def shipped(self) -> dict[str, Any]:
        """The distance of the features in use from those of the equilibrium, and on how many nodes
        both lead to the same class; measured in floats, empty where that was not asked for."""
        return dict((self.certificate or {}).get("provenance", {}).get("shipped", {}))

    def sentences(self) -> list[str]:
        """What holds with message passing, and of steering, in words."""
        steering = (self.certificate or {}).get("steering")
        words = graph_sentences(self.graph, self.shipped)
        return words if steering is None else [*words, f"Steering: {steering['sentence']}"]

    @property
    def reasons(self) -> dict[int, str]:
        """For each class that is not proved the conditions that fail, in words."""
        entries = self.certificate["classes"] if self.certificate else []
        notes = {outcome.label: outcome.note for outcome in self.outcomes}
        return {
            entry["class"]: _reason(entry, notes.get(entry["class"], ""))
            for entry in entries
            if entry["verdict"] != "proved"
        }

    @property
    def outcomes(self) -> tuple[ClassOutcome, ...]:
        """Controller, V, question and answers of each class."""
        return self.training.outcomes if self.training else ()

    @property
    def log(self) -> tuple[RoundLog, ...]:
        """One entry a round of Algorithm 1."""
        return self.training.log if self.training else ()

    def anchors(self) -> Tensor:
        """h* of every class, float32, shape (classes, d)."""
        return torch.stack(
            [torch.from_numpy(anchor_of(outcome.control)).float() for outcome in self.outcomes]
        )


def certify(
    frozen: FrozenModel,
    x: Tensor,
    edge_index: Tensor,
    config: LyapunovConfig | None = None,
    *,
    classes: Sequence[int] | None = None,
    verifier: str | Ask = "auto",
    on_round: OnRound | None = None,
    resume: TrainState | None = None,
    provenance: dict[str, Any] | None = None,
    anchors: Tensor | None = None,
    constant: bool = False,
    labelled: tuple[Tensor, Tensor] | None = None,
    shares: Tensor | None = None,
    **model_kwargs: Any,
) -> CertifyResult:
    """Train a controller and a Lyapunov function per class, prove them, and write it all down.

    Args:
        frozen: the model; its weights are not touched.
        x: features of the graph, shape (N, d).
        edge_index: its edges, shape (2, E).
        config: what to train and what to prove; by default `LyapunovConfig()`.
        classes: labels, by default all of them.
        verifier: the name of an engine, or a call that decides a problem.
        on_round: called after every round with its log and a resumable state.
        resume: the state that an interrupted run handed to `on_round`.
        provenance: what the certificate should say of its making.
        anchors: features to certify as they are, shape (classes, d): each loop then rests where the
            head answers its feature. By default they are solved for.
        constant: give a class that ends without a proof the constant controller f ≡ h.
        labelled: nodes and their classes, int64, shape (L,) each: where the loop with message
            passing contracts, it is run on the graph with controllers at these nodes, and its
            equilibrium is enclosed.
        shares: p_v(c) of a mixture of controllers at every node instead, shape (N, n), rows with a
            sum of one; `labelled` are then only counted.
        model_kwargs: passed to the model beside x and edge_index.
    """
    started = time.monotonic()
    head = extract_head(frozen, int(x.shape[1]), **model_kwargs)
    if head.unsupported is not None:
        return CertifyResult(head, None, None, head.unsupported, time.monotonic() - started)
    settings = config or LyapunovConfig()
    as_printed = settings.start_node is not None
    asked = settings.resolved().goals if as_printed else tuple(CONDITIONS)
    ask = ask_engine(verifier, asked) if isinstance(verifier, str) else verifier
    logits = frozen.logits(x, edge_index, **model_kwargs)
    labels = list(range(head.n_out)) if classes is None else list(classes)
    goals = None if anchors is None else targets_at(head, labels, anchors, settings.resolved())

    passing = _on_graph(passing_of(frozen, head, model_kwargs), frozen, x, edge_index)

    def say(entry: RoundLog, state: TrainState) -> None:
        proved = entry.verdicts.count("proved")
        log.info("round %d: %d of %d open classes proved", entry.round, proved, len(entry.classes))
        if on_round is not None:
            on_round(entry, state)

    result = train(
        head,
        logits,
        labels,
        settings,
        ask=ask,
        ask_region=None if as_printed else ask_region,
        on_round=say,
        resume=resume,
        targets=goals,
        constant=constant,
        passing=Passing(passing),
    )
    remarks = {
        "model_sha256": frozen.weights_hash,
        "head_gap": head.model_gap,
        "seconds": result.seconds,
        "torch": torch.__version__,
        **(provenance or {}),
    }
    data = graph_sha256(x, edge_index)
    proof = graph_proof(passing, [outcome.control for outcome in result.outcomes])
    certificate = certificate_of(head, result, provenance=remarks, data_sha256=data, graph=proof)
    found = CertifyResult(head, certificate, result, "", 0.0, passing=passing)
    if labelled is not None:
        found = enclosed(found, frozen, x, edge_index, labelled, shares=shares)
    return replace(found, seconds=time.monotonic() - started)


def enclosed(
    result: CertifyResult,
    frozen: FrozenModel,
    x: Tensor,
    edge_index: Tensor,
    labelled: tuple[Tensor, Tensor],
    *,
    shares: Tensor | None = None,
    shipped: Tensor | None = None,
) -> CertifyResult:
    """The same with what holds of one graph's nodes, where the loop with message passing contracts.

    Args:
        x: features of the graph, shape (N, d).
        edge_index: its edges, shape (2, E).
        labelled: nodes and their classes, int64, shape (L,) each; they are controlled, each by the
            controller of its class, where no shares are given.
        shares: p_v(c) of a mixture of controllers at every node, shape (N, n).
        shipped: features in use, shape (N, d), to be compared with those of the equilibrium.
    """
    certificate = result.certificate
    if certificate is None or certificate["graph"]["contraction"] != "proved":
        return result
    edges = edge_index.cpu().numpy()
    if result.passing.undirected and not is_undirected(edges):
        log.warning("the graph is directed; message passing was recognised on undirected ones only")
        return result
    started = time.monotonic()
    parts = _controlled(result, labelled, shares)
    arrays = {name: part.numpy() for name, part in parts.items()}
    start = np.zeros((len(x), result.head.n_out))
    graph = GraphStates(x.cpu().numpy(), edges, start, **arrays)
    loop = _loop(result, x, edge_index, graph)
    run = loop.run(certificate["graph"]["kappa"], torch.from_numpy(_gauge(certificate)))
    graph = replace(graph, states=run.states.numpy())
    provenance = {**certificate["provenance"], "graph_steps": _steps(run)}
    try:
        stated = with_equilibrium(
            {**certificate, "provenance": provenance}, model_layers(result.passing), graph
        )
    except CertificateError as error:  # numbers beyond what floats can bound: nothing is claimed
        log.warning("the equilibrium on this graph is not enclosed: %s", error)
        return result
    if shipped is not None:
        facts = _shipped(loop, run, frozen, edge_index, x, shipped, stated)
        stated = sealed({**stated, "provenance": {**provenance, "shipped": facts}})
    return replace(
        result,
        certificate=stated,
        states={"states": run.states, **parts},
        seconds=result.seconds + time.monotonic() - started,
    )


def steered(
    result: CertifyResult,
    frozen: FrozenModel,
    x: Tensor,
    edge_index: Tensor,
    features: Tensor,
    wanted: Tensor,
    *,
    fall: Sequence[float] = (),
    passes: int = 0,
    linear: dict[str, Any] | None = None,
) -> CertifyResult:
    """The same with what holds of the features that ship, where the model was recognised.

    Args:
        x: given features of the graph, shape (N, d).
        edge_index: its edges, shape (2, E).
        features: those that ship, shape (N, d).
        wanted: the decided class of every node, int64, shape (N,).
    """
    found = result.passing
    edges = edge_index.cpu().numpy()
    one_way = found.undirected and not is_undirected(edges)
    if result.certificate is None or not found.layers or one_way:
        return result
    difference = answers_difference(found, frozen, features, edge_index, "the shipped")
    if difference is not None:
        log.warning("nothing is certified of the features that ship: %s", difference)
        return result
    kept = torch.from_numpy(given_array(features)).clone()
    parts = {"features": kept, "wanted": wanted.long().cpu().clone()}
    try:
        shipped = ShippedFeatures(given_array(x), edges, kept.numpy(), parts["wanted"].numpy())
        certificate = with_steering(
            result.certificate,
            model_layers(found),
            found.operator,
            shipped,
            fall=fall,
            passes=passes,
            contraction=_linear(result, edges, linear),
        )
    except CertificateError as error:  # numbers beyond what floats can bound: nothing is claimed
        log.warning("nothing is certified of the features that ship: %s", error)
        return result
    return replace(result, certificate=certificate, steering=parts)


def _linear(
    result: CertifyResult, edges: NDArray[np.int64], linear: dict[str, Any] | None
) -> dict[str, Any] | None:
    """L, step and factor of a model that is linear on an undirected graph."""
    if linear is None:
        return None
    weight = result.head.layers[0][0].detach().double().cpu().numpy()
    if linear_difference(weight, linear["hops"], result.passing, edges) is not None:
        return None
    return linear_contraction(weight, **linear)


def passing_of(frozen: FrozenModel, head: Head, model_kwargs: dict[str, Any]) -> Aggregation:
    """The model with its message passing, or the reason why nothing is said of that."""
    if model_kwargs:
        given = ", ".join(sorted(model_kwargs))
        return Aggregation(reason=f"the model takes further arguments: {given}")
    if frozen.calling.has_adjacency:
        return Aggregation(reason="the model is given an adjacency matrix, which may weigh edges")
    if not isinstance(frozen.model, nn.Module):
        return Aggregation(reason="the model is a callable, not a module whose layers can be seen")
    found = recognise(frozen.model, head.n_in)
    if found.layers and len(found.layers[-1][0].bias) != head.n_out:
        return Aggregation(reason="the model's last layer has another width than its classes")
    return found


def _on_graph(
    found: Aggregation, frozen: FrozenModel, x: Tensor, edge_index: Tensor
) -> Aggregation:
    """The recognised model, if it answers like its layers on this very graph, too."""
    one_way = found.undirected and not is_undirected(edge_index.cpu().numpy())
    if not found.layers or one_way:  # nothing is said of a one-way graph then
        return found
    difference = answers_difference(found, frozen, x, edge_index)
    return found if difference is None else Aggregation(reason=difference)


def released(certificate: dict[str, Any]) -> dict[str, Any]:
    """The certificate without what `enclosed` and `steered` said of one graph."""
    return without_features(without_equilibrium(certificate))


def _controlled(
    result: CertifyResult, labelled: tuple[Tensor, Tensor], shares: Tensor | None
) -> dict[str, Tensor]:
    """Labelled nodes, their classes, and the shares of the controllers where these are mixed."""
    nodes = labelled[0].long().cpu().clone()  # stored beside the labels that they were taken from
    labels = labelled[1].long().cpu().clone()
    if shares is not None:
        return {"nodes": nodes, "labels": labels, "mix": _mixture(shares, list(result.verdicts))}
    known = torch.isin(labels, torch.tensor(list(result.verdicts)))
    return {"nodes": nodes[known], "labels": labels[known]}


def _mixture(shares: Tensor, controlled: list[int]) -> Tensor:
    """Shares of the controllers that there are, float64, shape (N, n), each row with a sum of at
    most one, in exact arithmetic too."""
    mix = torch.zeros(shares.shape, dtype=torch.float64)
    mix[:, controlled] = shares.detach().cpu().double()[:, controlled].clamp_min(0.0)
    sums = mix.sum(dim=1, keepdim=True).clamp_min(1.0)
    return mix / sums * (1.0 - (mix.shape[1] + 2) * 2.0**-50)  # more than the sum's own rounding


def _loop(result: CertifyResult, x: Tensor, edge_index: Tensor, graph: GraphStates) -> GraphLoop:
    controls = {outcome.label: outcome.control for outcome in result.outcomes}
    nodes, shares = graph.shares()
    return GraphLoop(
        result.passing,
        x.cpu(),
        edge_index.cpu(),
        controls,
        torch.from_numpy(nodes),
        torch.from_numpy(shares),
    )


def _shipped(
    loop: GraphLoop,
    run: GraphRun,
    frozen: FrozenModel,
    edge_index: Tensor,
    x: Tensor,
    shipped: Tensor,
    certificate: dict[str, Any],
) -> dict[str, Any]:
    """How far the features in use are from the equilibrium's, and where both have the same class;
    in floats."""
    apart = torch.cat(
        [
            (there - shipped[rows].cpu().double()).abs().amax(dim=1)
            for rows, there in loop.features(x.cpu(), run.states)
        ]
    )
    classes = frozen.logits(shipped, edge_index).argmax(dim=1).cpu()
    graph = certificate["graph"]
    radius = graph["equilibrium"]["residual"] / (1.0 - graph["kappa"])
    certain = loop.certain(run.states, radius, torch.from_numpy(_gauge(certificate)))
    same = certain & (classes == run.states.argmax(dim=1))
    return {
        "norm": "largest feature",
        "max": float(apart.max()),
        "median": float(apart.median()),
        "size": float(shipped.abs().max()),
        "same_class": int(same.sum()),
    }


def _gauge(certificate: dict[str, Any]) -> NDArray[np.float64]:
    return decode_array(certificate["graph"]["gauge"])


def _steps(run: GraphRun) -> dict[str, Any]:
    """What a figure draws: ‖loop(Ŷ) − Ŷ‖ and the certain nodes, step by step."""
    return {"residuals": list(run.residuals), "certain": list(run.certain)}


def _reason(entry: dict[str, Any], note: str) -> str:
    """Which conditions fail, and why; the note of the class first."""
    parts = [note] if note else []
    for name, answer in entry["conditions"].items():
        if answer["verdict"] != "proved":
            why = answer.get("reason") or answer.get("kind") or f"off by {answer.get('distance')}"
            parts.append(f"{name} {answer['verdict']} ({why})")
    return "; ".join(parts)
