"""A page to label nodes in, for the person who knows the classes.

  keel run --dataset my_graph.npz --out runs/mine
  keel label runs/mine                                then open the address that it prints
  keel label runs/mine --show titles.csv --classes names.txt

One node at a time: keys 1 to 3 for the likeliest classes, any other by typing its name, Space to
skip, Backspace to undo. Its neighbours are drawn, with known and predicted classes. Most nodes are
those whose labels help most; one in three is drawn at random, so that the accuracy that the page
tells is an honest one. After every ten labels it is told anew, with a sentence when to stop.

Every answer is saved at once in RUN/label/labels.csv, and the next start goes on there. At the end
(Ctrl-C) RUN/label also holds them as Label Studio's JSON, and a reconstruction for
`graphkeel.load`.

titles.csv has a column node; its other columns are shown: text, links, and images by their path
from that file. The page is served to this machine alone, and to the browser that first opens the
address. Needs: pip install 'graphkeel[label]'
"""

from __future__ import annotations

import argparse
import sys
from typing import Any

from graphkeel.cli.shared.common import (
    EXIT_DONE,
    add_json,
    emit_json,
    emit_lines,
    path_type,
    seed_type,
    whole_number,
)
from graphkeel.cli.shared.own_model import specs

HELP = "a page to label nodes in, the most helpful ones first"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The flags of this command."""
    parser.add_argument(
        "folder",
        type=path_type,
        metavar="RUN",
        help="written by keel run, keel adapt or keel feedback with --out",
    )
    parser.add_argument(
        "--show",
        type=path_type,
        metavar="FILE",
        help="a CSV file with a column node: what people see of a node",
    )
    parser.add_argument(
        "--classes", type=path_type, metavar="FILE", help="names of the classes, a line each"
    )
    parser.add_argument(
        "--seed", type=seed_type, default=None, help="which seed of the run (default: its first)"
    )
    parser.add_argument(
        "--port",
        type=whole_number(0, 65535),
        default=0,
        help="of the page (default: one that is free)",
    )
    parser.add_argument("--open", action="store_true", help="open the page in the usual browser")
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Run the command; returns its exit code."""
    from graphkeel.label import (
        Session,
        Shown,
        read_names,
        serve,  # says which extra is missing, before any work
    )
    from graphkeel.runs.opened import opened

    shown = None if args.show is None else Shown.read(args.show)
    rec, data, seed = opened(args.folder, specs(args), args.seed)
    names = () if args.classes is None else read_names(args.classes, len(rec.classes_))
    session = Session(rec, data, args.folder / "label", seed=seed, shown=shown, names=names)
    try:
        serve(session, port=args.port, ready=lambda address: _tell(args, address))
    except KeyboardInterrupt:
        sys.stderr.write("\ntaking the last labels in …\n")  # Ctrl-C is how a session ends
    session.finish()
    _show(args, session.state(), str(session.path))
    return EXIT_DONE


def _tell(args: argparse.Namespace, address: str) -> None:
    """The address, on stderr: it is no result, and good for one browser."""
    sys.stderr.write(f"Label at {address}\nEnd with Ctrl-C; every answer is saved at once.\n")
    sys.stderr.flush()
    if args.open:
        import webbrowser

        webbrowser.open(address)


def _show(args: argparse.Namespace, state: dict[str, Any], path: str) -> None:
    last = state["estimates"][-1] if state["estimates"] else None
    if args.json:
        counts = {name: state[name] for name in ("labels", "skipped")}
        emit_json({"command": "label", **counts, "file": path, "estimate": last})
        return
    lines = [f"{state['labels']} labels, {state['skipped']} skipped: {path}"]
    if last is not None:
        lines.append(
            f"{last['right']} of {last['of']} random nodes were predicted rightly:"
            f" {last['low']:.0f} to {last['high']:.0f} % of all without a label"
        )
    emit_lines(lines)
