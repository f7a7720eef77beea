"""From a file to a model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from gce._utils.codecs import Parts
from gce._utils.devices import find_device
from gce.estimators.gce_classifier import GCEClassifier
from gce.estimators.gce_regressor import GCERegressor
from gce.estimators.gce_survival import GCESurvival
from gce.estimators.ngce import NGCEClassifier, NGCERegressor
from gce.estimators.nn import NNClassifier, NNRegressor
from gce.io import container
from gce.io.models import SavedKind, restored

#: The classes that a file may name.
ESTIMATORS = {
    "GCEClassifier": SavedKind(GCEClassifier, "round", editable=True),
    "GCERegressor": SavedKind(GCERegressor, "round", editable=True),
    "GCESurvival": SavedKind(GCESurvival, "round", editable=True),
    "NGCEClassifier": SavedKind(NGCEClassifier, "epoch", editable=True),
    "NGCERegressor": SavedKind(NGCERegressor, "epoch", editable=True),
    "NNClassifier": SavedKind(NNClassifier, "epoch", editable=False),
    "NNRegressor": SavedKind(NNRegressor, "epoch", editable=False),
}


def load(path: str | Path, device: str | torch.device = "cpu") -> Any:
    """Load a model that was saved by its ``save``.

    Predictions are those of the model that was saved, to the last bit on the same kind of processor. A greedy
    ensemble that was saved as ``resumable`` can be continued with ``warm_start=True``. Nothing in the file is executed.

    Parameters
    ----------
    path : str or Path
    device : str or torch.device, default="cpu"
        Where the model is to predict, wherever it was fitted; "auto" is a GPU where there is one.

    Returns
    -------
    GCEClassifier, GCERegressor, GCESurvival, NGCEClassifier, NGCERegressor, NNClassifier or NNRegressor

    Raises
    ------
    gce.ModelFileError
        The file is damaged, altered, not a model file, or written by a later version of the format.

    Examples
    --------
    >>> import numpy as np
    >>> import gce
    >>> X = np.random.default_rng(0).normal(size=(60, 2))
    >>> model = gce.GCERegressor(basis="tree", max_atoms=3, random_state=0).fit(X, X[:, 0])
    >>> model.save("model.safetensors")
    >>> bool((gce.load("model.safetensors").predict(X) == model.predict(X)).all())
    True
    """
    where = find_device(device)
    meta, tensors = container.read(path)
    try:
        model = restored(Parts(meta, tensors), ESTIMATORS, where)
    except Exception as error:
        # whatever goes wrong with contents that nobody vouches for is the file's fault
        container.raise_file_error(
            path, f"holds no model that gce would have written ({container.first_line(error)})", error
        )
    return model.set_params(device=str(device))
