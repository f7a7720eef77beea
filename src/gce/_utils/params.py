"""Validation of parameters: each class has a table of rules, which every fit checks first.

A rule checks the type first, so that arrays and tensors are never evaluated as booleans, and describes in words what it
accepts. A class lists the rules of its constructor's parameters in ``parameter_rules``; other parameters of a
user-defined subclass are not checked.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache, wraps
from inspect import Parameter, signature
from itertools import islice
from math import inf
from numbers import Real
from typing import Any, ParamSpec, Self, TypeVar

import numpy as np
from sklearn.base import BaseEstimator, clone

#: Characters of an invalid value that an error repeats.
_MAX_SHOWN = 200
#: Values that an error lists.
_MAX_LISTED = 5


Kind = TypeVar("Kind", bound=BaseEstimator)
P = ParamSpec("P")
R = TypeVar("R")


@dataclass(frozen=True)
class Rule:
    """The valid values of a parameter.

    Parameters
    ----------
    accepts : callable
        Whether a value of any type is valid.
    words : str
        The same in words, following "must be".
    either : bool
        Whether there are several alternatives.
    """

    accepts: Callable[[Any], bool]
    words: str
    either: bool = False

    def __or__(self, other: Rule) -> Rule:
        first = self.words.replace(" or ", ", ") if self.either else self.words
        return Rule(lambda value: self.accepts(value) or other.accepts(value), f"{first} or {other.words}", True)

    def check(self, name: str, value: Any) -> None:
        """Raise a ValueError that names the parameter if its value is invalid.

        Parameters
        ----------
        name : str
            Name of the parameter.
        value : object
            Its value.
        """
        if not self.accepts(value):
            raise ValueError(f"{name} must be {self.words}, got {short_repr(value)}")


Rules = dict[str, Rule]


#: The largest number of something that is counted in 32 bits.
MOST = 2**31 - 1


def count(least: int, most: float = inf) -> Rule:
    """An integer from ``least`` to ``most``.

    Parameters
    ----------
    least : int
        Least integer.
    most : float, default=inf
        Largest integer.
    """
    words = f"of at least {least}" if most == inf else f"from {least} to {most}"
    return Rule(lambda value: _is_integer(value) and least <= value <= most, f"an integer {words}")


def at_least(least: float) -> Rule:
    """A number of at least ``least``, infinity included.

    Parameters
    ----------
    least : float
        Least number.
    """
    return Rule(lambda value: is_number(value) and float(value) >= least, f"a number of at least {least}")


def within(low: float, high: float, ends: str = "[]") -> Rule:
    """A number in an interval with open or closed ends, as in ``"(]"``.

    Parameters
    ----------
    low, high : float
        Ends of the interval.
    ends : {"[]", "[)", "(]", "()"}, default="[]"
        Which ends belong to it.
    """

    def accepts(value: Any) -> bool:
        if not is_number(value):
            return False
        above = float(value) >= low if ends[0] == "[" else float(value) > low
        return above and (float(value) <= high if ends[1] == "]" else float(value) < high)

    return Rule(accepts, f"in {ends[0]}{low:g}, {high:g}{ends[1]}")


def among(*words: str) -> Rule:
    """One of some strings."""
    *others, last = map(repr, words)
    listed = f"{', '.join(others)} or {last}" if others else last
    return Rule(lambda value: isinstance(value, str) and value in words, listed)


def instance(words: str, *kinds: type) -> Rule:
    """An instance of some classes, described by ``words``.

    Parameters
    ----------
    words : str
        What the classes are, following "must be".
    *kinds : type
        The classes.
    """
    return Rule(lambda value: isinstance(value, kinds), words)


POSITIVE = Rule(within(0, inf, "()").accepts, "positive and finite")
FINITE = Rule(within(-inf, inf, "()").accepts, "a finite number")
FLAG = instance("True or False", bool, np.bool_)
NONE = Rule(lambda value: value is None, "None")
AUTO = among("auto")
JOBS = Rule(lambda value: _is_integer(value) and value != 0, "an integer other than 0") | NONE
SEED = NONE | count(0, 2**32 - 1) | instance("a numpy RandomState", np.random.RandomState)
SCORING = (
    NONE
    | instance("the name of a scikit-learn scorer", str)
    # a class in place of its instance is called with what a scorer is given
    | Rule(lambda value: callable(value) and not isinstance(value, type), "a callable")
)


def check_parameters(owner: Any) -> None:
    """Raise a ValueError for the first invalid parameter of an object, or of an object among its parameters.

    Parameters
    ----------
    owner : object
        An object with ``get_params``.
    """
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
    """The rules of a class and of its bases."""
    return {
        name: rule for base in reversed(kind.__mro__) for name, rule in vars(base).get("parameter_rules", {}).items()
    }


def _parts(value: Any) -> Iterator[Any]:
    """The items of a mapping, list or tuple; else the value itself."""
    if isinstance(value, Mapping):
        yield from value.values()
    elif isinstance(value, list | tuple):
        yield from value
    else:
        yield value


def check_count(name: str, value: Any, least: int) -> int:
    """Validate an integer of at least ``least``.

    Parameters
    ----------
    name : str
        Name of the parameter.
    value : object
        Its value.
    least : int
        Least integer.

    Returns
    -------
    int
    """
    count(least).check(name, value)
    return int(value)


def check_number(name: str, value: Any, least: float) -> float:
    """Validate a number of at least ``least``.

    Parameters
    ----------
    name : str
        Name of the parameter.
    value : object
        Its value.
    least : float
        Least number.

    Returns
    -------
    float
    """
    at_least(least).check(name, value)
    return float(value)


def is_number(value: Any) -> bool:
    """Whether a value is a real number, but not a boolean, and not too large for a float."""
    if isinstance(value, bool | np.bool_ | np.timedelta64) or not isinstance(value, Real):
        return False
    try:
        float(value)
    except OverflowError:
        return False
    return True


def is_iterable(value: Any) -> bool:
    """Whether a value can be iterated over: a 0-dimensional array only looks like it."""
    try:
        iter(value)
    except TypeError:
        return False
    return True


def _is_integer(value: Any) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool | np.timedelta64)


def short_repr(value: Any) -> str:
    """The ``repr`` of a value for errors: on one line, and truncated."""
    text = " ".join(repr(value).split())
    return text if len(text) <= _MAX_SHOWN else f"{text[:_MAX_SHOWN]}..."


def counted(count: int, noun: str) -> str:
    """A count and its noun.

    Examples
    --------
    >>> counted(1, "column"), counted(1200, "row")
    ('1 column', '1,200 rows')
    """
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def short_list(values: Collection[Any]) -> str:
    """Some values for errors, and how many more there are.

    Parameters
    ----------
    values : collection
        The values, in the order in which they are listed.

    Examples
    --------
    >>> short_list([1.5, 2.5]), short_list(range(100))
    ('[1.5, 2.5]', '[0, 1, 2, 3, 4] and 95 more')
    """
    first = [short_repr(value) for value in islice(values, _MAX_LISTED)]
    more = len(values) - len(first)
    return f"[{', '.join(first)}]" + (f" and {more:,} more" if more else "")


def look_up(what: str, given: Any, known: Mapping[str, Kind], kind: type[Kind]) -> Kind:
    """A clone of an object given by name or as an instance.

    Parameters
    ----------
    what : str
        What the object is, for the error message.
    given : str or object
        The name, or the object.
    known : mapping of str to object
        Objects by name.
    kind : type
        Class of the objects.

    Raises
    ------
    ValueError
        The name is unknown, or the object is of another class.
    """
    if isinstance(given, str) and given in known:
        return clone(known[given])
    if isinstance(given, kind):
        return copied(what, given)
    names = ", ".join(map(repr, known))
    words = f"use one of {names} or {'an' if kind.__name__[0] in 'AEIOU' else 'a'} {kind.__name__} object"
    if isinstance(given, str):
        # a name that is known needs no advice
        from gce._utils.peer_names import value_advice

        words = value_advice(what, given, known) or words
    raise ValueError(f"unknown {what} {short_repr(given)}: {words}")


def copied(what: str, given: Kind) -> Kind:
    """A clone of an object.

    Parameters
    ----------
    what : str
        What the object is, for the error message.
    given : object
        The object.

    Raises
    ------
    ValueError
        A parameter of it cannot be copied, such as a memoryview.
    """
    try:
        return clone(given)
    except TypeError as error:
        raise ValueError(f"{what} {short_repr(given)} cannot be copied ({error}): change that parameter") from error


@lru_cache(maxsize=256)
def _keywords(method: Callable[..., Any]) -> frozenset[str] | None:
    """The names that a method can be called with; None where it takes any."""
    parameters = signature(method).parameters.values()
    names = frozenset(parameter.name for parameter in parameters if parameter.name != "self")
    return None if any(parameter.kind is Parameter.VAR_KEYWORD for parameter in parameters) else names


def check_keywords(kind: Any, given: Iterable[str], method: str = "__init__") -> None:
    """Raise a TypeError for keywords that the constructor of a class, or another method, does not take.

    Parameters
    ----------
    kind : type
        The class.
    given : iterable of str
        The keywords.
    method : str, default="__init__"
        What they are given to.
    """
    known = _keywords(getattr(kind, method))
    for name in given:
        if known is not None and name not in known:
            words = f"{kind.__name__}.{method}() got an unexpected keyword argument {name!r}"
            advice = _advice(kind, name, method)
            raise TypeError(f"{words}: {advice}" if advice else words)


class Component(BaseEstimator):
    """A parameter that is an object with parameters of its own: unknown ones are errors that name ours."""

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        """Refuse unknown parameters before ``__init__`` does, with our names for those of other libraries."""
        check_keywords(cls, kwargs)
        return super().__new__(cls)


def check_settable(kind: Any, given: Iterable[str]) -> None:
    """Raise a ValueError for parameters to set that are unknown by this name, but known by another one.

    Parameters
    ----------
    kind : type
        The class.
    given : iterable of str
        Names of parameters; scikit-learn looks at those of objects and of members.
    """
    known = _keywords(kind.__init__)
    for name in given:
        unknown = known is not None and name not in known and "__" not in name
        if unknown and (advice := _advice(kind, name, "__init__")):
            raise ValueError(f"Invalid parameter {name!r} for estimator {kind.__name__}: {advice}")


def _advice(kind: Any, name: str, method: str) -> str:
    # only errors need the names of other libraries
    from gce._utils.peer_names import argument_advice, parameter_advice

    if issubclass(kind, Component) or method not in ("__init__", "fit"):
        return argument_advice(name, sorted(_keywords(getattr(kind, method)) or ()))
    constructor, fit = _keywords(kind.__init__) or (), _keywords(kind.fit) or ()
    return parameter_advice(name, kind.__name__, sorted(constructor), sorted(fit), fitting=method == "fit")


def checked_keywords(method: Callable[P, R]) -> Callable[P, R]:
    """Decorator of a method: an unknown keyword is an error that names ours, if another library has it.

    Parameters
    ----------
    method : callable
        Such as ``fit``.
    """

    @wraps(method)
    def checked(*args: P.args, **kwargs: P.kwargs) -> R:
        check_keywords(type(args[0]), kwargs, method.__name__)
        return method(*args, **kwargs)

    return checked


def changed_parameters(model: BaseEstimator) -> list[tuple[str, Any, Any]]:
    """Parameters of an estimator that differ from their defaults.

    Parameters
    ----------
    model : BaseEstimator
        Any estimator of scikit-learn or gce.

    Returns
    -------
    list of (name, value, default)
    """
    defaults = {p.name: p.default for p in signature(type(model)).parameters.values()}
    given = model.get_params(deep=False)
    return [
        (name, value, defaults[name])
        for name, value in given.items()
        if name in defaults and repr(value) != repr(defaults[name])
    ]
