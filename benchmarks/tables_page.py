"""The page of ``make tables``: tables of the rows that are there."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from accuracy_models import GCE
from accuracy_ranks import Array, ranks, set_ranks, wins
from accuracy_rows import Row, Rows
from accuracy_tables import bold, failures_section, origins_section
from accuracy_times import table, times_section, value
from tables_models import AUTOGLUON, TIME_LIMIT

Pair = tuple[str, int]


@dataclass(frozen=True)
class Measure:
    """What rows are compared by: a key of each task that has it, and whether more is better."""

    title: str
    keys: dict[str, str]
    more: bool = False

    def loss(self, row: Row) -> float:
        """The row's figure, less being better; NaN where the fit failed."""
        figure = row.get(self.keys[row["task"]], np.nan)
        return -figure if self.more else figure


MAIN = Measure("RMSE or log-loss", {"regression": "rmse", "classification": "log_loss"})
MEASURES = (
    MAIN,
    Measure("RMSE", {"regression": "rmse"}),
    Measure("MAE", {"regression": "mae"}),
    Measure("log-loss", {"classification": "log_loss"}),
    Measure("ROC AUC", {"classification": "auc"}, more=True),
    Measure("error %", {"classification": "error"}),
)


def begun(rows: Rows) -> list[str]:
    """Models that have rows."""
    return [model for model in rows if rows[model]]


def tasks(rows: Rows) -> dict[str, str]:
    """The task of each table, regressions first."""
    found = {name: row["task"] for own in rows.values() for (name, _), row in own.items()}
    return dict(sorted(found.items(), key=lambda item: (item[1] != "regression", item[0])))


def common(rows: Rows, models: list[str], measure: Measure) -> list[Pair]:
    """Pairs of table and seed that all of these models were run on, failures among them."""
    if not models:
        return []
    held = [pair for pair, row in rows[models[0]].items() if row["task"] in measure.keys]
    return sorted(pair for pair in held if all(pair in rows[model] for model in models))


def losses(rows: Rows, models: list[str], pairs: list[Pair], measure: Measure) -> Array:
    """Losses (pairs, models), NaN where a fit failed."""
    held = [[measure.loss(rows[model][pair]) for model in models] for pair in pairs]
    return np.array(held, dtype=np.float64).reshape(len(pairs), len(models))


def page(rows: Rows) -> str:
    """All of it, in Markdown."""
    parts = [_head(rows), ranks_section(rows), wins_section(rows)]
    parts += [figures_section(rows, measure) for measure in MEASURES[1:]]
    parts += [times_section(rows, list(tasks(rows))), failures_section(rows), origins_section(rows)]
    return "\n".join(line for part in parts for line in part)


def _head(rows: Rows) -> list[str]:
    left_out = [name for name in rows if not rows[name]]
    words = f"""# Tables as people have them

`make tables`. Every model at its defaults with `random_state=seed`, on two threads, each fit in a process of its own.
Splits by chance (`RandomState(seed).permutation(n)`, the first 80 % to fit on) and by groups (a fifth of the groups is
judged; the key of the groups is no column) on seeds 0 to 2; by time the last fifth is judged. What a model is given:

- GCE: the table as it is.
- CatBoost: strings as `cat_features`, missing ones as a category of their own; as `text_features` where more than half
  of the rows have a value of their own and of 20 characters or more in the mean.
- LightGBM, XGBoost (`enable_categorical=True`): strings as pandas categories.
- HistGradientBoosting: behind skrub's `tabular_pipeline`, which is given the table as it is.
- RandomForest: behind scikit-learn's `TargetEncoder` (strings) and medians (missing numbers).
- AutoGluon: the table as it is, `presets="medium_quality"`, `time_limit={TIME_LIMIT}`, `num_cpus=2`, asked for the
  RMSE or the log-loss; in an environment of its own, with its own versions of other libraries.

CatBoost, LightGBM, XGBoost and RandomForest get year, month, day, weekday, day of the year, hour and days since 1970 in
place of each date. A probability below 1e-15 counts as that in a log-loss; the AUC of several classes is the mean of
each class against the rest. Rows: `benchmarks/results/tables/`, a line a table, seed and model.
"""
    return [*words.splitlines(), "", *([f"Not run yet: {', '.join(left_out)}.", ""] if left_out else [])]


def ranks_section(rows: Rows) -> list[str]:
    """Mean ranks of all but AutoGluon, and with it on the pairs that it was run on."""
    out = [
        "## Mean ranks",
        "",
        "1 is best. Models are ranked on each pair of table and seed that all were run on, equal",
    ]
    out += ["ones sharing the mean of their ranks and failures the last; over tables: each table counts the same.", ""]
    everyone = begun(rows)
    without = [model for model in everyone if model != AUTOGLUON]
    for models in [without] if without == everyone else [without, everyone]:
        lines = []
        for measure in MEASURES:
            pairs = common(rows, models, measure)
            if not pairs:
                continue
            held, names = losses(rows, models, pairs, measure), [name for name, _ in pairs]
            by_pair, by_table = ranks(held).mean(0), set_ranks(held, names).mean(0)
            for mean, over in ((by_pair, f"{len(pairs)} pairs"), (by_table, f"{len(set(names))} tables")):
                lines.append([f"{measure.title}, {over}", *bold([f"{one:.2f}" for one in mean], mean)])
        out += table(["mean rank", *models], lines) if models else []
    return out


def wins_section(rows: Rows) -> list[str]:
    """How often GCE is better than each other model."""
    if not rows.get(GCE):
        return []
    out = ["## GCE against each peer", "", "Pairs of table and seed that GCE wins, ties and loses; a tie counts half."]
    out += ["The last column has every table count the same, by the mean over its seeds.", ""]
    for measure in MEASURES:
        lines = []
        for peer in (model for model in begun(rows) if model != GCE):
            pairs = common(rows, [GCE, peer], measure)
            if not pairs:
                continue
            held = losses(rows, [GCE, peer], pairs, measure)
            found = wins(held[:, 0], held[:, 1])
            names = dict.fromkeys(name for name, _ in pairs)
            means = np.array([held[[name == one for one, _ in pairs]].mean(0) for name in names])
            by_table = wins(means[:, 0], means[:, 1])
            counts = [str(found.won), str(found.tied), str(found.lost), f"{100 * found.rate:.1f} %"]
            lines.append([peer, *counts, f"{by_table.won} of {len(means)}, {by_table.tied} tied"])
        out += table([measure.title, "won", "tied", "lost", "win rate", "tables won"], lines) if lines else []
    return out


def figures_section(rows: Rows, measure: Measure) -> list[str]:
    """Means over seeds, a line a table; (n): of so many seeds where another model has more."""
    models, lines = begun(rows), []
    for name in (name for name, task in tasks(rows).items() if task in measure.keys):
        held = [[row for (other, _), row in rows[model].items() if other == name] for model in models]
        kept = [[one for one in (measure.loss(row) for row in own) if not np.isnan(one)] for own in held]
        most = max(len(own) for own in kept)
        means = np.array([np.mean(own) if own else np.nan for own in kept])
        texts = [
            f"{value(abs(mean))}{f' ({len(good)})' if len(good) < most else ''}" if good else "failed" if own else ""
            for mean, good, own in zip(means, kept, held, strict=True)
        ]
        lines.append([name, *bold(texts, means)])
    title = f"{measure.title[0].upper()}{measure.title[1:]}"
    out = [f"## {title}, means over seeds", "", "The best in bold; (n): of so many seeds, where others have more.", ""]
    return [*out, *table(["", *models], lines)] if lines else []
