"""Docstrings are written for readers of the source, with `code` and h*_c; this makes them
reStructuredText.

Only what reStructuredText would misread is changed: single backquotes become literals, and stars
and bars outside of them stand for themselves."""

from __future__ import annotations

import re
from typing import Any

from sphinx.application import Sphinx

CODE = re.compile(r"(?<![`:])`([^`]+)`(?!`)")
EMPHASIS = re.compile(r"(?<![\w*])\*(\w[\w -]*)\*(?![\w*])")
SHARED = re.compile(r":(ivar|param) ([\w\\]+(?:, [\w\\]+)+):(.*)")
# A field's name that ends in an underscore would be read as a reference, and lose it.
TRAILING = re.compile(r"^(:(?:ivar|vartype|param|type) \w*[^\W_])_:")
ARRAY = re.compile(
    r"~?numpy\.ndarray\[tuple\[~?typing\.Any, \.\.\.\], ~?numpy\.dtype\[~?numpy\.\w+\]\]"
)
BEFORE, AFTER = 400, 600  # napoleon, which turns sections into fields, runs at 500


def as_rst(line: str) -> str:
    """One line of a docstring."""
    if line.lstrip().startswith((">>>", "...", "..", ":")):
        return line
    indent = line[: len(line) - len(line.lstrip())]
    bullet = re.match(r"[*-] ", line.lstrip())
    head, rest = (indent + "* ", line.lstrip()[2:]) if bullet else (indent, line.lstrip())
    parts = CODE.split(rest)  # text, code, text, code, …
    return head + "".join(f"``{part}``" if i % 2 else _plain(part) for i, part in enumerate(parts))


def _plain(text: str) -> str:
    text = EMPHASIS.sub("\N{START OF TEXT}\\1\N{END OF TEXT}", text)
    text = text.replace("*", "\\*").replace("|", "\\|")
    text = re.sub(r"(?<=\w)_(?!\w)(?!:)", r"\\_", text)
    return text.replace("\N{START OF TEXT}", "*").replace("\N{END OF TEXT}", "*")


def rewrite(
    app: Sphinx, what: str, name: str, obj: object, options: object, lines: list[str]
) -> None:
    lines[:] = [as_rst(line) for line in lines]


def one_name_a_field(lines: list[str]) -> list[str]:
    """`a, b: text` describes both names; a field can only hold one, so the text stands twice."""
    fields: list[str] = []
    while lines:
        first, lines = lines[0], lines[1:]
        shared = SHARED.match(first)
        if shared is None:
            fields.append(TRAILING.sub(r"\1\\_:", first))
            continue
        more = next((i for i, line in enumerate(lines) if not line.startswith(" ")), len(lines))
        for name in shared[2].split(", "):
            field = TRAILING.sub(r"\1\\_:", f":{shared[1]} {name}:")
            fields += [field + shared[3], *lines[:more]]
        lines = lines[more:]
    return fields


def split_fields(
    app: Sphinx, what: str, name: str, obj: object, options: object, lines: list[str]
) -> None:
    lines[:] = one_name_a_field(list(lines))


def shorten(
    app: Sphinx,
    what: str,
    name: str,
    obj: object,
    options: object,
    signature: str | None,
    returns: str | None,
) -> tuple[str | None, str | None]:
    """Signatures as one would write them: a dataclass says `<factory>`, which is no expression, and
    arrays say more."""
    written = (
        text and ARRAY.sub("Array", text).replace("<factory>", "...")
        for text in (signature, returns)
    )
    return tuple(written)  # type: ignore[return-value]


def setup(app: Sphinx) -> dict[str, Any]:
    app.connect("autodoc-process-signature", shorten)
    app.connect("autodoc-process-docstring", rewrite, priority=BEFORE)
    app.connect("autodoc-process-docstring", split_fields, priority=AFTER)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
