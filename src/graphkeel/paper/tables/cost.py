"""What a table cost, in processor time: unlike seconds on the wall, other work on the same cores
hardly changes it."""

from __future__ import annotations

from collections.abc import Iterable

from graphkeel.paper.tables.cells import Cell, Measured
from graphkeel.paper.tables.rows import LARGE, TableRow
from graphkeel.paper.tables.tables import Find

CPU_SECONDS = "cpu_seconds"  # in a cell's result


def cost_remarks(rows: Iterable[TableRow], cells: Iterable[Cell], find: Find) -> list[str]:
    """A sentence on all stored cells, told apart where some are of the heavy kind that run fewer
    seeds."""
    heavy = {row.name for row in rows if row.heavy}
    light_cells: list[Measured] = []
    heavy_cells: list[Measured] = []
    for cell in {cell.key: cell for cell in cells}.values():
        measured = find(cell)
        if measured is not None:
            kind = heavy_cells if cell.row in heavy and cell.spec.dataset in LARGE else light_cells
            kind.append(measured)
    told = [f"cost: {_sum(light_cells)}"] if light_cells else []
    if heavy_cells:
        told.append(
            f"cost of the rows that run fewer seeds, on {', '.join(LARGE)}: {_sum(heavy_cells)}"
        )
    return told


def _sum(cells: list[Measured]) -> str:
    cpu = [cell.result[CPU_SECONDS] for cell in cells if CPU_SECONDS in cell.result]
    known = f"{sum(cpu) / 60:.1f} min of one core's time" if cpu else "processor time not recorded"
    known += f" ({len(cpu)} of them recorded)" if cpu and len(cpu) < len(cells) else ""
    return f"{len(cells)} cells, {known}, at most {max(cell.peak_mb for cell in cells) / 1024:.1f} GB a worker."
