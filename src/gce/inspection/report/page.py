"""The page: sections, style and script in one file."""

from __future__ import annotations

import base64
import hashlib
import time
from importlib.resources import files
from pathlib import Path
from typing import Any

from numpy.typing import ArrayLike

from gce._utils.params import counted
from gce.inspection.report import (
    classes,
    columns,
    fitted,
    guarantee,
    importance,
    other_tasks,
    residuals,
    shapley,
    timing,
    training,
    weights,
)
from gce.inspection.report.evaluation import Evaluation, evaluate
from gce.inspection.report.markup import Markup, Section, join, tag
from gce.inspection.report.measures import Measure, measures
from gce.io.atomic import write_bytes

_SECTIONS = (fitted, classes, residuals, training, importance, shapley, weights, columns, timing, guarantee)


def write(model: Any, path: str | Path, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> None:
    """Write a report about a fitted model and its performance on given rows.

    Parameters
    ----------
    model : estimator
        Fitted.
    path : str or Path
        The HTML file; its folder must exist.
    X : array-like or data frame of shape (n, d)
        Rows that were not used in the fit.
    y : array-like of shape (n,) or (n, k)
    sample_weight : array-like of shape (n,), optional
        Samples with zero weight are ignored.
    """
    check_folder(path)
    evaluation = evaluate(model, X, y, sample_weight)
    if evaluation.plain:
        found, headline = [part.section(evaluation) for part in _SECTIONS], measures(evaluation)
    else:
        found, headline = other_tasks.sections(evaluation), other_tasks.measures(evaluation)
    subtitle, shown = _subtitle(evaluation), [section for section in found if section]
    save(path, type(model).__name__, subtitle, headline, shown)


def check_folder(path: str | Path) -> None:
    """Raise an error early if the folder of a path does not exist."""
    folder = Path(path).parent
    if not folder.is_dir():
        raise FileNotFoundError(f"the folder {str(folder)!r} for the report does not exist: create it first")


def save(path: str | Path, name: str, subtitle: str, found: list[Measure], sections: list[Section]) -> None:
    """Assemble a page and write it."""
    text = _page(name, subtitle, found, sections)
    # a lone surrogate in a name cannot be encoded
    write_bytes(Path(path), text.encode("utf-8", errors="replace"))


def _page(name: str, subtitle: str, found: list[Measure], sections: list[Section]) -> str:
    style, script = (
        files("gce.inspection.report").joinpath(part).read_text("utf-8") for part in ("page.css", "page.js")
    )
    # only this script may run, and nothing may be fetched
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
        tag("a", "Skip to the metrics", href="#headline", class_="skip"),
        tag("header", tag("div", tag("h1", name), tag("p", subtitle, class_="lead"))),
        tag("nav", *links, aria_label="Sections"),
        tag("main", _headline(found), *(section.html() for section in sections)),
        tag("footer", f"Written by gce on {time.strftime('%Y-%m-%d %H:%M')}. One file, no network."),
        tag("script", Markup(script)),
    )
    return "<!doctype html>\n" + tag("html", head, body, lang="en")


def _subtitle(evaluation: Evaluation) -> str:
    model = evaluation.model
    weighted = ", weighted" if evaluation.weight is not None else ""
    what = f"{len(model.classes_)} classes" if evaluation.classifies else "numbers"
    what = what if evaluation.plain else other_tasks.answers(evaluation)
    made_of = counted(len(model.ensemble_), "atom")
    columns, rows = counted(model.n_features_in_, "column"), counted(evaluation.rows, "row")
    base = " The fit had base scores, and these are predictions of a base score of 0." * model.result_.base_score
    return f"Predicts {what} from {columns} with {made_of}; evaluated on {rows}{weighted}.{base}"


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
    return tag("dl", join(tiles), id="headline", class_="tiles", aria_label="Headline metrics")
