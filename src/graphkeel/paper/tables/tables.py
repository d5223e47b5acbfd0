"""A table: what is in each place once its cells are measured, with the published number and a note
beside it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from graphkeel.paper.tables.cells import Cell, Measured
from graphkeel.paper.tables.notes import base_note, gain_note, reading_note
from graphkeel.paper.tables.paper import TABLE_1, TABLE_3, Published
from graphkeel.paper.tables.rows import BASE, TableRow
from graphkeel.paper.tables.statistics import gain_error, paired_p, summarise

PUBLISHED = {1: TABLE_1, 3: TABLE_3}

Find = Callable[[Cell], Measured | None]


@dataclass(frozen=True)
class Place:
    """One row's number on one dataset; `mean` is None where nothing is measured, and `note` then
    says why.

    Attributes:
        seeds, asked: how many seeds the mean is over, and how many were asked for.
        difference: of our mean from the paper's.
        gain, p_value: over the untouched SGC on the same seeds, and the test of it.
        residual: ‖C(h*) − Y‖ of the worst seed, for controllers.
        seconds, peak_mb: mean time of a cell, and the largest memory of one.
        frozen: whether the method leaves the model's weights alone.
    """

    method: str
    label: str
    group: str
    dataset: str
    frozen: bool
    asked: int
    seeds: int = 0
    mean: float | None = None
    std: float | None = None
    paper: float | None = None
    paper_std: float | None = None
    difference: float | None = None
    gain: float | None = None
    p_value: float | None = None
    residual: float | None = None
    seconds: float | None = None
    peak_mb: float | None = None
    note: str = ""

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def fill_table(
    table: int,
    rows: Sequence[TableRow],
    datasets: Sequence[str],
    cells: Sequence[Cell],
    find: Find,
    *,
    asked: int,
) -> list[Place]:
    """What is measured of a table, row by row."""
    found: dict[tuple[str, str], dict[int, Measured]] = {}
    for cell in cells:
        measured = find(cell)
        if measured is not None:
            found.setdefault((cell.row, cell.spec.dataset), {})[cell.seed] = measured
    return [
        _place(
            table,
            row,
            dataset,
            found.get((row.name, dataset), {}),
            found.get((BASE.name, dataset), {}),
            asked,
        )
        for row in rows
        for dataset in datasets
    ]


def _place(
    table: int,
    row: TableRow,
    dataset: str,
    found: dict[int, Measured],
    base: dict[int, Measured],
    asked: int,
) -> Place:
    published = PUBLISHED[table].get(row.paper or "", {}).get(dataset)
    fixed: dict[str, Any] = {
        "method": row.name,
        "label": row.label,
        "group": row.group,
        "dataset": dataset,
        "frozen": row.frozen,
        "asked": asked,
        "paper": published.mean if published else None,
        "paper_std": published.std if published else None,
    }
    done = {seed: measured.result for seed, measured in found.items() if measured.done}
    if not done:
        return Place(**fixed, note=_failures(found) or "not run")
    summary = summarise([result["accuracy"] for result in done.values()])
    paired = [seed for seed in done if seed in base and base[seed].done]
    pairs = [(done[seed]["accuracy"], base[seed].result["accuracy"]) for seed in paired]
    decisions = [result.get("decision", {}) for result in done.values()]
    residuals = [decision["residual"] for decision in decisions if "residual" in decision]
    return Place(
        **fixed,
        **_against_base(row, pairs),
        seeds=summary.n,
        mean=summary.mean,
        std=summary.std,
        difference=summary.mean - published.mean if published else None,
        residual=max(residuals) if residuals else None,
        seconds=float(np.mean([measured.seconds for measured in found.values()])),
        peak_mb=max(measured.peak_mb for measured in found.values()),
        note="; ".join(
            filter(
                None, (_failures(found), _note(table, row, dataset, published, summary.mean, pairs))
            )
        ),
    )


def _against_base(row: TableRow, pairs: list[tuple[float, float]]) -> dict[str, Any]:
    if row.name == BASE.name or not pairs:
        return {}
    ours, theirs = zip(*pairs, strict=True)
    return {"gain": float(np.mean(ours) - np.mean(theirs)), "p_value": paired_p(ours, theirs)}


def _failures(found: dict[int, Measured]) -> str:
    messages = [measured.message or "" for measured in found.values() if not measured.done]
    return f"{len(messages)} failed: {'; '.join(sorted(set(messages)))}" if messages else ""


def _note(
    table: int,
    row: TableRow,
    dataset: str,
    published: Published | None,
    mean: float,
    pairs: list[tuple[float, float]],
) -> str:
    base = PUBLISHED[table]["sgc"].get(dataset)
    if base is None or row.paper is None:
        return ""
    if published is None:
        return "out of memory in the paper" if row.paper == "kdga" else "no number in the paper"
    if row.name == BASE.name:
        return base_note(dataset, mean - published.mean)
    if not pairs:
        return ""
    ours, theirs = zip(*pairs, strict=True)
    gain = float(np.mean(ours) - np.mean(theirs))
    numbers = (gain, published.mean - base.mean, gain_error(ours, theirs))
    return (
        reading_note(row.name, *numbers)
        if row.group == "reading"
        else gain_note(row.paper, *numbers)
    )


def verdicts(places: Sequence[Place], datasets: Sequence[str]) -> list[str]:
    """A sentence a dataset: is `auto` above every row that leaves the model alone, and above the
    published best?"""
    told = []
    for dataset in datasets:
        means = {
            place: place.mean
            for place in places
            if place.dataset == dataset and place.mean is not None
        }
        auto = next((mean for place, mean in means.items() if place.method == "auto"), None)
        rivals = {
            place: mean for place, mean in means.items() if place.frozen and place.method != "auto"
        }
        if auto is None or not rivals:
            continue
        best = max(rivals, key=rivals.__getitem__)
        parts = [
            _compared(
                auto, rivals[best], f"the best other row that leaves the model alone, {best.label}"
            )
        ]
        figures = [row[dataset].mean for row in TABLE_1.values() if dataset in row]
        parts += (
            [_compared(auto, max(figures), "the best number the paper published")]
            if figures
            else []
        )
        told.append(f"{dataset}: auto ({auto:.2f}) is {' and '.join(parts)}.")
    return told


def _compared(ours: float, theirs: float, whose: str) -> str:
    return (
        f"{'above' if ours > theirs else 'NOT above'} {whose} ({theirs:.2f}, {ours - theirs:+.2f})"
    )
