"""`keel-commands`: the help texts of every command of `keel` and `keel-paper`, taken from their own
parsers."""

from __future__ import annotations

import argparse
import os
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from graphkeel.cli.main import KEEL
from graphkeel_paper.cli.main import PROGRAM as KEEL_PAPER

WIDTH = "100"


def help_texts() -> dict[str, str]:
    """By program and command, in the order of `keel --help` and `keel-paper --help`."""
    before = os.environ.get("COLUMNS")
    os.environ["COLUMNS"] = (
        WIDTH  # argparse wraps at the terminal's width, which is no property of the page
    )
    try:
        return {
            f"{program.name} {name}": parser.format_help()
            for program in (KEEL, KEEL_PAPER)
            for name, parser in _commands(program.parser()).items()
        }
    finally:
        if before is None:
            del os.environ["COLUMNS"]
        else:
            os.environ["COLUMNS"] = before


def _commands(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    subs = next(a for a in parser._actions if isinstance(a, argparse._SubParsersAction))
    return dict(subs.choices)


class Commands(SphinxDirective):
    """One section a command."""

    def run(self) -> list[nodes.Node]:
        return [self._section(name, text) for name, text in help_texts().items()]

    def _section(self, title: str, text: str) -> nodes.section:
        section = nodes.section(ids=[title.replace(" ", "-")], names=[title])
        section += nodes.title(title, title)
        section += nodes.literal_block(text, text, language="text")
        self.state.document.note_explicit_target(section)
        return section


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_directive("keel-commands", Commands)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
