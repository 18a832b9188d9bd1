"""Plots of fitted models, in the style of scikit-learn's Display objects."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from nonneg._arrays import to_numpy
from nonneg._optional import import_optional
from nonneg._typing import FloatArray
from nonneg.applications.consensus_plots import ConsensusDisplay, plot_consensus, plot_signatures
from nonneg.exceptions import InvalidParameterError, ShapeError
from nonneg.iteration import History
from nonneg.rank_selection.comparison import RankComparison
from nonneg.rank_selection.result import RankCurve, RankResult

__all__ = [
    "ComponentsDisplay",
    "ConsensusDisplay",
    "HistoryDisplay",
    "RankDisplay",
    "plot_components",
    "plot_consensus",
    "plot_history",
    "plot_rank",
    "plot_signatures",
]


@dataclass
class ComponentsDisplay:
    """Components as images, as curves or as bars of their largest features.

    It is recommended to use :func:`plot_components` to create one.

    Parameters
    ----------
    components : array of shape (n_components, n_features)
        The rows of H.
    image_shape : tuple of int, optional
        Shape of a component that is an image.
    names : sequence of str, optional
        Names of the features.
    n_top : int, default 10
        Number of features that a bar chart shows.

    Attributes
    ----------
    figure_ : matplotlib Figure
        The figure.
    axes_ : array of matplotlib Axes
        One for each component; a single one where components are curves.
    """

    components: FloatArray = field(repr=False)
    image_shape: tuple[int, int] | None = None
    names: Sequence[str] | None = field(default=None, repr=False)
    n_top: int = 10
    figure_: Any = field(default=None, repr=False)
    axes_: Any = field(default=None, repr=False)

    def plot(self, *, n_columns: int = 6) -> ComponentsDisplay:
        """Draw the components in a new figure.

        Parameters
        ----------
        n_columns : int, default 6
            Number of images or bar charts side by side.

        Returns
        -------
        ComponentsDisplay
            Itself, with `figure_` and `axes_`.
        """
        if self.image_shape is None and self.names is None:
            self.figure_, axes = _new_axes(None)
            for index, component in enumerate(self.components):
                axes.plot(component, label=str(index), linewidth=1.2)
            axes.set_xlabel("feature")
            axes.set_ylabel("component")
            if len(self.components) <= 12:
                axes.legend(title="component", fontsize="small")
            self.axes_ = np.array([axes], dtype=object)
            return self
        n_components = len(self.components)
        n_columns = max(1, min(n_columns if self.image_shape else max(1, n_columns // 2), n_components))
        n_rows = -(-n_components // n_columns)
        wide, high = (1.5, 1.65) if self.image_shape else (3.2, 0.6 + 0.2 * self.n_top)
        pyplot = import_optional("matplotlib.pyplot", extra="report", purpose="Plotting")
        self.figure_, grid = pyplot.subplots(
            n_rows, n_columns, figsize=(wide * n_columns, high * n_rows), squeeze=False, layout="constrained"
        )
        for axes in grid.flat[n_components:]:
            axes.remove()
        self.axes_ = grid.flat[:n_components]
        for index, (axes, component) in enumerate(zip(self.axes_, self.components, strict=True)):
            axes.set_title(f"component {index}", fontsize="small")
            if self.image_shape is not None:
                axes.imshow(component.reshape(self.image_shape), cmap="gray_r")
                axes.set_xticks([])
                axes.set_yticks([])
            else:
                self._bars(axes, component)
        return self

    def _bars(self, axes: Any, component: FloatArray) -> None:
        names = () if self.names is None else self.names
        best = np.argsort(-component, kind="stable")[: self.n_top]
        axes.barh(np.arange(len(best)), component[best])
        axes.set_yticks(np.arange(len(best)), [str(names[at]) for at in best], fontsize="small")
        axes.invert_yaxis()
        axes.tick_params(axis="x", labelsize="small")


@dataclass
class HistoryDisplay:
    """The loss over the iterations.

    It is recommended to use :func:`plot_history` to create one.

    Parameters
    ----------
    x, loss : array of shape (n_iterations,)
        Iterations or seconds, and the loss.
    label : str
        What x is.
    figure_, ax_ : matplotlib Figure and Axes
        Set by `plot`.
    """

    x: FloatArray = field(repr=False)
    loss: FloatArray = field(repr=False)
    label: str = "iteration"
    figure_: Any = field(default=None, repr=False)
    ax_: Any = field(default=None, repr=False)

    def plot(self, ax: Any = None, **line: Any) -> HistoryDisplay:
        """Draw the curve.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.
        **line : dict
            Passed on to matplotlib's `plot`.

        Returns
        -------
        HistoryDisplay
            Itself, with `figure_` and `ax_`.
        """
        self.figure_, self.ax_ = _new_axes(ax)
        self.ax_.plot(self.x, self.loss, **line)
        if len(self.loss) and self.loss.min() > 0 and self.loss.max() > 10 * self.loss.min():
            self.ax_.set_yscale("log")
        self.ax_.set_xlabel(self.label)
        self.ax_.set_ylabel("loss")
        return self


@dataclass
class RankDisplay:
    """The score of every candidate rank, with the chosen one marked.

    It is recommended to use :func:`plot_rank` to create one.

    Parameters
    ----------
    curves : sequence of RankCurve
        What was measured; one panel per curve.
    rank : int
        The chosen rank.
    figure_, axes_ : matplotlib Figure and array of Axes
        Set by `plot`.
    """

    curves: Sequence[RankCurve]
    rank: int
    figure_: Any = field(default=None, repr=False)
    axes_: Any = field(default=None, repr=False)

    def plot(self) -> RankDisplay:
        """Draw one panel for each curve.

        Returns
        -------
        RankDisplay
            Itself, with `figure_` and `axes_`.
        """
        pyplot = import_optional("matplotlib.pyplot", extra="report", purpose="Plotting")
        self.figure_, grid = pyplot.subplots(
            1, len(self.curves), figsize=(4.5 * len(self.curves), 3.2), squeeze=False, layout="constrained"
        )
        self.axes_ = grid[0]
        for axes, curve in zip(self.axes_, self.curves, strict=True):
            axes.errorbar(curve.candidates, curve.mean, yerr=curve.spread, marker=".", capsize=2)
            axes.axvline(self.rank, linestyle="--", color="gray", linewidth=1)
            axes.set_xlabel("components")
            axes.set_ylabel(curve.name)
            axes.set_title(f"{curve.better} is better", fontsize="small")
            axes.locator_params(axis="x", integer=True)
        return self


def plot_components(
    model: Any,
    *,
    image_shape: tuple[int, int] | None = None,
    names: Sequence[str] | None = None,
    n_top: int = 10,
    n_columns: int = 6,
) -> ComponentsDisplay:
    """Plot the components of a fitted model.

    Parameters
    ----------
    model : estimator or array of shape (n_components, n_features)
        A fitted estimator, or its components.
    image_shape : tuple of int, optional
        Show components as images of this shape.
    names : sequence of str, optional
        Names of the features: show the largest ones of each component as bars. By default those that
        the model was fitted with. Without names, components are shown as curves.
    n_top : int, default 10
        Number of features that a bar chart shows.
    n_columns : int, default 6
        Number of images side by side; half as many bar charts.

    Returns
    -------
    ComponentsDisplay
        With `figure_` and `axes_`.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from nonneg import NMF
    >>> from nonneg.plotting import plot_components
    >>> model = NMF(16, random_state=0).fit(load_digits().data)
    >>> display = plot_components(model, image_shape=(8, 8))
    >>> len(display.axes_)
    16
    """
    components = np.atleast_2d(to_numpy(getattr(model, "components_", model)))
    if image_shape is not None and image_shape[0] * image_shape[1] != components.shape[1]:
        raise ShapeError(
            f"image_shape={tuple(image_shape)} needs {image_shape[0] * image_shape[1]} features, but the "
            f"components have {components.shape[1]}."
        )
    if names is None and image_shape is None:
        names = getattr(model, "feature_names_in_", None)
    if names is not None and len(names) != components.shape[1]:
        raise ShapeError(f"Expected {components.shape[1]} names of features, got {len(names)}.")
    return ComponentsDisplay(components, image_shape, names, n_top).plot(n_columns=n_columns)


def plot_history(model: Any, *, x: str = "iteration", ax: Any = None, **line: Any) -> HistoryDisplay:
    """Plot the loss over the iterations or over time.

    Parameters
    ----------
    model : estimator, result or History
        A fitted estimator, the result of a function, or its history.
    x : {"iteration", "seconds"}, default "iteration"
        What the horizontal axis shows.
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default. Call it again with the same axes to compare fits.
    **line : dict
        Passed on to matplotlib's `plot`, such as ``label="ours"``.

    Returns
    -------
    HistoryDisplay
        With `figure_` and `ax_`.
    """
    history = (
        model if isinstance(model, History) else getattr(model, "history_", getattr(model, "history", None))
    )
    if not isinstance(history, History) or not history.loss:
        raise InvalidParameterError(
            f"Expected a fitted estimator, a result or a History with a loss, got {type(model).__name__}."
        )
    if x not in ("iteration", "seconds"):
        raise InvalidParameterError(f"x must be 'iteration' or 'seconds', got {x!r}.")
    values = history.n_iter if x == "iteration" else history.seconds
    return HistoryDisplay(np.asarray(values, float), np.asarray(history.loss, float), x).plot(ax, **line)


def plot_rank(result: Any) -> RankDisplay:
    """Plot how the candidates for the number of components compare.

    Parameters
    ----------
    result : RankResult or RankComparison
        What `estimate_rank` or `compare_ranks` returned.

    Returns
    -------
    RankDisplay
        With `figure_` and `axes_`, one panel for each method.
    """
    if isinstance(result, RankComparison):
        curves = [each.curve for each in result.estimates.values() if each.curve is not None]
    elif isinstance(result, RankResult):
        curves = list(result.curves)
    else:
        raise InvalidParameterError(
            f"Expected the result of estimate_rank or compare_ranks, got {type(result).__name__}."
        )
    if not curves:
        raise InvalidParameterError("There is nothing to plot: no candidate was compared.")
    return RankDisplay(curves, result.rank).plot()


def _new_axes(ax: Any) -> tuple[Any, Any]:
    if ax is not None:
        return ax.figure, ax
    pyplot = import_optional("matplotlib.pyplot", extra="report", purpose="Plotting")
    return pyplot.subplots(layout="constrained")
