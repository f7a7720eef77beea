"""Ordinal classes and several labels per row."""

import io
import re
import warnings

import numpy as np
import onnxruntime
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import make_multilabel_classification
from sklearn.model_selection import cross_val_score
from sklearn.utils import estimator_checks

import gce
from gce import GCEClassifier, GCERegressor
from gce.bases import Forest
from gce.losses import CrossEntropy, Hazards, MultiLabel, Ordinal, Poisson, Tweedie
from gce.training.labels import OrdinalTarget


def ordered(n=150, seed=0):
    """Four classes that rise with the first column."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    return X, np.array(["a", "b", "c", "d"])[np.digitize(X[:, 0] + 0.3 * rng.normal(size=n), [-0.7, 0, 0.7])]


def labelled(n=150):
    return make_multilabel_classification(n, n_features=6, n_classes=4, random_state=0)


def small(**more):
    return GCEClassifier(**{"basis": "tree", "max_atoms": 15, "cv": 3, "random_state": 0} | more)


def onnx(model, X):
    file = io.BytesIO()
    model.to_onnx(file)
    session = onnxruntime.InferenceSession(file.getvalue())
    return session.run(["label", "probabilities"], {session.get_inputs()[0].name: X})


@given(seed=st.integers(0, 10**6), classes=st.integers(2, 6), size=st.floats(0.1, 800))
@settings(max_examples=50, deadline=None)
def test_probabilities_of_ordered_classes_are_on_the_simplex(seed, classes, size):
    scores = torch.from_numpy(size * np.random.default_rng(seed).normal(size=(20, classes - 1)))
    p = Ordinal().predict(scores)
    assert (p >= 0).all()
    torch.testing.assert_close(p.sum(-1), torch.ones(20, dtype=torch.float64), rtol=0, atol=1e-14)
    assert Ordinal().log_predict(scores).isfinite().all()


@given(seed=st.integers(0, 10**6))
@settings(max_examples=50, deadline=None)
def test_sorting_the_scores_of_a_row_never_raises_its_loss(seed):
    rng = np.random.default_rng(seed)
    scores = torch.from_numpy(2 * rng.normal(size=(20, 4)))
    y = torch.from_numpy((rng.integers(0, 5, (20, 1)) > np.arange(4)).astype(float))
    loss = Ordinal()
    assert (loss.value(scores.sort(-1, descending=True).values, y) <= loss.value(scores, y) + 1e-12).all()


@pytest.mark.parametrize("basis", ["tree", Forest(n_estimators=5), "neural"])
def test_ordered_classes(basis):
    X, y = ordered()
    model = small(loss="ordinal", basis=basis).fit(X, y)
    p = model.predict_proba(X)
    assert model.classes_.tolist() == ["a", "b", "c", "d"]
    assert model.offset_.shape == (3,)
    np.testing.assert_allclose(p.sum(1), 1, rtol=1e-12)
    assert (p >= 0).all()
    assert model.score(X, y) > 0.6
    np.testing.assert_allclose(np.exp(model.predict_log_proba(X)), p, rtol=1e-9, atol=1e-300)
    scores = model.decision_function(X)
    np.testing.assert_array_equal(model.classes_[scores.argmax(1)], model.predict(X))


def test_the_offset_alone_gives_the_frequencies_of_the_classes():
    X, y = ordered()
    model = small(loss="ordinal", max_atoms=1, temperature=1.0).fit(X, y)
    alone = model.loss_.predict(torch.from_numpy(model.offset_)[None]).numpy()[0]
    np.testing.assert_allclose(alone, np.unique(y, return_counts=True)[1] / len(y), rtol=1e-9)


def test_two_ordered_classes_are_two_classes():
    X, y = ordered()
    two = np.where(y > "b", 1, 0)
    ordinal, plain = (small(loss=loss, basis="neural", max_atoms=2).fit(X, two) for loss in ("ordinal", "log_loss"))
    np.testing.assert_allclose(ordinal.predict_proba(X), plain.predict_proba(X), rtol=1e-9)
    np.testing.assert_allclose(ordinal.decision_function(X), plain.decision_function(X), rtol=1e-9)


def test_ordered_classes_have_weights_scorers_and_edits():
    X, y = ordered()
    model = small(loss="ordinal", class_weight="balanced", scoring="accuracy").fit(X, y)
    assert model.prune(5, X=X, y=y).score(X, y) > 0.5
    with pytest.raises(ValueError, match="not on the scale of the predictions"):
        model.add("other", model, X, y)
    with pytest.raises(ValueError, match="not among those of the fit"):
        model.reweight(X[:2], ["a", "z"])
    assert cross_val_score(small(loss="ordinal"), X, y, scoring="neg_log_loss", cv=2).mean() > -1.3


@pytest.mark.parametrize("kind", ["ordinal", "labels"])
def test_files_and_onnx(kind, tmp_path):
    X, y = ordered() if kind == "ordinal" else labelled()
    model = small(loss="ordinal" if kind == "ordinal" else "auto", basis=["tree", "forest"]).fit(X, y)
    model.save(tmp_path / "model.safetensors")
    read = gce.load(tmp_path / "model.safetensors")
    np.testing.assert_array_equal(read.predict_proba(X), model.predict_proba(X))
    np.testing.assert_array_equal(read.predict(X), model.predict(X))
    assert read.reweight(X, y).score(X, y) > 0.2
    label, probability = onnx(model, X)
    np.testing.assert_array_equal(label, model.predict(X))
    np.testing.assert_allclose(probability, model.predict_proba(X), rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("basis", ["tree", Forest(n_estimators=5), "neural"])
def test_labels(basis):
    X, y = labelled()
    model = small(basis=basis).fit(X, y)
    p, predicted = model.predict_proba(X), model.predict(X)
    assert p.shape == predicted.shape == model.decision_function(X).shape == y.shape
    assert isinstance(model.loss_, MultiLabel)
    assert model.classes_.tolist() == [0, 1, 2, 3]
    np.testing.assert_array_equal(predicted, p > 0.5)
    assert (predicted == y).mean() > 0.75
    np.testing.assert_allclose(np.exp(model.predict_log_proba(X)), p, rtol=1e-9)


def test_labels_are_learned_one_by_one():
    """Trees of one label look at that label only: its scores are those of a model of its own."""
    X, y = labelled()
    shared = small(cv=None, validation_fraction=None, temperature=1.0, max_atoms=3)
    every = shared.fit(X, y).decision_function(X)
    for j in range(y.shape[1]):
        alone = gce.GCEClassifier(**shared.get_params()).fit(X, y[:, j]).decision_function(X)
        np.testing.assert_allclose(every[:, j], alone, rtol=1e-6, atol=1e-6)


def test_labels_in_any_form_are_the_same():
    X, y = labelled()
    expected = small().fit(X, y).predict_proba(X)
    for given_y in (y.tolist(), y.astype(bool), pd.DataFrame(y, columns=list("abcd"))):
        np.testing.assert_array_equal(small().fit(X, given_y).predict_proba(X), expected)


def test_a_label_that_no_row_has():
    X, y = labelled()
    y[:, 1] = 0
    p = small().fit(X, y).predict_proba(X)
    assert np.isfinite(p).all()
    assert (p[:, 1] < 0.01).all()


def test_labels_warm_starts_scorers_and_validation_rows():
    X, y = labelled()
    warm = small(warm_start=True, max_atoms=2).fit(X, y)
    assert warm.set_params(max_atoms=4).fit(X, y).n_iter_ > 2
    scored = small(scoring="accuracy", cv="auto").fit(X[:100], y[:100], X_val=X[100:], y_val=y[100:])
    assert scored.predict(X).shape == y.shape
    with pytest.raises(ValueError, match="fitted to 4 labels, but y now has 3"):
        scored.reweight(X, y[:, :3])


def test_bad_labels_are_refused_in_one_sentence():
    X, y = labelled(40)
    with pytest.raises(ValueError, match="labels must be 0 or 1, but y has 2"):
        small().fit(X, y + 1)
    with pytest.raises(ValueError, match="0 or 1"):
        small().fit(X, y.astype(str))
    with pytest.raises(ValueError, match="is for classes, of which a row has one"):
        small(class_weight="balanced").fit(X, y)
    with pytest.raises(ValueError, match="loss"):
        small(loss="ordinal").fit(X, y)


@pytest.mark.parametrize(
    "check",
    [
        estimator_checks.check_classifiers_multilabel_representation_invariance,
        estimator_checks.check_classifiers_multilabel_output_format_predict,
        estimator_checks.check_classifiers_multilabel_output_format_predict_proba,
        estimator_checks.check_classifiers_multilabel_output_format_decision_function,
    ],
)
def test_checks_of_scikit_learn(check):
    check("GCEClassifier", small(max_atoms=3))


@pytest.mark.parametrize("kind", ["ordinal", "labels"])
def test_reports(kind, tmp_path):
    X, y = ordered() if kind == "ordinal" else labelled()
    model = small(loss="ordinal" if kind == "ordinal" else "auto").fit(X, y)
    model.report(tmp_path / "page.html", X, y)
    page = (tmp_path / "page.html").read_text()
    wrong = (model.predict(X) != y).mean()
    assert f'data-value="{float(wrong)!r}"' in page
    assert ("4 labels" if kind == "labels" else "4 classes") in page


@pytest.mark.parametrize("temperature", ["auto", 0.2, 5.0])
def test_the_class_that_is_predicted_is_the_most_probable_of_ordered_ones(temperature):
    X, y = ordered()
    model = small(loss="ordinal", temperature=temperature).fit(X, y)
    rows = np.random.default_rng(1).normal(size=(500, 3))
    most = model.predict_proba(rows).argmax(1)
    np.testing.assert_array_equal(model.predict(rows), model.classes_[most])
    np.testing.assert_array_equal(model.decision_function(rows).argmax(1), most)
    np.testing.assert_array_equal(model.decision_function(rows), model.predict_log_proba(rows))
    label, proba = onnx(model, rows)
    np.testing.assert_array_equal(label, model.classes_[proba.argmax(1)])
    if temperature != "auto":
        # raw scores would say otherwise of some rows
        assert (model.result_.target.predicted(model.loss_, model.raw_predict(rows)) != model.predict(rows)).any()


@pytest.mark.parametrize("loss", ["ordinal", Ordinal()])
def test_ordered_classes_are_one_column(loss):
    X, y = labelled()
    with pytest.raises(ValueError, match=r"takes one column of ordered classes, but y is of shape \(150, 4\)"):
        small(loss=loss).fit(X, y)


def test_an_unknown_loss_of_classes_is_told_of_ordinal():
    X, y = ordered()
    with pytest.raises(ValueError, match="unknown loss 'poisson': use one of 'log_loss', 'ordinal' or a Loss object"):
        small(loss="poisson").fit(X, y)


ORDER = ["low", "mid", "high", "top"]


def arrow(words):
    """Ordered dictionaries in two chunks."""
    parts = [words[: len(words) // 2], words[len(words) // 2 :]]
    arrays = [pa.DictionaryArray.from_arrays(part.codes, list(part.categories), ordered=True) for part in parts]
    return pa.chunked_array(arrays)


ORDERED = {
    "series": pd.Series,
    "categorical": lambda words: words,
    "index": pd.CategoricalIndex,
    "frame": lambda words: pd.DataFrame({"grade": words}),
    "polars": lambda words: pl.Series(words.tolist(), dtype=pl.Enum(list(words.categories))),
    "polars frame": lambda words: pl.DataFrame({"grade": pl.Series(words.tolist(), dtype=pl.Enum(ORDER))}),
    "arrow": arrow,
}


def graded(order=ORDER, n=150):
    """Rows, their codes in an order, and ordered categories of the codes."""
    X, y = ordered(n)
    codes = np.searchsorted(list("abcd"), y)
    return X, codes, pd.Categorical.from_codes(codes, order, ordered=True)


@pytest.mark.parametrize("kind", ORDERED)
def test_classes_have_the_order_of_their_categories(kind, tmp_path):
    """The model is that of the codes: words take the place of numbers, and nothing else changes."""
    X, codes, words = graded()
    y = ORDERED[kind](words)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = small(loss="ordinal").fit(X, y)
    numbers = small(loss="ordinal").fit(X, codes)
    assert model.classes_.tolist() == ORDER
    np.testing.assert_array_equal(model.predict_proba(X), numbers.predict_proba(X))
    np.testing.assert_array_equal(model.decision_function(X), numbers.decision_function(X))
    np.testing.assert_array_equal(model.predict(X), np.array(ORDER)[numbers.predict(X)])
    if not kind.endswith("frame"):
        assert model.score(X, y) == numbers.score(X, codes) > 0.5
    model.save(tmp_path / "model.safetensors")
    loaded = gce.load(tmp_path / "model.safetensors")
    assert loaded.classes_.tolist() == ORDER
    np.testing.assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))
    edited, expected = loaded.reweight(X, y), numbers.reweight(X, codes)
    np.testing.assert_array_equal(edited.predict_proba(X), expected.predict_proba(X))
    label, probability = onnx(model, X)
    np.testing.assert_array_equal(label, model.predict(X))
    np.testing.assert_allclose(probability, model.predict_proba(X), rtol=1e-6, atol=1e-9)


@settings(deadline=None, max_examples=30)
@given(order=st.permutations([3.0, -1.0, 2.0, 10.0]), seed=st.integers(0, 99), unused=st.integers(0, 4))
def test_labels_are_encoded_in_any_order(order, seed, unused):
    """One above each class but the last, and the labels come back; categories without rows are no classes."""
    rng = np.random.default_rng(seed)
    codes = np.r_[np.arange(4), rng.integers(0, 4, 20)]
    y = np.array(order)[codes]
    target, encoded, found = OrdinalTarget.learn(y, None, "auto", [*order[:unused], 99.0, *order[unused:]])
    assert target.classes.tolist() == list(order)
    np.testing.assert_array_equal(found, codes)
    np.testing.assert_array_equal(encoded, codes[:, None] > np.arange(3))
    np.testing.assert_array_equal(target.encode(y[::-1]), encoded[::-1])
    np.testing.assert_array_equal(target.encode_more(y)[1], encoded)
    np.testing.assert_array_equal(target.decode(encoded), y)


def test_categories_without_rows_are_no_classes():
    X, codes, _ = graded()
    words = pd.Series(pd.Categorical.from_codes(codes, [*ORDER[:2], "high", "top", "best"], ordered=True))
    model = small(loss="ordinal").fit(X, words, sample_weight=(codes != 2).astype(float))
    assert model.classes_.tolist() == ["low", "mid", "top"]
    assert model.predict_proba(X).shape == (150, 3)


def test_an_order_is_that_of_ordinal_classes_alone():
    X, _, words = graded()
    assert small().fit(X, pd.Series(words)).classes_.tolist() == sorted(ORDER)
    loose = words.as_unordered()
    assert small(loss="ordinal").fit(X, pd.Series(loose)).classes_.tolist() == sorted(ORDER)
    assert small(loss="ordinal").fit(X, np.asarray(words)).classes_.tolist() == sorted(ORDER)
    assert small(loss="ordinal").fit(X, pl.Series(words.tolist(), dtype=pl.Categorical)).classes_.tolist() == sorted(
        ORDER
    )


def test_another_order_than_that_of_the_fit_is_refused():
    X, codes, words = graded()
    model = small(loss="ordinal", warm_start=True).fit(X, words)
    other = pd.Series(words.reorder_categories(sorted(ORDER), ordered=True))
    for use in (lambda: model.fit(X, other), lambda: model.prune(3, X=X, y=other)):
        with pytest.raises(
            ValueError, match=r"categories in the order .'high', 'low', 'mid', 'top'., but the model was"
        ):
            use()
    np.testing.assert_array_equal(model.fit(X, np.asarray(words)).classes_, ORDER)
    some = pd.Series(words[codes != 1].remove_unused_categories())
    assert model.prune(3, X=X, y=words).reweight(X[codes != 1], some).classes_.tolist() == ORDER


@pytest.mark.parametrize("scoring", ["neg_log_loss", "roc_auc", "roc_auc_ovr", "accuracy"])
def test_scorers_of_a_fit_see_sorted_classes(scoring):
    """The metrics of scikit-learn take columns of sorted classes: early stopping is the same with and without words."""
    X, codes, words = graded()
    if scoring == "roc_auc":
        X, codes, words = X[codes > 1], codes[codes > 1] - 2, words[codes > 1]
    named = small(loss="ordinal", scoring=scoring).fit(X, words)
    numbers = small(loss="ordinal", scoring=scoring).fit(X, codes)
    np.testing.assert_allclose(
        [entry["validation"] for entry in named.history_], [entry["validation"] for entry in numbers.history_]
    )


def test_reports_of_ordered_categories(tmp_path):
    X, codes, words = graded()
    model = small(loss="ordinal").fit(X, words)
    model.report(tmp_path / "report.html", X, pd.Series(words))
    expected = -np.mean(np.log(model.predict_proba(X)[np.arange(150), codes]))
    assert f"{expected:.4g}"[:5] in (tmp_path / "report.html").read_text()


@pytest.mark.parametrize(
    ("model", "loss", "said"),
    [
        (GCERegressor, Hazards(), "loss=Hazards() is for times until an event: use GCESurvival"),
        (GCERegressor, MultiLabel(), "loss=MultiLabel() is for several labels per row"),
        (GCERegressor, Ordinal(), "loss=Ordinal() is for ordered classes: use GCEClassifier"),
        (GCEClassifier, Hazards(), "loss=Hazards() is for times until an event: use GCESurvival"),
        (GCEClassifier, MultiLabel(), "use GCEClassifier with y of shape (n, labels)"),
        (GCEClassifier, Poisson(), "loss=Poisson() is for numbers: use GCERegressor"),
        (GCEClassifier, Tweedie(), "loss=Tweedie() is for numbers: use GCERegressor"),
    ],
)
def test_losses_of_other_tasks_are_refused_by_name(model, loss, said):
    X, y = ordered()
    with pytest.raises(ValueError, match=re.escape(said)):
        model(loss=loss).fit(X, np.searchsorted(list("abcd"), y))


def test_losses_of_users_are_taken():
    class Own(CrossEntropy):
        """A loss of a user's own."""

    X, y = ordered()
    assert small(loss=Own()).fit(X, y).score(X, y) > 0.5
