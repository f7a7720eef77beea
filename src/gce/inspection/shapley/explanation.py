"""What ``shap_values`` returns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class ShapExplanation:
    """Shapley values of rows, in the layout of ``shap.Explanation``.

    Parameters
    ----------
    values : array of shape (n, d), or (n, d, k) for several outputs
        What each column adds to the raw score of each row; of interactions ``(n, d, d)`` or ``(n, d, d, k)``.
    base_values : array of shape (n,) or (n, k)
        The raw score that nothing is known of: ``base_values + values.sum(1)`` are the raw scores of the rows.
    data : array of shape (n, d)
        The rows.
    feature_names : list of str
        Names of the columns.
    output_names : list of str, optional
        Names of the outputs, where there are several.
    standard_errors : array like ``values``, optional
        Standard errors of the values, where networks or a classifier's forest have a part in them: 0 where they are
        exact. None: all values are exact.

    Examples
    --------
    >>> import numpy as np
    >>> from gce import GCERegressor
    >>> X = np.random.default_rng(0).normal(size=(200, 3))
    >>> model = GCERegressor(basis="symmetric", max_iter=20, random_state=0).fit(X, X[:, 0] + X[:, 1] * X[:, 2])
    >>> found = model.shap_values(X)
    >>> found.shape
    (200, 3)
    >>> bool(np.allclose(found.base_values + found.values.sum(1), model.predict(X), atol=1e-9))
    True
    """

    values: Array
    base_values: Array
    data: NDArray[Any]
    feature_names: Sequence[str]
    output_names: Sequence[str] | None = None
    standard_errors: Array | None = None

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the values."""
        return self.values.shape

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, rows: Any) -> ShapExplanation:
        """Some of the rows; with ``[..., output]`` one of several outputs."""
        if isinstance(rows, tuple) and rows[0] is Ellipsis and len(rows) == 2 and self.output_names is not None:
            return self._of_output(rows[1])
        if isinstance(rows, int | np.integer):
            rows = slice(rows, None if rows == -1 else rows + 1)
        errors = None if self.standard_errors is None else self.standard_errors[rows]
        return replace(
            self,
            values=self.values[rows],
            base_values=self.base_values[rows],
            data=self.data[rows],
            standard_errors=errors,
        )

    def _of_output(self, output: int) -> ShapExplanation:
        errors = None if self.standard_errors is None else self.standard_errors[..., output]
        return replace(
            self,
            values=self.values[..., output],
            base_values=self.base_values[..., output],
            output_names=None,
            standard_errors=errors,
        )

    def to_shap(self) -> Any:
        """The same as a ``shap.Explanation``, which ``shap.plots`` take.

        Returns
        -------
        shap.Explanation

        Raises
        ------
        ModuleNotFoundError
            shap is not installed.
        """
        try:
            shap = import_module("shap")
        except ModuleNotFoundError as error:
            raise ModuleNotFoundError("to_shap() needs shap: pip install shap", name="shap") from error
        return shap.Explanation(
            self.values,
            base_values=self.base_values,
            data=self.data,
            feature_names=list(self.feature_names),
            output_names=None if self.output_names is None else list(self.output_names),
            error_std=self.standard_errors,
        )
