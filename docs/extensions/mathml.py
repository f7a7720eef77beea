"""Formulas as MathML, made when the site is built: browsers draw it themselves, without a script."""

from __future__ import annotations

import re
from typing import Any

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.application import Sphinx

#: A line of an aligned formula, as LaTeX ends it.
_LINE_END = re.compile(r"\\\\")


def mathml(latex: str, display: str) -> str:
    """A formula as one ``math`` element; ``display`` is "inline" or "block"."""
    if display == "block" and _LINE_END.search(latex) and r"\begin" not in latex:
        latex = rf"\begin{{aligned}}{latex}\end{{aligned}}"
    return convert(latex, display=display)


def visit_math(translator: Any, node: nodes.math) -> None:
    """A formula within a line."""
    translator.body.append(f'<span class="math">{mathml(node.astext(), "inline")}</span>')
    raise nodes.SkipNode


def visit_math_block(translator: Any, node: nodes.math_block) -> None:
    """A formula by itself, which scrolls where a screen is narrower."""
    translator.body.append(f'<div class="math" tabindex="0">{mathml(node.astext(), "block")}</div>')
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, bool]:
    """Add the renderer "mathml"."""
    app.add_html_math_renderer("mathml", (visit_math, None), (visit_math_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
