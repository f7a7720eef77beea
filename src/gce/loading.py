"""From a file to a model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from gce import estimators
from gce.parts import Parts
from gce.settings import find_device
from gce.storage import container, models

#: The classes that a file may name.
ESTIMATORS = {
    kind.__name__: kind
    for kind in (
        estimators.GCEClassifier,
        estimators.GCERegressor,
        estimators.NGCEClassifier,
        estimators.NGCERegressor,
        estimators.NNClassifier,
        estimators.NNRegressor,
    )
}


def load(path: str | Path, device: str | torch.device = "cpu") -> Any:
    """Load a model that was saved by its ``save``.

    Predictions are those of the model that was saved, to the last bit on the same kind of processor. A greedy
    ensemble brings its stages along, and can be fitted on with ``warm_start=True``. Nothing in the file is executed.

    Parameters
    ----------
    path : str or Path
    device : str or torch.device, default="cpu"
        Where the model is to predict, wherever it was fitted; "auto" is a GPU where there is one.

    Returns
    -------
    GCEClassifier, GCERegressor, NGCEClassifier, NGCERegressor, NNClassifier or NNRegressor

    Raises
    ------
    gce.ModelFileError
        The file is damaged, altered, not a model file, or written by a later version of the format.
    """
    where = find_device(device)
    meta, tensors = container.read(path)
    try:
        model = models.restored(Parts(meta, tensors), ESTIMATORS, where)
    except Exception as error:
        # whatever goes wrong with contents that nobody vouches for is the file's fault
        container.refuse(path, f"holds no model that gce would have written ({container.first_line(error)})", error)
    return model.set_params(device=str(device))
