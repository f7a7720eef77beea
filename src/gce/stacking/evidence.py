"""Evidence: what members answered on rows they did not learn from, and the risk that weights are judged by."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _num_samples

from gce.losses import Loss
from gce.members import Split
from gce.responses import Array, Response
from gce.risk import Risk
from gce.weighting import Outputs


@dataclass(frozen=True, eq=False)
class Question:
    """What is asked of every member, and how its answers meet the loss.

    Parameters
    ----------
    response : Response
    loss : Loss
    y : array of shape (n, k)
        Targets as the loss knows them.
    weight : array of shape (n,)
        Positive, summing to 1.
    offset : array of shape (k,)
        Answers are measured from here: weights sum to 1, so that a combination is measured from here too, and numbers
        far from 0 keep their digits.
    rows : array of shape (n,)
        Where these rows stand among those that were given; rows of weight 0 are not asked about.
    """

    response: Response
    loss: Loss
    y: Array
    weight: Array
    offset: Array
    rows: NDArray[np.intp]

    def measure(self, answer: Array, at: NDArray[np.intp]) -> Array:
        """A response ``(r, outputs)`` as the loss knows it, ``(r, k)``.

        ``at`` are the numbers ``(r,)`` of its rows among the n.
        """
        return answer - self.offset

    def risk(self) -> Risk:
        weight = torch.from_numpy(self.weight)[None]
        return Risk(self.loss, torch.from_numpy(self.y), weight, torch.from_numpy(self.offset))

    def same(self, other: Question) -> bool:
        """Whether another question is about the same rows, with the same targets and weights."""
        return (
            np.array_equal(self.rows, other.rows)
            and np.array_equal(self.y, other.y)
            and np.array_equal(self.weight, other.weight)
        )

    def of(self, X: Any) -> Any:
        """The rows asked about, among those that were given."""
        return X if len(self.rows) == _num_samples(X) else _safe_indexing(X, self.rows)


@dataclass(frozen=True, eq=False)
class TrueClass(Question):
    """Of all probabilities only that of the class a row has, ``k = 1``: the mixture's log-loss needs no other.

    Parameters
    ----------
    codes : array of shape (n,)
    """

    codes: NDArray[np.intp]

    def measure(self, answer: Array, at: NDArray[np.intp]) -> Array:
        return answer[np.arange(len(at)), self.codes[at]][:, None]

    def same(self, other: Question) -> bool:
        return super().same(other) and isinstance(other, TrueClass) and np.array_equal(self.codes, other.codes)


class SecondClass(Question):
    """Of two probabilities the second, ``k = 1``: the first says the same."""

    def measure(self, answer: Array, at: NDArray[np.intp]) -> Array:
        return answer[:, 1:]


@dataclass(frozen=True)
class Evidence:
    """What weights were solved on.

    Parameters
    ----------
    outputs : Outputs
        What each member answered, measured from the risk's offset.
    risk : Risk
    splits : list of (train, test) or None
        Each member answered for the test rows after a fit on the training rows, as numbers of the rows that were given;
        None: it was fitted before.
    seconds : list of float
        What a member takes to answer for a row.
    question : Question
        What they were asked.
    """

    outputs: Outputs
    risk: Risk
    splits: list[Split] | None
    seconds: list[float]
    question: Question

    @property
    def rows(self) -> NDArray[np.intp]:
        """Where the rows of ``outputs`` stand among those that were given."""
        return self.question.rows

    def select(self, index: Sequence[int]) -> Evidence:
        """Some of the members; answers are not copied."""
        return replace(self, outputs=self.outputs.select(index), seconds=[self.seconds[j] for j in index])

    def adding(self, other: Evidence) -> Evidence:
        """These members, and one that was asked the same."""
        (answer,) = other.outputs.answers
        return replace(self, outputs=self.outputs.adding(answer), seconds=[*self.seconds, *other.seconds])


def gathered(
    question: Question, answers: Sequence[Array], seconds: Sequence[float], splits: list[Split] | None
) -> Evidence:
    """Evidence from each member's measured answers ``(n, k)``, which are not copied."""
    outputs = Outputs([torch.from_numpy(answer) for answer in answers])
    return Evidence(outputs, question.risk(), splits, list(seconds), question)


def ask_fitted(question: Question, models: Mapping[str, Any], X: Any) -> Evidence:
    """What fitted models answer on the rows given."""
    X = question.of(X)
    everywhere = np.arange(len(question.rows))
    answers, seconds = [], []
    for name, model in models.items():
        start = perf_counter()
        answer = question.response.ask(name, model, X)
        seconds.append((perf_counter() - start) / len(everywhere))
        answers.append(np.ascontiguousarray(question.measure(answer, everywhere)))
    return gathered(question, answers, seconds, None)
