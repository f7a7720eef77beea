"""What is drawn: on which rows, around which centre, of which modules."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from gce import datasets
from gce.bases import Basis, Neural, Neuron
from gce.datasets.files import data_home

Array = NDArray[np.float64]
Centre = Literal["zero", "mean"]

#: Development sets of the data folder that may stand in for msd: numeric columns, many rows.
STAND_INS = ("protein",)
CENTRES: tuple[Centre, ...] = ("zero", "mean")
#: Training rows that are taken of a large set.
ROWS = 10_000


@dataclass(frozen=True, eq=False)
class Sample:
    """Scaled rows to train and to test on.

    Parameters
    ----------
    X, X_test : array of shape (rows, d)
    y, y_test : array of shape (rows,)
    available : int
        Training rows there would have been.
    """

    X: Array
    y: Array
    X_test: Array
    y_test: Array
    available: int


@dataclass(frozen=True, eq=False)
class Panel:
    """One panel of the figure.

    Parameters
    ----------
    data : str
        The data set's name.
    load : callable
        Gives the :class:`Sample`.
    there : callable
        Whether the data are at hand.
    basis : Basis
        The class of modules, with their training budget: the same for all algorithms.
    modules : str
        The class in words.
    centre : {"zero", "mean"}
        What the hull lies around: 0 as in the paper, or the mean of the training targets.
    limit : int
        Training rows at most.
    main : bool
        Whether it belongs to the main picture.
    """

    data: str
    load: Callable[[], Sample]
    there: Callable[[], bool]
    basis: Basis
    modules: str
    centre: Centre
    limit: int
    main: bool = False

    @property
    def title(self) -> str:
        """The panel's heading."""
        around = "f0 = 0" if self.centre == "zero" else "f0 = mean target"
        return f"{self.data}, {self.modules}, {around}"

    @property
    def key(self) -> dict[str, object]:
        """What the curves depend on, apart from algorithm and seeds."""
        kind = type(self.basis).__name__
        facts = {"data": self.data, "centre": self.centre, "limit": self.limit}
        return {**facts, "basis": {"kind": kind, **self.basis.get_params()}}


def small_neuron() -> Neuron:
    """A neuron on some hundred rows: all rows a step."""
    return Neuron(learning_rate=0.2, patience=20, max_epochs=300)


def large_neuron() -> Neuron:
    """A neuron on many rows: about as many steps, on batches."""
    return Neuron(learning_rate=0.1, patience=5, max_epochs=60, batch_size=2048)


def patient_small_neuron() -> Neuron:
    """A neuron with three times the steps: whether the others' budget decides the order."""
    return Neuron(learning_rate=0.1, patience=40, max_epochs=1000)


def patient_large_neuron() -> Neuron:
    """The same on many rows."""
    return Neuron(learning_rate=0.1, patience=15, max_epochs=180, batch_size=2048)


def small_net() -> Neural:
    """Ten hidden units on some hundred rows."""
    return Neural(hidden=10, learning_rate=0.03, max_epochs=200)


def large_net() -> Neural:
    """Ten hidden units on many rows, each drawn anew: what a module is must not depend on the one before it."""
    return Neural(hidden=10, learning_rate=0.03, patience=5, max_epochs=60, batch_size=2048, gain=1.0, inherit=0.0)


def panels(rows: int = ROWS) -> list[Panel]:
    """All panels, whether their data are at hand or not; msd's stand-ins are there only where msd is not."""
    large = ["msd"] if datasets.present("msd") else [*STAND_INS, "ca_housing"]
    neurons, longer, nets = "single neurons", "single neurons trained longer", "nets of 10 units"
    plan = [
        *((name, neurons, large_neuron(), centre, True) for name in large for centre in CENTRES),
        *((name, neurons, small_neuron(), centre, False) for name in ("boston", "diabetes") for centre in CENTRES),
        (large[0], longer, patient_large_neuron(), "zero", False),
        ("boston", longer, patient_small_neuron(), "mean", False),
        ("ca_housing", nets, large_net(), "zero", False),
        *((name, nets, small_net(), "zero", False) for name in ("boston", "diabetes")),
    ]
    return [_panel(*one, rows) for one in plan]


def _panel(name: str, modules: str, basis: Basis, centre: Centre, main: bool, rows: int) -> Panel:
    stranger = name in STAND_INS
    load = partial(plain if stranger else known, name, rows)
    there = partial(_has_file if stranger else datasets.present, name)
    return Panel(name, load, there, basis, modules, centre, rows, main)


def known(name: str, rows: int) -> Sample:
    """One of the paper's sets on the paper's split, training and validation rows together: nothing is chosen here."""
    data = datasets.load(name)
    X, y = np.concatenate([data.X_train, data.X_val]), np.concatenate([data.y_train, data.y_val])
    return drawn(rows, *(part.astype(np.float64) for part in (X, y, data.X_test, data.y_test)))


def plain(name: str, rows: int) -> Sample:
    """A development set of the data folder, cut 80/20 at random, columns standardised on its training rows."""
    with np.load(data_home() / f"{name}.npz", allow_pickle=False) as file:
        X, y = file["X"].astype(np.float64), file["y"].astype(np.float64)
    order = np.random.default_rng(0).permutation(len(y))
    train, test = np.split(order, [int(0.8 * len(y))])
    mean, deviation = X[train].mean(0), X[train].std(0, ddof=1)
    X = (X - mean) / np.where(deviation > 0, deviation, 1.0)
    return drawn(rows, X[train], y[train], X[test], y[test])


def drawn(rows: int, X: Array, y: Array, X_test: Array, y_test: Array) -> Sample:
    """So many training rows drawn at random, all test rows."""
    order = np.random.default_rng(0).permutation(len(y))[:rows]
    return Sample(X[order], y[order], X_test, y_test, available=len(y))


def _has_file(name: str) -> bool:
    return (data_home() / f"{name}.npz").exists()


def absent(plan: Sequence[Panel]) -> list[str]:
    """Names of data that are not at hand."""
    return sorted({panel.data for panel in plan if not panel.there()})
