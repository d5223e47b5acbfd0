"""Print what is installed, and where the paper's datasets are looked for and found."""

from __future__ import annotations

import argparse
from typing import Any

from graphkeel.cli import doctor as plain
from graphkeel.cli.shared.common import emit

HELP = "what is installed here, and where the paper's datasets are found"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    plain.add_arguments(parser)


def run(args: argparse.Namespace) -> int:
    facts = plain.collect()
    data = facts["data"] = facts["data"] | _data(facts["data"]["datasets"])
    lists = "found" if data["published_seeds"] else None  # else the sampler draws
    more = {data["variable"]: data["root"], "published seed lists": lists}
    return emit(args, {"command": "doctor", **facts}, lambda: plain.show(facts, more))


def _data(plainly: dict[str, str]) -> dict[str, Any]:
    """Where the files are, for each dataset, or None."""
    from graphkeel_paper.datasets.files import ENVIRONMENT_VARIABLE, FOLDER, data_root, find_raw
    from graphkeel_paper.datasets.published import FILES

    root = data_root()
    found = {name: find_raw(folder, names) for name, (_, folder, names) in FILES.items()}
    return {
        "variable": ENVIRONMENT_VARIABLE,
        "root": None if root is None else str(root),
        "datasets": {**plainly, **{name: place and str(place) for name, place in found.items()}},
        "published_seeds": bool(root and (root / FOLDER).is_dir()),
    }
