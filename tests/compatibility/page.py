"""docs/compatibility.md, made from what happens: every row is fitted and asked, and its head read
off where that can be done.

    python tests/compatibility/page.py        writes the page
"""

from __future__ import annotations

import re
import sys
import warnings
from dataclasses import dataclass
from pathlib import Path

import torch

import graphkeel as gk
from graphkeel.lyapunov.on_graph import passing_of
from graphkeel.models.head import Head

sys.path.insert(0, str(Path(__file__).parent))
from people import ROWS, N, Row

PAGE = Path(__file__).parents[2] / "docs" / "compatibility.md"
PROVABLE = "yes"
HEADER = (
    "| model | fit, predict | certify | with message passing |",
    "| --- | --- | --- | --- |",
)

START = """\
# Compatibility

Every row is a model as people write it, handed to `gk.Reconstructor(model).fit(data)` and asked
with `predict`. The tests make this page (`make compatibility`) and compare it: what it says is what
happens.

- *fit, predict*: `works`, or the sentence with which it is refused. No row ends in a raw exception.
- *certify*: `yes` where the model's head can be read off exactly, as a ReLU network, so that its
  controllers can be proved stable; else the reason why the verdict is `unknown`. Anchors and
  reconstruction do not need it: they ask the model itself.
- *with message passing*: `yes` where the model is recognised, by its answers, as layers with one
  fixed, non-negative aggregation, so that the loop on the real graph can be proved to contract;
  else the reason why that part of a certificate is `unknown`.
"""


@dataclass(frozen=True)
class Outcome:
    """The outcome of a row."""

    fit: str
    certify: str
    graph: str = ""

    @property
    def works(self) -> bool:
        return self.fit == "works"


def outcome_of(row: Row) -> Outcome:
    """Fit the row's model and ask it. Only refusals in our own words are caught."""
    torch.manual_seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        case = row.make()
        try:
            rec = gk.Reconstructor(case.model, **case.options).fit(case.data, **case.arguments)
            predicted = rec.predict(case.data)
        except gk.KeelError as refusal:
            return Outcome(f"refused: {refusal}", "")
    assert predicted.shape == (N,)
    assert torch.isfinite(rec.features_).all()
    head = rec._context.plant
    assert isinstance(head, Head)
    if head.unsupported is not None:
        return Outcome("works", _short(head.unsupported))
    graph = rec._context
    passing = passing_of(graph.frozen, head, graph.x, graph.edge_index, graph.model_kwargs)
    return Outcome("works", PROVABLE, _short(passing.reason) or PROVABLE)


def _short(reason: str) -> str:
    """Without figures and machine-made words, which differ between versions."""
    plain = re.sub(r" \(.*\)$| by [\d.e+-]+$", "", reason)
    return re.sub(r"(small random graph): .*", r"\1", plain, flags=re.DOTALL)


def page(outcomes: dict[str, Outcome]) -> str:
    """The page's text.

    Args:
        outcomes: by the name of the row.
    """
    works = sum(one.works for one in outcomes.values())
    provable = sum(one.certify == PROVABLE for one in outcomes.values())
    on_graphs = sum(one.graph == PROVABLE for one in outcomes.values())
    lines = [
        START,
        f"{len(outcomes)} rows: {works} work, {len(outcomes) - works} are refused with what to do; "
        f"{provable} can be proved, {on_graphs} of them with message passing.",
    ]
    for group in dict.fromkeys(row.group for row in ROWS):
        lines += ["", f"## {group}", "", *HEADER]
        for row in ROWS:
            if row.group == group:
                found = outcomes[row.name]
                cells = map(_cell, (found.fit, found.certify, found.graph))
                lines.append(f"| {row.name} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("*", "\\*").replace("<", "&lt;")


def main() -> None:
    PAGE.write_text(page({row.name: outcome_of(row) for row in ROWS}), encoding="utf-8")


if __name__ == "__main__":
    main()
