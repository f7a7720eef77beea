"""What a fitted model can be written as: a file to load again, a graph for other programs, a page to look at."""

from __future__ import annotations

from pathlib import Path
from typing import IO, Any

from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from gce import export
from gce.storage import models


class Writing:
    """Methods of every model."""

    def save(self, path: str | Path) -> None:
        """Write the fitted model to one file, which :func:`gce.load` reads; never pickle.

        Parameters
        ----------
        path : str or Path
            Usually ends in ``.safetensors``. What stood there before stays until the new file is whole.
        """
        models.save(self, path)

    def to_onnx(self, path: str | Path | IO[bytes]) -> None:
        """Write the model as one ONNX graph: encoder, ensemble and inverse link.

        Inputs and outputs are described in docs/onnx.md. Needs ``pip install "greedy-convex-ensemble[onnx]"``.

        Parameters
        ----------
        path : path or file
            A file is written whole or not at all; or a binary file that is open for writing.
        """
        check_is_fitted(self)
        export.to_onnx(self, path)

    def report(self, path: str | Path, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> None:
        """Write one HTML page about this model and how it does on given rows, to be opened in any browser.

        Parameters
        ----------
        path : str or Path
            The file; its folder must exist.
        X : array-like or data frame of shape (n, d)
            Rows the model has not seen.
        y : array-like of shape (n,) or (n, k)
        sample_weight : array-like of shape (n,), optional
            A row of weight 0 is a row that is not there.
        """
        # half a second of imports that nothing else needs
        from gce.report import write

        write(self, path, X, y, sample_weight)
