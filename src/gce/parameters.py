"""What parameters may be: each class has a table of rules, and a fit begins by checking them all.

A rule looks at the type first, so that an array or a tensor is never asked for its truth value, and says in words what
it takes. A class lists the rules of its constructor's parameters in ``parameter_rules``; a subclass of a user that has
other parameters has no rules for them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from math import inf
from numbers import Real
from typing import Any

import numpy as np

#: Letters of a wrong value that an error repeats.
_MOST_SHOWN = 200


@dataclass(frozen=True)
class Rule:
    """What a parameter may be.

    Parameters
    ----------
    accepts : callable
        Whether a value, whatever its type, is one.
    words : str
        The same for people, after "must be".
    either : bool
        There are several alternatives.
    """

    accepts: Callable[[Any], bool]
    words: str
    either: bool = False

    def __or__(self, other: Rule) -> Rule:
        first = self.words.replace(" or ", ", ") if self.either else self.words
        return Rule(lambda value: self.accepts(value) or other.accepts(value), f"{first} or {other.words}", True)

    def check(self, name: str, value: Any) -> None:
        """Refuse another value by a ValueError that names the parameter."""
        if not self.accepts(value):
            raise ValueError(f"{name} must be {self.words}, got {shown(value)}")


Rules = dict[str, Rule]


def count(least: int, most: float = inf) -> Rule:
    """An integer of a range."""
    words = f"of at least {least}" if most == inf else f"from {least} to {most}"
    return Rule(lambda value: _is_integer(value) and least <= value <= most, f"an integer {words}")


def at_least(least: float) -> Rule:
    """A number of at least so much, infinity included."""
    return Rule(lambda value: is_number(value) and float(value) >= least, f"a number of at least {least}")


def within(low: float, high: float, ends: str = "[]") -> Rule:
    """A number of an interval whose ends belong to it or not: ``"(]"``."""

    def accepts(value: Any) -> bool:
        if not is_number(value):
            return False
        above = float(value) >= low if ends[0] == "[" else float(value) > low
        return above and (float(value) <= high if ends[1] == "]" else float(value) < high)

    return Rule(accepts, f"in {ends[0]}{low:g}, {high:g}{ends[1]}")


def among(*words: str) -> Rule:
    """One of some words."""
    *others, last = map(repr, words)
    listed = f"{', '.join(others)} or {last}" if others else last
    return Rule(lambda value: isinstance(value, str) and value in words, listed)


def instance(words: str, *kinds: type) -> Rule:
    """An object of some classes."""
    return Rule(lambda value: isinstance(value, kinds), words)


POSITIVE = Rule(within(0, inf, "()").accepts, "positive and finite")
FINITE = Rule(within(-inf, inf, "()").accepts, "a finite number")
FLAG = instance("True or False", bool, np.bool_)
NONE = Rule(lambda value: value is None, "None")
WORD = instance("a name", str)
AUTO = among("auto")
JOBS = Rule(lambda value: _is_integer(value) and value != 0, "an integer other than 0") | NONE
SEED = NONE | count(0, 2**32 - 1) | instance("a numpy RandomState", np.random.RandomState)
SCORING = NONE | instance("the name of a scikit-learn scorer", str) | Rule(callable, "a callable")


def check_parameters(owner: Any) -> None:
    """Refuse the first parameter of an object, or of an object among its parameters, that no rule allows."""
    _check(owner, "")


def _check(owner: Any, prefix: str) -> None:
    rules = rules_of(type(owner))
    for name, value in owner.get_params(deep=False).items():
        if name in rules:
            rules[name].check(prefix + name, value)
        for part in _parts(value):
            if hasattr(type(part), "parameter_rules") and not isinstance(part, type):
                _check(part, f"{type(part).__name__}: ")


def rules_of(kind: type) -> Rules:
    """The rules of a class, its bases' among them."""
    return {
        name: rule for base in reversed(kind.__mro__) for name, rule in vars(base).get("parameter_rules", {}).items()
    }


def _parts(value: Any) -> Iterator[Any]:
    """A value, and what it lists."""
    if isinstance(value, Mapping):
        yield from value.values()
    elif isinstance(value, list | tuple):
        yield from value
    else:
        yield value


def check_count(name: str, value: Any, least: int) -> int:
    """An integer of at least so much."""
    count(least).check(name, value)
    return int(value)


def check_number(name: str, value: Any, least: float) -> float:
    """A number of at least so much."""
    at_least(least).check(name, value)
    return float(value)


def is_number(value: Any) -> bool:
    """Whether a value is a real number, no truth value, and not too large for a float."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, Real):
        return False
    try:
        float(value)
    except OverflowError:
        return False
    return True


def is_iterable(value: Any) -> bool:
    """Whether a value can be gone through: an array of no dimensions only looks as if."""
    try:
        iter(value)
    except TypeError:
        return False
    return True


def _is_integer(value: Any) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def shown(value: Any) -> str:
    """A value as an error repeats it: in one line, and not all of a long one."""
    text = " ".join(repr(value).split())
    return text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}..."
