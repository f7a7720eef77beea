"""Columns of text: n-grams and components against scikit-learn's, identifiers, files and graphs."""

import hashlib
import io
import uuid

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import CountVectorizer, TfidfTransformer

import gce
from gce.preprocessing import Schema, read_frame
from gce.preprocessing.ngrams import NGrams, frequent_ngrams, normalized
from gce.preprocessing.text_columns import TextParts, learn_text
from gce.preprocessing.text_rule import is_text, telling_components

SUBJECTS = ["nurse", "teacher", "driver", "engineer", "manager", "clerk", "painter", "welder", "chemist", "pilot"]
PLACES = ["hospital", "school", "factory", "airport", "kitchen", "laboratory", "office", "garage", "library", "theatre"]
GRADES = ["senior", "junior", "chief", "assistant", "deputy", "regional", "temporary", "acting"]
TREE = {"basis": gce.bases.Tree(max_leaf_nodes=4, min_samples_leaf=3), "max_atoms": 5, "cv": 2, "random_state": 0}


def titles(n, seed=0):
    """Mostly distinct job titles."""
    rng = np.random.default_rng(seed)
    parts = [rng.choice(some, n) for some in (GRADES, SUBJECTS, PLACES, PLACES)]
    return [f"{g.title()} {s}, {p}/{q}" for g, s, p, q in zip(*parts, strict=True)]


def fit(texts, weight=None):
    weight = np.ones(len(texts)) if weight is None else weight
    return learn_text(np.array(texts, dtype=object), weight, float(weight.sum()))


def cleaned(texts):
    return ["".join(map(normalized, text)) for text in texts]


@settings(max_examples=40, deadline=None)
@given(st.lists(st.text(alphabet="aAbBß é,_日İ\x00", max_size=12), min_size=2, max_size=8, unique=True))
def test_counts_are_those_of_scikit_learn(texts):
    ngrams = frequent_ngrams(texts, np.ones(len(texts)), 10_000)
    short = [i for i, gram in enumerate(ngrams.grams) if len(gram) <= 4]
    ours = ngrams.count(texts).toarray()
    try:
        reference = CountVectorizer(analyzer="char_wb", ngram_range=(3, 4), lowercase=False, min_df=2)
        expected = reference.fit_transform(cleaned(texts)).toarray()
    except ValueError:  # no n-gram is in two texts
        assert not short
        return
    assert [ngrams.grams[i] for i in short] == reference.get_feature_names_out().tolist()
    np.testing.assert_array_equal(ours[:, short], expected)
    long = {gram: i for i, gram in enumerate(ngrams.grams) if len(gram) > 4}
    for text, row in zip(cleaned(texts), ours, strict=True):
        assert all(row[i] == text.split().count(gram.strip()) for gram, i in long.items())


def test_texts_are_counted_in_pieces(monkeypatch):
    texts = sorted(set(titles(300)))
    whole = frequent_ngrams(texts, np.ones(len(texts)), 500)
    parts = TextParts.fit(texts, np.ones(len(texts)), 300.0)
    expected = parts.transform(np.array(texts, dtype=object))
    monkeypatch.setattr("gce.preprocessing.ngrams._PIECE", 200)
    assert frequent_ngrams(texts, np.ones(len(texts)), 500).grams == whole.grams
    np.testing.assert_array_equal(parts.transform(np.array(texts, dtype=object)), expected)


def test_components_are_those_of_scikit_learn():
    texts = titles(1000)
    parts = fit(texts)
    counts = parts.ngrams.count(texts)
    tfidf = TfidfTransformer().fit_transform(counts)
    reference = TruncatedSVD(len(parts.names), algorithm="arpack", random_state=0).fit_transform(tfidf)
    ours = parts.transform(np.array(texts, dtype=object))
    # leading components one by one, up to their signs
    match = np.abs((ours * reference).sum(0)) / (np.linalg.norm(ours, axis=0) * np.linalg.norm(reference, axis=0))
    np.testing.assert_allclose(match[:6], 1, atol=1e-5)
    np.testing.assert_allclose(np.square(ours).sum(), np.square(reference).sum(), rtol=1e-4)


def test_a_weight_counts_as_repeated_rows_to_the_bit():
    texts, weight = titles(400), np.random.default_rng(1).integers(1, 4, 400)
    weighted, repeated = fit(texts, weight.astype(float)), fit(np.repeat(texts, weight)[::-1].tolist())
    assert weighted.ngrams.grams == repeated.ngrams.grams
    assert weighted.components.tobytes() == repeated.components.tobytes()
    assert weighted.idf.tobytes() == repeated.idf.tobytes()


def test_a_fit_has_the_same_bits_again_and_positive_signs():
    first, second = fit(titles(300)), fit(titles(300))
    assert first.components.tobytes() == second.components.tobytes()
    largest = np.abs(first.components).argmax(0)
    assert (first.components[largest, np.arange(len(largest))] > 0).all()


def test_missing_values_and_texts_without_known_ngrams():
    parts = fit(titles(300))
    numbers = parts.transform(np.array([None, "0123 %", "", "NURSE", "nurse"], dtype=object))
    assert np.isnan(numbers[0]).all()
    assert (numbers[1:3] == 0).all()
    assert np.abs(numbers[3]).max() > 0.1
    np.testing.assert_array_equal(numbers[3], numbers[4])
    assert np.isnan(parts.transform(np.full(2, np.nan))).all()


def test_long_columns_are_sampled(monkeypatch):
    texts = titles(400)
    monkeypatch.setattr("gce.preprocessing.text_columns._MAX_CHARACTERS", 2000)
    parts = fit(texts)
    assert len(parts.ngrams) > 50
    assert np.abs(parts.transform(np.array(texts, dtype=object))).max(1).min() > 0


RNG = np.random.default_rng(0)
LETTERS = list("abcdefghijklmnopqrstuvwxyz")
IDENTIFIERS = {
    "uuid": [str(uuid.UUID(bytes=RNG.bytes(16))) for _ in range(500)],
    "hash": [hashlib.sha256(bytes([i % 256, i // 256])).hexdigest() for i in range(500)],
    "number": [str(i) for i in range(500)],
    "numbered": [f"customer_{i:05}" for i in range(500)],
    "plate": ["".join(RNG.choice(LETTERS, 3)) + f"-{i:04}" for i in range(500)],
    "random letters": ["".join(RNG.choice(LETTERS, 8)) for _ in range(500)],
    "day": [f"{day} {month} 2024" for day in range(1, 29) for month in ("January", "February", "March", "April")],
    "few": ["red", "green", "blue"] * 100,
    "empty": [],
}


@pytest.mark.parametrize("values", IDENTIFIERS.values(), ids=IDENTIFIERS)
def test_identifiers_and_categories_are_no_text(values):
    assert not is_text(sorted(set(values)), len(values))


@pytest.mark.parametrize(
    "values",
    [titles(60), [text.replace(" ", "") for text in titles(200)], [f"{i} {text}" for i, text in enumerate(titles(80))]],
    ids=["titles", "one word each", "numbered"],
)
def test_words_are_text(values):
    assert is_text(sorted(set(values)), len(values))


def test_few_values_in_many_rows_are_categories():
    assert fit(titles(60) * 50) is None
    # more than trees have categories for
    assert fit(titles(400) * 20) is not None


def table(n=1100, seed=0):
    """All texts differ: none is a category of two rows."""
    texts = [f"{text} {i}" for i, text in enumerate(titles(n, seed))]
    rng = np.random.default_rng(seed)
    texts = [None if gap else text for text, gap in zip(texts, rng.random(n) < 0.1, strict=True)]
    return pd.DataFrame({"title": texts, "size": rng.normal(size=n)})


def target(frame):
    return frame["title"].fillna("").str.contains("nurse").to_numpy() * 2.0 + 0.1 * frame["size"].to_numpy()


def test_a_text_column_is_a_category_with_components():
    frame = table()
    model = gce.GCERegressor(**TREE).fit(frame, target(frame))
    (column, _), names = model.table_.columns, model.table_.split_names
    assert (column.kind, column.warning) == ("category", None)
    assert names[:3] == ["title", "size", "title: component 1"]
    by_name = gce.GCERegressor(categorical_features=["title"], **TREE)
    with pytest.warns(UserWarning, match="one row each"):
        by_name.fit(frame, target(frame))
    assert by_name.table_.split_names == ["title", "size"]


def test_components_that_say_nothing_of_the_target_are_left_out():
    frame, rng = table(), np.random.default_rng(2)
    with_text = gce.GCERegressor(**TREE).fit(frame, target(frame)).table_
    left = len(with_text.schema.part_names)
    assert 0 < left < len(fit(frame["title"].tolist()).names)
    noise = gce.GCERegressor(**TREE).fit(frame, rng.normal(size=len(frame))).table_
    assert len(noise.schema.part_names) <= 1


def test_correlations_are_those_of_numpy():
    rng = np.random.default_rng(0)
    numbers, classes = rng.normal(size=(200, 40)), rng.integers(0, 3, 200)
    numbers[:, :20] += 0.2 * classes[:, None]
    numbers[:, 39] = 1.0
    weight = rng.integers(1, 4, 200)
    targets = np.eye(3)[classes]
    ours = telling_components(np.vstack([numbers, np.full(40, np.nan)]), np.vstack([targets, [[9, 9, 9]]]),
                              np.append(weight, 5.0))  # fmt: skip
    many, more = (np.repeat(some, weight, axis=0) for some in (numbers[:, :39], targets))
    expected = np.corrcoef(many, more, rowvar=False)[:39, 39:]
    assert ours[:39].tolist() == (np.abs(expected) * np.sqrt(weight.sum()) > 3).any(1).tolist()
    assert not ours[39]
    assert 0 < ours.sum() < 39


def test_words_predict():
    train, test = table(), table(300, seed=5)
    model = gce.GCERegressor(**TREE | {"max_atoms": 30}).fit(train, target(train))
    assert model.score(test, target(test)) > 0.2


def test_weighted_fits_equal_repeated_ones():
    frame, weight = table(240), np.random.default_rng(1).integers(1, 4, 240)
    again = frame.iloc[np.repeat(np.arange(240), weight)]
    weighted = Schema.fit(read_frame(frame), weight.astype(float), None)
    repeated = Schema.fit(read_frame(again), np.ones(weight.sum()), None)
    np.testing.assert_array_equal(weighted.encode(read_frame(frame))[:, 2:], repeated.encode(read_frame(frame))[:, 2:])


def test_files_keep_every_bit(tmp_path):
    frame = table()
    model = gce.GCERegressor(**TREE).fit(frame, target(frame))
    model.save(tmp_path / "model.gce")
    read = gce.load(tmp_path / "model.gce")
    new = table(50, seed=3)
    np.testing.assert_array_equal(read.predict(new), model.predict(new))
    ours, theirs = (m.table_.columns[0].parts for m in (model, read))
    assert ours.ngrams.grams == theirs.ngrams.grams
    assert ours.components.tobytes() == theirs.components.tobytes()


@pytest.mark.parametrize(
    ("meta", "arrays"),
    [
        ({"ngrams": ["abc", 3]}, {}),
        ({"ngrams": None}, {}),
        ({"ngrams": ["ab", "abc"]}, {}),
        ({}, {"idf": np.ones(3)}),
        ({}, {"idf": np.array([1.0, np.nan])}),
        ({}, {"components": np.ones((2, 3), np.float32)}),
        ({}, {"components": np.ones((2, 1))}),
    ],
)
def test_inconsistent_states_are_refused(meta, arrays):
    parts = TextParts(NGrams(["abc", " abc "]), np.ones(2), np.ones((2, 1), np.float32))
    good_meta, good_arrays = parts.state()
    with pytest.raises(ValueError, match="inconsistent"):
        TextParts.from_state(good_meta | meta, good_arrays | arrays)


@pytest.mark.parametrize(
    "basis",
    [TREE["basis"], gce.bases.Neural(max_epochs=3)],
    ids=["trees", "networks"],
)
def test_graphs_count_the_same_ngrams(basis):
    runtime = pytest.importorskip("onnxruntime")
    frame = table()
    model = gce.GCERegressor(**TREE | {"basis": basis}).fit(frame, target(frame))
    file = io.BytesIO()
    model.to_onnx(file)
    session = runtime.InferenceSession(file.getvalue())
    odd = ["NURSE|school", "x", "\x02nurse\x03", "日本 nurse\u2019s", " \t\u2003nurse\u00a0"]
    odd += ["İstanbul ΣΟΦΟΣ 😀 \u212aitchen"]
    new = pd.DataFrame({"title": odd + table(60, seed=2)["title"].tolist()})
    new["size"] = np.linspace(-1, 1, len(new))

    def run(rows):
        text = rows["title"].fillna("").to_numpy(dtype=object)[:, None]
        return session.run(None, {"title": text, "size": rows["size"].to_numpy()[:, None]})[0]

    np.testing.assert_allclose(run(new)[:, 0], model.predict(new), atol=1e-9)
    assert run(new[:0]).shape == (0, 1)
    assert run(pd.DataFrame({"title": [None], "size": [0.0]})).shape == (1, 1)


def test_numbers_in_a_text_column_are_refused():
    frame = table()
    model = gce.GCERegressor(**TREE).fit(frame, target(frame))
    with pytest.raises(ValueError, match=r"'title' held text when the model was fitted and holds 3\.0 now"):
        model.predict(pd.DataFrame({"title": [3.0], "size": [0.0]}))
    with pytest.raises(TypeError, match=r"'title' holds \['nurse'\] of type list"):
        model.predict(pd.DataFrame({"title": [["nurse"]], "size": [0.0]}))
    assert np.isfinite(model.predict(pd.DataFrame({"title": [np.nan], "size": [0.0]}))).all()


def test_random_text_hardly_matters():
    """Text that has nothing to do with the target changes the test loss by less than 1 %."""
    rng = np.random.default_rng(0)
    n = 800
    X = pd.DataFrame({"a": rng.normal(size=n), "b": rng.normal(size=n)})
    y = np.sin(2 * X["a"]) + X["b"] + 0.3 * rng.normal(size=n)
    words = [
        "senior",
        "junior",
        "nurse",
        "teacher",
        "welder",
        "driver",
        "engineer",
        "clerk",
        "chemist",
        "painter",
        "pilot",
    ]
    words += ["school", "hospital", "airport", "kitchen", "factory", "library", "office", "garage", "theatre", "court"]
    noisy = X.assign(text=[" ".join(rng.choice(words, 4)) for _ in range(n)])
    losses = []
    for rows in (X, noisy):
        model = gce.GCERegressor(random_state=0).fit(rows[:500], y[:500])
        losses.append(float(np.sqrt(np.mean((model.predict(rows[500:]) - y[500:]) ** 2))))
    assert losses[1] < 1.01 * losses[0]
