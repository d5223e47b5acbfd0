"""graphkeel keeps a trained graph neural network upright under distribution shift without
retraining it.

The public names load on first use (PEP 562), so `import graphkeel` costs nothing and `keel check`
never imports torch."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.3.0"

_HOME = {
    "CertifyResult": "graphkeel.lyapunov",
    "CheckResult": "graphkeel.checker",
    "FrozenModel": "graphkeel.models.frozen",
    "GraphTask": "graphkeel.graph",
    "KeelError": "graphkeel.core.errors",
    "KeelWarning": "graphkeel.core.errors",
    "LyapunovConfig": "graphkeel.lyapunov",
    "Reconstructor": "graphkeel.reconstruct",
    "certify": "graphkeel.lyapunov",
    "check": "graphkeel.certificate",
    "for_node_type": "graphkeel.models.hetero",
    "load": "graphkeel.reconstruct",
    "load_reconstructor": "graphkeel.reconstruct",
    "verify": "graphkeel.verify",
}
_OTHER_NAME = {"check": "check_certificate", "load": "load_reconstructor"}

__all__ = [
    "CertifyResult",
    "CheckResult",
    "FrozenModel",
    "GraphTask",
    "KeelError",
    "KeelWarning",
    "LyapunovConfig",
    "Reconstructor",
    "__version__",
    "certify",
    "check",
    "for_node_type",
    "load",
    "load_reconstructor",
    "verify",
]

if TYPE_CHECKING:
    from graphkeel.certificate import check_certificate as check
    from graphkeel.checker import CheckResult
    from graphkeel.core.errors import KeelError, KeelWarning
    from graphkeel.graph import GraphTask
    from graphkeel.lyapunov import CertifyResult, LyapunovConfig
    from graphkeel.lyapunov.certify import certify
    from graphkeel.models.frozen import FrozenModel
    from graphkeel.models.hetero import for_node_type
    from graphkeel.reconstruct import Reconstructor, load_reconstructor
    from graphkeel.reconstruct import load_reconstructor as load


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'graphkeel' has no attribute {name!r}")
    home = importlib.import_module(_HOME[name])
    return home if name == "verify" else getattr(home, _OTHER_NAME.get(name, name))


def __dir__() -> list[str]:
    return sorted(__all__)
