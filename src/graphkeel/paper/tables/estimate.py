"""How long the rest of a grid will take, from the cells that are done."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from graphkeel.paper.tables.cells import Cell


class Estimate:
    """Mean seconds of a (row, dataset), of the row, or of all cells, whichever is known first."""

    def __init__(
        self, waiting: Iterable[Cell], known: dict[tuple[str, str], float], jobs: int
    ) -> None:
        self.waiting = {cell.key: cell for cell in waiting}
        self.jobs = jobs
        self.seconds: dict[tuple[str, ...], list[float]] = defaultdict(list)
        for (row, dataset), mean in known.items():
            self._learn(row, dataset, mean)

    def _learn(self, row: str, dataset: str, seconds: float) -> None:
        for group in ((row, dataset), (row,), ()):
            self.seconds[group].append(seconds)

    def done(self, cell: Cell, seconds: float) -> None:
        self.waiting.pop(cell.key, None)
        self._learn(cell.row, cell.spec.dataset, seconds)

    def left(self) -> float | None:
        """Seconds to go; None before anything is known."""
        if not self.seconds[()]:
            return None
        return sum(self._expected(cell) for cell in self.waiting.values()) / self.jobs

    def _expected(self, cell: Cell) -> float:
        for group in ((cell.row, cell.spec.dataset), (cell.row,), ()):
            if times := self.seconds.get(group):
                return sum(times) / len(times)
        return 0.0
