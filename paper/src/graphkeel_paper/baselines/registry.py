"""Methods by name: a controller, one of ours, or a rival; a method's module is imported when it is
asked for, and not before."""

from __future__ import annotations

import importlib
from dataclasses import dataclass, field
from typing import Any

from graphkeel.core.errors import ConfigError
from graphkeel.core.names import check_name
from graphkeel.runs.method import Method


@dataclass(frozen=True)
class _Entry:
    """Where a method lives, "module:Class", and the constructor's options that make it this row."""

    place: str
    options: dict[str, Any] = field(default_factory=dict)
    config: dict[str, Any] = field(default_factory=dict)  # fields of the class's `CONFIG` dataclass


_TABLE: dict[str, _Entry] = {
    # The model stays as it is.
    "lp": _Entry("frozen.propagation:LabelPropagation"),
    "cs": _Entry("frozen.correct_and_smooth:CorrectAndSmooth"),
    "smooth": _Entry("frozen.propagation:ClampedSmoothing"),
    "t3a": _Entry("frozen.t3a:T3A"),
    "lame": _Entry("frozen.lame:LAME"),
    "frgnn": _Entry("frozen.frgnn:FRGNN"),
    "frgnn-all": _Entry("frozen.frgnn:FRGNN", config={"classes": "all"}),
    "frgnn-labelled": _Entry("frozen.frgnn:FRGNN", config={"pairs": "labelled"}),
    "frgnn-logits": _Entry("frozen.frgnn:FRGNN", config={"outputs": "logits"}),
    "frgnn-logits-labelled": _Entry(
        "frozen.frgnn:FRGNN", config={"outputs": "logits", "pairs": "labelled"}
    ),
    "matcha": _Entry("frozen.matcha:Matcha"),
    "tsa": _Entry("frozen.tsa:TSA"),
    "gtrans": _Entry("frozen.gtrans:GTrans"),
    "gtrans-features": _Entry("frozen.gtrans:GTrans", config={"edge_steps": 0}),
    "posterior-alone": _Entry("frozen.posterior:PosteriorAlone"),
    # The paper's row, read in other ways.
    "replace-one-picked": _Entry("frozen.paper_reading:PaperReading", {"pick_class": True}),
    "replace-one-validation": _Entry(
        "frozen.paper_reading:PaperReading", {"with_validation": True}
    ),
    "replace-one-m10": _Entry("frozen.paper_reading:PaperReading", {"strengths": (10.0,)}),
    "replace-one-m100": _Entry("frozen.paper_reading:PaperReading", {"strengths": (100.0,)}),
    "replace-one-picked-m": _Entry(
        "frozen.paper_reading:PaperReading",
        {"pick_class": True, "strengths": (1.0, 5.0, 10.0, 20.0, 100.0)},
    ),
    "replace-one-after-hops": _Entry("frozen.reachability:AfterHops"),
    # A model of their own, or a changed copy, is trained.
    "frgnn-gcn": _Entry("frozen.frgnn:FRGNN", {"base": "gcn"}),
    "frgnn-gcn-all": _Entry("frozen.frgnn:FRGNN", {"base": "gcn"}, {"classes": "all"}),
    "tent": _Entry("retrained.tent:Tent"),
    "soga": _Entry("retrained.soga:SOGA"),
    "homottt": _Entry("retrained.homottt:HomoTTT"),
    "retrain": _Entry("retrained.retrain:Retrain"),
    "gcn-words": _Entry("retrained.words:Words"),
    "appnp-words": _Entry("retrained.words:Words", {"hidden": 64, "hops": 10}),
    "finetune": _Entry("retrained.retrain:FineTune"),
    "pool": _Entry("retrained.pool:Pool"),
    "mh-aug": _Entry("retrained.mh_aug:MHAug"),
    "kdga": _Entry("retrained.kdga:KDGA"),
    "a2gnn": _Entry("retrained.a2gnn:A2GNN"),
    "udagcn": _Entry("retrained.udagcn:UDAGCN"),
    "srgnn": _Entry("retrained.srgnn:SRGNN"),
}
AVERAGED = "+avg"  # a rival's settings under our averaging rule
_POOLED = ("t3a", "cs", "smooth", "lame", "lp")  # of the row `rivals+avg`
BASELINES = tuple(_TABLE)


def get_baseline(name: str) -> Method:
    """The method behind a name.

    Args:
        name: one of `BASELINES`, or one with `+avg`.
    """
    if name.endswith(AVERAGED):
        return _averaged(name)
    check_name("the baseline", name, BASELINES)
    entry = _TABLE[name]
    module_name, class_name = entry.place.split(":")
    module = importlib.import_module(f"graphkeel_paper.baselines.{module_name}")
    options = dict(entry.options)
    if entry.config:
        options["config"] = module.CONFIG(**entry.config)
    build = getattr(module, class_name)
    # The rivals of the frozen model carry their names themselves; the others serve several rows.
    return (
        build(name=name, **options)
        if "name" in getattr(build, "__dataclass_fields__", {})
        else build(**options)
    )


def _averaged(name: str) -> Method:
    from graphkeel_paper.baselines.averaging import Averaged
    from graphkeel_paper.baselines.rival import Rival

    of = name.removesuffix(AVERAGED)
    members = [get_baseline(one) for one in (_POOLED if of == "rivals" else (of,))]
    rivals = [one for one in members if isinstance(one, Rival)]
    if len(rivals) != len(members):
        raise ConfigError(f"{of} has no settings to average over", got=repr(name))
    return Averaged(name, rivals)


def find_method(name: str, options: dict[str, Any] | None = None) -> Method:
    """The method that a row of a table names: a controller, one of ours, or a baseline."""
    if name == "controller":
        from graphkeel_paper.baselines.frozen.controllers import ControllerMethod

        return ControllerMethod(**(options or {}))  # type: ignore[return-value]
    if options:
        raise ConfigError(f"the method {name!r} takes no options", got=sorted(options))
    if name in BASELINES or name.endswith(AVERAGED):
        return get_baseline(name)
    from graphkeel.runs.methods import get_method

    return get_method(name)  # type: ignore[return-value]
