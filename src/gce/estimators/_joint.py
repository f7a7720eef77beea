"""What estimators that are trained all at once share: rules of their parameters, and the deadline."""

from __future__ import annotations

import math
import time
from numbers import Real
from typing import Any

from gce._utils.params import MOST, NONE, POSITIVE, Rules, among, at_least, count
from gce.bases.neural.mixture import COEFFICIENTS
from gce.bases.neural.network import Activation, Architecture, Bounded, SingleNeuron, TwoLayer

JOINT_RULES: Rules = {
    "hidden": count(1, MOST),
    "activation": among("relu", "tanh"),
    "learning_rate": POSITIVE,
    "min_learning_rate": POSITIVE,
    "patience": count(0, MOST),
    "last_epochs": count(1, MOST),
    "max_epochs": count(1) | NONE,
    "batch_size": count(1) | NONE,
    "weight_decay": at_least(0),
    "n_iter_no_change": count(1) | NONE,
    "time_limit": at_least(0) | NONE,
}


NGCE_RULES: Rules = {
    **JOINT_RULES,
    "n_atoms": count(1),
    "basis": among("neural", "neuron"),
    "coefficients": among(*COEFFICIENTS),
    "output": among("hardtanh", "tanh"),
}


def atom_architecture(basis: str, hidden: int, activation: Activation, output: Bounded) -> Architecture:
    """The architecture of one atom of a non-greedy ensemble."""
    return SingleNeuron() if basis == "neuron" else TwoLayer(hidden, activation, output)


def deadline_after(seconds: Any) -> float:
    """When a time limit ends, on the monotonic clock; never where there is none."""
    return time.monotonic() + float(seconds) if isinstance(seconds, Real) else math.inf
