"""Formulas as MathML, which browsers draw themselves: no script is loaded, so the pages need no
network."""

from __future__ import annotations

import re
from typing import Any

from docutils import nodes
from docutils.utils.math import MathError, latex2mathml
from sphinx.application import Sphinx
from sphinx.errors import ExtensionError
from sphinx.writers.html5 import HTML5Translator


def mathml(tex: str, *, block: bool) -> str:
    """The formula as a MathML element; one that cannot be translated ends the build."""
    if re.search(r"frac[^{\s]", tex):  # docutils takes the wrong halves without a word
        raise ExtensionError(f"a fraction needs braces around both of its parts: {tex!r}")
    try:
        return latex2mathml.tex2mathml(tex, as_block=block)
    except (MathError, SyntaxError) as error:
        raise ExtensionError(f"not a formula that MathML is made of: {tex!r} ({error})") from error


def visit_inline(translator: HTML5Translator, node: nodes.math) -> None:
    translator.body.append(mathml(node.astext(), block=False))
    raise nodes.SkipNode


def visit_block(translator: HTML5Translator, node: nodes.math_block) -> None:
    translator.body.append(f'<div class="math">{mathml(node.astext(), block=True)}</div>')
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_html_math_renderer("mathml", (visit_inline, None), (visit_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
