"""Jobs for grids under test, importable by worker processes; what they do is in the cell's method
name."""

from __future__ import annotations

import multiprocessing
import os
import sys
import time
from pathlib import Path

from graphkeel.paper.tables.cells import DONE, Cell, CellStore, Measured
from graphkeel.paper.tables.grid import Workers, run_grid
from graphkeel.paper.tables.spec import RunSpec


def number(cell: Cell) -> Measured:
    """Answers with the seed; the method `die` ends the process instead, as the kernel does when
    memory runs out."""
    if cell.spec.method == "die":
        os._exit(9)
    return Measured(
        DONE, 0.01, 1.0, {"accuracy": float(cell.seed), "base": 0.0, "pid": os.getpid()}
    )


def logged(cell: Cell) -> Measured:
    """Writes down that it was begun; from the fifth on it waits until the gate is open."""
    with Path(cell.row).open("a") as log:
        log.write(f"{cell.seed}\n")
    while cell.seed >= 4 and not gate(cell.row).exists():
        time.sleep(0.02)
    return number(cell)


def gate(log: str | Path) -> Path:
    """The file that lets the later cells of a log end."""
    return Path(f"{log}.open")


def with_pid(cell: Cell) -> Measured:
    """Takes a moment, and writes down which process began it; the row is the file."""
    with Path(cell.row).open("a") as log:
        log.write(f"{os.getpid()}\n")
    time.sleep(0.3)
    return Measured(DONE, 0.01, 1.0, {"accuracy": float(cell.seed), "base": 0.0})


def endless(cell: Cell) -> Measured:
    """Writes down which process began it, and is never done; the method `die` ends a worker of a
    pool at once."""
    if cell.spec.method == "die" and multiprocessing.current_process().name.startswith("Loky"):
        os._exit(9)
    with Path(cell.row).open("a") as log:
        log.write(f"{os.getpid()}\n")
    time.sleep(600)
    return number(cell)


def cells(row: str, count: int, method: str = "none") -> list[Cell]:
    return [Cell(row, RunSpec(method=method), seed, data="d", code="c") for seed in range(count)]


if __name__ == "__main__":  # a grid to be killed: python jobs.py STORE LOG JOB METHOD
    import jobs  # so that workers find its functions by a name they can import

    path, log, job, method = sys.argv[1:]
    store = CellStore(Path(path))
    waiting = [cell for cell in jobs.cells(log, 8, method) if store.find(cell) is None]
    run_grid(waiting, store, Workers(2), job=getattr(jobs, job))
