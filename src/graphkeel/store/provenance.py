"""The versions of what decides numbers."""

from __future__ import annotations

import platform
from importlib.metadata import PackageNotFoundError, version

import graphkeel

_PACKAGES = ("numpy", "scipy", "scikit-learn", "torch", "torch_geometric")


def package_versions() -> dict[str, str]:
    """Versions of Python, graphkeel and the packages that decide numbers."""
    found = {"python": platform.python_version(), "graphkeel": graphkeel.__version__}
    for name in _PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "not installed"
    return found
