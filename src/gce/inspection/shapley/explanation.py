"""What ``shap_values`` returns."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gce._utils.params import short_list

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class ShapExplanation:
    """Shapley values of rows, in the layout of ``shap.Explanation``.

    Where shap is installed, its plots take this value as it is: ``shap.plots.beeswarm(model.shap_values(X))``.

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

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        """The class of shap where shap is loaded: its plots refuse all others."""
        return getattr(sys.modules.get("shap"), "Explanation", type(self))

    def __getattr__(self, name: str) -> Any:
        """What shap's plots ask for beside the fields, such as ``abs``."""
        if name.startswith("__") or name in self.__dataclass_fields__ or "shap" not in sys.modules:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return getattr(self.to_shap(), name)

    def __reduce__(self) -> tuple[Any, ...]:
        # pickle looks at the class that is shown
        return type(self), tuple(getattr(self, name) for name in self.__dataclass_fields__)

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, rows: Any) -> Any:
        """Some of the rows, or one; with ``[..., output]`` one of several outputs, by index or name.

        Other indices, such as ``[:, "column"]``, are those of ``shap.Explanation``, which is what they return.
        """
        if isinstance(rows, tuple) and rows[0] is Ellipsis and len(rows) == 2 and self.output_names is not None:
            return self._cut((..., self._output(rows[1], self.output_names)), self.data, None)
        if isinstance(rows, int | np.integer | slice | list | np.ndarray):
            return self._cut(rows, self.data[rows], self.output_names)
        return self.to_shap()[rows]

    def _output(self, output: Any, names: Sequence[str]) -> Any:
        """The index of one of the outputs, which may be given by its name."""
        if not isinstance(output, str):
            return output
        if output not in names:
            raise IndexError(f"there is no output {output!r}: the outputs are {short_list(names)}")
        return list(names).index(output)

    def _cut(self, index: Any, data: NDArray[Any], output_names: Sequence[str] | None) -> ShapExplanation:
        errors = None if self.standard_errors is None else self.standard_errors[index]
        values, base_values = self.values[index], self.base_values[index]
        return type(self)(values, base_values, data, self.feature_names, output_names, errors)

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
