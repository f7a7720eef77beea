"""The accuracy benchmark's page: tables of the rows that are there."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from accuracy_models import GCE, NATIVE, SLOW, SLOW_ROWS
from accuracy_ranks import Array, critical_difference, friedman, ranks, set_ranks, wins
from accuracy_rows import Row, Rows
from accuracy_sets import PAPERS, REGRESSION, SEEDS, SETS
from accuracy_times import table, times_section, value

#: The one figure of which more is better.
AUC = "auc"
CLASSES = tuple(name for name in SETS if name not in REGRESSION)
TABLE1 = Path(__file__).parents[1] / "paper" / "results" / "table1.json"
#: Table 1's methods as its page names them.
METHODS = {"gce": "GCE, defaults", "xgb": "XGB", "rf": "RF", "nn": "NN", "ngce": "NGCE"}


def everywhere(rows: Rows) -> list[str]:
    """The models that are run over all seeds, if they have begun."""
    return [name for name in rows if name not in SLOW and rows[name]]


def main_loss(name: str) -> str:
    return "rmse" if name in REGRESSION else "error"


@dataclass(frozen=True)
class Losses:
    """Losses (pairs, models) on the pairs of set and seed that all of these models were run on."""

    models: list[str]
    pairs: list[tuple[str, int]]
    values: Array

    @property
    def sets(self) -> list[str]:
        return [name for name, _ in self.pairs]


def common(rows: Rows, sets: tuple[str, ...], key: str | None) -> Losses:
    """The loss ``key`` (None: RMSE or error) of the models that are run over all seeds, NaN where one failed.

    Of the rows of earlier runs some lack a key that others have: such pairs are no pairs of all models.
    """
    models = everywhere(rows)
    pairs = [(name, seed) for name in sets for seed in SEEDS]
    pairs = [pair for pair in pairs if models and all(has(rows[model].get(pair), pair[0], key) for model in models)]
    return Losses(models, pairs, _losses(rows, models, pairs, key))


def ranked(rows: Rows) -> dict[str, Losses]:
    """What models are ranked by, where there is a pair that all of them were run on."""
    held = {"RMSE or error": common(rows, SETS, None)}
    held |= {title: common(rows, CLASSES, key) for title, key in (("log-loss", "log_loss"), ("ROC AUC", AUC))}
    return {title: losses for title, losses in held.items() if losses.pairs}


def has(row: Row | None, name: str, key: str | None) -> bool:
    """Whether a set's row is there and has the figure ``key`` (None: RMSE or error), or says that it failed."""
    return row is not None and ("failed" in row or (key or main_loss(name)) in row)


def _losses(rows: Rows, models: list[str], pairs: list[tuple[str, int]], key: str | None) -> Array:
    sign = -1 if key == AUC else 1
    held = [[rows[model][pair].get(key or main_loss(pair[0]), np.nan) for model in models] for pair in pairs]
    return sign * np.array(held, dtype=np.float64).reshape(len(pairs), len(models))


def page(rows: Rows) -> str:
    """All of it, in Markdown."""
    parts = [_head(rows), ranks_section(rows), wins_section(rows)]
    parts += [
        means_section("RMSE or error %", rows, SETS, None),
        means_section("MAE", rows, tuple(name for name in SETS if name in REGRESSION), "mae"),
        means_section("Log-loss", rows, CLASSES, "log_loss"),
        means_section("ROC AUC", rows, CLASSES, AUC),
        papers_section(rows),
        times_section(rows),
        slow_section(rows),
        failures_section(rows),
        origins_section(rows),
    ]
    return "\n".join(line for part in parts for line in part)


def _head(rows: Rows) -> list[str]:
    left_out = [name for name in rows if not rows[name]]
    words = [
        "# Accuracy at defaults",
        "",
        "`make accuracy`. Every model at its defaults with `random_state=seed`, on two threads; seeds 0 to 4; the",
        "split is `RandomState(seed).permutation(n)`, the first 80 % to fit on. All models get the same array of",
        "float64 numbers, but for the columns of adult and diamonds that are text where they come from: these are",
        "categories to CatBoost (`cat_features`), LightGBM, XGBoost and HistGradientBoosting (pandas categories), and",
        "codes, which are numbers, to GCE and the others. MLP is scikit-learn's, behind a StandardScaler, its targets",
        f"standardised too. RealMLP and TabM (pytabkit) run on seed 0 and on sets under {SLOW_ROWS:,} rows only, and",
        "have a table of their own. A probability below 1e-15 counts as that in a log-loss; the ROC AUC of several",
        "classes is the mean of each class against the rest. Rows: `benchmarks/results/accuracy/`, a line a set, seed",
        *_earlier(rows),
        "",
    ]
    return [*words, f"Not run yet: {', '.join(left_out)}.", ""] if left_out else words


def _earlier(rows: Rows) -> list[str]:
    """The end of the head, which names what rows of earlier runs lack."""
    old = [row for name in NATIVE for row in rows[name].values() if row["set"] in ("adult", "diamonds")]
    numbers = sum("categories" not in row for row in old)
    if not numbers:
        return ["and model."]
    return [f"and model. Of those of adult and diamonds {numbers} are of earlier runs, with codes as numbers for all."]


def ranks_section(rows: Rows) -> list[str]:
    out = ["## Mean ranks", "", "![Mean ranks and their critical differences](accuracy_ranks.png)", ""]
    out += ["1 is best. Models are ranked on each pair of set and seed, equal ones sharing the mean of their ranks and"]
    out += [
        "failures the last. The critical difference is Nemenyi's (5 %), from ranks averaged over seeds first, with the"
    ]
    out += ["sets as samples: conservative, for the average of five ranks varies less than one rank.", ""]
    losses = ranked(rows)
    models = everywhere(rows)
    lines = []
    for title, held in losses.items():
        mean = ranks(held.values).mean(0)
        words = f"{title}, {len(held.pairs)} pairs of {len(set(held.sets))} sets"
        lines.append([words, *bold([f"{one:.2f}" for one in mean], mean)])
    out += table(["mean rank", *models], lines)
    for title, held in losses.items():
        sets = list(dict.fromkeys(held.sets))
        if len(sets) > 2 and len(models) > 2:
            within = set_ranks(held.values, held.sets)
            difference = critical_difference(len(models), len(sets))
            out += [f"{title}: critical difference {difference:.2f}, Friedman's p {friedman(within):.1e}.", ""]
    return out


def wins_section(rows: Rows) -> list[str]:
    if not rows.get(GCE):
        return []
    out = ["## GCE against each peer", "", "Pairs of set and seed that GCE wins, ties and loses; a tie counts half."]
    out += ["The last column has every set count the same, by the mean over its seeds.", ""]
    for title, sets, key in (
        ("RMSE or error", SETS, None),
        ("log-loss", CLASSES, "log_loss"),
        ("ROC AUC", CLASSES, AUC),
    ):
        lines = []
        for peer in (name for name in rows if name not in (GCE, *SLOW) and rows[name]):
            pairs = [pair for pair in rows[GCE] if pair[0] in sets]
            pairs = [pair for pair in pairs if all(has(rows[one].get(pair), pair[0], key) for one in (GCE, peer))]
            if not pairs:
                continue
            values = _losses(rows, [GCE, peer], pairs, key)
            found = wins(values[:, 0], values[:, 1])
            means = np.array([values[[name == one for one, _ in pairs]].mean(0) for name in {one for one, _ in pairs}])
            by_set = wins(means[:, 0], means[:, 1])
            counts = [str(found.won), str(found.tied), str(found.lost), f"{100 * found.rate:.1f} %"]
            lines.append([peer, *counts, f"{by_set.won} of {len(means)}, {by_set.tied} tied"])
        out += table([title, "won", "tied", "lost", "win rate", "sets won"], lines) if lines else []
    return out


def means_section(title: str, rows: Rows, sets: tuple[str, ...], key: str | None) -> list[str]:
    """Means over seeds, a line a set."""
    models = everywhere(rows)
    lines = []
    for name in sets:
        loss = key or main_loss(name)
        held = [[rows[model][name, seed] for seed in SEEDS if (name, seed) in rows[model]] for model in models]
        held = [[row for row in own if has(row, name, key)] for own in held]
        if not any(held):
            continue
        kept = [[row[loss] for row in own if loss in row] for own in held]
        means = np.array([np.mean(own) if own else np.nan for own in kept])
        texts = [_mean_text(mean, len(good), len(own)) for mean, good, own in zip(means, kept, held, strict=True)]
        lines.append([f"{name} ({loss})" if key is None else name, *bold(texts, -means if key == AUC else means)])
    if not lines:
        return []
    out = [f"## {title}, means over seeds", ""]
    out += ["The best in bold; (n): of so many seeds, where not of all five.", ""]
    return [*out, *table(["", *models], lines)]


def _mean_text(mean: float, good: int, tried: int) -> str:
    if not tried:
        return ""
    if not good:
        return "failed"
    return value(mean) + (f" ({good})" if good < len(SEEDS) else "")


def bold(texts: list[str], values: Array) -> list[str]:
    if np.isnan(values).all():
        return texts
    best = np.nanmin(values)
    return [f"**{text}**" if one == best else text for text, one in zip(texts, values, strict=True)]


def papers_section(rows: Rows) -> list[str]:
    """The paper's twelve sets: those that are here, beside the committed figures of Table 1."""
    held = json.loads(TABLE1.read_text())["cells"] if TABLE1.exists() else []
    table1 = {(cell["set"], cell["method"]): cell for cell in held if cell["split"] == "paper"}
    models = everywhere(rows)
    lines = []
    for name in (*PAPERS, "msd", "covertype", "mnist", "cifar10_f", "kddcup99"):
        loss = "mae" if name in REGRESSION or name == "msd" else "error"
        kept = [[rows[model].get((name, seed), {}).get(loss) for seed in SEEDS] for model in models]
        good = [[one for one in own if one is not None] for own in kept]
        means = np.array([np.mean(own) if own else np.nan for own in good])
        texts = [_mean_text(mean, len(own), len(own)) for mean, own in zip(means, good, strict=True)]
        theirs = [table1.get(("ca_housing" if name == "california" else name, method)) for method in METHODS]
        texts = [*bold(texts, means), *(value(cell["test"]) if cell else "" for cell in theirs)]
        lines.append([f"{name} ({'MAE' if loss == 'mae' else 'error %'})", *texts])
    out = [
        "## The paper's twelve sets",
        "",
        "Left: here, defaults, means over seeds. Right (T1): `paper/results/table1.md`,",
    ]
    out += ["on the paper's own split, peers tuned, as committed there with its own versions of GCE. covertype, mnist,"]
    out += [
        "cifar10_f and kddcup99 (10 % of its rows) have the paper's protocols and stand in Table 1 alone; msd is not to"
    ]
    out += ["be had here.", ""]
    return [*out, *table(["", *models, *(f"T1: {name}" for name in METHODS.values())], lines)]


def slow_section(rows: Rows) -> list[str]:
    """RealMLP and TabM on seed 0, with everybody else's figures there."""
    slow = [name for name in rows if name in SLOW and rows[name]]
    if not slow:
        return []
    fast = everywhere(rows)
    lines = []
    for name in (name for name in SETS if any((name, 0) in rows[model] for model in slow)):
        held = [rows[model].get((name, 0), {}) for model in (*slow, *fast)]
        values = np.array([row.get(main_loss(name), np.nan) for row in held])
        texts = [_slow_text(row, main_loss(name)) for row in held]
        lines.append([f"{name} ({main_loss(name)})", *bold(texts, values)])
    for model in slow:
        pairs = [(name, 0) for name in SETS if main_loss(name) in rows[model].get((name, 0), {})]
        pairs = [pair for pair in pairs if all(pair in rows[other] for other in fast)]
        if not pairs:
            continue
        mean = ranks(_losses(rows, [model, *fast], pairs, None)).mean(0)
        texts = bold([f"{one:.2f}" for one in mean], mean)
        own = [texts[0] if other == model else "" for other in slow]
        lines.append([f"mean rank, {len(pairs)} sets of {model}", *own, *texts[1:]])
    out = [
        "## RealMLP and TabM",
        "",
        f"Seed 0, sets under {SLOW_ROWS:,} rows; ranks among one of them and the others, on the",
    ]
    out += ["sets that it finished. Their seconds of a fit stand in the last table.", ""]
    out += table(["", *slow, *fast], lines)
    seconds = []
    for name in (name for name in SETS if any((name, 0) in rows[model] for model in slow)):
        held = [rows[model].get((name, 0), {}) for model in slow]
        seconds.append([name, *(_slow_text(row, "fit_seconds") for row in held)])
    return [*out, *table(["fit seconds", *slow], seconds)]


def _slow_text(row: Row, key: str) -> str:
    if "failed" in row:
        return "not run" if row["failed"].startswith("not run") else "failed"
    return value(row[key]) if key in row else ""


def failures_section(rows: Rows) -> list[str]:
    """What did not come to a figure, and why."""
    found = [row for own in rows.values() for row in own.values() if "failed" in row]
    if not found:
        return []
    lines = [[row["model"], row["set"], str(row["seed"]), row["failed"].replace("|", "/")] for row in found]
    return ["## Failures", "", *table(["model", "set", "seed", "what happened"], lines)]


def origins_section(rows: Rows) -> list[str]:
    """Machines and versions, as each row tells them."""
    out = ["## Machines and versions", ""]
    for model, own in rows.items():
        counts: dict[str, int] = {}
        for row in own.values():
            words = f"version {row['version']} on {row['machine']}, {row['threads']} threads"
            counts[words] = counts.get(words, 0) + 1
        out += [f"- {model}: {words}: {count} rows" for words, count in counts.items()]
        timed = {f"{row['timed_version']} on {row['timed_on']}" for row in own.values() if row.get("quiet")}
        out += [f"  - timed again in a quiet hour: {', '.join(sorted(timed))}"] if timed else []
    return [*out, ""]
