"""Components of text as operators: characters, their codes, counts of n-grams, and products with the components."""

from __future__ import annotations

from itertools import chain

import numpy as np

from gce.io.onnx.graph import Graph
from gce.preprocessing.ngrams import SPACE, UNKNOWN, NGrams, normalized
from gce.preprocessing.text_columns import RESOLUTION, TextParts

#: What onnxruntime's Tokenizer puts before and after a text: control characters, which are spaces like all others.
_MARKS = "\x02\x03"
#: Planes of Unicode with separators and with letters of two cases, without surrogates; all others are ideographs.
_CASED = (range(0xD800), range(0xE000, 0x20000), range(0xE0000, 0xE1000))


def text_parts(graph: Graph, parts: TextParts, text: str, code: str) -> str:
    """The components of texts ``(rows, p)`` in float64, NaN where the code of the category is NaN.

    Parameters
    ----------
    graph : Graph
    parts : TextParts
        The components.
    text : str
        Strings ``(rows, 1)``.
    code : str
        Codes of categories ``(rows, 1)`` in float64.

    Returns
    -------
    str
    """
    counts = graph.cast(_counts(graph, parts.ngrams, text), np.float64)
    tfidf = graph("Mul", counts, parts.idf)
    norm = graph("Sqrt", graph("ReduceSum", graph("Mul", tfidf, tfidf), np.array([1]), keepdims=1))
    # every weight is at least 1, and so is the norm of a row that has an n-gram
    unit = graph("Div", tfidf, graph("Max", norm, np.float64(1)))
    products = graph("MatMul", unit, parts.components.astype(np.float64))
    rounded = graph("Mul", graph("Round", graph("Div", products, np.float64(RESOLUTION))), np.float64(RESOLUTION))
    return graph("Where", graph("Equal", code, code), rounded, np.float64(np.nan))


def _counts(graph: Graph, ngrams: NGrams, text: str) -> str:
    """How often each n-gram occurs, ``(rows, v)`` in float32."""
    # one row more: operators for strings refuse tables without rows, or without a character
    padded = graph("Concat", text, np.array([["-"]], dtype=object), axis=0)
    # an empty separator: a token for each character, and one of several characters behind shorter texts
    tokens = graph("Tokenizer", padded, domain="com.microsoft", mark=1, pad_value="none", separators=[""], mincharnum=1)
    graph.declare(tokens, object, None, 1, None)
    letters = {letter: code for code, letter in enumerate(ngrams.letters, start=UNKNOWN + 1)}
    known = dict.fromkeys(_MARKS, SPACE)
    known |= {own: SPACE if letter == " " else letters[letter] for own, letter in _variants(ngrams.letters)}
    mapping = {"keys_strings": list(known), "values_int64s": list(known.values()), "default_int64": UNKNOWN}
    codes = graph("LabelEncoder", graph("Squeeze", tokens, np.array([1])), domain="ai.onnx.ml", **mapping)
    by_length = sorted(range(len(ngrams)), key=lambda i: (len(ngrams.grams[i]), i))
    lengths = [len(ngrams.grams[i]) for i in by_length]
    # where the n-grams of each length begin in the list of all codes
    starts = [sum(own for own in lengths if own < length) for length in range(1, lengths[-1] + 1)]
    counts = graph(
        "TfIdfVectorizer",
        codes,
        mode="TF",
        min_gram_length=lengths[0],
        max_gram_length=lengths[-1],
        max_skip_count=0,
        ngram_counts=starts,
        ngram_indexes=by_length,
        pool_int64s=[code for i in by_length for code in ngrams.codes(ngrams.grams[i])],
    )
    return graph("Slice", counts, np.array([0]), np.array([-1]), np.array([0]))


def _variants(letters: str) -> list[tuple[str, str]]:
    """All characters that are one of some letters in lower case, or a space, and what they are."""
    wanted = {" ", *letters}
    found = ((own, normalized.__wrapped__(own)) for own in chain(map(chr, chain(*_CASED)), letters))
    return [(own, letter) for own, letter in found if letter in wanted]
