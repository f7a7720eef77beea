"""A short form of the campaign of altered files, and what its checks see."""

from random import Random
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from campaign import files, model_uses
from campaign.files import FULL, KINDS, KNOWN, STRIDE, edits_of, turn
from campaign.model_uses import BrokenPromiseError, Used, check_numbers, predict, shap_values, use
from campaign.mutated_bytes import STRANGE
from campaign.outcomes import tallied
from campaign.sources import X, made


def test_altered_files_are_refused_in_a_sentence_or_used(tmp_path):
    tally = tallied(files.outcomes(range(300), 1, tmp_path))
    assert tally.faults == []
    assert tally.cases == 300
    assert {"bytes, wrong checksum: refused", "values, right checksum: refused", "values, right checksum: used"} <= set(
        tally.held
    )


def test_a_full_campaign_tries_every_edit_and_every_strange_file(tmp_path):
    (tmp_path / "sources").mkdir()
    count = len(STRANGE) + len(edits_of([made(name, tmp_path / "sources").path for name in KNOWN]))
    turns = [turn(case) for case in range(FULL) if KINDS[case % len(KINDS)] is files._hostile]
    assert turns == list(range(len(turns)))
    assert {number * STRIDE % count for number in turns} == set(range(count))


class Model:
    """One that answers with a column of its rows; each row starts where the one before it ends."""

    bound_, offset_ = np.array([10.0]), np.array([0.0])

    def __init__(self, column):
        self.column = column

    def raw_predict(self, X):
        rows, columns = X.shape
        stored = np.append(X.ravel(), np.zeros(columns))
        return torch.from_numpy(stored[self.column :: columns][:rows, None].copy())

    def predict(self, X):
        return self.raw_predict(X).numpy()[:, 0]


def test_reads_past_the_last_column_are_seen():
    predict(Used(Model(column=X.shape[1] - 1), X, None, None))
    with pytest.raises(BrokenPromiseError, match="in a table in reverse"):
        predict(Used(Model(column=X.shape[1]), X, None, None))


class Attributed(Model):
    """One whose Shapley values lack some share of the score."""

    def __init__(self, lacking):
        super().__init__(column=0)
        self.lacking = lacking

    def shap_values(self, X):
        values = np.zeros((*X.shape, 1))
        values[:, 0, 0] = X[:, 0] - self.lacking
        return SimpleNamespace(values=values, base_values=np.zeros(1), standard_errors=None)


def test_shapley_values_of_another_sum_are_seen():
    shap_values(Used(Attributed(lacking=0.0), X, None, None))
    with pytest.raises(BrokenPromiseError, match="do not sum to the score"):
        shap_values(Used(Attributed(lacking=0.01), X, None, None))


@pytest.mark.parametrize(
    ("score", "words"),
    [
        (lambda used: np.zeros(3).reshape(2), "raised outside of validation"),
        (lambda used: check_numbers("scores", [np.nan], 1), "1 of 1 are NaN"),
    ],
)
def test_what_a_use_says_or_answers_is_judged(monkeypatch, score, words):
    monkeypatch.setattr(model_uses, "predict", score)
    with pytest.raises(BrokenPromiseError, match=words):
        use(Used(None, X, None, None), Random(0))
