"""Networks that look at the inputs of one set each, where only columns that share a set may interact.

A squashed sum of functions of several sets is no sum of functions of one set each. A network of a single set is, with
all its layers, and so is every convex combination of such networks. The best model of a union of classes is the best of
the classes' best models: some sets are drawn for an atom, a network is trained on the inputs of each, and the best of
them is taken.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gce.bases.by_member import MemberInputs
from gce.bases.neural.monotone import InputLimits
from gce.bases.neural.network import Networks
from gce.bases.neural.stored_inputs import DividedInputs
from gce.preprocessing.mixed import Widths
from gce.preprocessing.sparse import SparseRows

#: Sets that are tried for an atom, see benchmarks/results/constraints.md.
TRIED_SETS = 8

#: From inputs and their constraints to networks and the value of each, ``(nets,)``.
Train = Callable[[Any, InputLimits], tuple[Networks, Tensor]]


def best_in_sets(train: Train, X: Any, limits: InputLimits, rng: torch.Generator) -> Networks:
    """Networks of one set each, the best of those that are drawn.

    Parameters
    ----------
    train : callable
    X : Tensor, SparseRows, MemberInputs or DividedInputs of width d
    limits : InputLimits
        Of all inputs, with sets.
    rng : torch.Generator
        Draws the sets, the same for all members.

    Returns
    -------
    Networks
        For all ``d`` inputs; the weights of those outside of a network's set are 0.
    """
    groups = limits.groups
    assert groups is not None
    widths = Widths(inputs=len(groups), columns=len(groups))
    wide, values = [], []
    for number in drawn_sets(groups, rng):
        inputs = inputs_of_set(groups, number)
        found, value = train(take_inputs(X, inputs), replace(limits.of(inputs), groups=None))
        wide.append(found.among(inputs, inputs, widths))
        values.append(value)
    best = torch.stack(values).nan_to_num(torch.inf).argmin(0)
    nets = torch.arange(len(best))
    apart = zip(*(atoms.parameters_ for atoms in wide), strict=True)
    first = wide[0]
    chosen = [torch.stack(tries)[best.to(tries[0].device), nets.to(tries[0].device)] for tries in apart]
    return Networks(first.architecture, chosen, first.bound, first.models)


def drawn_sets(groups: NDArray[np.uint64], rng: torch.Generator) -> list[int]:
    """The numbers of some sets that have inputs, all of them where they are few.

    Parameters
    ----------
    groups : array of shape (d, W)
    rng : torch.Generator
    """
    union = np.bitwise_or.reduce(groups, axis=0).astype("<u8").view(np.uint8)
    sets = np.flatnonzero(np.unpackbits(union, bitorder="little"))
    order = torch.randperm(len(sets), generator=rng)[:TRIED_SETS]
    return sets[np.sort(order.numpy())].tolist()


def inputs_of_set(groups: NDArray[np.uint64], number: int) -> NDArray[np.intp]:
    """The inputs of a set.

    Parameters
    ----------
    groups : array of shape (d, W)
    number : int
    """
    return np.flatnonzero(groups[:, number // 64] >> np.uint64(number % 64) & np.uint64(1))


def _taking(
    draw: Callable[[int], tuple[Tensor, Tensor]] | None, inputs: NDArray[np.intp]
) -> Callable[[int], tuple[Tensor, Tensor]] | None:
    """What draws rows for an epoch, with some of their inputs."""
    if draw is None:
        return None

    def again(epoch: int) -> tuple[Tensor, Tensor]:
        own, gradient = draw(epoch)
        return take_inputs(own, inputs), gradient

    return again


def take_inputs(X: Any, inputs: NDArray[np.intp]) -> Any:
    """Rows with some of their inputs.

    Parameters
    ----------
    X : Tensor, SparseRows, MemberInputs or DividedInputs
    inputs : array of int
    """
    if isinstance(X, MemberInputs):
        return MemberInputs(tuple(take_inputs(part, inputs) for part in X.parts))
    if isinstance(X, DividedInputs):
        return replace(X, own=take_inputs(X.own, inputs), again=_taking(X.again, inputs))
    if isinstance(X, SparseRows):
        return replace(X, matrix=X.matrix[:, inputs], centre=X.centre[torch.from_numpy(inputs)])
    return X[:, torch.from_numpy(inputs).to(X.device)].contiguous()
