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
        return accented(latex2mathml.tex2mathml(tex, as_block=block))
    except (MathError, SyntaxError) as error:
        raise ExtensionError(f"not a formula that MathML is made of: {tex!r} ({error})") from error


def accented(formula: str) -> str:
    """The formula as browsers draw it well, where docutils says it otherwise: the index of a letter
    with a hat or a bar stands beside it, the bar is one that is drawn, and both ends of a norm are
    of one height."""
    wrong = r"<munderover>\s*(<mi>.</mi>)\s*(.*?)\s*(<mo[^>]*>[ˆˉ]</mo>)\s*</munderover>"
    right = r'<msub><mover accent="true">\1\3</mover>\2</msub>'
    formula = re.sub(wrong, right, formula, flags=re.DOTALL).replace("ˉ", "¯")
    return re.sub(r"<mo( class=\"\w+\")?>([‖|])</mo>", r'<mo\1 stretchy="false">\2</mo>', formula)


def visit_inline(translator: HTML5Translator, node: nodes.math) -> None:
    translator.body.append(mathml(node.astext(), block=False))
    raise nodes.SkipNode


def visit_block(translator: HTML5Translator, node: nodes.math_block) -> None:
    translator.body.append(f'<div class="math">{mathml(node.astext(), block=True)}</div>')
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_html_math_renderer("mathml", (visit_inline, None), (visit_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
