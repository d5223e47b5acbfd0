"""Methods by name: a controller, one of ours, or a rival; a method's module is imported when it is
asked for, and not before."""

from __future__ import annotations

import importlib
from typing import Any

from graphkeel.core.errors import ConfigError
from graphkeel.core.names import check_name
from graphkeel.runs.method import Method
from graphkeel_paper.specs import AVERAGED, SELF_TRAINED

# Where a method lives, "module:Class", and the constructor's options that make it this row.
_TABLE: dict[str, tuple[str, dict[str, Any]]] = {
    # The model stays as it is.
    "lp": ("frozen.propagation:LabelPropagation", {}),
    "cs": ("frozen.propagation:CorrectAndSmooth", {}),
    "smooth": ("frozen.propagation:ClampedSmoothing", {}),
    "t3a": ("frozen.embeddings:T3A", {}),
    "t3a-known": ("frozen.embeddings:T3A", {"known": True}),
    "lame": ("frozen.embeddings:LAME", {}),
    "frgnn": ("frozen.frgnn:FRGNN", {}),
    "frgnn-all": ("frozen.frgnn:FRGNN", {"classes": "all"}),
    "matcha": ("frozen.embeddings:Matcha", {}),
    "tsa": ("frozen.gtrans:TSA", {}),
    "gtrans": ("frozen.gtrans:GTrans", {}),
    "posterior-alone": ("frozen.posterior:PosteriorAlone", {}),
    # The paper's row, read in other ways.
    "replace-one": ("frozen.readings:PaperReading", {}),
    "replace-one-picked": ("frozen.readings:PaperReading", {"pick_class": True}),
    "replace-one-validation": ("frozen.readings:PaperReading", {"with_validation": True}),
    "replace-one-m10": ("frozen.readings:PaperReading", {"strengths": (10.0,)}),
    "replace-one-m100": ("frozen.readings:PaperReading", {"strengths": (100.0,)}),
    "replace-one-picked-m": (
        "frozen.readings:PaperReading",
        {"pick_class": True, "strengths": (1.0, 5.0, 10.0, 20.0, 100.0)},
    ),
    "replace-one-after-hops": ("frozen.readings:AfterHops", {}),
    # A model of their own, or a changed copy, is trained.
    "frgnn-gcn": ("frozen.frgnn:FRGNN", {"base": "gcn"}),
    "frgnn-gcn-all": ("frozen.frgnn:FRGNN", {"base": "gcn", "classes": "all"}),
    "soga": ("retrained.copies:SOGA", {}),
    "soga-200": ("retrained.copies:SOGA", {"settings": ((200, 4e-3),)}),
    "homottt": ("retrained.copies:HomoTTT", {}),
    "retrain": ("retrained.retrain:Retrain", {}),
    "gcn-words": ("retrained.words:Words", {}),
    "appnp-words": ("retrained.words:Words", {"hidden": 64, "hops": 10}),
    "finetune": ("retrained.retrain:FineTune", {}),
    "pool": ("retrained.retrain:Pool", {}),
    "mh-aug": ("retrained.mh_aug:MHAug", {}),
    "kdga": ("retrained.kdga:KDGA", {}),
    "a2gnn": ("retrained.two_graphs:A2GNN", {}),
    "udagcn": ("retrained.two_graphs:UDAGCN", {}),
    "srgnn": ("retrained.srgnn:SRGNN", {}),
}
_POOLED = ("t3a", "cs", "smooth", "lame", "lp")  # of the row `rivals+avg`
BASELINES = tuple(_TABLE)


def get_baseline(name: str) -> Method:
    """The method behind a name.

    Args:
        name: one of `BASELINES`, or one with `+avg` or `+self`.
    """
    if name.endswith((AVERAGED, SELF_TRAINED)):
        return _around(*name.rsplit("+", 1))
    check_name("the baseline", name, BASELINES)
    place, options = _TABLE[name]
    module_name, class_name = place.split(":")
    module = importlib.import_module(f"graphkeel_paper.baselines.{module_name}")
    build = getattr(module, class_name)
    # The rivals of the frozen model carry their names themselves; the others serve several rows.
    serves_several = "name" in getattr(build, "__dataclass_fields__", {})
    method: Method = build(**({"name": name} if serves_several else {}), **options)
    return method


def _around(of: str, how: str) -> Method:
    """The row of a rival, or of all that are pooled, under our averaging rule or with a round of
    self-training."""
    from graphkeel_paper.baselines.rival import Averaged, Rival, SelfTrained

    name = f"{of}+{how}"
    own_labels = "t3a-known" if name == f"t3a{SELF_TRAINED}" else of
    members = [get_baseline(one) for one in (_POOLED if of == "rivals" else (own_labels,))]
    rivals = [one for one in members if isinstance(one, Rival)]
    if len(rivals) != len(members):
        raise ConfigError(f"{of} has no settings to choose among", got=repr(name))
    if name.endswith(AVERAGED):
        return Averaged(name, rivals)
    if len(rivals) > 1 or not rivals[0].uses_labels:
        raise ConfigError(f"{of} has no use for more labels", got=repr(name))
    return SelfTrained(name, rivals[0])


def find_method(name: str, options: dict[str, Any] | None = None) -> Method:
    """The method that a row of a table names: a controller, one of ours, or a baseline."""
    if name == "controller":
        from graphkeel_paper.baselines.frozen.controllers import ControllerMethod

        return ControllerMethod(**(options or {}))  # type: ignore[return-value]
    if options:
        raise ConfigError(f"the method {name!r} takes no options", got=sorted(options))
    if name in BASELINES or name.endswith((AVERAGED, SELF_TRAINED)):
        return get_baseline(name)
    from graphkeel.runs.methods import get_method

    return get_method(name)  # type: ignore[return-value]
