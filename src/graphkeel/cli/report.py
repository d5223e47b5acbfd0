"""One self-contained HTML page about a run: what changed, for which nodes, and what is proved.

  keel run --out runs/digits
  keel certify --out runs/digits
  keel report runs/digits                          writes runs/digits/report.html
  keel report runs/digits figures/ --to page.html   several folders, one page
  keel report runs/fed_back --classes names.txt    of keel feedback, with names
  keel report --dataset my_graph.npz --weights net.safetensors --factory net:make
        a model of your own, fitted now

The page needs no network and no file beside it; it is light or dark as the reader's system is.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from graphkeel.cli.shared.common import OWN_MODEL, add_options, emit, emit_lines, path_type
from graphkeel.cli.shared.own_model import chosen_spec
from graphkeel.core.errors import ConfigError
from graphkeel.core.files import read_lines

HELP = "one self-contained HTML page about a run, its certificate and figures"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    folders = "folders written by other commands' --out"
    parser.add_argument("folders", type=path_type, nargs="*", metavar="RUN", help=folders)
    page = "the page (default: RUN/report.html)"
    parser.add_argument("--to", type=path_type, metavar="FILE", help=page)
    own = ("--dataset", "--split", "--features", *OWN_MODEL)
    add_options(parser, "--classes", *own, "--seed", "--json", seed="of the split (default 0)")


def run(args: argparse.Namespace) -> int:
    from graphkeel.core.optional import import_optional

    import_optional("jinja2", extra="report")
    own = args.weights is not None or args.factory is not None
    if own and args.folders:
        raise ConfigError(
            "folders and a model of your own make two pages", got=str(args.folders[0])
        )
    if not own and not args.folders:
        raise ConfigError(
            "there is nothing to report on",
            fix="Name a folder written with --out, or a model with --weights and --factory.",
        )
    names = [] if args.classes is None else read_lines(args.classes)
    path = args.to or Path(*args.folders[:1]) / "report.html"
    held = _fit(args, path, names) if own else _gather(args, path, names)
    size = path.stat().st_size
    payload = {"command": "report", "report": str(path), "bytes": size, **held}
    return emit(args, payload, lambda: emit_lines([str(path)]))


def _gather(args: argparse.Namespace, path: Path, names: list[str]) -> dict[str, object]:
    """Write the page of what the folders hold, and say what that is."""
    from graphkeel.report.page import write_report
    from graphkeel.report.sources import find_sources
    from graphkeel.runs.opened import report_facts

    sources = find_sources(args.folders, report_facts(args.folders), names)
    write_report(sources, path)
    return {
        "run": sources.run is not None,
        "certificate": sources.certificate is not None,
        "figures": len(sources.figures),
    }


def _fit(args: argparse.Namespace, path: Path, names: list[str]) -> dict[str, object]:
    from graphkeel.runs.feedback import fitted

    rec, data = fitted(chosen_spec(args), args.seed)
    rec.report(path, data, classes=names)
    return {"run": True, "certificate": False, "figures": 0}
