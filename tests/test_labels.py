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
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import make_multilabel_classification
from sklearn.inspection import partial_dependence as theirs
from sklearn.metrics import log_loss, roc_auc_score
from sklearn.model_selection import StratifiedKFold, cross_val_predict, cross_val_score
from sklearn.utils import estimator_checks

import gce
from gce import GCEClassifier, GCERegressor
from gce.bases import Forest
from gce.inspection import partial_dependence
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


#: The code of each class in its order, by sorted labels: high, low, mid, top.
SORTED = np.argsort(ORDER)


@pytest.mark.parametrize("kind", ORDERED)
def test_ordered_categories_are_learned_as_their_codes(kind, tmp_path):
    """The model is that of the codes; classes are sorted, and columns follow them, as in every classifier."""
    X, codes, words = graded()
    y = ORDERED[kind](words)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = small(loss="ordinal").fit(X, y)
    numbers = small(loss="ordinal").fit(X, codes)
    assert model.classes_.tolist() == sorted(ORDER)
    assert model.ordered_classes_.tolist() == ORDER
    np.testing.assert_array_equal(model.raw_predict(X), numbers.raw_predict(X))
    for method in ("predict_proba", "predict_log_proba", "decision_function"):
        np.testing.assert_array_equal(getattr(model, method)(X), getattr(numbers, method)(X)[:, SORTED])
    for mine, other in zip(model.staged_predict_proba(X), numbers.staged_predict_proba(X), strict=True):
        np.testing.assert_array_equal(mine, other[:, SORTED])
    np.testing.assert_array_equal(model.predict(X), np.array(ORDER)[numbers.predict(X)])
    if not kind.endswith("frame"):
        assert model.score(X, y) == numbers.score(X, codes) > 0.5
    model.save(tmp_path / "model.safetensors")
    loaded = gce.load(tmp_path / "model.safetensors")
    assert (loaded.classes_.tolist(), loaded.ordered_classes_.tolist()) == (sorted(ORDER), ORDER)
    np.testing.assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))
    edited, expected = loaded.reweight(X, y), numbers.reweight(X, codes)
    np.testing.assert_array_equal(edited.predict_proba(X), expected.predict_proba(X)[:, SORTED])
    label, probability = onnx(model, X)
    np.testing.assert_array_equal(label, model.predict(X))
    np.testing.assert_allclose(probability, model.predict_proba(X), rtol=1e-6, atol=1e-9)


def test_a_continued_fit_keeps_the_order():
    X, codes, words = graded()
    named, numbers = (small(loss="ordinal", warm_start=True, max_atoms=4).fit(X, y) for y in (words, codes))
    for more in (named, numbers):
        more.set_params(max_atoms=8)
    # the labels alone say nothing of an order, and need not: the model has it
    named.fit(X, np.asarray(words))
    numbers.fit(X, codes)
    assert (named.classes_.tolist(), named.ordered_classes_.tolist()) == (sorted(ORDER), ORDER)
    np.testing.assert_array_equal(named.predict_proba(X), numbers.predict_proba(X)[:, SORTED])


def test_two_ordered_classes_may_fall_with_the_alphabet():
    """One score is the log-odds of the class above; what users see is about ``classes_[1]``, as of any two classes."""
    X, codes, _ = graded()
    codes = (codes > 1).astype(int)
    words = pd.Series(pd.Categorical.from_codes(codes, ["worse", "better"], ordered=True))
    model, numbers = small(loss="ordinal").fit(X, words), small(loss="ordinal").fit(X, codes)
    assert (model.classes_.tolist(), model.ordered_classes_.tolist()) == (["better", "worse"], ["worse", "better"])
    np.testing.assert_array_equal(model.predict_proba(X), numbers.predict_proba(X)[:, ::-1])
    np.testing.assert_array_equal(model.decision_function(X), -numbers.decision_function(X))
    np.testing.assert_array_equal(model.classes_[(model.decision_function(X) > 0).astype(int)], model.predict(X))
    label, probability = onnx(model, X)
    np.testing.assert_array_equal(label, model.predict(X))
    np.testing.assert_allclose(probability, model.predict_proba(X), rtol=1e-6, atol=1e-9)
    found = model.shap_values(X[:5])
    np.testing.assert_allclose(found.base_values + found.values.sum(1), model.decision_function(X[:5]), rtol=1e-9)
    pairs = model.shap_interaction_values(X[:5])
    np.testing.assert_allclose(pairs.values.sum(2), found.values, rtol=1e-9, atol=1e-12)
    assert roc_auc_score(words, model.decision_function(X)) == roc_auc_score(1 - codes, -numbers.decision_function(X))


@pytest.mark.parametrize("response", ["predict_proba", "decision_function"])
@pytest.mark.parametrize("order", [ORDER, ["worse", "better"]])
def test_partial_dependence_of_ordered_classes_is_that_of_scikit_learn(order, response):
    X, codes, _ = graded()
    words = pd.Categorical.from_codes(codes * len(order) // 4, order, ordered=True)
    model = small(loss="ordinal").fit(X, words)
    given = {"grid_resolution": 5, "response_method": response, "kind": "average"}
    mine, other = (f(model, X, [0], **given).average for f in (partial_dependence, theirs))
    np.testing.assert_allclose(mine, other, rtol=1e-9)


#: Scores of probabilities ``(n, classes)`` whose columns are the codes.
BY_CODE = {
    "neg_log_loss": lambda codes, p: np.log(p[np.arange(len(codes)), codes]).mean(),
    "roc_auc_ovr": lambda codes, p: np.mean([roc_auc_score(codes == j, p[:, j]) for j in range(p.shape[1])]),
    "roc_auc_ovo_weighted": lambda codes, p: roc_auc_score(codes, p, multi_class="ovo", average="weighted"),
    "accuracy": lambda codes, p: np.mean(p.argmax(1) == codes),
}


@pytest.mark.parametrize("scoring", BY_CODE)
def test_scorers_of_scikit_learn_are_those_of_the_codes(scoring):
    """Metrics of scikit-learn take the columns of sorted classes; here the probability of each class is looked up."""
    X, codes, words = graded(n=240)
    folds = StratifiedKFold(3, shuffle=True, random_state=0)
    found = cross_val_score(small(loss="ordinal"), X, pd.Series(words), scoring=scoring, cv=folds)
    expected = []
    for train, test in folds.split(X, codes):
        model = small(loss="ordinal").fit(X[train], codes[train])
        expected.append(BY_CODE[scoring](codes[test], model.predict_proba(X[test])))
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_scorers_of_two_ordered_classes():
    X, codes, _ = graded(n=240)
    codes = (codes > 1).astype(int)
    words = pd.Series(pd.Categorical.from_codes(codes, ["worse", "better"], ordered=True))
    folds = StratifiedKFold(3, shuffle=True, random_state=0)
    model = small(loss="ordinal")
    for scoring in ("neg_log_loss", "roc_auc"):
        found = cross_val_score(model, X, words, scoring=scoring, cv=folds)
        expected = cross_val_score(model, X, codes, scoring=scoring, cv=folds)
        np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_probabilities_across_folds_are_those_of_members_by_sorted_class():
    """scikit-learn gives the members the codes of sorted labels, which have another order than the categories."""
    X, codes, words = graded()
    folds = StratifiedKFold(3, shuffle=True, random_state=0)
    found = cross_val_predict(small(loss="ordinal"), X, pd.Series(words), method="predict_proba", cv=folds)
    alphabetic = np.searchsorted(sorted(ORDER), np.asarray(words))
    ranks = cross_val_predict(small(loss="ordinal"), X, codes, method="predict_proba", cv=folds)
    for train, test in folds.split(X, codes):
        as_given = small(loss="ordinal").fit(X[train], alphabetic[train])
        np.testing.assert_array_equal(found[test], as_given.predict_proba(X[test]))
        of_words = small(loss="ordinal").fit(X[train], pd.Series(words).iloc[train])
        np.testing.assert_array_equal(ranks[test][:, SORTED], of_words.predict_proba(X[test]))
    labels = cross_val_predict(small(loss="ordinal"), X, pd.Series(words), cv=folds)
    np.testing.assert_array_equal(labels, np.array(ORDER)[ranks.argmax(1)])


def test_calibrators_see_the_columns_of_sorted_classes():
    X, codes, words = graded(n=240)
    given = {"estimator": small(loss="ordinal"), "cv": StratifiedKFold(3, shuffle=True, random_state=0)}
    named = CalibratedClassifierCV(**given).fit(X, pd.Series(words))
    numbers = CalibratedClassifierCV(**given).fit(X, codes)
    np.testing.assert_allclose(named.predict_proba(X), numbers.predict_proba(X)[:, SORTED], rtol=1e-9, atol=1e-12)


def test_ordered_classes_are_those_of_the_ordinal_loss():
    X, codes, words = graded()
    with pytest.raises(AttributeError, match="ordered_classes_ needs loss='ordinal', and the loss is CrossEntropy"):
        small().fit(X, words).ordered_classes_  # noqa: B018
    assert small(loss="ordinal").fit(X, codes).ordered_classes_.tolist() == [0, 1, 2, 3]


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
    assert model.ordered_classes_.tolist() == ["low", "mid", "top"]
    assert model.predict_proba(X).shape == (150, 3)


def test_an_order_is_that_of_ordinal_classes_alone():
    X, _, words = graded()
    assert small().fit(X, pd.Series(words)).classes_.tolist() == sorted(ORDER)
    loose = words.as_unordered()
    others = (pd.Series(loose), np.asarray(words), pl.Series(words.tolist(), dtype=pl.Categorical))
    for y in others:
        assert small(loss="ordinal").fit(X, y).ordered_classes_.tolist() == sorted(ORDER)


def test_another_order_than_that_of_the_fit_is_refused():
    X, codes, words = graded()
    model = small(loss="ordinal", warm_start=True).fit(X, words)
    other = pd.Series(words.reorder_categories(sorted(ORDER), ordered=True))
    for use in (lambda: model.fit(X, other), lambda: model.prune(3, X=X, y=other)):
        with pytest.raises(
            ValueError, match=r"categories in the order .'high', 'low', 'mid', 'top'., but the model was"
        ):
            use()
    assert model.fit(X, np.asarray(words)).ordered_classes_.tolist() == ORDER
    some = pd.Series(words[codes != 1].remove_unused_categories())
    assert model.prune(3, X=X, y=words).reweight(X[codes != 1], some).ordered_classes_.tolist() == ORDER


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


@pytest.mark.parametrize("order", [["worst", "low", "mid", "best"], ["worse", "better"]])
def test_reports_of_ordered_categories(order, tmp_path):
    """Figures and calibration curves, before the temperature too, are those of the codes; scores are named in order."""
    X, codes, _ = graded()
    codes = codes * len(order) // 4
    words = pd.Series(pd.Categorical.from_codes(codes, order, ordered=True))
    named = small(loss="ordinal", temperature=3.0).fit(X, words)
    numbers = small(loss="ordinal", temperature=3.0).fit(X, codes)
    pages = []
    for model, y in ((named, words), (numbers, codes)):
        model.report(tmp_path / "report.html", X, y)
        pages.append((tmp_path / "report.html").read_text())
    cost = log_loss(codes, numbers.predict_proba(X))
    for page in pages:
        (shown,) = (float(value) for value in re.findall(r'Log-loss.*?data-value="([^"]+)"', page)[:1])
        assert shown == pytest.approx(cost, rel=1e-12)
    curves = [set(re.findall(r"calibration error [0-9.]+", page)) for page in pages]
    ranges = re.findall(
        r'<th scope="row" title="([^"]+)">', pages[0].split('<caption class="unseen">Range of scores')[1]
    )
    explained = set(re.findall(r"raw score of ([a-z ]+)<", pages[0]))
    if len(order) > 2:
        assert curves[0] == curves[1]
        assert ranges[: len(order) - 1] == [f"above {label}" for label in order[:-1]]
        assert explained == set(ranges[: len(order) - 1])
    else:
        # the one raw score, and what is explained, which is the score of the second of the sorted classes
        assert (ranges[0], explained) == ("better", {"worse"})
    named_figures, figures = (dict(model.result_.held_out) for model in (named, numbers))
    assert named_figures == pytest.approx(figures, rel=1e-12)


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
