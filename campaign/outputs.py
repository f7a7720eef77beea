"""Names with markup, control characters and thousands of letters, through all that gce writes for people to see."""

from __future__ import annotations

import random
import traceback
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import gce
from campaign import shown_pages, shown_texts
from campaign.hostile_words import WORDS
from campaign.isolated import isolated
from campaign.outcomes import Outcome
from gce.bases import Tree

PROMISE = (
    "names of columns, classes, categories, families and files are shown by pages, terminals, plots and exported "
    "files, which obey none of them"
)
FULL = 360
ROWS = 60
WAYS: list[Callable[..., str]] = [*shown_pages.WAYS, *shown_texts.WAYS]


class Named:
    """Rows, targets and a model whose names a stranger has chosen.

    Parameters
    ----------
    word : str
        In all names.
    folder : Path
    """

    def __init__(self, word: str, folder: Path) -> None:
        rng = np.random.default_rng(0)
        numbers = rng.normal(size=(ROWS, 2))
        self.word, self.folder = word, folder
        # text of pandas' own type has no lone surrogates
        self.X = pd.DataFrame(numbers, columns=pd.Index([f"a{word}", word], dtype=object))
        words = np.array([word, f"level {word}"], dtype=object)[rng.integers(0, 2, ROWS)]
        self.X["words"] = pd.Series(words, dtype=object)
        self.y = np.array([word, f"class {word}", "plain"], dtype=object)[np.digitize(numbers[:, 0], [-0.5, 0.5])]
        self.target = f"target {word}"

    def fitted(self, **given: Any) -> Any:
        """A classifier of these rows, whose families have such names too."""
        tree = Tree(max_leaf_nodes=3, min_samples_leaf=2)
        settings = {"basis": {self.word: tree, "other": tree}, "max_iter": 2, "cv": 2, "random_state": 0, **given}
        return gce.GCEClassifier(**settings).fit(self.X, self.y)


def outcomes(cases: Iterable[int], seed: int, folder: Path) -> Iterator[Outcome]:
    """Run cases in processes of their own: a word and a way to show it each."""
    yield from isolated(Outputs, cases, seed, folder)


class Outputs:
    """Runs cases by their numbers.

    Parameters
    ----------
    seed : int
    folder : Path
    """

    def __init__(self, seed: int, folder: Path) -> None:
        self._seed, self._folder = seed, folder

    def __call__(self, case: int) -> Outcome:
        way, rng = WAYS[case % len(WAYS)], random.Random(f"{self._seed} {case}")
        names = list(WORDS)
        name = names[case // len(WAYS) % len(names)]
        # words after the first round are joined in pairs
        word = WORDS[name] if case < len(WAYS) * len(names) else WORDS[name] + WORDS[rng.choice(names)]
        kind = way.__name__.replace("_", " ")
        try:
            result = way(Named(word, self._folder))
        except Exception as error:
            place = traceback.extract_tb(error.__traceback__)[-1]
            words = f"{name}: {type(error).__name__}: {error} ({Path(place.filename).name}:{place.lineno})"
            return Outcome(case, kind, ascii(" ".join(words.split()))[1:500])
        return Outcome(case, f"{kind}: {result}")
