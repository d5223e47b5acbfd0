"""Methods by name: a controller, one of ours, or a rival; a method's module is imported when it is
asked for, and not before."""

from __future__ import annotations

import importlib
from typing import Any

from graphkeel.core.errors import ConfigError
from graphkeel.core.names import check_name
from graphkeel.runs.method import Method

# Where a method lives, "module:Class", and the constructor's options that make it this row.
_TABLE: dict[str, tuple[str, dict[str, Any]]] = {
    # The model stays as it is.
    "lp": ("frozen.propagation:LabelPropagation", {}),
    "cs": ("frozen.correct_and_smooth:CorrectAndSmooth", {}),
    "smooth": ("frozen.propagation:ClampedSmoothing", {}),
    "t3a": ("frozen.t3a:T3A", {}),
    "lame": ("frozen.lame:LAME", {}),
    "frgnn": ("frozen.frgnn:FRGNN", {}),
    "frgnn-all": ("frozen.frgnn:FRGNN", {"classes": "all"}),
    "matcha": ("frozen.matcha:Matcha", {}),
    "tsa": ("frozen.tsa:TSA", {}),
    "gtrans": ("frozen.gtrans:GTrans", {}),
    "posterior-alone": ("frozen.posterior:PosteriorAlone", {}),
    # The paper's row, read in other ways.
    "replace-one-picked": ("frozen.paper_reading:PaperReading", {"pick_class": True}),
    "replace-one-validation": ("frozen.paper_reading:PaperReading", {"with_validation": True}),
    "replace-one-m10": ("frozen.paper_reading:PaperReading", {"strengths": (10.0,)}),
    "replace-one-m100": ("frozen.paper_reading:PaperReading", {"strengths": (100.0,)}),
    "replace-one-picked-m": (
        "frozen.paper_reading:PaperReading",
        {"pick_class": True, "strengths": (1.0, 5.0, 10.0, 20.0, 100.0)},
    ),
    "replace-one-after-hops": ("frozen.reachability:AfterHops", {}),
    # A model of their own, or a changed copy, is trained.
    "frgnn-gcn": ("frozen.frgnn:FRGNN", {"base": "gcn"}),
    "frgnn-gcn-all": ("frozen.frgnn:FRGNN", {"base": "gcn", "classes": "all"}),
    "tent": ("retrained.tent:Tent", {}),
    "soga": ("retrained.soga:SOGA", {}),
    "homottt": ("retrained.homottt:HomoTTT", {}),
    "retrain": ("retrained.retrain:Retrain", {}),
    "gcn-words": ("retrained.words:Words", {}),
    "appnp-words": ("retrained.words:Words", {"hidden": 64, "hops": 10}),
    "finetune": ("retrained.retrain:FineTune", {}),
    "pool": ("retrained.pool:Pool", {}),
    "mh-aug": ("retrained.mh_aug:MHAug", {}),
    "kdga": ("retrained.kdga:KDGA", {}),
    "a2gnn": ("retrained.a2gnn:A2GNN", {}),
    "udagcn": ("retrained.udagcn:UDAGCN", {}),
    "srgnn": ("retrained.srgnn:SRGNN", {}),
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
    place, options = _TABLE[name]
    module_name, class_name = place.split(":")
    module = importlib.import_module(f"graphkeel_paper.baselines.{module_name}")
    build = getattr(module, class_name)
    # The rivals of the frozen model carry their names themselves; the others serve several rows.
    serves_several = "name" in getattr(build, "__dataclass_fields__", {})
    method: Method = build(**({"name": name} if serves_several else {}), **options)
    return method


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
