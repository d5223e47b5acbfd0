"""`keel-example NAME`: a percent-script of examples/ as a page, what its cells print, and a
notebook to download.

The cells are run by the build, in a process and a folder of their own, so a page shows what its
code printed and an example that fails ends the build. `-D keel_run_examples=0` leaves that out."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import jupytext
import nbformat
from docutils import nodes
from docutils.statemachine import StringList
from nbformat import NotebookNode
from sphinx.application import Sphinx
from sphinx.errors import ExtensionError
from sphinx.util.docutils import SphinxDirective

EXAMPLES = Path(__file__).parents[2] / "examples"

# Runs in the child: cells share one namespace; what each prints is kept apart.
RUNNER = """
import contextlib, io, json, sys
cells, printed, space = json.load(sys.stdin), [], {"__name__": "__main__"}
for source in cells:
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(source, "cell", "exec"), space)
    printed.append(out.getvalue())
json.dump(printed, sys.stdout)
"""


def notebook(script: Path, *, run: bool) -> NotebookNode:
    """The script as a notebook, with its outputs if it was run."""
    name = script.stem
    book = jupytext.read(script)
    book.metadata = nbformat.from_dict(
        {"kernelspec": {"name": "python3", "display_name": "Python 3"}}
    )
    code = [cell for cell in book.cells if cell.cell_type == "code"]
    if run:
        for cell, text in zip(code, _printed(name, [cell.source for cell in code]), strict=True):
            cell.outputs = (
                [nbformat.v4.new_output("stream", name="stdout", text=text)] if text else []
            )
    for number, cell in enumerate(book.cells):
        cell.id = f"{name}-{number}".replace(
            "_", "-"
        )  # a fixed name, where nbformat draws a random one
    return book


def _printed(name: str, sources: list[str]) -> list[str]:
    with tempfile.TemporaryDirectory() as folder:
        child = subprocess.run(
            [sys.executable, "-c", RUNNER],
            input=json.dumps(sources),
            capture_output=True,
            text=True,
            cwd=folder,
            env={
                "OMP_NUM_THREADS": "1",
                **os.environ,
                "COLUMNS": "120",
            },  # small tensors: threads only cost
        )
    if child.returncode:
        raise ExtensionError(f"the example {name} does not run:\n{child.stderr}")
    return list(json.loads(child.stdout))


class Example(SphinxDirective):
    """The example's cells, in the place of the directive."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        name = self.arguments[0]
        self.env.note_dependency(str(EXAMPLES / f"{name}.py"))
        book = notebook(EXAMPLES / f"{name}.py", run=bool(int(self.config.keel_run_examples)))
        self._write(name, book)
        found: list[nodes.Node] = [self._downloads(name)]
        for cell in book.cells:
            found += self._code(cell) if cell.cell_type == "code" else self._text(cell.source)
        return found

    def _write(self, name: str, book: NotebookNode) -> None:
        folder = Path(self.env.app.outdir) / "notebooks"
        folder.mkdir(parents=True, exist_ok=True)
        nbformat.write(book, folder / f"{name}.ipynb")

    def _downloads(self, name: str) -> nodes.paragraph:
        up = "../" * self.env.docname.count("/")
        link = nodes.reference("", "notebook", refuri=f"{up}notebooks/{name}.ipynb")
        script = nodes.literal("", f"examples/{name}.py")
        return nodes.paragraph(
            "",
            "",
            nodes.Text("The script "),
            script,
            nodes.Text(", also as a "),
            link,
            nodes.Text("."),
        )

    def _text(self, markdown: str) -> list[nodes.Node]:
        holder = nodes.container()
        self.state.nested_parse(
            StringList(markdown.splitlines(), "example"), self.content_offset, holder
        )
        return list(holder.children)

    def _code(self, cell: NotebookNode) -> list[nodes.Node]:
        blocks: list[nodes.Node] = [
            nodes.literal_block(cell.source, cell.source, language="python")
        ]
        for output in cell.get("outputs", []):
            blocks.append(nodes.literal_block(output.text, output.text, language="text"))
        return blocks


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_config_value("keel_run_examples", "1", "env", types=[str])
    app.add_directive("keel-example", Example)
    return {"parallel_read_safe": False, "parallel_write_safe": True}
