"""Warnings that point at the user's code, not at a line of this package."""

from __future__ import annotations

import sys
import warnings


def warn_user(message: str, category: type[Warning]) -> None:
    """Issue a warning at the innermost stack frame that is neither in this package nor in scikit-learn.

    Parameters
    ----------
    message : str
        The text of the warning.
    category : type of Warning
        For instance ``sklearn.exceptions.ConvergenceWarning``.
    """
    frame, level = sys._getframe(0), 1
    while frame.f_back is not None and frame.f_globals.get("__name__", "").split(".")[0] in ("gce", "sklearn"):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)
