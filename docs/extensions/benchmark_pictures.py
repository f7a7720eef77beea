"""Pictures of docs/benchmarks.md, drawn from the committed results each time the site is built."""

from __future__ import annotations

from pathlib import Path

from sphinx.application import Sphinx
from sphinx.util import logging

logger = logging.getLogger(__name__)


def draw_all(app: Sphinx) -> None:
    """Draw every picture into docs/pictures, before pages are read."""
    from pictures import PICTURES  # of benchmarks/

    folder = Path(app.srcdir) / "docs" / "pictures"
    folder.mkdir(exist_ok=True)
    for name, draw in PICTURES.items():
        draw(folder / f"{name}.svg")
    logger.info("drew %d pictures of committed results", len(PICTURES))


def setup(app: Sphinx) -> dict[str, bool]:
    """Draw when the builder is ready."""
    app.connect("builder-inited", draw_all)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
