"""Character n-grams and words of texts, and how often they occur.

Each character is in lower case, and punctuation separates words as white space does. An n-gram is of 3 or 4 characters
of one word with a space at both of its ends, as those of scikit-learn's ``analyzer="char_wb"``; a word is the n-gram
from its first space to its last. So all are substrings of the text, which operators of ONNX can count as well. They
are counted by array operations: scikit-learn's analyzer makes a Python string of each, in ten times the time.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

Array = NDArray[np.float64]
Indices = NDArray[np.signedinteger[Any]]
Codes = NDArray[np.int64]

#: Lengths of n-grams of characters; that of shorter words is their length with both spaces, so they are n-grams too.
LENGTHS = (3, 4)
#: Letters of the longest word that counts as one.
MAX_WORD = 30
#: Codes of a space, and of letters that are in no n-gram.
SPACE, UNKNOWN = 0, 1
#: Characters of a piece.
_PIECE = 2**20
#: Letters of an alphabet: four codes must fit in 63 bits.
_MAX_LETTERS = 50_000
#: Categories of Unicode that separate words: punctuation, spaces, control characters and all symbols but pictures.
_SEPARATORS = ("P", "Z", "Cc", "Cf", "Cs", "Sm", "Sc", "Sk")


@lru_cache(maxsize=2**16)
def normalized(character: str) -> str:
    """A character in lower case; a space for one that separates words.

    Parameters
    ----------
    character : str

    Returns
    -------
    str

    Examples
    --------
    >>> from gce.preprocessing.ngrams import normalized
    >>> "".join(map(normalized, "R&D, Bern"))
    'r d  bern'
    """
    if unicodedata.category(character).startswith(_SEPARATORS):
        return " "
    lower = character.lower()
    return lower if len(lower) == 1 else character


@dataclass(frozen=True)
class Block:
    """The characters of some texts.

    Parameters
    ----------
    points : array of shape (c,)
        Code points of the normalized characters, with a space before and after each text.
    text : array of shape (c,)
        Index of the text of each.
    """

    points: NDArray[np.uint32]
    text: Indices

    @classmethod
    def read(cls, texts: Sequence[str]) -> Block:
        """The characters of some texts."""
        joined = "".join(f" {text} " for text in texts)
        points = np.frombuffer(joined.encode("utf-32-le", "surrogatepass"), dtype="<u4")
        present = np.flatnonzero(np.bincount(points))
        table = np.zeros(present[-1] + 1, dtype=np.uint32)
        table[present] = [ord(normalized(chr(point))) for point in present.tolist()]
        lengths = np.fromiter(map(len, texts), np.intp, len(texts)) + 2
        return cls(table[points], np.repeat(np.arange(len(texts), dtype=np.int32), lengths))

    @cached_property
    def is_space(self) -> NDArray[np.bool_]:
        """Which characters are spaces, ``(c,)``."""
        return self.points == ord(" ")

    def keys(self, length: int, codes: Codes, base: int) -> tuple[Indices, Codes]:
        """N-grams of one length as integers, and the text of each.

        Parameters
        ----------
        length : int
            Characters of an n-gram.
        codes : array of shape (c,)
            Codes of the characters.
        base : int
            Number of codes.

        Returns
        -------
        arrays of shape (g,)
        """
        windows = np.lib.stride_tricks.sliding_window_view
        within = np.flatnonzero(~windows(self.is_space, length)[:, 1:-1].any(1))
        key = codes[within]
        for i in range(1, length):
            key = key * base + codes[within + i]
        # the second character is none of the spaces between two texts
        return self.text[within + 1], key

    def words(self) -> tuple[Indices, list[str]]:
        """All words, and the text of each."""
        starts = np.flatnonzero(self.is_space[:-1] & ~self.is_space[1:])
        return self.text[starts], self.points.tobytes().decode("utf-32-le", "surrogatepass").split()


def pieces(texts: Sequence[str]) -> Iterator[Sequence[str]]:
    """Texts in pieces of about a million characters, which bounds the memory of what is done with each.

    Parameters
    ----------
    texts : sequence of str

    Yields
    ------
    sequence of str
    """
    first, size = 0, 0
    for i, text in enumerate(texts):
        size += len(text) + 2
        if size >= _PIECE or i + 1 == len(texts):
            yield texts[first : i + 1]
            first, size = i + 1, 0


class NGrams:
    """A list of n-grams and words that are counted in texts.

    Parameters
    ----------
    grams : sequence of str
        The n-grams; words have a space at both ends.
    """

    def __init__(self, grams: Sequence[str]) -> None:
        self.grams = tuple(grams)
        self.letters = "".join(sorted({letter for gram in self.grams for letter in gram if letter != " "}))
        self._base = len(self.letters) + 2
        self._code = {" ": SPACE, **{letter: code for code, letter in enumerate(self.letters, start=UNKNOWN + 1)}}
        self._words = {gram[1:-1]: i for i, gram in enumerate(self.grams) if len(gram) > max(LENGTHS)}

    def __len__(self) -> int:
        return len(self.grams)

    def codes(self, gram: str) -> list[int]:
        """The codes of the characters of an n-gram: 0 for a space, from 2 on for :attr:`letters`.

        Parameters
        ----------
        gram : str

        Returns
        -------
        list of int
        """
        return [self._code[letter] for letter in gram]

    @cached_property
    def _keys(self) -> dict[int, tuple[Codes, Indices]]:
        """By length, n-grams as ascending integers, and their indices."""
        found = {}
        for length in LENGTHS:
            index = np.array([i for i, gram in enumerate(self.grams) if len(gram) == length], dtype=np.int32)
            powers = self._base ** np.arange(length - 1, -1, -1)
            key = np.array([self.codes(self.grams[i]) for i in index], dtype=np.int64).reshape(-1, length) @ powers
            order = np.argsort(key)
            found[length] = key[order], index[order]
        return found

    def count(self, texts: Sequence[str]) -> sparse.csr_array:
        """How often each n-gram occurs in each text.

        Parameters
        ----------
        texts : sequence of str
            ``m`` texts.

        Returns
        -------
        sparse array of shape (m, len(self))
        """
        none = np.zeros(0, dtype=np.int32)
        found = [(none, none), *self._find(Block.read(texts))]
        text, index = (np.concatenate(parts) for parts in zip(*found, strict=True))
        return _tally(text, index, len(texts), len(self))

    def _find(self, block: Block) -> Iterator[tuple[Indices, Indices]]:
        """The n-grams in a block: indices of texts, and of n-grams."""
        codes = _encode(block.points, self.letters)
        for length, (known, index) in self._keys.items():
            text, keys = block.keys(length, codes, self._base)
            if len(known):
                place = np.minimum(np.searchsorted(known, keys), len(known) - 1)
                hit = known[place] == keys
                yield text[hit], index[place[hit]]
        if self._words:
            text, words = block.words()
            found = np.fromiter((self._words.get(word, -1) for word in words), np.int32, len(words))
            yield text[found >= 0], found[found >= 0]


def frequent_ngrams(texts: Sequence[str], weight: Array, most: int) -> NGrams:
    """The n-grams and words that occur in most texts, and in two texts at least.

    Parameters
    ----------
    texts : sequence of str
        ``m`` distinct texts.
    weight : array of shape (m,)
        Weight of each.
    most : int
        Largest number of n-grams.

    Returns
    -------
    NGrams
    """
    total: dict[str, tuple[float, int]] = {}
    first = 0
    for piece in pieces(texts):
        own_weight, first = weight[first : first + len(piece)], first + len(piece)
        for names, sums, counts in _document_frequencies(Block.read(piece), own_weight):
            for name, own, n in zip(names, sums.tolist(), counts.tolist(), strict=True):
                before, seen = total.get(name, (0.0, 0))
                total[name] = before + own, seen + n
    scale = float(weight.sum())
    # sums of weights are rounded, which must not change the order
    ranked = sorted((-round(own / scale, 12), name) for name, (own, n) in total.items() if n >= 2)
    return NGrams(sorted(name for _, name in ranked[:most]))


def _document_frequencies(block: Block, weight: Array) -> Iterator[tuple[list[str], Array, Indices]]:
    """N-grams of a block, the weight of the texts that contain them, and their number."""
    letters = _alphabet(block.points)
    codes, base = _encode(block.points, letters), len(letters) + 2
    symbol = np.array([" ", "", *letters])
    for length in LENGTHS:
        text, keys = block.keys(length, codes, base)
        known, index = np.unique(keys, return_inverse=True)
        sums, counts = _texts_with(text, index, len(known), weight)
        digits = known[:, None] // base ** np.arange(length - 1, -1, -1) % base
        names = ["".join(gram) for gram in symbol[digits]]
        kept = np.array([len(name) == length for name in names], dtype=bool)
        yield [name for name in names if len(name) == length], sums[kept], counts[kept]
    text, words = block.words()
    place: dict[str, int] = {}
    index = np.fromiter((place.setdefault(word, len(place)) for word in words), np.int32, len(words))
    sums, counts = _texts_with(text, index, len(place), weight)
    kept = np.array([max(LENGTHS) - 2 < len(word) <= MAX_WORD for word in place], dtype=bool)
    yield [f" {word} " for word, keep in zip(place, kept, strict=True) if keep], sums[kept], counts[kept]


def _texts_with(text: Indices, index: Indices, n: int, weight: Array) -> tuple[Array, Indices]:
    """The weight of the texts that have each of ``n`` n-grams, and their number."""
    occurs = _tally(text, index, len(weight), n)
    occurs.data[:] = 1
    return occurs.T @ weight, np.bincount(occurs.indices, minlength=n)


def _tally(text: Indices, index: Indices, m: int, n: int) -> sparse.csr_array:
    found = sparse.coo_array((np.ones(len(text)), (text, index)), shape=(m, n)).tocsr()
    found.sum_duplicates()
    return found


def _alphabet(points: NDArray[np.uint32]) -> str:
    """The letters that occur, the most frequent ones where there are too many."""
    counts = np.bincount(points)
    counts[ord(" ")] = 0
    found = np.flatnonzero(counts)
    return "".join(map(chr, np.sort(found[np.argsort(-counts[found], kind="stable")[:_MAX_LETTERS]]).tolist()))


def _encode(points: NDArray[np.uint32], letters: str) -> Codes:
    """Codes of characters: 0 for a space, from 2 on for letters of an alphabet."""
    table = np.full(max(int(points.max()), ord(" "), *map(ord, letters)) + 1, UNKNOWN, dtype=np.int64)
    table[ord(" ")] = SPACE
    table[[ord(letter) for letter in letters]] = np.arange(len(letters)) + UNKNOWN + 1
    return table[points]
