"""Checks of a `Reconstructor`'s arguments: each mistake gets one sentence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from numbers import Integral, Real
from typing import Any, Literal, get_args

from graphkeel.core.errors import ConfigError, ModelError
from graphkeel.core.names import check_name

MethodName = Literal["auto", "replace", "diffuse"]
ControllerName = Literal["deadbeat", "mfac", "pid", "lqr", "neural"]
LabelUse = Literal["all", "train"]  # what validation labels do: serve and judge, or judge alone
GuardName = Literal["cross-fit", "holdout"]
ClassWeight = Literal["balanced"] | None
KeepName = Literal["graph", "summary", "model"]

LARGEST_SEED = 2**32 - 1  # NumPy's generators and scikit-learn take no larger one
CHOICES: dict[str, tuple[str | None, ...]] = {
    "method": get_args(MethodName),
    "labels": get_args(LabelUse),
    "guard": get_args(GuardName),
    "class_weight": (None, "balanced"),
}


def check_parameters(parameters: Mapping[str, Any]) -> None:
    """Refuse constructor arguments of a wrong type or out of range."""
    if parameters["model"] is None:
        raise ModelError(
            "there is no model to reconstruct for",
            fix="Pass the trained model: Reconstructor(model).",
        )
    for name, known in CHOICES.items():
        check_choice(name, parameters[name], known)
    _check_controller(parameters["controller"])
    _check_verifier(parameters["verifier"])
    _check_risk(parameters["risk"])
    _check_seed(parameters["seed"])
    _check_callbacks(parameters["callbacks"])


def check_choice(name: str, value: object, known: Sequence[str | None]) -> None:
    """Refuse what is none of the known names; None may be one."""
    if value is not None or None not in known:
        check_name(name, value, [one for one in known if one is not None])


def _check_controller(value: object) -> None:
    if not hasattr(value, "regulate"):  # a controller of the user's own may be an object
        check_choice("the controller", value, get_args(ControllerName))


def _check_verifier(value: object) -> None:
    if not isinstance(value, str):
        raise ConfigError(
            "verifier must be the name of an engine", got=repr(value), fix="'auto' is usual."
        )
    if value != "auto":
        from graphkeel.lyapunov import engine_oracle  # the engines are not loaded for nothing

        engine_oracle(value)


def _check_risk(value: object) -> None:
    is_number = isinstance(value, Real) and not isinstance(value, bool)
    if not is_number or not 0.0 < float(value) <= 1.0:  # type: ignore[arg-type]
        raise ConfigError("risk must lie in (0, 1]", got=repr(value), fix="0.5 is the default.")


def _check_seed(value: object) -> None:
    is_whole = isinstance(value, Integral) and not isinstance(value, bool)
    if not is_whole or not 0 <= int(value) <= LARGEST_SEED:  # type: ignore[call-overload]
        raise ConfigError(f"seed must be a whole number from 0 to {LARGEST_SEED}", got=repr(value))


def _check_callbacks(value: object) -> None:
    is_list = isinstance(value, Sequence) and not isinstance(value, str)
    if not is_list or not all(callable(one) for one in value):  # type: ignore[attr-defined]
        raise ConfigError(
            "callbacks must be a list of functions, each called with a step", got=repr(value)[:80]
        )
