"""What the two greedy estimators share: rules of their parameters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gce._utils.params import AUTO, FLAG, NONE, Rule, Rules, at_least, count, instance, is_iterable
from gce.bases import Basis
from gce.frank_wolfe.algorithm import Algorithm
from gce.losses.line_search import LineSearch

GREEDY_RULES: Rules = {
    "algorithm": instance("a name or an Algorithm object", str, Algorithm),
    "basis": instance("a name, a Basis object or several of these", str, Basis, Sequence, Mapping),
    "line_search": instance("a name or a LineSearch object", str, LineSearch),
    "max_atoms": AUTO | count(1),
    "max_iter": count(1),
    "tol": at_least(0),
    "n_iter_no_change": AUTO | count(1) | NONE,
    "time_limit": at_least(0) | NONE,
    "callbacks": Rule(is_iterable, "a list of callables") | NONE,
    "verbose": AUTO | FLAG | count(0) | NONE,
    "warm_start": FLAG,
}
