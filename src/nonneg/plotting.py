"""Plots of fitted models: functions that draw with matplotlib and return its axes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from nonneg._arrays import to_numpy
from nonneg._optional import import_optional
from nonneg.applications.consensus_plots import plot_consensus, plot_signatures
from nonneg.exceptions import ShapeError

__all__ = ["plot_components", "plot_consensus", "plot_signatures"]


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
    pyplot = import_optional("matplotlib.pyplot", extra="report", purpose="Plotting")
    components = np.atleast_2d(to_numpy(getattr(model, "components_", model)))
    n_components, n_features = components.shape
    if image_shape is not None:
        names, expected = None, int(np.prod(image_shape))
    else:
        names = getattr(model, "feature_names_in_", None) if names is None else names
        expected = n_features if names is None else len(names)
    if expected != n_features:
        raise ShapeError(
            f"The components have {n_features} features; image_shape or names are for {expected}."
        )
    if image_shape is None and names is None:
        axes = pyplot.subplots(layout="constrained")[1]
        axes.plot(components.T, label=[str(index) for index in range(n_components)], linewidth=1.2)
        axes.set(xlabel="feature", ylabel="component")
        axes.legend(title="component", fontsize="small", ncols=-(-n_components // 12))
        return np.array([axes], dtype=object)
    width, height, most = (1.5, 1.65, 8) if names is None else (3.2, 0.6 + 0.2 * n_top, 3)
    n_columns = min(most, n_components)
    n_rows = -(-n_components // n_columns)
    size = (width * n_columns, height * n_rows)
    grid = pyplot.subplots(n_rows, n_columns, figsize=size, squeeze=False, layout="constrained")[1].ravel()
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
