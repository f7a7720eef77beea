"""Greedy convex ensembles: convex combinations of basis models, learned by Frank-Wolfe in function space."""

from typing import TYPE_CHECKING

from gce._utils.lazy import lazy_names
from gce._utils.version import __version__ as __version__

if TYPE_CHECKING:
    from gce import bases, datasets, distributed, frank_wolfe, inspection, losses, theory, training
    from gce.estimators import (
        ConvexStackingClassifier,
        ConvexStackingRegressor,
        GCEClassifier,
        GCERegressor,
        GCESurvival,
        GreedySelectionClassifier,
        GreedySelectionRegressor,
        NGCEClassifier,
        NGCERegressor,
        NNClassifier,
        NNRegressor,
        load,
    )
    from gce.io import ModelFileError
    from gce.preprocessing.shards import Shards

__all__ = [
    "ConvexStackingClassifier",
    "ConvexStackingRegressor",
    "GCEClassifier",
    "GCERegressor",
    "GCESurvival",
    "GreedySelectionClassifier",
    "GreedySelectionRegressor",
    "ModelFileError",
    "NGCEClassifier",
    "NGCERegressor",
    "NNClassifier",
    "NNRegressor",
    "Shards",
    "bases",
    "datasets",
    "distributed",
    "frank_wolfe",
    "inspection",
    "load",
    "losses",
    "theory",
    "training",
]

_PACKAGES = ("bases", "datasets", "distributed", "frank_wolfe", "inspection", "losses", "theory", "training")

# a script that only predicts loads no report, and one that only asks for the version next to nothing
__getattr__ = lazy_names(
    __name__,
    dict.fromkeys(__all__, "estimators")
    | {"ModelFileError": "io", "Shards": "preprocessing.shards"}
    | {name: name for name in _PACKAGES},
)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
