"""What the two greedy estimators share: rules of their parameters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gce._utils.params import AUTO, FLAG, NONE, Rule, Rules, among, at_least, count, instance, is_iterable
from gce.bases import Basis
from gce.frank_wolfe.algorithm import Algorithm
from gce.losses.line_search import LineSearch
from gce.preprocessing.interactions import NO_INTERACTIONS, PAIRWISE

_SETS = Rule(
    lambda value: isinstance(value, Sequence) and not isinstance(value, str | bytes),
    "a list of sets of columns, such as [[0, 1], [1, 2]]",
)

GREEDY_RULES: Rules = {
    "algorithm": instance("a name or an Algorithm object", str, Algorithm),
    "basis": instance("a name, a Basis object or several of these", str, Basis, Sequence, Mapping),
    "line_search": instance("a name or a LineSearch object", str, LineSearch),
    "interaction_cst": NONE | among(PAIRWISE, NO_INTERACTIONS) | _SETS,
    "max_atoms": AUTO | count(1),
    "max_iter": count(1),
    "tol": at_least(0),
    "n_iter_no_change": AUTO | count(1) | NONE,
    "time_limit": at_least(0) | NONE,
    "callbacks": Rule(is_iterable, "a list of callables") | NONE,
    "verbose": AUTO | FLAG | count(0) | NONE,
    "warm_start": FLAG,
}
