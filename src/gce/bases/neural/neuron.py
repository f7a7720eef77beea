"""Single neurons: the atoms of the paper's Figure 1."""

from __future__ import annotations

from gce.bases.neural.basis import TrainedBasis
from gce.bases.neural.network import SingleNeuron


class Neuron(TrainedBasis):
    """Single neurons ``bound * tanh(u'x)``, one per output: the atoms of the paper's Figure 1.

    Parameters
    ----------
    learning_rate, min_learning_rate, patience, last_epochs, max_epochs, batch_size, restarts
        As in :class:`Neural`, with a larger learning rate: a single neuron hardly overfits.

    Examples
    --------
    >>> import numpy as np
    >>> from gce import GCERegressor
    >>> from gce.bases import Neuron
    >>> X = np.linspace(-1, 1, 100).reshape(-1, 1)
    >>> model = GCERegressor(basis=Neuron(), cv=2, max_iter=5, random_state=0).fit(X, X[:, 0])
    >>> bool(model.score(X, X[:, 0]) > 0.8)
    True
    """

    def __init__(
        self,
        learning_rate: float = 5e-2,
        min_learning_rate: float = 1e-5,
        patience: int = 10,
        last_epochs: int = 10,
        max_epochs: int = 200,
        batch_size: int | None = None,
        restarts: int = 1,
    ) -> None:
        self.learning_rate = learning_rate
        self.min_learning_rate = min_learning_rate
        self.patience = patience
        self.last_epochs = last_epochs
        self.max_epochs = max_epochs
        self.batch_size = batch_size
        self.restarts = restarts

    def architecture(self, rows: int) -> SingleNeuron:
        return SingleNeuron()

    def epochs(self, rows: int) -> int:
        return self.max_epochs
