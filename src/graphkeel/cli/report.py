"""One self-contained HTML page about a run: what changed, for which nodes, and what is proved.

  keel run --out runs/digits
  keel certify --out runs/digits
  keel report runs/digits                          writes runs/digits/report.html
  keel report runs/digits tables/ --to page.html   several folders, one page
  keel report runs/fed_back --classes names.txt    of keel feedback, with names
  keel report --dataset my_graph.npz --weights net.safetensors --factory net:make
        a model of your own, fitted now

The page needs no network and no file beside it; it is light or dark as the reader's system is.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from graphkeel.cli.shared.common import (
    EXIT_DONE,
    add_dataset,
    add_json,
    emit_json,
    emit_lines,
    path_type,
    seed_type,
)
from graphkeel.cli.shared.own_model import add_own_model, add_split, chosen_spec
from graphkeel.core.errors import ConfigError

HELP = "one self-contained HTML page about a run, its certificate, figures and tables"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The flags of this command."""
    parser.add_argument(
        "folders",
        type=path_type,
        nargs="*",
        metavar="RUN",
        help="folders written by other commands' --out",
    )
    parser.add_argument(
        "--to",
        type=path_type,
        default=None,
        metavar="FILE",
        help="the page (default: RUN/report.html)",
    )
    parser.add_argument(
        "--out",
        type=path_type,
        default=None,
        metavar="DIR",
        help="write report.html into this folder",
    )
    parser.add_argument(
        "--classes", type=path_type, metavar="FILE", help="names of the classes, a line each"
    )
    add_dataset(parser)
    add_split(parser)
    parser.add_argument(
        "--features",
        default="auto",
        help="of --weights: auto, raw, rownorm or pca (default auto)",
    )
    add_own_model(parser)
    parser.add_argument("--seed", type=seed_type, default=0, help="of the split (default 0)")
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Run the command; returns its exit code."""
    from graphkeel.core.optional import import_optional

    import_optional("jinja2", extra="report")
    if args.weights is not None or args.factory is not None:
        return _own(args)
    if not args.folders:
        raise ConfigError(
            "there is nothing to report on",
            fix="Name a folder written with --out, or a model with --weights and --factory.",
        )
    from graphkeel.report.page import write_report
    from graphkeel.report.sources import find_sources
    from graphkeel.runs.later import told_by

    path = args.to or (args.out or args.folders[0]) / "report.html"
    sources = find_sources(args.folders, told_by(args.folders), _names(args))
    write_report(sources, path)
    if args.json:
        held = {
            "run": sources.run is not None,
            "certificate": sources.certificate is not None,
            "figures": len(sources.figures),
            "tables": len(sources.tables),
        }
        emit_json({"command": "report", "report": str(path), "bytes": path.stat().st_size, **held})
    else:
        emit_lines([str(path)])
    return EXIT_DONE


def _names(args: argparse.Namespace) -> list[str]:
    """The names of the classes, a line each."""
    if args.classes is None:
        return []
    try:
        lines = args.classes.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{args.classes} cannot be read", got=str(error)[:200]) from error
    return [line.strip() for line in lines if line.strip()]


def _own(args: argparse.Namespace) -> int:
    """Fit a model of the user's own, and write its page."""
    from graphkeel.runs.feedback import fitted

    if args.folders:
        raise ConfigError(
            "folders and a model of your own make two pages", got=str(args.folders[0])
        )
    rec, data = fitted(chosen_spec(args), args.seed)
    path = rec.report(args.to or (args.out or Path()) / "report.html", data, classes=_names(args))
    if args.json:
        held = {"run": True, "certificate": False, "figures": 0, "tables": 0}
        emit_json({"command": "report", "report": str(path), "bytes": path.stat().st_size, **held})
    else:
        emit_lines([str(path)])
    return EXIT_DONE
