"""Code blocks of README and docs that are marked as runnable: found, chained, and run as a reader
would.

A block is marked by a comment on a line of its own, right before its fence:

    <!-- runnable -->                    runs in a fresh folder
    <!-- runnable: continues -->         runs after the block marked before it, in the same folder
    and namespace
    <!-- runnable: file=loop.json -->    is no code: written into the folder under that name
    <!-- runnable: given=model -->       finds the names or files of `GIVEN["model"]` already there
    <!-- runnable: needs=cora -->        skipped where the dataset files are not at hand
    <!-- runnable: exit=1 -->            its commands are expected to end with that code
    <!-- runnable: slow -->              left to the slow tests

Python blocks are executed (or, where they start with >>>, compared as doctests). In the other
blocks every line is a command, except that a console block has its commands after `$`, and what
stands below one is compared with what it prints, `...` standing for anything.
"""

from __future__ import annotations

import contextlib
import doctest
import importlib
import io
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

MARKER = re.compile(r"^<!-- runnable(?:: (?P<options>[^>]*))? -->$")
FENCE = re.compile(r"^```(?P<language>\w*)$")
COMPARE = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
PROGRAMS = {"keel": "graphkeel.cli.main", "keel-paper": "graphkeel_paper.cli.main"}
FLAGS, VALUES = {"continues", "slow"}, {"file", "given", "needs", "exit"}


class BadPage(Exception):
    """A marker that marks nothing, or a block that does not do what the page says."""


@dataclass(frozen=True)
class Block:
    language: str
    text: str
    line: int
    options: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Chain:
    """Blocks that belong together; the first starts in an empty folder."""

    page: Path
    blocks: tuple[Block, ...]

    @property
    def name(self) -> str:
        return f"{self.page.name}:{self.blocks[0].line}"

    @property
    def slow(self) -> bool:
        return any("slow" in block.options for block in self.blocks)

    @property
    def needs(self) -> set[str]:
        return {block.options["needs"] for block in self.blocks if "needs" in block.options}

    @property
    def given(self) -> set[str]:
        return {block.options["given"] for block in self.blocks if "given" in block.options}


def chains(page: Path) -> list[Chain]:
    """The page's marked blocks, those that continue another joined to it."""
    found: list[list[Block]] = []
    for block in blocks(page):
        if "continues" in block.options:
            if not found:
                raise BadPage(f"{page.name}:{block.line} continues nothing")
            found[-1].append(block)
        else:
            found.append([block])
    return [Chain(page, tuple(group)) for group in found]


def blocks(page: Path) -> Iterator[Block]:
    lines = page.read_text(encoding="utf-8").splitlines()
    for number, line in enumerate(lines):
        marker = MARKER.match(line)
        if marker is None:
            if line.strip().startswith("<!-- runnable"):
                raise BadPage(f"{page.name}:{number + 1} is not a marker: {line}")
            continue
        fence = FENCE.match(lines[number + 1]) if number + 1 < len(lines) else None
        if fence is None:
            raise BadPage(f"{page.name}:{number + 1} marks no code block")
        end = next(i for i in range(number + 2, len(lines)) if lines[i] == "```")
        text = "\n".join(lines[number + 2 : end]) + "\n"
        yield Block(
            fence["language"], text, number + 1, _options(marker["options"] or "", page, number + 1)
        )


def _options(text: str, page: Path, line: int) -> dict[str, str]:
    pairs = dict(([*word.split("=", 1), ""])[:2] for word in text.split())
    for name, value in pairs.items():
        if name not in (VALUES if value else FLAGS):
            raise BadPage(f"{page.name}:{line} has an unknown option {name!r}")
    return pairs


def run_chain(chain: Chain, space: dict[str, Any]) -> None:
    """Run the blocks in the current folder; `space` is the namespace of the Python ones."""
    for block in chain.blocks:
        try:
            _run(block, space)
        except Exception as error:
            raise BadPage(
                f"{chain.page.name}:{block.line}: {type(error).__name__}: {error}"
            ) from error


def _run(block: Block, space: dict[str, Any]) -> None:
    if "file" in block.options:
        Path(block.options["file"]).write_text(block.text, encoding="utf-8")
    elif block.language != "python":
        expected = int(block.options.get("exit", 0))
        for command, shown in _commands(block):
            _run_command(command, shown, expected)
    elif block.text.startswith(">>>"):
        _run_doctest(block.text, space)
    else:
        exec(compile(block.text, "<page>", "exec"), space)


def _run_doctest(text: str, space: dict[str, Any]) -> None:
    test = doctest.DocTestParser().get_doctest(text, space, "page", None, None)
    said = io.StringIO()
    failures, _ = doctest.DocTestRunner(optionflags=COMPARE).run(
        test, out=said.write, clear_globs=False
    )
    space.update(test.globs)
    if failures:
        raise BadPage(said.getvalue())


def _commands(block: Block) -> Iterator[tuple[str, str]]:
    """Each command with the output that the page shows for it."""
    if block.language != "console":
        yield from (
            (line, "") for line in block.text.splitlines() if line and not line.startswith("#")
        )
        return
    for part in re.split(r"^\$ ", block.text, flags=re.M)[1:]:
        command, _, shown = part.partition("\n")
        yield command, shown


def _run_command(command: str, shown: str, expected: int) -> None:
    words = shlex.split(command, comments=True)
    if not words or words[0] not in PROGRAMS:
        raise BadPage(f"only keel's own commands are run, not {command!r}")
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        code = importlib.import_module(PROGRAMS[words[0]]).main(words[1:])
    if code != expected:
        raise BadPage(f"{command!r} ended with {code}, not {expected}: {out.getvalue()}")
    if shown and not doctest.OutputChecker().check_output(shown, out.getvalue(), COMPARE):
        raise BadPage(f"{command!r} printed\n{out.getvalue()}and not\n{shown}")
