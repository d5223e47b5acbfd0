"""Baselines by name; a method's module is imported when it is asked for, and not before."""

from __future__ import annotations

import importlib
from dataclasses import dataclass, field
from typing import Any

from graphkeel.core.errors import ConfigError
from graphkeel.reconstruct.method import Method


@dataclass(frozen=True)
class _Entry:
    """Where a method lives, "module:Class", and the constructor's options that make it this row."""

    place: str
    options: dict[str, Any] = field(default_factory=dict)
    config: dict[str, Any] = field(default_factory=dict)  # fields of the class's `CONFIG` dataclass


_TABLE: dict[str, _Entry] = {
    # The model stays as it is.
    "lp": _Entry("label_propagation:LabelPropagation"),
    "cs": _Entry("correct_and_smooth:CorrectAndSmooth"),
    "smooth": _Entry("clamped_smoothing:ClampedSmoothing"),
    "t3a": _Entry("t3a:T3A"),
    "lame": _Entry("lame:LAME"),
    "frgnn": _Entry("frgnn:FRGNN"),
    "frgnn-all": _Entry("frgnn:FRGNN", config={"classes": "all"}),
    "frgnn-labelled": _Entry("frgnn:FRGNN", config={"pairs": "labelled"}),
    "frgnn-logits": _Entry("frgnn:FRGNN", config={"outputs": "logits"}),
    "frgnn-logits-labelled": _Entry(
        "frgnn:FRGNN", config={"outputs": "logits", "pairs": "labelled"}
    ),
    "gtrans": _Entry("gtrans:GTrans"),
    "gtrans-features": _Entry("gtrans:GTrans", config={"edge_steps": 0}),
    # The paper's row, read in other ways.
    "replace-one-picked": _Entry("paper_reading:PaperReading", {"pick_class": True}),
    "replace-one-validation": _Entry("paper_reading:PaperReading", {"with_validation": True}),
    "replace-one-m10": _Entry("paper_reading:PaperReading", {"strengths": (10.0,)}),
    "replace-one-m100": _Entry("paper_reading:PaperReading", {"strengths": (100.0,)}),
    "replace-one-picked-m": _Entry(
        "paper_reading:PaperReading", {"pick_class": True, "strengths": None}
    ),
    # A model of their own, or a changed copy, is trained.
    "frgnn-gcn": _Entry("frgnn:FRGNN", {"base": "gcn"}),
    "frgnn-gcn-all": _Entry("frgnn:FRGNN", {"base": "gcn"}, {"classes": "all"}),
    "tent": _Entry("tent:Tent"),
    "mh-aug": _Entry("mh_aug:MHAug"),
    "kdga": _Entry("kdga:KDGA"),
    "srgnn": _Entry("srgnn:SRGNN"),
}
BASELINES = tuple(_TABLE)


def get_baseline(name: str) -> Method:
    """The method behind a name of `BASELINES`."""
    if name not in _TABLE:
        raise ConfigError(f"the baseline must be one of {', '.join(BASELINES)}", got=repr(name))
    entry = _TABLE[name]
    module_name, class_name = entry.place.split(":")
    module = importlib.import_module(f"graphkeel.paper.baselines.{module_name}")
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
