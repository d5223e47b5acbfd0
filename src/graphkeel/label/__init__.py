"""Labels by people: a page to give them in, and files in which they come from other tools.

    session = Session(rec, data, "runs/mine/label")     # rec: a fitted Reconstructor
    serve(session, ready=print)                         # the page, on this machine alone

Every answer is on disk before the next node is shown. `serve` needs the extra `label`.
"""

from typing import TYPE_CHECKING, Any

from graphkeel.label.estimate import LabelSettings
from graphkeel.label.files import read_labels
from graphkeel.label.session import Session
from graphkeel.label.shown import Shown

if TYPE_CHECKING:
    from graphkeel.label.server import serve

__all__ = ["LabelSettings", "Session", "Shown", "read_labels", "serve"]


def __getattr__(name: str) -> Any:
    """`serve`, which loads starlette and uvicorn."""
    if name != "serve":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from graphkeel.core.optional import import_optional

    for module in ("starlette", "uvicorn"):
        import_optional(module, extra="label")
    from graphkeel.label.server import serve

    return serve
