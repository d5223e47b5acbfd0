"""From a training result to a certificate: the shipped weights as the certificate's own chains of factors."""

from __future__ import annotations

from typing import Any

import numpy as np
from torch import Tensor

from graphkeel.certificate import ClassProof, Source, anchored_controller, build_certificate, chain, mlp
from graphkeel.control.base import Layers, Plant
from graphkeel.control.neural import NeuralWeights
from graphkeel.lyapunov.function import LyapunovWeights
from graphkeel.lyapunov.records import ClassOutcome, TrainResult


def certificate_of(
    plant: Plant, result: TrainResult, *, provenance: dict[str, Any] | None = None, data_sha256: str | None = None
) -> dict[str, Any]:
    """The certificate of all classes, as a JSON object."""
    proofs = [class_proof(outcome, result.config.delta) for outcome in result.outcomes]
    details = {"config": result.config.as_dict(), "stopped": result.stopped, **(provenance or {})}
    return build_certificate(head_source(plant.layers), proofs, provenance=details, data_sha256=data_sha256)


def class_proof(outcome: ClassOutcome, delta: float) -> ClassProof:
    control = outcome.control
    return ClassProof(
        label=outcome.label,
        form=control.form,
        controller=controller_source(control),
        lyapunov=lyapunov_source(outcome.function),
        anchor=anchor_of(control),
        problem=outcome.problem,
        conditions={condition.condition: condition for condition in outcome.report.conditions},
        delta=delta,
    )


def anchor_of(control: NeuralWeights) -> np.ndarray:
    """h* = f(Y) as a float32 feature; in the anchored forms that is the offset, to the bit."""
    return control(control.equilibrium).float().numpy() if control.form == "paper" else control.offset.numpy()


def head_source(layers: Layers) -> Source:
    return mlp((_compact(weight), _compact(bias)) for weight, bias in layers)


def controller_source(control: NeuralWeights) -> Source:
    inner, bias, outer, offset = (t.numpy() for t in (control.inner, control.bias, control.outer, control.offset))
    if control.form == "paper":
        return mlp(((inner, bias), (outer, offset)))
    return anchored_controller(inner, bias, outer, offset, control.equilibrium.numpy())


def lyapunov_source(function: LyapunovWeights) -> Source:
    first = (function.inner.numpy(), function.bias.numpy())
    last = (function.outer.numpy()[None, :], function.offset.numpy().reshape(1))
    return (chain((None, -function.centre.numpy()), first), chain(last))


def _compact(tensor: Tensor) -> np.ndarray:
    """Float32 where that loses nothing: the head's numbers are the model's own, and half as long."""
    short = tensor.float()
    return short.numpy() if bool((short.double() == tensor).all()) else tensor.numpy()
