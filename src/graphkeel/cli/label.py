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
    SEED_OF_RUN,
    add_options,
    emit,
    emit_lines,
    make_out_dir,
    path_type,
    whole_number,
)
from graphkeel.cli.shared.own_model import specs
from graphkeel.core.files import read_lines

HELP = "a page to label nodes in, the most helpful ones first"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    run = "written by keel run, keel adapt or keel feedback with --out"
    parser.add_argument("folder", type=path_type, metavar="RUN", help=run)
    show = "a CSV file with a column node: what people see of a node"
    parser.add_argument("--show", type=path_type, metavar="FILE", help=show)
    add_options(parser, "--classes", "--seed", seed=SEED_OF_RUN)
    port = "of the page (default: one that is free)"
    parser.add_argument("--port", type=whole_number(0, 65535), default=0, help=port)
    parser.add_argument("--open", action="store_true", help="open the page in the usual browser")
    add_options(parser, "--json")


def run(args: argparse.Namespace) -> int:
    from graphkeel.label import (  # says which extra is missing, before any work
        Session,
        Shown,
        serve,
    )
    from graphkeel.runs.opened import opened

    shown = None if args.show is None else Shown.read(args.show)
    rec, data, seed = opened(args.folder, specs(args), args.seed)
    names = () if args.classes is None else read_lines(args.classes)
    place = make_out_dir(args.folder / "label")
    session = Session(rec, data, place, seed=seed, shown=shown, names=names)
    try:
        serve(session, port=args.port, ready=lambda address: _tell(args, address))
    except KeyboardInterrupt:
        sys.stderr.write("\ntaking the last labels in …\n")  # Ctrl-C is how a session ends
    session.finish()
    state = session.state()
    last = state["estimates"][-1] if state["estimates"] else None
    counts = {name: state[name] for name in ("labels", "skipped")}
    payload = {"command": "label", **counts, "file": str(session.path), "estimate": last}
    return emit(args, payload, lambda: emit_lines(_lines(payload)))


def _tell(args: argparse.Namespace, address: str) -> None:
    """The address, on stderr: it is no result, and good for one browser."""
    sys.stderr.write(f"{address}\nOpen it in a browser. Every answer is saved; end with Ctrl-C.\n")
    sys.stderr.flush()
    if args.open:
        import webbrowser

        webbrowser.open(address)


def _lines(payload: dict[str, Any]) -> list[str]:
    lines = [f"{payload['labels']} labels, {payload['skipped']} skipped: {payload['file']}"]
    last = payload["estimate"]
    if last is not None:
        lines.append(
            f"{last['right']} of {last['of']} random nodes were predicted rightly:"
            f" {last['low']:.0f} to {last['high']:.0f} % of all without a label"
        )
    return lines
