"""`keel table adapt`: a frozen model on another graph with 0 to 500 labels there, ours at three
levels of what is kept of the source beside every rival."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import chain
from typing import Any

from graphkeel.store.job import Job
from graphkeel_paper.adapt.comparison import (
    BASE,
    CONTROLS,
    Filled,
    PlacedJob,
    Plan,
    Row,
    pick_rows,
)
from graphkeel_paper.specs import AdaptSpec

NAME = "adapt"
LABEL_COUNTS = (0, 20, 50, 100, 500)
# SGC with two hops on 32 components of the source, as in the pilot study.
MODEL_OPTIONS: dict[str, dict[str, Any]] = {"sgc": {"k": 2}}

Pair = tuple[str, str]


def _ordered(*names: str) -> tuple[Pair, ...]:
    return tuple((a, b) for a in names for b in names if a != b)


CITATION_PAIRS = _ordered("citationv1", "dblpv7", "acmv9")
TWITCH_PAIRS = _ordered("twitch_ENGB", "twitch_DE", "twitch_ES")
FAMILIES = {"citations": CITATION_PAIRS, "twitch": TWITCH_PAIRS}

ROWS = (
    BASE,
    Row("auto", "auto, source at hand", "ours", "auto", "graph"),
    Row("auto-summary", "auto, summary only", "ours", "auto", "summary"),
    Row("auto-model", "auto, model only", "ours", "auto", "model"),
    Row("auto-balanced", "auto, classes count alike", "ours", "auto-balanced", "graph"),
    *CONTROLS,
    Row("t3a", "T3A", "frozen", "t3a"),
    Row("lame", "LAME", "frozen", "lame"),
    Row("cs", "Correct & Smooth", "frozen", "cs"),
    Row("smooth", "smoothing, labels clamped", "frozen", "smooth"),
    Row("lp", "label propagation", "frozen", "lp"),
    Row("gtrans", "GTrans", "frozen", "gtrans"),
    Row("matcha", "Matcha", "frozen", "matcha"),
    Row("tsa", "TSA", "frozen", "tsa", "summary"),
    Row("tent", "TENT", "trained", "tent"),
    Row("soga", "SOGA", "trained", "soga"),
    Row("homottt", "HomoTTT", "trained", "homottt"),
    Row("finetune", "fine-tuned on the target's labels", "trained", "finetune"),
    Row("target-only", "trained on the target's labels", "trained", "target-only"),
    Row("retrain", "retrained on both graphs' labels", "trained", "retrain", "graph"),
    Row("pool", "plain pool, our averaging", "trained", "pool", "graph"),
)


def plan_adapt_table(
    seeds: Sequence[int],
    *,
    only: list[str] | None = None,
    pairs: Sequence[Pair] | None = None,
    counts: Sequence[int] | None = None,
    model: str = "sgc",
    row_budget: float | None = None,
) -> Plan:
    """What has to be measured."""
    rows = pick_rows(ROWS, only)
    chosen = list(pairs or chain.from_iterable(FAMILIES.values()))
    labels = list(LABEL_COUNTS if counts is None else counts)
    placed = []
    for pair in chosen:
        for seed in seeds:
            data = _data_hash(*pair, model, seed)
            for row in rows:  # what does not depend on labels is kept from count to count
                for count in labels:
                    if row.method == "no-model" and count == 0:
                        continue  # nothing is left to decide by
                    spec = _spec(pair, model, row, count, max(labels))
                    job = Job(row.name, spec, seed, data, spec.code_version())
                    placed.append(PlacedJob(job, _block(count), spec.dataset))
    return Plan(
        name=NAME,
        title=f"Another graph: a frozen {model.upper()}, trained on the source, on the target",
        rows=rows,
        blocks=[_block(count) for count in labels],
        columns=[AdaptSpec(*pair).dataset for pair in chosen],
        seeds=list(seeds),
        placed=placed,
        sentences=sentences,
        row_budget=row_budget,
        variant=next((name for name, family in FAMILIES.items() if chosen == [*family]), None),
    )


def _spec(pair: Pair, model: str, row: Row, count: int, reserve: int) -> AdaptSpec:
    return AdaptSpec(
        *pair,
        model=model,
        method=row.method,
        keep=row.keep,
        target_labels=count,
        reserve=reserve,
        model_options=MODEL_OPTIONS.get(model, {}),
    )


def _block(count: int) -> str:
    return f"{count} target labels"


@lru_cache(maxsize=4096)
def _data_hash(source: str, target: str, model: str, seed: int) -> str:
    """Of source, split and target, in which the rows of a table do not differ."""
    return AdaptSpec(source, target, model=model).data_hash(seed)


def sentences(table: Filled) -> list[str]:
    """What the table says of our rows, block by block."""
    said = []
    for block in table.plan.blocks:
        for row in table.plan.rows:
            if row.group == "ours":
                parts = _parts(table, row, block)
                said += [f"{row.label}, {block}: {'; '.join(parts)}."] if parts else []
    return said


def _parts(table: Filled, row: Row, block: str) -> list[str]:
    mine = table.at(row.name, block)
    citation = {AdaptSpec(*pair).dataset for pair in CITATION_PAIRS}
    twitch = {AdaptSpec(*pair).dataset for pair in TWITCH_PAIRS}
    parts = []
    cells = [cell for column, cell in mine.items() if column in citation]
    gains = [cell.gain for cell in cells if cell.gain is not None]
    if gains:
        mean = sum(gains) / len(gains)
        parts.append(f"citation pairs: mean gain {mean:+.2f}, least {min(gains):+.2f}")
        present = {other.group for other in table.plan.rows}
        if "frozen" in present:
            first = sum(table.is_above(cell, ("frozen", "base")) for cell in cells)
            parts.append(f"first among frozen rows on {first} of {len(gains)}")
        if "trained" in present:
            above = sum(table.is_above(cell, ("trained",)) for cell in cells)
            parts.append(f"above every trained row on {above} of {len(gains)}")
    balanced = [cell.balanced_gain for column, cell in mine.items() if column in twitch]
    known = [gain for gain in balanced if gain is not None]
    if known:
        parts.append(f"Twitch pairs: balanced accuracy at worst {min(known):+.2f}")
    return parts
