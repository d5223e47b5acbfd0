"""Figures in README, docs and paper/docs, made from the stored runs and the code; a test compares
them.

    python benchmarks/figures_in_docs.py            says which pages differ; exit 1 if any does
    python benchmarks/figures_in_docs.py --write    writes them

A block stands between `<!-- figures: NAME -->` and `<!-- end -->`: a table or a sentence from a
file in benchmarks/results. A value in a line of prose stands between `<!-- value: NAME -->` and
`<!-- end -->`, NAME the dotted name of a number in the code: a default of an argument, or a field
of a settings class."""

from __future__ import annotations

import argparse
import importlib
import inspect
import json
import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
ROOT = HERE.parent
PAGES = (
    ROOT / "README.md",
    *sorted(ROOT.glob("docs/*.md")),
    *sorted(ROOT.glob("paper/docs/*.md")),
)
DATASETS = ("cora", "citeseer", "pubmed", "photo", "computers")
# how the note of a cell begins whose first seed was stopped
STOPPED = re.compile(r"(?:over|1 failed: stopped after) (\d+) s")
# a note whose verdict is about other settings of the base, and what may stand before a verdict
PROTOCOL = re.compile(r"this protocol (fits|does not fit) the published base within a point (.*)")
FAILURES = re.compile(r"\d+ failed: .*?; (?=(?:not |gain )?reproduced|this protocol)")
MINUS = re.compile(r"-(?=\d)")
BLOCK = re.compile(r"(<!-- figures: (\S+) -->\n)(.*?)(<!-- end -->)", re.DOTALL)
VALUE = re.compile(r"(<!-- value: (\S+) -->)(.*?)(<!-- end -->)", re.DOTALL)

Cell = dict[str, Any]


@lru_cache(maxsize=8)
def cells(name: str) -> list[Cell]:
    """The cells of a stored table; none where it was not measured yet.

    Args:
        name: of the file in benchmarks/results, without its suffix.
    """
    content = _content(name)
    rows: list[Cell] = content.get("rows", [])
    return rows


def _content(name: str) -> dict[str, Any]:
    path = HERE / "results" / f"{name}.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


@lru_cache(maxsize=8)
def stored(name: str) -> dict[tuple[str, str], Cell]:
    """The cells of a stored table, by (method, dataset).

    Args:
        name: of the file in benchmarks/results, without its suffix.
    """
    return {(row["method"], row["dataset"]): row for row in cells(name)}


def mean(table: str, method: str, dataset: str) -> str:
    """A mean with one decimal; a dash where nothing was run, the seeds where they are fewer.

    Args:
        table: a file in benchmarks/results.
        method: the row.
        dataset: the column.
    """
    cell = stored(table).get((method, dataset))
    if cell is None:
        return "–"
    if cell["mean"] is None:
        stopped = STOPPED.match(cell["note"])
        return f"*over {stopped[1]} s*" if stopped else "–"
    few = f" (n = {cell['seeds']})" if cell["seeds"] < cell["asked"] else ""
    return f"{cell['mean']:.1f}{few}"


def gain(table: str, method: str, dataset: str, name: str = "gain") -> str:
    """A gain with one decimal.

    Args:
        table: a file in benchmarks/results.
        method: the row.
        dataset: the column.
        name: of the field: gain, or gain_tuned.
    """
    cell = stored(table).get((method, dataset))
    value = None if cell is None else cell.get(name)
    return "–" if value is None else signed(value)


def published(table: str, method: str, dataset: str) -> str:
    """The paper's own figure, in italics.

    Args:
        table: a file in benchmarks/results.
        method: the row.
        dataset: the column.
    """
    cell = stored(table).get((method, dataset), {})
    if cell.get("paper") is not None:
        return f"*{cell['paper']:.1f}*"
    return "*out of memory*" if method == "kdga" else "–"


def table(lines: list[list[str]]) -> str:
    """A Markdown table; the first line is its head. Rows of which nothing is stored are left out.

    Args:
        lines: of the same length.
    """
    rule = ["---"] * len(lines[0])
    empty = {"–", "**–**"}
    measured = [line for line in lines[1:] if not set(line[1:]) <= empty]
    rows = [lines[0], rule, *measured] if measured else []
    return "".join(f"| {' | '.join(line)} |\n" for line in rows)


def _titles() -> list[str]:
    return [name.capitalize() for name in DATASETS]


def _line(
    label: str, file: str, method: str, show: Callable[..., str] = mean, **options: str
) -> list[str]:
    return [label, *(show(file, method, dataset, **options) for dataset in DATASETS)]


def _bold(line: list[str]) -> list[str]:
    return [f"**{text}**" for text in line]


def readme() -> str:
    """The table of README.md."""
    half = "table-1-half-val"
    same = {
        "cs": "Correct & Smooth",
        "retrain": "the same SGC, trained",
        "appnp-words": "APPNP on all words, trained",
    }.items()
    return table(
        [
            ["", *_titles()],
            _line("untouched", "table-1", "sgc"),
            _line("untouched, tuned on validation", "table-1", "sgc-tuned"),
            _line("the paper's recipe, one class", "table-1", "neural"),
            _line("T3A", "table-1", "t3a"),
            _line("Correct & Smooth", "table-1", "cs"),
            _line("the same SGC, trained on the same labels", "table-1", "retrain"),
            _bold(_line("graphkeel", "table-1", "auto")),
            _line("graphkeel, no model: its answers are left out", "table-1", "no-model"),
            _line("graphkeel, random weights in the model", "table-1", "random-weights"),
            *(_line(f"{label}, half the validation labels, too", half, row) for row, label in same),
            _bold(_line("graphkeel, half the validation labels fed back", half, "auto")),
        ]
    )


PAPER_ROWS = {
    "sgc": "SGC, untouched",
    "mh-aug": "MH-AUG (retrains)",
    "kdga": "KDGA (retrains)",
    "frgnn-sgc": "FRGNN on SGC, one class",
    "frgnn-gcn": "FRGNN on a GCN of its own (trained), one class",
    "neural": "neural controller, one class",
}
OTHER_ROWS = {
    "auto-balanced": "`auto`, classes count alike",
    "auto-tuned": "`auto` on the tuned SGC",
    "no-model": "`auto` without the model's evidence",
    "random-weights": "`auto` on random weights",
    "posterior-alone": "`auto`'s decision, before steering",
    "t3a": "T3A",
    "cs": "Correct & Smooth",
    "smooth": "smoothing, labels clamped",
    "lame": "LAME",
    "lp": "label propagation",
    "gtrans": "GTrans",
    "t3a+self": "T3A, a round of self-training",
    "cs+self": "Correct & Smooth, a round of self-training",
    "smooth+self": "smoothing, a round of self-training",
    "lp+self": "label propagation, a round of self-training",
    "rivals+avg": "T3A, C&S, smoothing, LAME, LP in one pool, our averaging",
    "retrain": "SGC trained on the same labels",
    "retrain+self": "SGC trained on the same labels, a round of self-training",
    "gcn-words": "GCN on words, trained on the same labels",
    "appnp-words": "APPNP on words, trained on the same labels",
    "srgnn": "SR-GNN (retrains)",
}
CONTROLS = ("no-model", "random-weights", "posterior-alone")
BUDGET_ROWS = (
    *CONTROLS,
    *("t3a", "cs", "smooth", "lame", "lp", "t3a+self", "cs+self", "smooth+self", "lp+self"),
    *("rivals+avg", "retrain", "retrain+self", "gcn-words", "appnp-words"),
)


def training_labels() -> str:
    """Table 1 in docs/results.md."""
    lines = [["test accuracy, training labels only", *_titles()]]
    for method, label in PAPER_ROWS.items():
        lines.append(_line(label, "table-1", method))
        lines.append(_line("*paper*", "table-1", method, published))
    lines.append(_line("SGC tuned on validation, untouched", "table-1", "sgc-tuned"))
    lines.append(_bold(_line("`auto`", "table-1", "auto")))
    lines.append(_line("gain over the untouched SGC", "table-1", "auto", gain))
    tuned = {"name": "gain_tuned"}
    lines.append(_line("gain over the tuned SGC", "table-1", "auto", gain, **tuned))
    return table([*lines, *_others("table-1", tuple(OTHER_ROWS))])


def _others(file: str, methods: tuple[str, ...]) -> list[list[str]]:
    """The lines of rows that the stored table has."""
    there = {method for method, _ in stored(file)}
    return [_line(OTHER_ROWS[one], file, one) for one in methods if one in there]


def _budget(title: str, file: str) -> str:
    lines = [[title, *_titles()], _bold(_line("`auto`", file, "auto"))]
    lines.append(_line("gain", file, "auto", gain))
    return table([*lines, *_others(file, BUDGET_ROWS)])


def half_val() -> str:
    """Half of the validation labels fed back, in docs/results.md."""
    return _budget("half of the validation labels fed back", "table-1-half-val")


def all_val() -> str:
    """All validation labels used, in docs/results.md."""
    return _budget("all validation labels used", "table-1-val")


PROTOCOL_ROWS = {
    "sgc-one-split": "SGC, one random split, ten initialisations",
    "frgnn-sgc-one-split": "FRGNN on SGC, the same",
    "neural-one-split": "neural controller, the same",
    "sgc-lr0.01": "SGC with lr 0.01, weight decay 5e-4, 200 epochs",
    "frgnn-sgc-lr0.01": "FRGNN on SGC, the same",
    "neural-lr0.01": "neural controller, the same",
}


def every_published_number() -> str:
    """One line for each published number, with the verdict and the command, in
    paper/docs/reproducing.md."""
    reasons: dict[str, str] = {}
    lines = [["row", "dataset", "paper", "ours", "", "`keel-paper table …`"]]
    for number, rows in (
        (1, {**PAPER_ROWS, **PROTOCOL_ROWS}),
        (3, {"mfac-blind": "MFAC, blind start"}),
    ):
        for method, label in rows.items():
            for dataset in DATASETS:
                cell = stored(f"table-{number}").get((method, dataset))
                if cell is None or (cell["paper"] is None and not cell["note"]):
                    continue
                if cell["paper"] is None and "out of memory" not in cell["note"]:
                    continue
                shown = mean(f"table-{number}", method, dataset)
                figure = published(f"table-{number}", method, dataset)
                budget = " --row-budget 0" if STOPPED.match(cell["note"]) else ""
                command = f"`{number} --only {method} --datasets {dataset}{budget}`"
                verdict = _verdict(cell["note"], reasons)
                lines.append([label, dataset.capitalize(), figure, shown, verdict, command])
    why = "".join(f"- [{letter}] {reason}\n" for reason, letter in reasons.items())
    return f"{table(lines)}\n{why}"


def _verdict(note: str, reasons: dict[str, str]) -> str:
    """Reproduced, not reproduced or not measured, as a note says; its reason gets a letter."""
    note = FAILURES.sub("", note)
    under = PROTOCOL.match(note)
    if under:
        place = "within a point " if under[1] == "fits" else ""
        verdict = "reproduced" if under[1] == "fits" else "not reproduced"
        return f"{verdict} {place}under these settings {under[2]}"
    if STOPPED.match(note) or note == "not run":
        return f"not measured: {note}"
    if "reproduced" not in note:
        return note
    head, _, rest = note.partition(": ")
    if head == "not reproduced":
        gains, _, reason = rest.partition(": ")
        head = f"not reproduced ({gains})"
    else:
        reason = rest
    if not reason:
        return head
    letter = reasons.setdefault(reason, "abcdefghijklmnopqrstuvwxyz"[len(reasons)])
    return f"{head} [{letter}]"


def literal() -> str:
    """Results of Algorithm 1 by dataset: accuracy, rounds, how near C(h*) is to Y, verdicts."""
    lines = [["", *_titles()]]
    for method, label in (("literal", "Algorithm 1 as printed"), ("neural-paper", "the free form")):
        runs = [run for run in _content("table-1").get("runs", []) if run["row"] == method]
        proofs = {
            name: [p for r in runs if r["column"] == name for p in r.get("proofs", [])]
            for name in DATASETS
        }
        if not all(proofs.values()):
            continue
        lines.append(_line(f"{label}: accuracy", "table-1", method))
        lines.append(_line("gain", "table-1", method, gain))
        rounds = {name: sorted({proof["rounds"] for proof in proofs[name]}) for name in DATASETS}
        lines.append(["rounds", *(_span(rounds[name]) for name in DATASETS)])
        missed = [stored("table-1")[method, name]["residual"] for name in DATASETS]
        lines.append(["largest ‖C(h\\*) − Y‖", *(f"{one:.3g}" for one in missed)])
        lines.append(["V > 0, ΔV < 0", *(_verdicts(proofs[name]) for name in DATASETS)])
    return table(lines) or "Not stored yet: `keel-paper table 1 --only literal,neural-paper`.\n"


def _span(values: list[int]) -> str:
    return f"{values[0]} to {values[-1]}" if len(values) > 1 else str(values[0])


def _verdicts(proofs: list[dict[str, Any]]) -> str:
    """How often both conditions were proved, one was refuted, or neither."""
    found = [set(proof["conditions"].values()) for proof in proofs]
    refuted = sum("refuted" in one for one in found)
    proved = sum(one == {"proved"} for one in found)
    counts = {"proved": proved, "refuted": refuted, "unknown": len(found) - proved - refuted}
    return ", ".join(f"{count} {name}" for name, count in counts.items() if count)


def reach() -> str:
    """Gains of every reading of the paper's one-class row beside the published gain, and the shares
    of it, in paper/docs/reproducing.md."""
    found = stored("table-reach")
    labels = {cell["method"]: cell["label"] for cell in cells("table-reach")}
    base, *readings = labels
    lines = [["gain over the untouched SGC", *_titles()], ["*published*"]]
    for dataset in DATASETS:
        figure = found[(readings[0], dataset)]["paper"] - found[(base, dataset)]["paper"]
        lines[1].append(f"*{_hundredths(figure)}*")
    for method in readings:
        gains = [found[(method, dataset)]["gain"] for dataset in DATASETS]
        lines.append([labels[method], *("–" if g is None else _hundredths(g) for g in gains)])
    said = [line for line in _content("table-reach")["verdicts"] if "published gain" in line]
    shares = "".join(f"- {line}\n" for line in said)
    return f"{table(lines)}\n{MINUS.sub('−', shares)}"


def _hundredths(value: float) -> str:
    text = MINUS.sub("−", f"{value:+.2f}")
    return "0.00" if text in ("+0.00", "−0.00") else text


# ---- another graph, and every label serving


def moved(file: str, name: str = "") -> str:
    """Gains on another graph, a column for each number of labels: mean over the pairs, lowest
    pair, worst seed.

    Args:
        file: a table in benchmarks/results.
        name: what the gain is of: nothing (accuracy), `balanced_` or `auc_`.
    """
    rows = cells(file)
    blocks = list(dict.fromkeys(cell["block"] for cell in rows))
    lines = [["target labels, drawn at random", *(block.split()[0] for block in blocks)]]
    for label in dict.fromkeys(cell["label"] for cell in rows if cell["group"] != "base"):
        mine = [cell for cell in rows if cell["label"] == label]
        shown = [_over_pairs([c for c in mine if c["block"] == block], name) for block in blocks]
        title = label.replace("auto,", "`auto`,")
        lines.append([f"*{title}*" if mine[0]["group"] == "trained" else title, *shown])
    return table(lines)


def _over_pairs(pairs: list[Cell], name: str) -> str:
    gains = [cell.get(f"{name}gain") for cell in pairs]
    worst = [cell.get(f"{name}worst") for cell in pairs]
    if None in gains:
        return "–"
    values = (sum(gains) / len(gains), min(gains), min(worst))
    average, lowest, least = (signed(value) for value in values)
    return average if average == lowest == least else f"{average} ({lowest}, {least})"


def signed(value: float) -> str:
    """With one decimal and its sign; nothing has none.

    Args:
        value: a gain.
    """
    text = f"{value:+.1f}".replace("-", "−")
    return "0.0" if text in ("+0.0", "−0.0") else text


def by_graph(file: str, block: str | None = None) -> str:
    """A column for each graph: mean, and the worst split's gain.

    Args:
        file: a table in benchmarks/results.
        block: of the table, where it has several.
    """
    rows = [cell for cell in cells(file) if block in (None, cell["block"])]
    columns = list(dict.fromkeys(cell["column"] for cell in rows))
    lines = [["", *columns]]
    for label in dict.fromkeys(cell["label"] for cell in rows):
        mine = {cell["column"]: cell for cell in rows if cell["label"] == label}
        lines.append([label, *(_with_worst(mine[column]) for column in columns)])
    return table(lines)


def areas(file: str, block: str) -> str:
    """A column for each pair of graphs: mean area under the ROC curve.

    Args:
        file: a table in benchmarks/results.
        block: of the table.
    """
    rows = [c for c in cells(file) if c["block"] == block and c.get("auc") is not None]
    columns = list(dict.fromkeys(cell["column"] for cell in rows))
    found = {(cell["label"], cell["column"]): f"{cell['auc']:.1f}" for cell in rows}
    labels = dict.fromkeys(cell["label"] for cell in rows)
    lines = [[label, *(found.get((label, column), "–") for column in columns)] for label in labels]
    return table([["", *columns], *lines])


def _with_worst(cell: Cell) -> str:
    if cell["group"] == "published":
        return f"{cell['paper']:.1f}"
    if cell["mean"] is None:
        return "–"
    few = f", n = {cell['seeds']}" if cell["seeds"] < cell["asked"] else ""
    if cell["group"] == "base":
        return f"{cell['mean']:.2f}{few}"
    return f"{cell['mean']:.2f} ({signed(cell['worst'])}{few})"


def controllers() -> str:
    """Accuracy and residual of each controller, in docs/results.md."""
    found = stored("table-3")
    lines = [["", *_titles()]]
    for method, label in {cell["method"]: cell["label"] for cell in cells("table-3")}.items():
        row = [found.get((method, dataset)) for dataset in DATASETS]
        lines.append([label, *(_with_residual(cell) for cell in row)])
    return table(lines)


def _with_residual(cell: Cell | None) -> str:
    if cell is None or cell["mean"] is None:
        return "–"
    missed = "" if cell.get("residual") is None else f" ({cell['residual']:.1g})"
    return f"{cell['mean']:.2f}{missed}"


GRID = (
    "table-1",
    "table-3",
    "table-reach",
    "table-1-half-val",
    "table-1-val",
    "table-examination",
    "table-ingraph-sgc",
    "table-ingraph-gcn",
    "table-adapt-citations",
    "table-adapt-twitch",
    "table-citations",
)


def cost() -> str:
    """Cost of each table of `make tables`: runs, and hours of one core's time."""
    lines = [["table", "runs", "hours of one core's time"]]
    hours = []
    for name in GRID:
        path = HERE / "results" / f"{name}.json"
        runs = json.loads(path.read_text(encoding="utf-8"))["runs"] if path.exists() else []
        hours.append(sum(run.get("cpu_seconds") or run["seconds"] for run in runs) / 3600)
        lines.append([f"`{name}`", f"{len(runs):,}", f"{hours[-1]:.2f}"])
    lines.append(["together", "", f"{sum(hours):.1f}"])
    return table(lines)


# ---- sentences


def rank(file: str, block: str | None = None) -> str:
    """How often `auto` is above the rows that are not ours, who is ahead of it elsewhere, which of
    its own controls are, and its worst split.

    Args:
        file: a table in benchmarks/results.
        block: of the table, where it has several.
    """
    found = [cell for cell in cells(file) if block in (None, cell.get("block"))]
    columns = list(dict.fromkeys(_column(cell) for cell in found if cell["method"] == "auto"))
    first = 0
    ahead: dict[bool, list[str]] = {False: [], True: []}
    for column in columns:
        own = next(c["mean"] for c in found if _column(c) == column and c["method"] == "auto")
        better = [cell for cell in _others_in(found, column) if cell["mean"] > own]
        first += not any(cell["group"] != "control" for cell in better)
        for cell in better:
            lead = f"{cell['label']} on {column} by {cell['mean'] - own:.2f}"
            ahead[cell["group"] == "control"].append(lead)
    sentence = (
        f"`auto` is above every other method that was run on {first} of {len(columns)} graphs."
    )
    if ahead[False]:
        sentence += f" Ahead of it: {'; '.join(ahead[False])}."
    if ahead[True]:
        sentence += f" Its own controls ahead of it: {'; '.join(ahead[True])}."
    worst = [f"{signed(_worst(file, found, column))} on {column}" for column in columns]
    return f"{sentence} The worst split gains {', '.join(worst)}.\n"


def rank_moved(file: str, name: str = "") -> str:
    """Who gains most on average over the pairs, for each number of labels.

    Args:
        file: a table in benchmarks/results.
        name: what the gain is of: nothing (accuracy), or `balanced_`.
    """
    field = f"{name}gain"
    stated = []
    for block in dict.fromkeys(cell["block"] for cell in cells(file)):
        gains: dict[str, list[float]] = {}
        for cell in cells(file):
            if cell["block"] == block and cell[field] is not None:
                gains.setdefault(cell["label"], []).append(cell[field])
        means = {label: sum(values) / len(values) for label, values in gains.items()}
        best = max(means, key=lambda label: means[label])
        stated.append(f"{best} with {block.split()[0]} ({signed(means[best])})")
    return f"The largest mean gain, by labels: {', '.join(stated)}.\n"


def gap() -> str:
    """Differences of our rows from A2GNN, pair by pair, and the cost of all of it."""
    found = _content("table-citations").get("verdicts", [])
    kept = [line for line in found if "minus A2GNN" in line or line.startswith("cost")]
    seeds = {cell["seeds"] for cell in cells("table-citations") if cell["mean"] is not None}
    asked = max(cell["asked"] for cell in cells("table-citations"))
    how_many = f"{min(seeds)} to {max(seeds)}" if len(seeds) > 1 else f"{min(seeds)}"
    kept.append(f"seeds behind each of these figures: {how_many} of {asked}.")
    return MINUS.sub("−", "".join(f"- {line}\n" for line in kept))


def missing() -> str:
    """The rows of stored tables that lack seeds, and why, in paper/docs/reproducing.md."""
    lines = [["table", "row", "cells", "seeds", "why"]]
    for name in GRID:
        lacking: dict[tuple[str, int, str], int] = {}
        for cell in cells(name):
            absent = cell["mean"] is None and not cell["note"]  # the row has no such column
            if cell["seeds"] < cell["asked"] and not absent and cell["group"] != "published":
                why = re.sub(r"stopped after \d+ s.*", "its first seed was stopped", cell["note"])
                where = (cell["label"], cell["seeds"], why or "the others were not run")
                lacking[where] = lacking.get(where, 0) + 1
        rows = [[f"`{name}`", row, str(n), str(s), why] for (row, s, why), n in lacking.items()]
        lines += rows
    fewer = sorted({(c["asked"], name) for name in GRID for c in cells(name) if c["asked"] < 10})
    rest = "".join(f"- `{name}` has {asked} seeds in every cell.\n" for asked, name in fewer)
    return f"{table(lines)}\n{rest}"


def provenance() -> str:
    """Which commit computed the runs of each row, in paper/docs/reproducing.md."""
    lines = [["table, written by", "computed by", "rows"]]
    for name in GRID:
        content = _content(name)
        here = content["provenance"]["commit"]
        rows: dict[str, dict[str, int]] = {}
        for run in content["runs"]:
            rows.setdefault(run["commit"], {}).setdefault(run["row"], 0)
            rows[run["commit"]][run["row"]] += 1
        for commit, counts in sorted(rows.items(), key=lambda one: -sum(one[1].values())):
            whose = "this commit" if commit == here else f"inherited: {_commit(commit)}"
            listed = ", ".join(f"{row} ({count})" for row, count in counts.items())
            lines.append([f"`{name}`, {_commit(here)}", whose, listed])
    return table(lines)


def _commit(text: str) -> str:
    """A commit's first digits, and whether its tree had changes."""
    return f"{text[:10]}{text[40:]}"


def literal_runs() -> str:
    """How Algorithm 1 ended in the runs of literal-*.txt, in paper/docs/reproducing.md."""
    head = ["command, as it was then", "ended by", "V(Y)²", "rounds", "counterexamples", "seconds"]
    lines = [[*head, "of them solving"]]
    for path in sorted((HERE / "results").glob("literal-*.txt")):
        text = path.read_text(encoding="utf-8")
        ended = re.search(
            r"it ended by (?:its )?(\w+):.*?\((positivity \w+, decrease \w+)\)\. (\d+) rounds of "
            r"gradient steps, (\d+) counterexamples, (\S+) s of \w+",
            text.replace("\n", " "),
        )
        origin = re.findall(r"origin (\S+)$", text, flags=re.MULTILINE)
        took = re.search(r"^(\S+) s(?: \((\S+) of a processor's\))?, and", text, flags=re.MULTILINE)
        assert ended and origin and took, path.name
        said = f"{ended[1]} ({ended[2]})"
        seconds = f"{took[1]} ({took[2]} of a processor)" if took[2] else took[1]
        command = f"`{text.splitlines()[0]}`"
        lines.append([command, said, f"{float(origin[-1]):.2g}", ended[3], ended[4], seconds])
        lines[-1].append(ended[5])
    return table(lines)


def _column(cell: Cell) -> str:
    return str(cell.get("column") or cell["dataset"])


def _others_in(found: list[Cell], column: str) -> Iterator[Cell]:
    """Rows beside `auto` that were measured in a column, its controls too, on the same base."""
    for cell in found:
        mine = cell["group"] in ("ours", "protocol") or cell["method"].startswith("auto")
        if _column(cell) == column and not mine and cell["mean"] is not None:
            yield cell


def _worst(file: str, found: list[Cell], column: str) -> float:
    mine = next(c for c in found if _column(c) == column and c["method"] == "auto")
    if "worst" in mine:
        return float(mine["worst"])
    runs = [r for r in _content(file)["runs"] if r["row"] == "auto" and r["column"] == column]
    return float(min(run["accuracy"] - run["base"] for run in runs))


def drawn() -> str:
    """Numbers of each panel of the paper's figures, in paper/docs/reproducing.md."""
    found = []
    for number in (3, 4, 5):
        content = _content(f"figure-{number}")
        panels: dict[str, Cell] = content.get("panels") or content.get("forms", {})
        plain = [k for one in panels.values() for k, v in one.items() if not isinstance(v, dict)]
        names = list(dict.fromkeys(plain))
        title = f"figure {number}, {content.get('dataset', '').capitalize()}"
        lines = [[title, *(name.replace("_", " ") for name in names)]]
        for panel, one in panels.items():
            lines.append([panel, *(_short(one[name]) if name in one else "" for name in names)])
        found.append(table(lines))
    return "\n".join(filter(None, found)) or "Not stored yet.\n"


def _short(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


# ---- files of plain text


def _text(name: str) -> str:
    return (HERE / "results" / f"{name}.txt").read_text(encoding="utf-8")


def boxed(name: str, *, head: str = "") -> str:
    """Tables drawn with lines, as Markdown, each with the line above it as its first title.

    Args:
        name: of the file in benchmarks/results, without its suffix.
        head: with which the first title of a table begins.
    """
    found: list[str] = []
    rows: list[list[str]] = []
    before = ""
    for line in [*_text(name).splitlines(), ""]:
        if line[:1] in "┃│" and line:
            rows.append([part.strip() for part in re.split("[┃│]", line)[1:-1]])
        elif rows and line[:1] not in "┡├":
            if rows[0][0].startswith(head):
                rows[0][0] = rows[0][0] or before.partition(":")[0]
                found.append(table(rows))
            rows = []
        elif line[:1] not in "┏┡":
            before = line.strip()
    return "\n".join(found)


def spaced(name: str, titles: list[str], keep: str) -> str:
    """Lines of columns that two spaces or more part, as Markdown.

    Args:
        name: of the file in benchmarks/results, without its suffix.
        titles: of the columns; further ones are left out.
        keep: pattern of the lines.
    """
    lines = [line for line in _text(name).splitlines() if re.match(keep, line)]
    return table([titles, *(re.split(r"\s{2,}", line.strip())[: len(titles)] for line in lines)])


def barred(name: str, section: str, titles: list[str]) -> str:
    """Lines of columns that bars part, from the section of that number.

    Args:
        name: of the file in benchmarks/results, without its suffix.
        section: with which its first line begins.
        titles: of the columns that are shown, by their names in the file.
    """
    text = _text(name).partition(f"\n{section}")[2]
    first = text.index(f"{titles[0]} | ")
    lines = [line.split(" | ") for line in text[first:].partition("\n\n")[0].splitlines()]
    shown = [lines[0].index(title) for title in titles]
    return table([[line[i] for i in shown] for line in lines])


def seconds() -> str:
    """How long a fit takes, by kind of model, from the runs of the rule."""
    rows = re.findall(
        r"\| (\S+) (\S+) \S+ \| \w+ \| (\S+) \|",
        barred("rule", "1.", ["case", "labels", "seconds"]),
    )
    found: dict[str, list[tuple[float, str]]] = {}
    for graph, model, took in rows:
        found.setdefault(model.upper(), []).append((float(took), graph.capitalize()))
    stated = [
        f"{min(took)[0]:g} ({min(took)[1]}) to {max(took)[0]:g} ({max(took)[1]}) for"
        f" {'an' if model[0] in 'AS' else 'a'} {model}"
        for model, took in found.items()
    ]
    return f"A fit takes, in processor seconds, {', '.join(stated)}. {changed()}"


def changed() -> str:
    """How far features move, by the runs of steering."""
    rows = _text("rule").partition("\n8. ")[2]
    found = re.findall(r"^([a-z]+)-([a-z]+)\d? +(?:[\d.]+ +){6}([\d.]+)", rows, re.MULTILINE)
    ordered = sorted((float(median), f"{m.upper()} on {g.capitalize()}") for g, m, median in found)
    least, most = (f"{median:g} ({case})" for median, case in (ordered[0], ordered[-1]))
    return f"Median change of features: {least} to {most} of their length.\n"


def monitored() -> str:
    """How often `monitor` recommended the best step, and its worst week."""
    text = _text("monitor")
    right = re.search(r"recommended in (\d+ of \d+ weeks).*within a point in (\d+)", text)
    regret = re.search(r"\nregret.*recommended ([\d.]+), .*always label ([\d.]+)", text)
    lost = re.search(r"the most that was lost in a week: ([\d.]+)", text)
    week = re.search(r"one week \((\w+), (\w+), [\d.]+\): twenty\s+labels were expected", text)
    assert right and regret and lost and week, "monitor.txt has no summary"
    return (
        f"Simulated, the best step was recommended in {right[1]}, one within a point of it in"
        f" {right[2]}. The mean loss against the best step was {regret[1]} points, {regret[2]} for"
        f" always labelling. One week lost {lost[1]}: in {week[1]}, new nodes {week[2]} from all"
        " labelled ones, labels brought far less than expected, and a new model would have been"
        " right (`benchmarks/results/monitor.txt`).\n"
    )


def quoted(name: str, count: int) -> str:
    """The first Markdown tables of a file.

    Args:
        name: of the file in benchmarks/results, without its suffix.
        count: how many of them.
    """
    found = re.findall(r"(?:^\|.*\n)+", _text(name), flags=re.MULTILINE)
    return "\n".join(found[:count])


def certificates() -> str:
    """Result of `make bench-certify`, in one sentence."""
    pattern = r"^(\S+)\s+0\s+(\d+)/(\d+)\s+(proved|unknown)\s+(\S+)\s+(\S+)\s+(\S+)\s+(\S+) .*"
    rows = [found.groups() for found in re.finditer(pattern, _text("certify"), re.MULTILINE)]
    every = sum(row[1] == row[2] for row in rows)
    accepted = len(re.findall(r"^\S+\s+0\s+\d+/.* yes ", _text("certify"), re.MULTILINE))
    kappa, certain, own, kept = ([float(row[i]) for row in rows] for i in (4, 5, 6, 7))
    return (
        f"Every class is proved in {every} of {len(rows)} cases, and `keel check --model --data`"
        f" accepts {accepted}. With message passing κ lies between {min(kappa):.2f} and"
        f" {max(kappa):.2f}; the class at the equilibrium is certain for at least"
        f" {min(certain):.0f} percent of the nodes. {min(own):.0f} to {max(own):.0f} percent of the"
        f" labelled nodes end in their own class (a count, not a goal). The anchors as written lead"
        f" at least {min(kept):.2f} percent of all nodes to the class of the equilibrium.\n"
    )


def properties() -> str:
    """Results of `bench_properties.py`, line by line."""
    text = _text("verify-cersyve")
    decided = re.search(r"^decided: .*$", text, re.MULTILINE)
    beside = re.search(r"^the \d+ that .*$", text, re.MULTILINE)
    checked = re.search(r"So (\d+ of \d+ proofs of unsat are accepted)", text)
    assert decided and beside and checked, "verify-cersyve.txt has no summary"
    return f"{decided[0].capitalize()}; {beside[0]}; {checked[1]}.\n"


BLOCKS: dict[str, Callable[[], str]] = {
    "adapt": lambda: moved("table-adapt-citations"),
    "adapt-twitch": lambda: moved("table-adapt-twitch"),
    "adapt-twitch-areas": lambda: areas("table-adapt-twitch", "0 target labels"),
    "adapt-twitch-auc": lambda: moved("table-adapt-twitch", "auc_"),
    "adapt-twitch-balanced": lambda: moved("table-adapt-twitch", "balanced_"),
    "all-val": all_val,
    "certificates": certificates,
    "citations-0": lambda: by_graph("table-citations", "0 target labels"),
    "citations-100": lambda: by_graph("table-citations", "100 target labels"),
    "citations-gap": gap,
    "controllers": controllers,
    "cost": cost,
    "drawn": drawn,
    "engines": lambda: boxed("verify-collection", head="engine"),
    "engines-peers": lambda: boxed("verify-peers", head="engine"),
    "examination-half-val": lambda: by_graph("table-examination", "train+half-val"),
    "examination-train": lambda: by_graph("table-examination", "train"),
    "guard": lambda: quoted("guard", 2),
    "half-val": half_val,
    "ingraph-gcn": lambda: by_graph("table-ingraph-gcn"),
    "ingraph-sgc": lambda: by_graph("table-ingraph-sgc"),
    "literal": literal,
    "literal-runs": literal_runs,
    "change": changed,
    "missing": missing,
    "monitor": monitored,
    "properties": properties,
    "provenance": provenance,
    "published": every_published_number,
    "rank-adapt": lambda: rank_moved("table-adapt-citations"),
    "rank-adapt-twitch": lambda: rank_moved("table-adapt-twitch"),
    "rank-adapt-twitch-balanced": lambda: rank_moved("table-adapt-twitch", "balanced_"),
    "rank-all-val": lambda: rank("table-1-val"),
    "rank-examination-half-val": lambda: rank("table-examination", "train+half-val"),
    "rank-examination-train": lambda: rank("table-examination", "train"),
    "rank-half-val": lambda: rank("table-1-half-val"),
    "rank-train": lambda: rank("table-1"),
    "reach": reach,
    "readme": readme,
    "retrain": lambda: boxed("retrain"),
    "rule-protocol": lambda: barred(
        "rule", "1.", ["case", "labels", "before", "after (worst gain)", "seconds", "agreement"]
    ),
    "seconds": seconds,
    "suggest": lambda: spaced(
        "suggest",
        ["", "none", "50 random", "100 random", "50 suggested", "50 suggested − 100 random"],
        r"\w+ +\d",
    ),
    "training-labels": training_labels,
}


# ---- values of the code


def value(name: str) -> str:
    """A number of the code, by the dotted name of a default argument or of a field.

    Args:
        name: module, class or function, field or argument.
    """
    owner, _, field = name.rpartition(".")
    module, _, holder = owner.rpartition(".")
    held = getattr(importlib.import_module(module), holder)
    if hasattr(held, field):
        found = getattr(held, field)
    else:
        found = inspect.signature(held).parameters[field].default
    return f"{found:,}" if isinstance(found, int) else f"{found:g}"


def with_figures(text: str) -> str:
    """A page with every block and value as the stored runs and the code say.

    Args:
        text: of the page.
    """
    text = BLOCK.sub(lambda found: f"{found[1]}{BLOCKS[found[2]]()}{found[4]}", text)
    return VALUE.sub(lambda found: f"{found[1]}{value(found[2])}{found[4]}", text)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--write", action="store_true")
    args = parser.parse_args()
    stale = []
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        wanted = with_figures(text)
        if text != wanted:
            stale.append(page.name)
            if args.write:
                page.write_text(wanted, encoding="utf-8")
    print(f"{'written' if args.write else 'differ'}: {', '.join(stale) or 'none'}")
    return 1 if stale and not args.write else 0


if __name__ == "__main__":
    raise SystemExit(main())
