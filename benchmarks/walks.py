"""Count how far a reader has to walk through the code to follow five things that it does.

    python benchmarks/walks.py             all five
    python benchmarks/walks.py fit check   some of them

A walk is one public call: `Reconstructor.fit`, `graphkeel.certify` of every class,
`graphkeel.check` of that certificate and `Reconstructor.adapt`, on three of the digits; and what
`keel-paper table 1` runs on all of them for its row `auto`, once its options are parsed. Counted:

* files: those of ours whose functions are entered on the way (modules that are only imported, and
  functions that Numba compiled, are not seen);
* hops: pairs (calling file, called file) that lie in two packages, each pair once. The caller is
  the nearest function of ours on the stack: what torch or argparse calls back counts as called by
  whoever called torch or argparse.

Each walk has a process of its own, so that none finds what another has left in a cache. On commit
21408e4, which the paper's part had not left yet, it counts: fit 49 files and 34 hops, certify 73
and 81, check 12 and 2, adapt 46 and 29."""

from __future__ import annotations

import argparse
import contextlib
import io
import multiprocessing
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import graphkeel
import graphkeel_paper

_ROOTS = tuple(str(Path(str(one.__file__)).parent) for one in (graphkeel, graphkeel_paper))
_DATASET = "digits:0,1,2"


@dataclass
class Walk:
    """Files entered and hops between packages, as they are met."""

    files: set[str] = field(default_factory=set)
    hops: set[tuple[str, str]] = field(default_factory=set)

    def __call__(self, frame: FrameType, event: str, _: object) -> None:
        """Note a call; what `sys.setprofile` takes."""
        if event != "call" or not _is_function(frame.f_code):
            return
        called = frame.f_code.co_filename
        self.files.add(called)
        caller = frame.f_back
        while caller is not None and not _is_function(caller.f_code):
            caller = caller.f_back
        if caller is not None and _package(caller.f_code.co_filename) != _package(called):
            self.hops.add((caller.f_code.co_filename, called))


def _is_function(code: CodeType) -> bool:
    """Whether it is a function of ours; a module's own lines are no function."""
    return code.co_name != "<module>" and code.co_filename.startswith(_ROOTS)


def _package(file: str) -> tuple[str, ...]:
    """The package of ours that a file lies in, at the first level."""
    path = Path(file)
    root = next(Path(root) for root in _ROOTS if file.startswith(f"{root}/"))
    return (root.name, *path.relative_to(root).parts[:1])


@contextlib.contextmanager
def walking() -> Iterator[Walk]:
    """Count what is called inside, on all threads."""
    walk = Walk()
    threading.setprofile(walk)
    sys.setprofile(walk)
    try:
        yield walk
    finally:
        sys.setprofile(None)
        threading.setprofile(None)


def _step(name: str, folder: Path) -> Callable[[], Any]:
    """One walk, ready to be begun: all that it needs is there."""
    if name == "table":
        return _table(folder)
    from graphkeel.graph import load
    from graphkeel.models import train_model

    task = load(_DATASET)
    model = train_model("sgc", task)
    if name in ("certify", "check"):
        return _proof(name, graphkeel.FrozenModel(model), task, folder / "certificate.json")
    reconstructor = graphkeel.Reconstructor(model, seed=0)
    if name == "fit":
        return lambda: reconstructor.fit(task.to_data())
    reconstructor.fit(task.to_data())
    return lambda: reconstructor.adapt(load(_DATASET, seed=1).to_data())


def _proof(
    name: str, frozen: graphkeel.FrozenModel, task: graphkeel.GraphTask, path: Path
) -> Callable[[], Any]:
    def certify() -> graphkeel.CertifyResult:
        return graphkeel.certify(frozen, task.x, task.edge_index)

    if name == "certify":
        return certify
    from graphkeel.certificate import write_certificate

    write_certificate(certify().certificate or {}, path)
    return lambda: graphkeel.check(path)


def _table(folder: Path) -> Callable[[], Any]:
    """The table's one job in this very process, where it is seen."""
    import joblib

    from graphkeel_paper.cli import table
    from graphkeel_paper.tables import grid

    grid._pool = lambda: joblib.parallel_config(backend="sequential")
    parser = argparse.ArgumentParser()
    table.add_arguments(parser)
    options = ["--datasets", "digits", "--only", "auto", "--seeds", "1", "--jobs", "1"]
    args = parser.parse_args(["1", *options, "--out", str(folder)])
    return lambda: table.run(args)


def counted(name: str) -> tuple[int, int]:
    """Files and hops of one walk, in a process that has done nothing before."""
    silence = io.StringIO()
    with (
        tempfile.TemporaryDirectory() as folder,
        contextlib.redirect_stdout(silence),
        contextlib.redirect_stderr(silence),
    ):
        step = _step(name, Path(folder))
        with walking() as walk:
            step()
    return len(walk.files), len(walk.hops)


def main(names: list[str]) -> None:
    """Print the counts."""
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=spawn, max_tasks_per_child=1) as processes:
        for name, counts in zip(names, processes.map(counted, names), strict=True):
            print("{:<8} {:>4} files {:>4} hops".format(name, *counts))


if __name__ == "__main__":
    main(sys.argv[1:] or ["fit", "certify", "check", "adapt", "table"])
