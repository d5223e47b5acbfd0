"""Print versions, solvers, threads, the torch build, the datasets and the cache."""

from __future__ import annotations

import argparse
import importlib.metadata
import os
import platform
from collections.abc import Mapping
from typing import Any

from graphkeel.cli.shared.common import add_options, console, emit, verbatim
from graphkeel.core.optional import is_installed

HELP = "what is installed here"

_NEEDED = "graphkeel torch torch_geometric numpy scipy scikit-learn numba safetensors"
_OPTIONAL = {  # module: (package, extra, what it is for)
    "z3": ("z3-solver", "smt", "SMT engine"),
    "onnx": ("onnx", "export", "ONNX export"),
    "matplotlib": ("matplotlib", "report", "pictures"),
    "jinja2": ("jinja2", "report", "reports"),
    "starlette": ("starlette", "label", "the page of keel label"),
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_options(parser, "--json")


def run(args: argparse.Namespace) -> int:
    facts = collect()
    return emit(args, {"command": "doctor", **facts}, lambda: show(facts))


def collect() -> dict[str, Any]:
    import torch

    from graphkeel.core.files import user_cache
    from graphkeel.verify.warm import load_kernels

    return {
        "python": platform.python_version(),
        "packages": {name: _version(name) for name in _NEEDED.split()},
        "optional": {
            package: _version(package) if is_installed(module) else None
            for module, (package, _, _) in _OPTIONAL.items()
        },
        "cores": os.cpu_count(),
        "torch_threads": torch.get_num_threads(),
        "torch_build": f"CUDA {torch.version.cuda}" if torch.version.cuda else "CPU",
        "kernels": {"seconds": round(load_kernels(), 1)},  # made here if they are missing
        "data": {
            "cache": str(user_cache()),
            "datasets": {"digits": "embedded", "sbm": "generated"},
        },
    }


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def show(facts: dict[str, Any], more: Mapping[str, str | None] = {}) -> None:
    """Print them; `more` are lines of places, which may be missing."""
    from rich.table import Table

    table = Table("what", "found", title="keel doctor", title_justify="left")
    table.add_row("Python", facts["python"])
    for name, version in facts["packages"].items():
        table.add_row(name, version or "[red]missing[/]")
    for package, extra, purpose in _OPTIONAL.values():
        hint = f"not installed ({purpose}; pip install 'graphkeel\\[{extra}]')"
        table.add_row(package, facts["optional"][package] or f"[dim]{hint}[/]")
    table.add_row("torch build", facts["torch_build"])
    table.add_row("cores / torch threads", f"{facts['cores']} / {facts['torch_threads']}")
    table.add_row("compiled kernels", f"ready, loaded in {facts['kernels']['seconds']} s")
    datasets = {f"dataset {name}": place for name, place in facts["data"]["datasets"].items()}
    for name, place in {**more, "cache": facts["data"]["cache"], **datasets}.items():
        table.add_row(name, "[dim]not here[/]" if place is None else verbatim(place))
    console().print(table)
