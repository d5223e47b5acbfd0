"""Files of tasks and answers: CSV with context, and Label Studio's JSON, written and read back."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from graphkeel.core.errors import DataError
from graphkeel.core.files import write_text
from graphkeel.label.view import RANDOM, SUGGESTED, Row

_MAX_LABELS = 10_000_000
_COLUMNS = [field.name for field in fields(Row)]


class Batch(NamedTuple):
    """Labels that arrive together: ids of nodes and their classes, int64, shape (n,) each."""

    nodes: Tensor
    labels: Tensor


# ---- written


def write_rows(path: Path, rows: Sequence[Row]) -> None:
    """Tasks or answers: Label Studio's JSON where the name ends in .json, else CSV with a line a
    row; a label that is missing is an empty cell, which a person fills in."""
    is_json = path.suffix.lower() == ".json"
    tasks = json.dumps([_task(row) for row in rows], indent=1) + "\n" if is_json else as_csv(rows)
    write_text(path, tasks)


def as_csv(rows: Sequence[Row]) -> str:
    """The text of a CSV file."""
    text = io.StringIO()
    writer = csv.DictWriter(text, _COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(asdict(row) for row in rows)
    return text.getvalue()


def _task(row: Row) -> dict[str, Any]:
    """A task of Label Studio: what is shown, what is predicted, what was answered."""
    context = asdict(row)
    del context["label"]
    words = (
        f"node {row.node}",
        f"likeliest classes: {row.likeliest}",
        f"neighbours (= known, ~ predicted): {row.neighbours or 'none'}",
        f"known labels within two hops: {row.known_nearby or 'none'}",
    )
    predicted = {"model_version": "graphkeel", "result": [_choice(row.predicted)]}
    answered = [] if row.label is None else [{"result": [_choice(row.label)]}]
    data = {"text": "\n".join(words), **context}
    return {"data": data, "predictions": [predicted], "annotations": answered}


def _choice(label: int) -> dict[str, Any]:
    """A class as Label Studio's control `label` gives it."""
    names = {"from_name": "label", "to_name": "text", "type": "choices"}
    return {**names, "value": {"choices": [str(label)]}}


# ---- read back


def read_labels(path: Path) -> Batch:
    """Labels from a CSV file with columns node and label, or from an export of Label Studio (.json,
    whole or minimal). A line without a label is one that nobody has filled in.

    Args:
        path: the file.
    """
    try:
        found = _from_json(path) if path.suffix.lower() == ".json" else _from_csv(path)
        pairs = torch.tensor([(int(str(node)), int(str(label))) for node, label in found])
    except (OSError, UnicodeDecodeError, csv.Error, json.JSONDecodeError, RecursionError) as error:
        raise DataError(f"the labels {path} cannot be read", got=str(error)[:200]) from error
    except (ValueError, RuntimeError) as error:  # no integer; one that has more than 64 bits
        raise DataError(
            f"every node and label in {path} must be an integer", got=str(error)[:200]
        ) from error
    if not len(pairs):
        raise DataError(f"{path} holds no label", fix="Add a line such as 17,3.")
    nodes, labels = pairs.T
    return Batch(nodes, labels)


def read_rows(path: Path) -> list[Row]:
    """Rows that `write_rows` wrote as CSV."""
    try:
        header, *lines = read_table(path)
        if header != _COLUMNS:
            raise ValueError(f"columns {', '.join(header)}"[:200])
        return [_row(dict(zip(header, line, strict=True))) for line in lines]
    except (OSError, UnicodeDecodeError, csv.Error, ValueError) as error:
        raise DataError(
            f"{path} is no file of answers of keel label",
            got=str(error)[:200],
            fix="Move it away to begin anew.",
        ) from error


def _row(cells: dict[str, str]) -> Row:
    if cells["why"] not in (SUGGESTED, RANDOM):
        raise ValueError(f"why: {cells['why']!r}")
    given = {
        "node": int(cells["node"]),
        "label": int(cells["label"]) if cells["label"] else None,
        "predicted": int(cells["predicted"]),
    }
    return Row(**{**cells, **given})  # type: ignore[arg-type]


def read_table(path: Path) -> list[list[str]]:
    """The lines of a CSV file that are not empty; spreadsheets write a byte-order mark."""
    with path.open(newline="", encoding="utf-8-sig") as file:
        rows = [[cell.strip() for cell in row] for row in csv.reader(_limited(file, path))]
    return [row for row in rows if row]


def _limited(lines: Iterator[str], path: Path) -> Iterator[str]:
    for i, line in enumerate(lines):
        if i > _MAX_LABELS:
            raise DataError(f"{path} has more than {_MAX_LABELS} lines")
        yield line


def _from_csv(path: Path) -> list[tuple[str, str]]:
    """(node, label) of the lines that are filled in."""
    rows = read_table(path)
    header = rows[0] if rows else []
    if not {"node", "label"} <= set(header):
        got = ", ".join(header)[:200] or "an empty file"
        raise DataError(f"{path} must begin with a line that names node and label", got=got)
    node, label = header.index("node"), header.index("label")
    uneven = next((i for i, row in enumerate(rows, start=1) if len(row) != len(header)), None)
    if uneven is not None:
        raise DataError(
            f"every line of {path} must have {len(header)} cells", got=f"another number in {uneven}"
        )
    return [(row[node], row[label]) for row in rows[1:] if row[label]]


def _from_json(path: Path) -> list[tuple[Any, Any]]:
    """(node, label) of the tasks that were answered."""
    tasks = json.loads(path.read_text(encoding="utf-8"))
    if not isinstance(tasks, list) or not all(isinstance(task, dict) for task in tasks):
        raise DataError(f"{path} must hold a list of Label Studio's tasks", got=str(tasks)[:80])
    found = []
    for number, task in enumerate(tasks):
        data = task.get("data", task)
        node = data.get("node") if isinstance(data, dict) else None
        if node is None:
            raise DataError(f"every task in {path} must name its node", got=f"none in {number}")
        answers = sorted(set(_answers(task)))
        if len(answers) > 1:
            raise DataError(
                f"the annotations of node {node} disagree",
                got=", ".join(answers)[:80],
                fix="Keep one annotation a task.",
            )
        found += [(node, answer) for answer in answers]
    return found


def _answers(task: dict[str, Any]) -> Iterator[str]:
    """The classes that annotators chose; the minimal export has them beside the data."""
    if "annotations" not in task:
        label = task.get("label")
        results = [{"value": label if isinstance(label, dict) else {"choices": label}}]
    else:
        counted = [one for one in _dicts(task["annotations"]) if not one.get("was_cancelled")]
        results = [result for one in counted for result in _dicts(one.get("result"))]
    for result in results:
        value = result.get("value")
        choices = value.get("choices") if isinstance(value, dict) else None
        for choice in choices if isinstance(choices, list) else [choices]:
            if choice is not None and str(choice).strip():
                yield str(choice).strip()


def _dicts(values: Any) -> list[dict[str, Any]]:
    return [one for one in values if isinstance(one, dict)] if isinstance(values, list) else []
