"""Plots of fitted models: functions that draw with matplotlib and return its axes."""

from __future__ import annotations

from typing import Any

import numpy as np

from nonneg._arrays import to_numpy
from nonneg._optional import import_optional
from nonneg.applications.consensus_plots import plot_consensus, plot_signatures
from nonneg.exceptions import ShapeError

__all__ = ["plot_components", "plot_consensus", "plot_signatures"]


def plot_components(model: Any, image_shape: tuple[int, int]) -> Any:
    """Plot the components of a fitted model as images, eight in a row.

    Parameters
    ----------
    model : estimator or array of shape (n_components, n_features)
        A fitted estimator, or its components.
    image_shape : tuple of int
        Rows and columns of an image.

    Returns
    -------
    array of matplotlib Axes
        One for each component, in a new figure.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from nonneg import NMF
    >>> from nonneg.plotting import plot_components
    >>> model = NMF(16, random_state=0).fit(load_digits().data)
    >>> len(plot_components(model, (8, 8)))
    16
    """
    pyplot = import_optional("matplotlib.pyplot", extra="report", purpose="Plotting")
    components = np.atleast_2d(to_numpy(getattr(model, "components_", model)))
    if np.prod(image_shape) != components.shape[1]:
        raise ShapeError(f"The components have {components.shape[1]} features, got {image_shape=}.")
    n_columns = min(8, len(components))
    n_rows = -(-len(components) // n_columns)
    size = (1.5 * n_columns, 1.65 * n_rows)
    grid = pyplot.subplots(n_rows, n_columns, figsize=size, squeeze=False, layout="constrained")[1].ravel()
    for index, component in enumerate(components):
        grid[index].imshow(component.reshape(image_shape), cmap="gray_r")
        grid[index].set_title(f"component {index}", fontsize="small")
    for axes in grid:
        axes.set_axis_off()
    return grid[: len(components)]
