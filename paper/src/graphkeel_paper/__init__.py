"""The paper reproduced, and graphkeel compared with others: its datasets, protocol, rivals,
tables and figures."""

from typing import TYPE_CHECKING

from graphkeel.core.lazy import lazy_names

__version__ = "0.3.0"

_HOMES = dict.fromkeys(("load", "load_graph"), "graphkeel_paper.datasets.registry")
_HOMES |= dict.fromkeys(("RunSpec", "AdaptSpec"), "graphkeel_paper.specs")

__all__ = ["AdaptSpec", "RunSpec", "load", "load_graph"]

if TYPE_CHECKING:
    from graphkeel_paper.datasets.registry import load, load_graph
    from graphkeel_paper.specs import AdaptSpec, RunSpec
else:
    __getattr__, __dir__ = lazy_names(__name__, _HOMES)
