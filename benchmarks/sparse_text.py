"""Sparse rows of text: the default fit beside the same rows written out, networks alone, and what others make of them.

    python benchmarks/sparse_text.py now               (or: before, with an older gce on PYTHONPATH)

The documents are paragraphs of the docstrings of installed packages, the classes the packages, whose names are left
out; columns are tf-idf of words in two documents or more. Each call appends the lines that are missing to
results/sparse_text.jsonl, and writes results/sparse_text.md from all of them.
"""

from __future__ import annotations

import importlib
import inspect
import json
import pkgutil
import re
import sys
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from harness import RESULTS, run_script
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegressionCV
from sklearn.metrics import accuracy_score, log_loss
from sklearn.model_selection import train_test_split

import gce

CORPORA = {
    "libraries": ("numpy", "pandas", "sklearn", "torch"),
    "plots and symbols": ("scipy", "matplotlib", "sympy", "networkx"),
}
TRAIN, TEST, WORDS = 800, 800, 12

ABOUT = """# Sparse rows of text

Paragraphs of docstrings ({train} to fit, {test} to test, at least {words} words each), four packages a corpus, whose
names are left out; tf-idf of words that are in two documents or more. `before` is the commit before sparse rows
reached trees; `now` this one. "First round" is the networks' held-out log-loss after one atom, before any temperature;
a constant has 1.386. "libraries" is one of the sets on which the number of epochs was chosen, the other is not.
Sparse and dense rows give one model but for rounding, which the training of networks makes larger. To fill in what is
missing: `python benchmarks/sparse_text.py now`.

Machine: {machine}.
"""


def docstrings(package: str) -> list[str]:
    """Those of a package's public classes, methods and functions, one folder deep."""
    root, found = importlib.import_module(package), dict[str, None]()
    below = [module.name for module in pkgutil.iter_modules(root.__path__, package + ".")]
    for name in [package, *(name for name in below if not re.search(r"\._|test", name))]:
        try:
            members = sorted(vars(importlib.import_module(name)).items())
        except Exception:  # an optional dependency is missing
            continue
        for own, thing in members:
            inner = sorted(vars(thing).items()) if inspect.isclass(thing) else []
            for label, part in [(own, thing), *inner]:
                home, text = getattr(part, "__module__", None), getattr(part, "__doc__", None)
                if not label.startswith("_") and isinstance(text, str) and str(home).split(".")[0] == package:
                    found.setdefault(text)
    return list(found)


def paragraphs(package: str) -> list[str]:
    """Their paragraphs of prose, as words."""
    found = dict[str, None]()
    for text in docstrings(package):
        prose = re.sub(r"^\s*(>>>|\.\.\.).*$", "", text, flags=re.MULTILINE)
        for part in re.split(r"\n\s*\n", prose):
            words = re.findall(r"[a-z]{3,}", part.lower())
            if len(words) >= WORDS:
                found.setdefault(" ".join(words))
    return list(found)


def corpus(packages: tuple[str, ...]) -> tuple[Any, Any, Any, Any]:
    """Sparse rows to fit and to test, and their classes."""
    rng, texts, y = np.random.default_rng(0), [], []
    for label, package in enumerate(packages):
        some = paragraphs(package)
        drawn = rng.permutation(len(some))[: (TRAIN + TEST) // len(packages)]
        texts += [" ".join(word for word in some[i].split() if word not in packages) for i in drawn]
        y += [label] * len(drawn)
    train, test, *labels = train_test_split(texts, np.array(y), random_state=0, stratify=y, train_size=TRAIN)
    words = TfidfVectorizer(min_df=2)
    return words.fit_transform(train), words.transform(test), *labels


def models(when: str) -> Iterator[tuple[str, Any, bool]]:
    """Names, models, and whether their rows are written out."""
    fitted = {"random_state": 0, "verbose": False}
    yield f"GCE, networks alone, sparse rows, {when}", gce.GCEClassifier(algorithm="pairwise", **fitted), False
    if when == "now":
        grid = {"Cs": np.logspace(-1, 3, 9), "l1_ratios": (0.0,), "scoring": "neg_log_loss", "max_iter": 2000}
        logistic = LogisticRegressionCV(**grid, use_legacy_attributes=False)
        yield "logistic regression, C chosen by cross-validation", logistic, False
        yield "HistGradientBoostingClassifier, dense", HistGradientBoostingClassifier(random_state=0), True
    yield f"GCE, sparse rows, {when}", gce.GCEClassifier(**fitted), False
    if when == "now":
        yield f"GCE, the same rows dense, {when}", gce.GCEClassifier(**fitted), True


def measured(when: str, known: set[tuple[str, str]]) -> Iterator[dict[str, Any]]:
    """What is not known yet, a line for a model and a corpus."""
    for name, packages in CORPORA.items():
        train, test, y, y_test = corpus(packages)
        told = f"{name} ({train.shape[1]:,} columns)"
        for label, model, dense in models(when):
            if (told, label) in known:
                continue
            began = time.perf_counter()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                model.fit(train.toarray() if dense else train, y)
            seconds = time.perf_counter() - began
            p = model.predict_proba(test.toarray() if dense else test)
            accuracy = accuracy_score(y_test, p.argmax(1))
            rounds = [e["validation"] for e in getattr(model, "history_", ()) if e.get("family", "neural") == "neural"]
            first = rounds[0] if rounds else None
            yield {
                "corpus": told, "model": label, "accuracy": accuracy,
                "log_loss": log_loss(y_test, p), "first": first, "seconds": seconds,
            }  # fmt: skip


def written(lines: list[dict[str, Any]], machine: str) -> str:
    parts = [ABOUT.format(train=TRAIN, test=TEST, words=WORDS, machine=machine)]
    for name in dict.fromkeys(line["corpus"] for line in lines):
        parts.append(f"## {name}\n\n| | accuracy | log-loss | first round | seconds |\n|---|---:|---:|---:|---:|")
        for line in (line for line in lines if line["corpus"] == name):
            first = "" if line["first"] is None else f"{line['first']:.2f}"
            told = f"{line['accuracy']:.3f} | {line['log_loss']:.3f} | {first} | {line['seconds']:.0f}"
            parts[-1] += f"\n| {line['model']} | {told} |"
    return "\n\n".join(part.strip() for part in parts) + "\n"


def lines(log: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []


def main() -> None:
    log = RESULTS / "sparse_text.jsonl"
    for line in measured(sys.argv[1], {(line["corpus"], line["model"]) for line in lines(log)}):
        with log.open("a") as file:
            file.write(json.dumps(line) + "\n")
        machine = (
            "x86_64 (AMD EPYC), two cores, no GPU. Seconds are rough: other work kept the machine busy in all but the "
            "last lines of each table"
        )
        (RESULTS / "sparse_text.md").write_text(written(lines(log), machine))


if __name__ == "__main__":
    run_script(main)
