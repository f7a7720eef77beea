"""Which columns of strings are text, and which are identifiers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from gce.preprocessing.columns import MAX_CATEGORIES
from gce.preprocessing.ngrams import Block
from gce.preprocessing.sample_weights import effective_count

Array = NDArray[np.float64]

#: Distinct values of text as a share of the rows: fewer are categories, whose rows say more of them. And how many are
#: enough in any case: more than the categories that trees split.
MIN_DISTINCT, ENOUGH = 0.2, MAX_CATEGORIES + 1
#: Distinct words of text: numbers with names of months or types before them have fewer.
MIN_WORDS = 20
#: Share of the values that must have a word: letters without a digit among them.
MIN_SHARE = 0.5
#: Bits that a letter tells of the next one beyond chance. Words of languages have more, letters drawn at random none.
MIN_BITS = 0.1
#: Standard deviations under chance by which a component must be correlated with the target.
SIGNIFICANT = 3.0
#: Values that are looked at.
_SAMPLE = 5_000


def is_text(values: Sequence[str], rows: float) -> bool:
    """Whether a column of strings is text: many distinct values of words.

    Identifiers are not: numbers, codes of letters and digits, UUIDs, hashes, random letters.

    Parameters
    ----------
    values : sequence of str
        Distinct values, in sorted order.
    rows : float
        Effective number of rows that have a value.

    Returns
    -------
    bool

    Examples
    --------
    >>> from gce.preprocessing.text_rule import is_text
    >>> is_text([f"customer {i}" for i in range(500)], 500)
    False
    """
    if len(values) < max(MIN_WORDS, min(MIN_DISTINCT * rows, ENOUGH)):
        return False
    sample = values[:: -(-len(values) // _SAMPLE)]
    text, words = Block.read(sample).words()
    is_word = np.array([len(word) > 1 and not any(map(str.isdigit, word)) for word in words], dtype=bool)
    distinct = sorted({word for word, own in zip(words, is_word, strict=True) if own})
    if len(distinct) < MIN_WORDS or len(np.unique(text[is_word])) < MIN_SHARE * len(sample):
        return False
    return bits_beyond_chance(distinct) >= MIN_BITS


def telling_components(numbers: Array, target: Array, weight: Array) -> NDArray[np.bool_]:
    """Which components of text are correlated with a target beyond chance.

    All others are noise to a model. The choice looks at targets of held-out rows too, but chance passes only one
    component in 370.

    Parameters
    ----------
    numbers : array of shape (n, p)
        The components; NaN in rows without text.
    target : array of shape (n, k)
        The targets.
    weight : array of shape (n,)
        Sample weights.

    Returns
    -------
    array of shape (p,)
    """
    present = ~np.isnan(numbers[:, 0])
    share = weight[present] / weight[present].sum()
    Z, Y = (own[present] - share @ own[present] for own in (numbers, target))
    variances = np.outer(share @ np.square(Z), share @ np.square(Y))
    # a constant is correlated with nothing
    correlation = (Z.T * share) @ Y / np.sqrt(np.where(variances > 0, variances, np.inf))
    # sums are rounded, which must not change the choice
    deviations = np.round(np.abs(correlation), 9) * np.sqrt(effective_count(weight[present]))
    return np.asarray((deviations > SIGNIFICANT).any(1))


def bits_beyond_chance(words: Sequence[str]) -> float:
    """How much a letter tells of the next one: their mutual information, less that of the same letters shuffled.

    Parameters
    ----------
    words : sequence of str
        Words of at least two letters in total.

    Returns
    -------
    float
    """
    points = np.frombuffer(" ".join(words).encode("utf-32-le", "surrogatepass"), dtype="<u4")
    is_letter = points != ord(" ")
    letters, codes = np.unique(points[is_letter], return_inverse=True)
    first = np.flatnonzero(is_letter[:-1] & is_letter[1:])
    # place of each letter among all letters
    place = np.cumsum(is_letter)[first] - 1
    rng = np.random.default_rng(0)
    by_chance = [_joint_entropy(rng.permutation(codes), place, len(letters)) for _ in range(5)]
    # shuffling leaves the entropies of both letters nearly as they are
    return float(np.mean(by_chance)) - _joint_entropy(codes, place, len(letters))


def _joint_entropy(codes: NDArray[np.intp], place: NDArray[np.intp], base: int) -> float:
    """Entropy of the pairs of letters at ``place, place + 1``, in bits."""
    _, counts = np.unique(codes[place] * base + codes[place + 1], return_counts=True)
    share = counts / counts.sum()
    return -float((share * np.log2(share)).sum())
