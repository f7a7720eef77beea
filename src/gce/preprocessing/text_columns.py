"""Columns of text: the leading components of the n-grams of their values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.preprocessing import normalize
from sklearn.utils.extmath import svd_flip

from gce.preprocessing.ngrams import NGrams, frequent_ngrams, pieces
from gce.preprocessing.text_rule import is_text

Array = NDArray[np.float64]

#: N-grams of a column. A table of them instead of hashes has the same bound of memory, two of them never share a
#: number, and other runtimes can look them up.
MAX_NGRAMS = 4096
#: Components of a column, and the rows that each needs: a component of fewer is rather one of noise.
MAX_COMPONENTS, ROWS_PER_COMPONENT = 24, 50
#: Characters of the distinct values that n-grams and components are learned from; beyond, they are known well.
_MAX_CHARACTERS = 2**21
#: More vectors than components, and steps of subspace iteration: both sharpen the last components.
_MORE_VECTORS, _STEPS = 16, 10
#: Components are rounded to this fraction: sums in another order, as in an ONNX graph, then have the same bits.
RESOLUTION = 2.0**-20


@dataclass(frozen=True, eq=False)
class TextParts:
    """Components of the tf-idf of n-grams: a truncated SVD, as of skrub's ``StringEncoder``.

    Learned from all rows of a fit, held out or not, as scaling is: no target is involved. A weight counts as that many
    rows, and values are taken in sorted order, so repeated rows give the same components to the bit.

    Parameters
    ----------
    ngrams : NGrams
        ``v`` n-grams and words.
    idf : array of shape (v,)
        Their inverse document frequencies.
    components : array of shape (v, p)
        Right singular vectors.
    """

    ngrams: NGrams
    idf: Array
    components: NDArray[np.float32]

    @classmethod
    def fit(cls, texts: Sequence[str], weight: Array, rows: float) -> TextParts | None:
        """Learn the components of a column.

        Parameters
        ----------
        texts : sequence of str
            ``m`` distinct values, in sorted order.
        weight : array of shape (m,)
            Weight of the rows that have each.
        rows : float
            Effective number of rows.

        Returns
        -------
        TextParts or None
            None where no two values have an n-gram in common.
        """
        # values in sorted order are sampled from all groups of alike ones
        step = -(-sum(map(len, texts)) // _MAX_CHARACTERS)
        texts, weight = texts[:: max(step, 1)], weight[:: max(step, 1)]
        share = weight / weight.sum()
        ngrams = frequent_ngrams(texts, weight, MAX_NGRAMS)
        n_components = min(MAX_COMPONENTS, int(rows / ROWS_PER_COMPONENT), len(ngrams))
        if n_components == 0:
            return None
        counts = sparse.vstack([ngrams.count(piece) for piece in pieces(texts)], format="csr")
        occurs = sparse.csr_array((np.ones_like(counts.data), counts.indices, counts.indptr), shape=counts.shape)
        idf = np.log((1 + rows) / (1 + rows * (occurs.T @ share))) + 1
        tfidf = _tfidf(counts, idf)
        components = _leading_components(sparse.diags_array(np.sqrt(share)) @ tfidf, n_components)
        return cls(ngrams, idf, components.astype(np.float32))

    @property
    def names(self) -> tuple[str, ...]:
        """What each number is."""
        return tuple(f"component {i}" for i in range(1, self.components.shape[1] + 1))

    def select(self, kept: NDArray[np.bool_]) -> TextParts:
        """Some of the components.

        Parameters
        ----------
        kept : array of shape (p,)
            Which ones.

        Returns
        -------
        TextParts
        """
        return replace(self, components=np.ascontiguousarray(self.components[:, kept]))

    def transform(self, column: Any) -> Array:
        """The components of a column, ``(n, p)``; NaN where a value is missing.

        Parameters
        ----------
        column : array of shape (n,)
            Values: text, or None or NaN for missing ones.

        Returns
        -------
        array of shape (n, p)
        """
        place: dict[str, int] = {}
        values = column.tolist()
        at = np.array([place.setdefault(v, len(place)) if isinstance(v, str) else -1 for v in values], dtype=np.intp)
        # a missing value has the index -1: the last row
        numbers = [self._transform(piece) for piece in pieces(list(place))]
        return np.concatenate([*numbers, np.full((1, len(self.names)), np.nan)])[at]

    def _transform(self, texts: Sequence[str]) -> Array:
        products = _tfidf(self.ngrams.count(texts), self.idf) @ self._vectors
        return np.asarray(np.rint(products / RESOLUTION) * RESOLUTION)

    @cached_property
    def _vectors(self) -> Array:
        return self.components.astype(np.float64)

    def state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """The state for a file, as JSON values and arrays."""
        return {"ngrams": list(self.ngrams.grams)}, {"idf": self.idf, "components": self.components}

    @classmethod
    def from_state(cls, meta: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> TextParts:
        """Restore the components of a column from their state.

        Raises
        ------
        ValueError
            The parts of the state are inconsistent.
        """
        grams, idf, components = meta.get("ngrams"), arrays.get("idf"), arrays.get("components")
        if (
            not isinstance(grams, list)
            or not all(isinstance(gram, str) and len(gram) >= 3 for gram in grams)
            or idf is None
            or components is None
            or [idf.dtype.name, components.dtype.name] != ["float64", "float32"]
            or not idf.shape == components.shape[:1] == (len(grams),)
            or (components.ndim != 2 or not 1 <= components.shape[1] <= len(grams))
            or not (np.isfinite(idf).all() and np.isfinite(components).all())
        ):
            raise ValueError("the parts of a column of text are inconsistent")
        return cls(NGrams(grams), idf, components)


def learn_text(column: NDArray[Any], weight: Array, rows: float) -> TextParts | None:
    """The components of a column of strings if it is text, see :func:`gce.preprocessing.text_rule.is_text`.

    Parameters
    ----------
    column : array of shape (n,)
        Values.
    weight : array of shape (n,)
        Sample weights.
    rows : float
        Effective number of rows.

    Returns
    -------
    TextParts or None
        None if the column is not text.
    """
    total: dict[str, float] = {}
    for value, own in zip(column.tolist(), weight.tolist(), strict=True):
        if isinstance(value, str):
            total[value] = total.get(value, 0.0) + own
    texts = sorted(total)
    known = np.array([total[text] for text in texts])
    rows *= known.sum() / weight.sum()
    return TextParts.fit(texts, known, rows) if is_text(texts, rows) else None


def _tfidf(counts: sparse.csr_array, idf: Array) -> sparse.csr_array:
    """Counts times inverse document frequencies, in rows of norm 1."""
    weighted = sparse.csr_array((counts.data * idf[counts.indices], counts.indices, counts.indptr), shape=counts.shape)
    return normalize(weighted, copy=False)


def _leading_components(rows: sparse.csr_array, n_components: int) -> Array:
    """Leading right singular vectors ``(v, p)`` of rows ``(m, v)`` by subspace iteration.

    scikit-learn's ``randomized_svd`` iterates on the smaller of both sides, and ARPACK's start may be random; these
    steps are the same whatever the number of rows.
    """
    width = min(n_components + _MORE_VECTORS, rows.shape[1])
    across = rows.T.tocsr()
    basis = np.linalg.qr(np.random.default_rng(0).standard_normal((rows.shape[1], width)))[0]
    for _ in range(_STEPS):
        basis = np.linalg.qr(across @ (rows @ basis))[0]
    product = rows @ basis
    squares, rotation = np.linalg.eigh(product.T @ product)
    # rows of a lower rank have fewer components, one at least
    n_components = min(n_components, int((squares > 1e-9 * squares[-1]).sum()))
    vectors = basis @ rotation[:, : -n_components - 1 : -1]
    return np.asarray(svd_flip(None, vectors.T, u_based_decision=False)[1].T)
