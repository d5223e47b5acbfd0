"""Columns of the user's own, shown beside a node: text, links, and images by path."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from graphkeel.core.errors import DataError
from graphkeel.label.files import read_table

IMAGES = {
    ".png": "image/png",
    ".jpg": "image/jpeg",
    ".jpeg": "image/jpeg",
    ".gif": "image/gif",
    ".webp": "image/webp",
}
_LINKS = ("http://", "https://")


@dataclass(frozen=True)
class Shown:
    """Columns that a person sees beside a node.

    Attributes:
        columns: their names.
        cells: by node, in the order of the columns.
        folder: images lie in it; a path that leads out of it is shown as text.
        longest: characters of a cell that are shown.
    """

    columns: tuple[str, ...] = ()
    cells: Mapping[int, tuple[str, ...]] = field(default_factory=dict)
    folder: Path = Path()
    longest: int = 4000

    @classmethod
    def read(cls, path: Path) -> Shown:
        """The columns of a CSV file, of which one is `node`.

        Args:
            path: the file; paths of images in it begin at its folder.
        """
        try:
            header, *rows = read_table(path)
            if "node" not in header:
                raise ValueError(f"columns {', '.join(header)}")
            at = header.index("node")
            cells = {int(row[at]): tuple(row[:at] + row[at + 1 :]) for row in rows}
        except (OSError, UnicodeDecodeError, csv.Error, ValueError, IndexError) as error:
            raise DataError(
                f"{path} must be a CSV file with a column node of whole numbers",
                got=str(error)[:200],
            ) from error
        return cls(tuple(header[:at] + header[at + 1 :]), cells, path.parent.resolve())

    def of(self, node: int) -> list[dict[str, Any]]:
        """The cells of a node that are not empty: name, kind (text, link or image) and value.

        Args:
            node: its id.
        """
        found = []
        for number, (name, cell) in enumerate(
            zip(self.columns, self.cells.get(node, ()), strict=False)
        ):
            if self.image(node, number) is not None:
                found.append({"name": name, "kind": "image", "value": f"image/{node}/{number}"})
            elif cell.strip():
                kind = "link" if cell.startswith(_LINKS) else "text"
                found.append({"name": name, "kind": kind, "value": cell[: self.longest]})
        return found

    def image(self, node: int, column: int) -> Path | None:
        """The image that a cell names; None where it is none, missing, or outside the folder.

        Args:
            node: its id.
            column: the column's number.
        """
        row = self.cells.get(node, ())
        cell = row[column] if 0 <= column < len(row) else ""
        if Path(cell).suffix.lower() not in IMAGES or "\0" in cell:
            return None
        try:
            path = (self.folder / cell).resolve()
            return path if path.is_relative_to(self.folder) and path.is_file() else None
        except (OSError, RuntimeError):  # a name that is too long, a loop of links
            return None
