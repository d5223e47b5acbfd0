"""Every table by its name."""

from __future__ import annotations

from graphkeel_paper.tables import adapt, citations, examination, ingraph, papers, reach
from graphkeel_paper.tables.plan import Table

_ALL = (
    papers.TABLE_1,
    papers.TABLE_3,
    reach.TABLE,
    adapt.TABLE,
    citations.TABLE,
    ingraph.TABLE,
    examination.TABLE,
)
TABLES: dict[int | str, Table] = {table.name: table for table in _ALL}
