"""Plots of fitted models: functions that draw with matplotlib and return its axes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from nonneg._arrays import to_numpy
from nonneg._optional import import_optional
from nonneg.applications.consensus_plots import plot_consensus, plot_signatures
from nonneg.exceptions import InvalidParameterError, ShapeError
from nonneg.iteration import History
from nonneg.rank_selection.comparison import RankComparison
from nonneg.rank_selection.result import RankResult

__all__ = ["plot_components", "plot_consensus", "plot_history", "plot_rank", "plot_signatures"]


def plot_components(
    model: Any,
    *,
    image_shape: tuple[int, int] | None = None,
    names: Sequence[str] | None = None,
    n_top: int = 10,
) -> Any:
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

    Returns
    -------
    array of matplotlib Axes
        One for each component in a new figure; a single one where components are curves.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from nonneg import NMF
    >>> from nonneg.plotting import plot_components
    >>> model = NMF(16, random_state=0).fit(load_digits().data)
    >>> len(plot_components(model, image_shape=(8, 8)))
    16
    """
    components = np.atleast_2d(to_numpy(getattr(model, "components_", model)))
    n_components, n_features = components.shape
    if image_shape is None and names is None:
        names = getattr(model, "feature_names_in_", None)
    expected = (
        np.prod(image_shape) if image_shape is not None else n_features if names is None else len(names)
    )
    if expected != n_features:
        raise ShapeError(
            f"The components have {n_features} features; image_shape or names are for {expected}."
        )
    if image_shape is None and names is None:
        axes = _new_axes()
        axes.plot(components.T, label=[str(index) for index in range(n_components)], linewidth=1.2)
        axes.set(xlabel="feature", ylabel="component")
        axes.legend(title="component", fontsize="small", ncols=-(-n_components // 12))
        return np.array([axes], dtype=object)
    width, height, most = (1.5, 1.65, 8) if names is None else (3.2, 0.6 + 0.2 * n_top, 3)
    n_columns = min(most, n_components)
    n_rows = -(-n_components // n_columns)
    grid = _new_axes(n_rows, n_columns, figsize=(width * n_columns, height * n_rows), squeeze=False).ravel()
    for axes in grid[n_components:]:
        axes.remove()
    for index, (axes, component) in enumerate(zip(grid, components, strict=False)):
        axes.set_title(f"component {index}", fontsize="small")
        if names is None:
            axes.imshow(component.reshape(image_shape), cmap="gray_r")
            axes.set(xticks=[], yticks=[])
        else:
            best = np.argsort(-component, kind="stable")[:n_top]
            axes.barh(np.arange(len(best)), component[best])  # names may repeat
            axes.set_yticks(np.arange(len(best)), [str(names[at]) for at in best])
            axes.invert_yaxis()
            axes.tick_params(labelsize="small")
    return grid[:n_components]


def plot_history(model: Any, *, ax: Any = None, **line: Any) -> Any:
    """Plot the loss over the iterations.

    Parameters
    ----------
    model : estimator, result or History
        A fitted estimator, the result of a function, or its history.
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default. Call it again with the same axes to compare fits.
    **line : dict
        Passed on to matplotlib's `plot`, such as ``label="ours"``.

    Returns
    -------
    matplotlib Axes
        Those of the curve.
    """
    history = getattr(model, "history_", getattr(model, "history", model))
    if not isinstance(history, History) or not history.loss:
        raise InvalidParameterError(
            f"Expected a fitted estimator, a result or a History with a loss, got {type(model).__name__}."
        )
    ax = _new_axes() if ax is None else ax
    ax.plot(history.n_iter, history.loss, **line)
    if min(history.loss) > 0 and max(history.loss) > 10 * min(history.loss):
        ax.set_yscale("log")
    ax.set(xlabel="iteration", ylabel="loss")
    return ax


def plot_rank(result: Any) -> Any:
    """Plot how the candidates for the number of components compare.

    Parameters
    ----------
    result : RankResult or RankComparison
        What `estimate_rank` or `compare_ranks` returned.

    Returns
    -------
    array of matplotlib Axes
        One panel for each method, with the chosen rank marked.
    """
    if not isinstance(result, RankComparison | RankResult):
        raise InvalidParameterError(
            f"Expected the result of estimate_rank or compare_ranks, got {type(result).__name__}."
        )
    if isinstance(result, RankComparison):
        curves = [each.curve for each in result.estimates.values() if each.curve is not None]
    else:
        curves = list(result.curves)
    if not curves:
        raise InvalidParameterError("There is nothing to plot: no candidate was compared.")
    grid = _new_axes(1, len(curves), figsize=(4.5 * len(curves), 3.2), squeeze=False)[0]
    for axes, curve in zip(grid, curves, strict=True):
        axes.errorbar(curve.candidates, curve.mean, yerr=curve.spread, marker=".", capsize=2)
        axes.axvline(result.rank, linestyle="--", color="gray", linewidth=1)
        axes.set(xlabel="components", ylabel=curve.name)
        axes.set_title(f"{curve.better} is better", fontsize="small")
        axes.locator_params(axis="x", integer=True)
    return grid


def _new_axes(*grid: int, **options: Any) -> Any:
    pyplot = import_optional("matplotlib.pyplot", extra="report", purpose="Plotting")
    return pyplot.subplots(*grid, layout="constrained", **options)[1]
