"""The methods that the paper's Table 1 compares."""

from paper.methods.base import Method
from paper.methods.forest import Forest
from paper.methods.greedy import DefaultGreedy, HoldOutGreedy, PaperGreedy
from paper.methods.nongreedy import Network, SharedEarlyStopping
from paper.methods.xgboost import XGBoost, XGBoostByLoss

#: By name, in the order of the table's columns.
METHODS: dict[str, Method] = {
    method.name: method
    for method in (
        PaperGreedy(),
        DefaultGreedy(),
        HoldOutGreedy(),
        XGBoost(),
        XGBoostByLoss(),
        Forest(),
        Network(),
        SharedEarlyStopping(),
    )
}

__all__ = ["METHODS", "Method"]
