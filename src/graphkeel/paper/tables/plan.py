"""The cells that a table needs, in the order in which they are best computed."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from graphkeel.paper.tables.cells import Cell
from graphkeel.paper.tables.fingerprint import method_version
from graphkeel.paper.tables.rows import TableRow


def needed_cells(
    rows: Sequence[TableRow], datasets: Sequence[str], seeds: Sequence[int], *, heavy_seeds: int = 1
) -> list[Cell]:
    """Every cell: all rows of a dataset's seed together, as they share the base model; the heavy
    rows last, so that a run that is killed has the most to show."""
    cells = []
    for heavy in (False, True):
        for dataset in datasets:
            for place, seed in enumerate(seeds):
                wanted = [
                    r
                    for r in rows
                    if r.heavy is heavy and place < r.seeds(dataset, len(seeds), heavy_seeds)
                ]
                cells += [_cell(row, dataset, seed) for row in wanted]
    return cells


def _cell(row: TableRow, dataset: str, seed: int) -> Cell:
    spec = row.spec(dataset)
    return Cell(row.name, spec, seed, _data_hash(dataset, seed, row.features), method_version(spec))


@lru_cache(maxsize=4096)
def _data_hash(dataset: str, seed: int, features: str) -> str:
    """Of the split and its features, in which the rows of a table do not differ."""
    return TableRow("", "", "", "none", features=features).spec(dataset).task(seed).hash
