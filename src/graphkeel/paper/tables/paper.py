"""The figures the paper published (its Tables 1 and 3): mean and standard deviation of test
accuracy in percent."""

from __future__ import annotations

from typing import NamedTuple

from graphkeel.graph.datasets.names import PAPER_DATASETS


class Published(NamedTuple):
    mean: float
    std: float


def _row(*cells: tuple[float, float] | None) -> dict[str, Published]:
    return {
        name: Published(*cell)
        for name, cell in zip(PAPER_DATASETS, cells, strict=True)
        if cell is not None
    }


TABLE_1: dict[str, dict[str, Published]] = {
    "sgc": _row((64.36, 2.90), (60.46, 2.06), (50.68, 3.00), (83.69, 0.37), (69.35, 0.20)),
    "mh-aug": _row((62.98, 4.05), (61.40, 1.08), (51.31, 4.02), (84.44, 3.71), (69.74, 2.56)),
    "kdga": _row((66.27, 2.82), (57.63, 3.01), None, None, None),  # out of memory in the paper
    "frgnn-sgc": _row((64.89, 3.08), (60.97, 1.89), (51.27, 3.28), (84.73, 0.27), (69.28, 0.34)),
    "frgnn-gcn": _row((65.12, 2.89), (61.02, 2.33), (52.37, 2.69), (84.21, 0.35), (69.59, 0.22)),
    "neural": _row((67.22, 2.27), (62.54, 1.82), (52.90, 2.91), (84.96, 0.29), (70.64, 0.19)),
}

TABLE_3: dict[str, dict[str, Published]] = {
    "sgc": TABLE_1["sgc"],
    "mfac": _row((63.13, 3.42), (56.73, 3.80), (51.97, 2.78), None, None),
    "neural": TABLE_1["neural"],
}


def published(row: str, dataset: str) -> Published | None:
    """A cell of Table 1, or None where the paper has none."""
    return TABLE_1.get(row, {}).get(dataset)
