"""Words that an error has where it says what was wrong: of data, of parameters, and of scikit-learn's own checks."""

from __future__ import annotations

import re
from collections.abc import Iterator
from numbers import Number
from typing import Any

import numpy as np
import torch

#: A word or phrase, or several of which all are needed.
Mention = str | tuple[str, ...]

#: How an error names each part of the data, or what was made of it.
PARTS: dict[str, tuple[str, ...]] = {
    # rows of a stack are seen by its members
    "X": ("X", "column", "these rows, which have", "returns NaN or infinity"),
    "y": ("y", "labels", "classes", "one class"),
    "sample_weight": ("sample_weight", "sample weight", "sample weights", "positive weight", "training rows"),
    "groups": ("groups", "training rows"),
    # a background is read as X is
    "background": ("background", "X", "column"),
    "base_score": ("base_score",),
    "validation": ("X_val", "y_val", "base_score_val", "validation rows"),
}
#: How scikit-learn and numpy say the same, without a name; its users know these sentences, and its checks of an
#: estimator require some of them.
OF_SKLEARN: tuple[str, ...] = (
    "Expected 2D array", "Found array with", "inconsistent numbers of samples", "Complex data not supported",
    "np.matrix is not supported", "Input should have at least 1 dimension", "Expected sequence or array-like",
    "arrays of bytes/strings", "could not convert string to float", "setting an array element with a sequence",
    "argument must be a string or a real number", "Cannot cast array data from dtype", "Feature names",
    "feature names", "Unknown label type", "Mix of label input types", "Classification metrics can't handle a mix",
    "different number of output", "Sample weights must", "n_splits", "test_size",
)  # fmt: skip
#: What a method says of a model that does not have what it needs, whatever its arguments are.
OF_METHODS: dict[str, tuple[Mention, ...]] = {
    "save": ("joblib.dump", "labels of type"),
    "to_onnx": ("joblib.dump",),
    "add": ("raw scores of loss", "member", "X, y, sample_weight or groups differ"),
    "remove": ("only the offset would be left",),
    "bound_report": ("a bound report is possible", "a bound report is not possible"),
    "shap_interaction_values": ("interaction values are",),
}
#: What an error says in place of a parameter's name: a number of folds is a splitter's, and where raw scores overflow
#: only validation shows it.
INSTEAD: dict[str, tuple[Mention, ...]] = {
    "cv": ("n_splits", "The 'groups' parameter"),
    "validation_fraction": ("test_size",),
    "source": ("source is empty",),
    "target": ("need a target",),
    **dict.fromkeys(("offset", "bound"), ("offset and bound must be of the targets' size",)),
}
#: Values of which an error may show one part.
PARTED = list | tuple | set | frozenset | dict | bytes | bytearray | range
#: Letters of a value that an error repeats in any case.
MOST_SHOWN = 60


def about(*parts: str) -> tuple[Mention, ...]:
    """What an error about some parts of the data names one of."""
    return (*[word for part in parts for word in PARTS[part]], *OF_SKLEARN)


def mentioned(values: dict[str, Any]) -> tuple[Mention, ...]:
    """What an error about odd parameters mentions: the name of one of them, and its value where that is short."""
    found: list[Mention] = []
    for name, value in values.items():
        # a part of a nested object is named without it
        word, shown = name.rsplit("__", 1)[-1], on_one_line(repr(value))
        short = len(shown) <= MOST_SHOWN and "0x" not in shown
        found += [(word, on_one_line(form)) for form in forms_of(value) if form] if short else [word]
        # objects of this library check their own parameters
        found += [type(value).__name__] if type(value).__module__.startswith("gce.") else []
        found += INSTEAD.get(name, ())
    return tuple(dict.fromkeys(found))


def forms_of(value: Any, depth: int = 2) -> Iterator[str]:
    """How an error may show a value: as it is, by its type or shape, or by what is wrong inside of it."""
    yield from (repr(value), str(value), f"({type(value).__name__})")
    if hasattr(value, "shape"):
        yield str(tuple(value.shape))
    if isinstance(value, list):
        yield str((len(value),))
    if isinstance(value, Number):
        yield "()"
    if isinstance(value, dict):
        yield from forms_of(list(value.values()), depth)
    arrays = np.ndarray | torch.Tensor
    if depth and (isinstance(value, PARTED) or (isinstance(value, arrays) and value.ndim)):
        for part in value:
            yield from forms_of(part, depth - 1)


def named(words: str, mentions: tuple[Mention, ...]) -> bool:
    """Whether an error has one of some mentions, each of its parts as whole words."""
    line = on_one_line(words)
    return any(
        all(re.search(rf"(?<!\w){re.escape(part)}(?!\w)", line) for part in ([one] if isinstance(one, str) else one))
        for one in mentions
    )


def shortened(words: str, most: int = 240) -> str:
    """Words on one line, in ASCII, and not too many."""
    line = on_one_line(words)
    return line if len(line) <= most else f"{line[:most]}..."


def on_one_line(words: str) -> str:
    """Words on one line, in ASCII; addresses differ among runs."""
    line = " ".join(words.split()).encode("ascii", "backslashreplace").decode()
    return re.sub(r"0x[0-9a-f]{6,}", "0x...", line)


def printable(words: str) -> bool:
    """Whether words can be shown on a terminal: they are of Unicode's characters, and none of them controls it."""
    try:
        words.encode()
    except UnicodeEncodeError:
        return False
    return not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]", words)
