"""Training risk, validation loss and duality gap by round."""

from __future__ import annotations

from typing import Any, Self

from gce.inspection.plotting.readings import FamilyCurves, TrainingCurves, family_curves, training_curves
from gce.inspection.plotting.style import (
    BLUE,
    GREEN,
    GREY,
    VERMILION,
    axes_for,
    new_axes,
    panels,
    scale_losses,
    whole_numbers,
)


class TrainingDisplay:
    """Training risk, validation loss and duality gap after each round or epoch, averaged over members.

    Each family of a fit has axes of its own. Use :meth:`from_estimator` to create one. Parameters are stored as
    attributes.

    Parameters
    ----------
    curves : TrainingCurves
        The numbers, see :class:`gce.inspection.plotting.readings.TrainingCurves`.
    estimator_name : str, optional
        For the title.
    families : tuple of FamilyCurves, optional
        The numbers of each family. Default: all of ``curves`` on one axes.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Of several families the axes whose area is divided among ``axes_``.
    axes_ : list of matplotlib Axes
        One per family.
    figure_ : matplotlib Figure
    risk_ : matplotlib Line2D, or list of these for several families
    validation_, gap_ : matplotlib Line2D or None, or list of these for several families
        None if no rows were held out, or if there is no duality gap. Over a pool, ``gap_`` is the proved bound on the
        suboptimality.
    ax_validation_ : matplotlib Axes, or list of these for several families
        ``axes_``, or second axes if early stopping used a scorer instead of the loss.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> import numpy as np
    >>> from gce import GCERegressor
    >>> from gce.inspection import TrainingDisplay
    >>> X = np.linspace(-1, 1, 40)[:, None]
    >>> model = GCERegressor(basis="tree", max_iter=2, cv=2, random_state=0).fit(X, X[:, 0] ** 2)
    >>> display = TrainingDisplay.from_estimator(model)
    >>> display.ax_.get_xlabel()
    'round'
    """

    def __init__(
        self, curves: TrainingCurves, *, estimator_name: str | None = None, families: tuple[FamilyCurves, ...] = ()
    ) -> None:
        self.curves = curves
        self.estimator_name = estimator_name
        self.families = families

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Any = None, name: str | None = None, **kwargs: Any) -> Self:
        """Draw the training of a fitted model.

        Parameters
        ----------
        estimator : estimator of gce
            Fitted.
        ax : matplotlib Axes, optional
            Default: a new figure.
        name : str, optional
            Default: the class of the estimator.
        **kwargs
            For all lines, as in ``Axes.plot``.

        Returns
        -------
        TrainingDisplay
        """
        curves, families = training_curves(estimator), family_curves(estimator)
        return cls(curves, estimator_name=type(estimator).__name__, families=families).plot(ax=ax, name=name, **kwargs)

    def plot(self, ax: Any = None, *, name: str | None = None, **kwargs: Any) -> Self:
        """Draw the display.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Default: a new figure.
        name : str, optional
            Default: the class of the estimator.
        **kwargs
            For all lines, as in ``Axes.plot``.

        Returns
        -------
        TrainingDisplay
        """
        each = [family.curves for family in self.families] or [self.curves]
        self.ax_ = axes_for(new_axes(len(each)) if ax is None else ax)
        self.figure_ = self.ax_.figure
        self.axes_ = panels(self.ax_, len(each), 0.0 if self.curves.watches_loss else 0.1)
        drawn = [self._draw(panel, curves, kwargs) for panel, curves in zip(self.axes_, each, strict=True)]
        lines = [*zip(*drawn, strict=True)]
        alone = len(each) == 1
        self.risk_, self.validation_, self.gap_, self.ax_validation_ = (
            found[0] if alone else list(found) for found in lines[:4]
        )
        self.ax_.set_title((self.estimator_name if name is None else name) or "", pad=None if alone else 24)
        if alone:
            self.ax_.legend(handles=[line for line in drawn[0] if _has_label(line)], frameon=False)
        else:
            self._finish(drawn)
        return self

    def _draw(self, ax: Any, drawn: TrainingCurves, given: dict[str, Any]) -> tuple[Any, ...]:
        """Lines of risk, validation and gap, the axes of validation, and marks of the rounds that are kept."""
        shared = drawn.validation is None or drawn.watches_loss
        other = ax if shared else ax.twinx()
        # a family of one round, such as a forest, has no line
        given = {"marker": "o", **given} if len(drawn.steps) == 1 else given
        (risk,) = ax.plot(drawn.steps, drawn.risk, **_style("training risk", BLUE, "-", given))
        validation = gap = None
        if not shared:
            # the twin of a panel would hide it
            other.patch.set_visible(False)
            other.spines["top"].set_visible(False)
            other.set_ylabel("validation (negative score)", color=VERMILION)
        if drawn.validation is not None:
            (validation,) = other.plot(drawn.steps, drawn.validation, **_style("validation", VERMILION, "-", given))
        if drawn.gap is not None:
            label = "suboptimality (proved)" if drawn.certified else "gap (lower estimate)"
            (gap,) = ax.plot(drawn.steps, drawn.gap, **_style(label, GREEN, "--", given))
        scale_losses(ax, drawn.risk, drawn.validation if shared else None, drawn.gap)
        place = {"transform": ax.get_xaxis_transform(), "clip_on": False, "zorder": 5}
        (kept,) = ax.plot(
            drawn.best_steps,
            [0.0] * len(drawn.best_steps),
            "^",
            color=GREY,
            ms=6,
            label=f"best {drawn.unit} of a member",
            **place,
        )
        ax.set(xlabel=drawn.unit, ylabel="loss" if shared else "training risk and gap")
        whole_numbers(ax.xaxis)
        return risk, validation, gap, other, kept

    def _finish(self, drawn: list[tuple[Any, ...]]) -> None:
        """The names of families, the loss of all together, and one legend."""
        validation = self.curves.validation if self.curves.watches_loss else None
        whole = None if validation is None else float(validation[-1])
        handles = {line.get_label(): line for lines in drawn for line in lines if _has_label(line)}
        for family, panel, lines in zip(self.families, self.axes_, drawn, strict=True):
            panel.set_title(f"{family.name}: weight {family.weight:.3g}", fontsize=10)
            if family.interpolates:
                lines[0].set_visible(False)
                words = f"training risk {family.curves.risk[-1]:.1g}, not drawn"
                panel.text(0.02, 0.5, words, transform=panel.transAxes, color=GREY, fontsize=9)
            if whole is not None:
                label = "validation of all together"
                handles[label] = lines[3].axhline(whole, color=VERMILION, lw=1, ls=":", label=label)
        place = {"loc": "upper center", "bbox_to_anchor": (0.5, -0.09), "ncols": len(handles)}
        self.ax_.legend(handles=list(handles.values()), frameon=False, fontsize=9, **place)


def _has_label(line: Any) -> bool:
    """Whether this is a line for the legend."""
    return hasattr(line, "get_xdata")


def _style(label: str, colour: str, dashes: str, given: dict[str, Any]) -> dict[str, Any]:
    return {"label": label, "color": colour, "linestyle": dashes, "linewidth": 1.8, **given}
