"""A labelling session: which node comes next, what was answered, and what it has changed.

The file of answers is the only state that counts. It is written whole after every answer, before
the next node is shown; whoever starts again goes on there. Labels are taken in by a thread of its
own, so that nobody waits for it."""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch_geometric.data import Data

from graphkeel.core.errors import ConfigError, DataError
from graphkeel.core.names import class_names
from graphkeel.label.estimate import Change, LabelSettings, advice, estimates
from graphkeel.label.files import read_rows, write_rows
from graphkeel.label.shown import Shown
from graphkeel.label.view import RANDOM, SUGGESTED, Row, View, known_of
from graphkeel.reconstruct.reconstructor import Reconstructor

ANSWERS = "labels.csv"
TASKS = "labels.json"

_log = logging.getLogger(__name__)


class Stale(ConfigError):
    """The answer is about a state that is over: another tab was quicker."""


class Session:
    """Nodes to label, one at a time, and the answers.

    Threads may share one. Two tabs may, too: an answer names the state it is about, and one about
    an older state is refused.

    Args:
        rec: fitted to the graph, or loaded and attached to it.
        data: the graph.
        folder: where answers are kept; those that are there already are taken in.
        seed: of the nodes that are drawn at random.
        shown: columns of the user's own.
        names: of the classes; without any, their numbers.
        settings: how often labels are taken in, and the like.
    """

    def __init__(
        self,
        rec: Reconstructor,
        data: Data,
        folder: str | Path,
        *,
        seed: int = 0,
        shown: Shown | None = None,
        names: Sequence[str] = (),
        settings: LabelSettings | None = None,
    ) -> None:
        self.folder = Path(folder)
        self.shown = shown or Shown()
        self.settings = settings or LabelSettings()
        labels = rec.classes_.tolist()
        self.names = class_names(names, len(labels)) or tuple(f"class {one}" for one in labels)
        self._rec = rec
        self._data = data
        self._lock = threading.RLock()
        self._worker = ThreadPoolExecutor(max_workers=1, thread_name_prefix="keel-label")
        self._running: Future[None] | None = None
        self._base = known_of(rec)
        self._view = View.of(rec, data)
        free = np.array([n for n in range(len(self._view.predicted)) if n not in self._view.known])
        self._drawn = np.random.default_rng([seed, 7]).permutation(free).tolist()
        self._version = 0
        self._rows = self._stored()
        self._on_disk = self._bytes_on_disk()
        self._taken: dict[int, int] = {}
        self._changes: list[Change] = []
        self._trouble: str | None = None
        self._suggested: list[int] = []
        self._take_in(self._answers())
        self._changes.clear()  # what earlier sessions changed was told there
        self._current = self._next()

    @property
    def path(self) -> Path:
        """The file of answers."""
        return self.folder / ANSWERS

    # ---- what people do

    def answer(self, version: int, node: int, label: int | None) -> None:
        """Keep an answer.

        Args:
            version: of the state that the person saw.
            node: the node that was shown.
            label: its class; None: skipped.
        """
        with self._lock:
            self._check(version)
            if self._current is None or self._current[0] != node:
                raise Stale("another node is asked about now", got=node)
            if label is not None and not 0 <= label < len(self.names):
                raise DataError(f"the class must lie in 0..{len(self.names) - 1}", got=label)
            row = replace(self._now().row(*self._current), label=label)
            self._keep([*self._rows, row])
            self._current = self._next()
            if self._due() and not self._busy():
                self._running = self._worker.submit(self._take_in_all)

    def undo(self, version: int) -> None:
        """Take the last answer back; its node is asked about again.

        Args:
            version: of the state that the person saw.
        """
        with self._lock:
            self._check(version)
            if not self._rows:
                raise ConfigError("there is no answer to take back")
            last = self._rows[-1]
            self._keep(self._rows[:-1])
            self._current = (last.node, last.why)

    def state(self) -> dict[str, Any]:
        """All that the page shows, as plain values."""
        with self._lock:
            rows, view, current = self._rows, self._now(), self._current
            told = {
                "version": self._version,
                "busy": self._busy(),
                "trouble": self._trouble,
                "advice": advice(len(self._answers()), self._changes, self.settings),
            }
        return {
            **told,
            "classes": list(self.names),
            "task": None if current is None else self._task(view, *current),
            "last": None if not rows else {"node": rows[-1].node, "label": rows[-1].label},
            "labels": sum(row.label is not None for row in rows),
            "skipped": sum(row.label is None for row in rows),
            "round": self.settings.round,
            "random_every": self.settings.random_every,
            "confidence": self.settings.confidence,
            "estimates": [asdict(one) for one in estimates(rows, self.settings)],
        }

    def _task(self, view: View, node: int, why: str) -> dict[str, Any]:
        return {
            "node": node,
            "why": why,
            "likely": [{"class": label, "probability": p} for label, p in view.likely(node)],
            "graph": view.surroundings(node),
            "shown": self.shown.of(node),
        }

    # ---- what comes next

    def _next(self) -> tuple[int, str] | None:
        """The next node and why: a random one in its turn, and where no suggestion is left."""
        turns = [(SUGGESTED, self._suggested), (RANDOM, self._drawn)]
        every = self.settings.random_every
        if len(self._rows) % every == every - 1:
            turns.reverse()
        offered = ((node, why) for why, nodes in turns for node in self._unseen(nodes))
        return next(offered, None)

    def _unseen(self, nodes: list[int]) -> list[int]:
        seen = {row.node for row in self._rows}
        return [node for node in nodes if node not in seen]

    def _now(self) -> View:
        """The view with the answers that are not taken in yet."""
        return replace(self._view, known={**self._view.known, **self._answers()})

    def _answers(self) -> dict[int, int]:
        return {row.node: row.label for row in self._rows if row.label is not None}

    def _check(self, version: int) -> None:
        if version != self._version:
            raise Stale("another tab has answered in the meantime", got=f"state {version}")

    # ---- what is kept

    def _keep(self, rows: list[Row]) -> None:
        """On disk first: what cannot be written was not answered."""
        if self._bytes_on_disk() != self._on_disk:
            raise ConfigError(
                f"{self.path} was changed by another program",
                fix="Start keel label again: it goes on with what is there.",
            )
        write_rows(self.path, rows)
        self._on_disk = self._bytes_on_disk()
        self._rows = rows
        self._version += 1

    def _bytes_on_disk(self) -> bytes | None:
        return self.path.read_bytes() if self.path.is_file() else None

    def _stored(self) -> list[Row]:
        """Answers of an earlier session; refused where they cannot be about this graph."""
        rows = read_rows(self.path) if self.path.is_file() else []
        n_nodes = len(self._view.predicted)
        for row in rows:
            known = row.label is None or 0 <= row.label < len(self.names)
            if not 0 <= row.node < n_nodes or not known:
                raise DataError(
                    f"{self.path} is about another graph",
                    got=f"node {row.node}, label {row.label}",
                    fix="Move it away to begin anew.",
                )
        return rows

    # ---- taking labels in

    def _busy(self) -> bool:
        return self._running is not None and not self._running.done()

    def _due(self) -> bool:
        """A round of labels is waiting, or the suggestions are used up."""
        waiting = len(self._answers().items() - self._taken.items())
        used_up = bool(self._suggested) and not self._unseen(self._suggested)
        return waiting >= self.settings.round or used_up

    def _take_in_all(self) -> None:
        """Whatever fails here is told on the page: the answers are safe on disk."""
        try:
            while self._due():
                self._take_in(self._answers())
            self._trouble = None
        except Exception as error:
            _log.debug("labels are not taken in", exc_info=True)
            self._trouble = f"The answers are kept, but were not taken in: {error}"

    def _take_in(self, answers: dict[int, int]) -> None:
        """Decide anew with these answers, and suggest; then put the new view in place at once."""
        before = view = self._view
        if answers != self._taken:
            self._feed(answers)
            view = View.of(self._rec, self._data, before.links)
        suggested = self._suggestions()
        free = [node for node in self._drawn if node not in answers]
        with self._lock:
            fresh = len(answers) - len(self._taken)
            if fresh >= self.settings.round and free:
                both = before.predicted[free], view.predicted[free]
                self._changes.append(Change.between(*both, fresh))
            self._view = view
            self._taken = answers
            self._suggested = suggested

    def _feed(self, answers: dict[int, int]) -> None:
        """Labels only ever come to a reconstructor; where one was taken back, all come again."""
        if self._taken.keys() - answers.keys():
            self._rec.reset()
            answers = {**self._base, **answers}
        self._rec.feedback(torch.tensor(list(answers)), torch.tensor(list(answers.values())))

    def _suggestions(self) -> list[int]:
        free = self._unseen(self._drawn)
        if not free:
            return []
        among = torch.tensor(free)
        found: list[int] = self._rec.suggest(self.settings.ahead, among=among).tolist()
        return found

    def wait(self) -> None:
        """Until the labels that are being taken in are."""
        if self._running is not None:
            self._running.result()

    def finish(self) -> None:
        """Take in what is left; keep the reconstruction and Label Studio's file beside the answers.

        `graphkeel.load` reads the folder then.
        """
        self._worker.shutdown(wait=True)
        if not self._rows:
            return
        if self._answers() != self._taken:
            self._take_in(self._answers())
        write_rows(self.folder / TASKS, self._rows)
        self._rec.save(self.folder, {"labels": len(self._taken)})
