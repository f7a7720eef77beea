"""Models of a known size, trained all at once, for numbers and for classes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from numpy.typing import ArrayLike
from torch import Tensor

from gce.base import Array
from gce.basis.network import Activation, Bounded
from gce.estimators.documentation import NETWORK, NONGREEDY, TRAINED, documented
from gce.jointly import NeuralNetwork, NonGreedyConvexEnsemble
from gce.losses import Loss
from gce.tasks import Classification, Regression


@documented(NONGREEDY + TRAINED, greedy="GCERegressor", rate="1e-2", decay="0")
class NGCERegressor(Regression, NonGreedyConvexEnsemble):
    """Regression by a convex ensemble of a given size, trained all at once, for one target or several."""

    def __init__(
        self,
        *,
        n_atoms: int = 100,
        basis: str = "neural",
        hidden: int = 10,
        coefficients: str = "absolute",
        loss: str | Loss = "auto",
        bound: float | ArrayLike | None = None,
        offset: float | str = "auto",
        activation: Activation = "relu",
        output: Bounded = "hardtanh",
        learning_rate: float = 1e-2,
        min_learning_rate: float = 1e-5,
        patience: int = 10,
        last_epochs: int = 10,
        max_epochs: int | None = None,
        batch_size: int | None = None,
        weight_decay: float = 0.0,
        categorical_features: Any = "from_dtype",
        scale: str = "auto",
        clip: float | None = 4.0,
        monotonic_cst: Mapping[str, int] | ArrayLike | None = None,
        cv: Any = None,
        validation_fraction: float | None = 0.2,
        n_iter_no_change: int | None = 50,
        scoring: Any = None,
        time_limit: float | None = None,
        device: str = "cpu",
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.n_atoms = n_atoms
        self.basis = basis
        self.hidden = hidden
        self.coefficients = coefficients
        self.loss = loss
        self.bound = bound
        self.offset = offset
        self.activation, self.output = activation, output
        self.learning_rate, self.min_learning_rate = learning_rate, min_learning_rate
        self.patience, self.last_epochs = patience, last_epochs
        self.max_epochs, self.batch_size = max_epochs, batch_size
        self.weight_decay = weight_decay
        self.categorical_features = categorical_features
        self.scale = scale
        self.clip = clip
        self.monotonic_cst = monotonic_cst
        self.cv, self.validation_fraction = cv, validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.scoring = scoring
        self.time_limit = time_limit
        self.device, self.n_jobs = device, n_jobs
        self.random_state = random_state


@documented(NONGREEDY + TRAINED, greedy="GCEClassifier", rate="1e-2", decay="0")
class NGCEClassifier(Classification, NonGreedyConvexEnsemble):
    """Classification by a convex ensemble of a given size, trained all at once, for two classes or more."""

    def __init__(
        self,
        *,
        n_atoms: int = 100,
        basis: str = "neural",
        hidden: int = 10,
        coefficients: str = "absolute",
        loss: str | Loss = "auto",
        bound: float | ArrayLike | None = None,
        offset: float | str = "auto",
        activation: Activation = "relu",
        output: Bounded = "hardtanh",
        learning_rate: float = 1e-2,
        min_learning_rate: float = 1e-5,
        patience: int = 10,
        last_epochs: int = 10,
        max_epochs: int | None = None,
        batch_size: int | None = None,
        weight_decay: float = 0.0,
        categorical_features: Any = "from_dtype",
        scale: str = "auto",
        clip: float | None = 4.0,
        monotonic_cst: Mapping[str, int] | ArrayLike | None = None,
        cv: Any = None,
        validation_fraction: float | None = 0.2,
        n_iter_no_change: int | None = 50,
        scoring: Any = None,
        time_limit: float | None = None,
        device: str = "cpu",
        n_jobs: int | None = None,
        random_state: Any = None,
        class_weight: Mapping[Any, float] | str | None = None,
        temperature: float | str = "auto",
    ) -> None:
        self.n_atoms = n_atoms
        self.basis = basis
        self.hidden = hidden
        self.coefficients = coefficients
        self.loss = loss
        self.bound = bound
        self.offset = offset
        self.activation, self.output = activation, output
        self.learning_rate, self.min_learning_rate = learning_rate, min_learning_rate
        self.patience, self.last_epochs = patience, last_epochs
        self.max_epochs, self.batch_size = max_epochs, batch_size
        self.weight_decay = weight_decay
        self.categorical_features = categorical_features
        self.scale = scale
        self.clip = clip
        self.monotonic_cst = monotonic_cst
        self.cv, self.validation_fraction = cv, validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.scoring = scoring
        self.time_limit = time_limit
        self.device, self.n_jobs = device, n_jobs
        self.random_state = random_state
        self.class_weight, self.temperature = class_weight, temperature


@documented(NETWORK + TRAINED, greedy="GCERegressor", rate="1e-3", decay="1e-4")
class NNRegressor(Regression, NeuralNetwork):
    """Regression by a plain two-layer network with an l2 penalty, for one target or several."""

    def __init__(
        self,
        *,
        hidden: int = 1000,
        loss: str | Loss = "auto",
        offset: float | str = "auto",
        activation: Activation = "relu",
        learning_rate: float = 1e-3,
        min_learning_rate: float = 1e-5,
        patience: int = 10,
        last_epochs: int = 10,
        max_epochs: int | None = None,
        batch_size: int | None = None,
        weight_decay: float = 1e-4,
        categorical_features: Any = "from_dtype",
        scale: str = "auto",
        clip: float | None = 4.0,
        monotonic_cst: Mapping[str, int] | ArrayLike | None = None,
        cv: Any = None,
        validation_fraction: float | None = 0.2,
        n_iter_no_change: int | None = 50,
        scoring: Any = None,
        time_limit: float | None = None,
        device: str = "cpu",
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.hidden = hidden
        self.loss = loss
        self.offset = offset
        self.activation = activation
        self.learning_rate, self.min_learning_rate = learning_rate, min_learning_rate
        self.patience, self.last_epochs = patience, last_epochs
        self.max_epochs, self.batch_size = max_epochs, batch_size
        self.weight_decay = weight_decay
        self.categorical_features = categorical_features
        self.scale = scale
        self.clip = clip
        self.monotonic_cst = monotonic_cst
        self.cv, self.validation_fraction = cv, validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.scoring = scoring
        self.time_limit = time_limit
        self.device, self.n_jobs = device, n_jobs
        self.random_state = random_state

    def _reach(self, y: Tensor, weight: Array, centre: Tensor) -> Tensor:
        share = torch.from_numpy(weight / weight.sum())
        spread = (share[:, None] * (y - centre).square()).sum(0).sqrt()
        # a constant target is the offset to rounding, whatever the network says
        return torch.where(spread > 0, spread, 1e-12 * (1 + centre.abs()))


@documented(NETWORK + TRAINED, greedy="GCEClassifier", rate="1e-3", decay="1e-4")
class NNClassifier(Classification, NeuralNetwork):
    """Classification by a plain two-layer network with an l2 penalty, for two classes or more."""

    def __init__(
        self,
        *,
        hidden: int = 1000,
        loss: str | Loss = "auto",
        offset: float | str = "auto",
        activation: Activation = "relu",
        learning_rate: float = 1e-3,
        min_learning_rate: float = 1e-5,
        patience: int = 10,
        last_epochs: int = 10,
        max_epochs: int | None = None,
        batch_size: int | None = None,
        weight_decay: float = 1e-4,
        categorical_features: Any = "from_dtype",
        scale: str = "auto",
        clip: float | None = 4.0,
        monotonic_cst: Mapping[str, int] | ArrayLike | None = None,
        cv: Any = None,
        validation_fraction: float | None = 0.2,
        n_iter_no_change: int | None = 50,
        scoring: Any = None,
        time_limit: float | None = None,
        device: str = "cpu",
        n_jobs: int | None = None,
        random_state: Any = None,
        class_weight: Mapping[Any, float] | str | None = None,
        temperature: float | str = "auto",
    ) -> None:
        self.hidden = hidden
        self.loss = loss
        self.offset = offset
        self.activation = activation
        self.learning_rate, self.min_learning_rate = learning_rate, min_learning_rate
        self.patience, self.last_epochs = patience, last_epochs
        self.max_epochs, self.batch_size = max_epochs, batch_size
        self.weight_decay = weight_decay
        self.categorical_features = categorical_features
        self.scale = scale
        self.clip = clip
        self.monotonic_cst = monotonic_cst
        self.cv, self.validation_fraction = cv, validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.scoring = scoring
        self.time_limit = time_limit
        self.device, self.n_jobs = device, n_jobs
        self.random_state = random_state
        self.class_weight, self.temperature = class_weight, temperature

    def _reach(self, y: Tensor, weight: Array, centre: Tensor) -> Tensor:
        return torch.ones_like(centre)
