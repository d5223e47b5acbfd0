"""`keel-paper table reach`: is the gain that the paper published for one replaced class reachable?

The row as it is written stands beside its other readings, two of which choose h* on the labels of
the test nodes: bounds, not results."""

from __future__ import annotations

from typing import TYPE_CHECKING

from graphkeel_paper.specs import InformedSpec, RunSpec
from graphkeel_paper.tables import published
from graphkeel_paper.tables.layout import METHODS
from graphkeel_paper.tables.plan import BASE, Plan, Request, Row, Table

if TYPE_CHECKING:
    from graphkeel_paper.tables.filled import Filled


def _reading(name: str, label: str, method: str, group: str = "reading") -> Row:
    return Row(name, label, group, method, paper="neural")


_ROWS = (
    Row("sgc", "SGC, untouched", BASE, "none", paper="sgc"),
    _reading("as-written", "as written: random class, C(h*) = e_c", "replace-one", "paper"),
    _reading("picked", "class and strength picked on validation", "replace-one-picked-m"),
    _reading("after-hops", "replaced after three hops (Eq. 4)", "replace-one-after-hops"),
    _reading("leak", "test nodes of the class replaced too", "leak"),
    _reading("bound-random", "bound: best h, random class, on test labels", "best-on-test"),
    _reading("bound-best", "bound: best h and class, on test labels", "best-class-on-test"),
)
_INFORMED = ("leak", "bound-random", "bound-best")


def _make_plan(plan: Plan, _: Request) -> Plan:
    return plan.with_jobs(_spec)


def _spec(row: Row, _: str, column: str) -> RunSpec:
    kind = InformedSpec if row.name in _INFORMED else RunSpec
    return kind(dataset=column, method=row.method)


def _sentences(table: Filled) -> list[str]:
    """Each reading's gain, and its share of the published one."""
    said = []
    base = published.TABLE_1["sgc"]
    for row in table.plan.rows[1:]:
        known = {
            cell.column: cell.gain
            for cell in table.at(row.name, "").values()
            if cell.gain is not None and cell.paper is not None
        }
        shares = [
            100 * gain / (published.TABLE_1["neural"][column].mean - base[column].mean)
            for column, gain in known.items()
        ]
        if shares:
            gains = known.values()
            said.append(
                f"{row.label}: {min(gains):+.2f} to {max(gains):+.2f}, {min(shares):.0f} to "
                f"{max(shares):.0f} % of the published gain."
            )
    return said


TABLE = Table(
    "reach",
    "Is the published gain reachable? One class replaced, test accuracy in percent",
    _ROWS,
    _make_plan,
    METHODS,
    _sentences,
    published.TABLE_1,
)
