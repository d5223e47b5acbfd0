"""`keel-commands`: the help texts of `keel` and of every command, taken from their own parsers."""

from __future__ import annotations

import argparse
import os
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from graphkeel.cli.main import COMMANDS, build_parser

WIDTH = "100"


def help_texts() -> dict[str, str]:
    """By command, in the order of `keel --help`."""
    before = os.environ.get("COLUMNS")
    os.environ["COLUMNS"] = (
        WIDTH  # argparse wraps at the terminal's width, which is no property of the page
    )
    try:
        subs = next(a for a in build_parser()._actions if isinstance(a, argparse._SubParsersAction))
        return {name: subs.choices[name].format_help() for name in COMMANDS}
    finally:
        if before is None:
            del os.environ["COLUMNS"]
        else:
            os.environ["COLUMNS"] = before


class Commands(SphinxDirective):
    """One section a command."""

    def run(self) -> list[nodes.Node]:
        return [self._section(name, text) for name, text in help_texts().items()]

    def _section(self, name: str, text: str) -> nodes.section:
        title = f"keel {name}"
        section = nodes.section(ids=[f"keel-{name}"], names=[title])
        section += nodes.title(title, title)
        section += nodes.literal_block(text, text, language="text")
        self.state.document.note_explicit_target(section)
        return section


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_directive("keel-commands", Commands)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
