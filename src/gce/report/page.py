"""The page: sections, style and script put together into one file."""

from __future__ import annotations

import base64
import hashlib
import time
from importlib.resources import files
from pathlib import Path
from typing import Any

from numpy.typing import ArrayLike

from gce.report import classes, columns, fitted, guarantee, importance, residuals, timing, training, weights
from gce.report.markup import Markup, Section, counted, join, tag
from gce.report.measures import Measure, measures
from gce.report.trial import Trial, tried
from gce.storage.container import put

_SECTIONS = (fitted, classes, residuals, training, importance, weights, columns, timing, guarantee)


def write(model: Any, path: str | Path, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> None:
    """Write a page about a fitted model and how it does on given rows.

    Parameters
    ----------
    model : estimator
        Fitted.
    path : str or Path
        The HTML file; its folder must exist.
    X : array-like or data frame of shape (n, d)
        Rows the model has not seen.
    y : array-like of shape (n,) or (n, k)
    sample_weight : array-like of shape (n,), optional
        A row of weight 0 is a row that is not there.
    """
    check_folder(path)
    trial = tried(model, X, y, sample_weight)
    found = [part.section(trial) for part in _SECTIONS]
    save(path, type(model).__name__, _subtitle(trial), measures(trial), [section for section in found if section])


def check_folder(path: str | Path) -> None:
    """Refuse a path that cannot be written to: before the work, not after it."""
    folder = Path(path).parent
    if not folder.is_dir():
        raise FileNotFoundError(f"the folder {str(folder)!r} for the report does not exist: make it first")


def save(path: str | Path, name: str, subtitle: str, found: list[Measure], sections: list[Section]) -> None:
    """Put a page together and write it."""
    text = _page(name, subtitle, found, sections)
    # a lone surrogate in a name has no place in a file
    put(Path(path), text.encode("utf-8", errors="replace"))


def _page(name: str, subtitle: str, found: list[Measure], sections: list[Section]) -> str:
    style, script = (files("gce.report").joinpath(part).read_text("utf-8") for part in ("page.css", "page.js"))
    # nothing but this very script may run, and nothing may be fetched
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'unsafe-inline'; img-src data:; script-src 'sha256-{digest}'"
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=policy),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("link", rel="icon", href="data:,"),
        tag("title", f"{name}: report"),
        tag("style", Markup(style)),
    )
    links = [tag("a", section.title, href=f"#{section.anchor}") for section in sections]
    body = tag(
        "body",
        tag("a", "Skip to the numbers", href="#headline", class_="skip"),
        tag("header", tag("div", tag("h1", name), tag("p", subtitle, class_="lead"))),
        tag("nav", *links, aria_label="Sections"),
        tag("main", _headline(found), *(section.html() for section in sections)),
        tag("footer", f"Written by gce on {time.strftime('%Y-%m-%d %H:%M')}. One file, no network."),
        tag("script", Markup(script)),
    )
    return "<!doctype html>\n" + tag("html", head, body, lang="en")


def _subtitle(trial: Trial) -> str:
    model = trial.model
    weighted = ", weighted" if trial.weight is not None else ""
    what = f"{len(model.classes_)} classes" if trial.classifies else "numbers"
    made_of = counted(len(model.ensemble_), "atom")
    columns, rows = counted(model.n_features_in_, "column"), counted(trial.rows, "row")
    return f"Predicts {what} from {columns} with {made_of}; tried on {rows}{weighted}."


def _headline(found: list[Measure]) -> Markup:
    tiles = [
        tag(
            "div",
            tag("dt", measure.name),
            tag("dd", measure.value, class_="value", data_value=repr(measure.exact)),
            tag("dd", measure.beside, class_="beside"),
            class_="tile",
        )
        for measure in found
    ]
    return tag("dl", join(tiles), id="headline", class_="tiles", aria_label="Headline numbers")
