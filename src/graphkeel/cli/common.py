"""What the subcommands share: flags, output on stdout, progress on stderr. Standard library only at
import."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from graphkeel.core.errors import ConfigError
from graphkeel.graph.datasets.names import DATASETS

if TYPE_CHECKING:
    from rich.console import Console

EXIT_DONE = 0
EXIT_REFUTED = 1
EXIT_BAD_INPUT = 2
EXIT_UNKNOWN = 3
EXIT_INTERRUPTED = 130
EXIT_TERMINATED = 143


def add_common(
    parser: argparse.ArgumentParser, *, out_help: str = "write the results into this folder"
) -> None:
    parser.add_argument("--seed", type=int, default=0, help="first random seed (default 0)")
    parser.add_argument("--out", type=Path, default=None, metavar="DIR", help=out_help)
    add_json(parser)


def add_json(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--json", action="store_true", help="print one JSON object on stdout instead of tables"
    )


def add_dataset(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--dataset",
        default="digits",
        metavar="NAME",
        help=f"one of {', '.join(DATASETS)}, or a graph of your own as FILE.npz (default digits: no download)",
    )


def positive_int(text: str) -> int:
    """argparse type: an integer of at least one."""
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"must be at least 1 (got {value})")
    return value


def emit_json(payload: dict[str, Any]) -> None:
    """One JSON object on stdout; NaN would not be JSON, so it is refused here rather than at the
    reader."""
    json.dump(payload, sys.stdout, indent=2, allow_nan=False)
    sys.stdout.write("\n")


def console(*, stderr: bool = False) -> Console:
    """A rich console; progress and remarks go to stderr so that stdout stays parseable."""
    from rich.console import Console

    return Console(stderr=stderr)


def verbatim(text: str) -> str:
    """A name from outside as rich shows it letter for letter: "[/]" in a file's name is no
    markup."""
    from rich.markup import escape

    return escape(text)


def make_out_dir(path: Path) -> Path:
    """Create the output folder, with a message of ours rather than a traceback when that fails."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(
            "the output folder cannot be made",
            got=f"{path}: {error.strerror}",
            fix="Choose another --out.",
        ) from error
    return path
