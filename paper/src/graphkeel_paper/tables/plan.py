"""A table: rows × blocks × columns × seeds, each of them a job of the store.

A `Table` is a declaration, a `Plan` the part of it that was asked for, with its jobs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from graphkeel.core.errors import ConfigError
from graphkeel.graph.datasets import PAPER_DATASETS
from graphkeel.store.job import Job
from graphkeel_paper.specs import AdaptSpec, RunSpec
from graphkeel_paper.tables.published import Published

if TYPE_CHECKING:
    from graphkeel_paper.tables.filled import Filled
    from graphkeel_paper.tables.layout import Layout

BASE = "base"  # the group of rows that others are compared with
WORDS = "rownorm"  # the words themselves, rows divided by their sums


@dataclass(frozen=True)
class Row:
    """One row: its names, the method that computes it, and the row of the paper it answers.

    Groups: `base`, `paper`, `reading` (another reading of the paper's row), `protocol` (the paper's
    row under settings that fit it), `ours`, `control` (ours without the trained model), rivals
    (`rival`, `frozen`; `averaged`, `selftrained`), or rows that train something (`reference`,
    `trained`). p-values are corrected over the rows of a group."""

    name: str  # for --only
    label: str  # for print
    group: str
    method: str  # that `find_method` knows
    model: str = "sgc"  # this and the next three as in `RunSpec`, where the table leaves them open
    labels: str = "train"
    features: str = "auto"
    split: str = "biased"
    options: dict[str, Any] = field(default_factory=dict)  # of the method
    paper: str | None = None  # the row in the paper's table, where it has one
    base: str | None = None  # the row that gains are over; None: the table's
    datasets: tuple[str, ...] | None = None  # the columns it has; None: all of them
    frozen: bool = True  # whether the model's weights stay as they are
    own_model: bool = False  # keeps its model and features whatever the table's are
    heavy: bool = False  # minutes a job on the larger graphs; computed last

    def has(self, column: str) -> bool:
        """Whether the row has a column."""
        return self.datasets is None or column in self.datasets


UNTOUCHED = Row("none", "untouched", BASE, "none")
CONTROLS = (
    Row("no-model", "auto without the model's evidence", "control", "no-model"),
    Row("random-weights", "auto on random weights", "control", "random-weights"),
    Row("posterior-alone", "auto's decision, before steering", "control", "posterior-alone"),
)
RIVALS = (
    Row("t3a", "T3A", "frozen", "t3a"),
    Row("lame", "LAME", "frozen", "lame"),
    Row("cs", "Correct & Smooth", "frozen", "cs"),
    Row("smooth", "smoothing, labels clamped", "frozen", "smooth"),
    Row("lp", "label propagation", "frozen", "lp"),
)


@dataclass(frozen=True)
class Request:
    """The part of a table that is asked for; None stands for the table's own choice."""

    seeds: Sequence[int]
    only: list[str] | None = None  # names of rows
    datasets: Sequence[str] | None = None
    pairs: Sequence[tuple[str, str]] | None = None
    counts: Sequence[int] | None = None  # of target labels
    labels: str = "train"
    model: str | None = None
    features: str = "auto"
    row_budget: float | None = None  # processor seconds a job may take


@dataclass(frozen=True)
class Table:
    """The declaration of a table."""

    name: int | str  # the paper's number, or a word
    title: str
    rows: tuple[Row, ...]  # gains are over the first
    make_plan: Callable[[Plan, Request], Plan]  # completes a plan of all rows and one block
    layout: Layout
    sentences: Callable[[Filled], list[str]]  # what the filled table shows, in words
    published: dict[str, dict[str, Published]] | None = None  # by row and column

    def plan(self, request: Request) -> Plan:
        """The jobs of a request."""
        plan = Plan(
            self,
            self.pick(request.only),
            blocks=[""],
            columns=list(request.datasets or PAPER_DATASETS),
            seeds=list(request.seeds),
            row_budget=request.row_budget,
            variant=None,
            title=self.title,
        )
        return self.make_plan(plan, request)

    def base_of(self, row: Row) -> str:
        """The name of the row that a row's gains are over."""
        return row.base or self.rows[0].name

    def pick(self, only: list[str] | None) -> list[Row]:
        """The rows asked for, and those that they are compared with."""
        names = [row.name for row in self.rows]
        unknown = sorted(set(only or ()) - set(names))
        if unknown:
            raise ConfigError(
                f"table {self.name} has the rows {', '.join(names)}", got=", ".join(unknown)
            )
        if only is None:
            return list(self.rows)
        own = {row.base for row in self.rows}  # needed with the rows that name them alone
        always = {row.name for row in self.rows if row.group == BASE} - own
        wanted = always | {row.name for row in self.rows if row.name in only}
        wanted |= {self.base_of(row) for row in self.rows if row.name in wanted}
        return [row for row in self.rows if row.name in wanted]


@dataclass(frozen=True)
class PlacedJob:
    """A job, and the cell that it belongs to."""

    job: Job
    block: str
    column: str


@dataclass(frozen=True)
class Plan:
    """A table that is to be measured, or was."""

    table: Table
    rows: list[Row]
    blocks: list[str]  # a table without blocks has one, which is empty
    columns: list[str]
    seeds: list[int]
    row_budget: float | None
    variant: str | None  # which part of the table it is, where a part has files of its own
    title: str
    placed: list[PlacedJob] = field(default_factory=list)  # none of a table that comes from a file

    @property
    def file(self) -> str:
        """The name of its files, without a suffix."""
        return "-".join(filter(None, (f"table-{self.table.name}", self.variant)))

    @property
    def jobs(self) -> list[Job]:
        """The jobs in the order in which they are best computed."""
        return [one.job for one in self.placed]

    def with_jobs(
        self, spec_of: Callable[[Row, str, str], RunSpec | AdaptSpec | None], **changes: Any
    ) -> Plan:
        """The changed plan with the job of every row, block, column and seed that has a
        specification.

        Rows of one column, seed and base model share its training, so they come together. Heavy
        rows come last and seed by seed: a run that is killed then has the most to show, and the
        first seed says what the others cost."""
        plan = replace(self, **changes)
        rows = sorted(plan.rows, key=lambda row: row.model)
        light = [(column, seed) for column in plan.columns for seed in plan.seeds]
        heavy = [(column, seed) for seed in plan.seeds for column in plan.columns]
        placed = [
            PlacedJob(_job(row, spec, seed), block, column)
            for is_heavy, places in ((False, light), (True, heavy))
            for column, seed in places
            for row in rows
            if row.heavy is is_heavy and row.has(column)
            for block in plan.blocks
            if (spec := spec_of(row, block, column)) is not None
        ]
        return replace(plan, placed=placed)


def _job(row: Row, spec: RunSpec | AdaptSpec, seed: int) -> Job:
    if isinstance(spec, AdaptSpec):
        data = _pair_hash(spec.source, spec.target, spec.features, seed)
    else:
        data = _split_hash(spec.dataset, spec.features, spec.split, seed)
    return Job(row.name, spec, seed, data, spec.code_version())


@lru_cache(maxsize=4096)
def _split_hash(dataset: str, features: str, split: str, seed: int) -> str:
    """Of the split and its features, in which most rows of a table do not differ."""
    return RunSpec(dataset, features=features, split=split).data_hash(seed)


@lru_cache(maxsize=4096)
def _pair_hash(source: str, target: str, features: str, seed: int) -> str:
    """Of source, split and target, in which the rows of a table do not differ."""
    return AdaptSpec(source, target, features=features).data_hash(seed)
