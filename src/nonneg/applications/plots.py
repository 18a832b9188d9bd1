"""Plots of components, consensus and mutational signatures; `nonneg.plotting` is their public home."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from nonneg._optional import import_optional
from nonneg.applications.signatures.catalog import CHANNELS, SUBSTITUTION_COLORS, SUBSTITUTIONS
from nonneg.exceptions import InvalidParameterError, ShapeError, as_data_errors
from nonneg.metrics.arguments import table


def plot_components(
    model: Any,
    image_shape: tuple[int, int] | None = None,
    *,
    names: Sequence[str] | None = None,
    n_top: int = 10,
) -> Any:
    """Plot the strongest features of each component as bars, or the components as images.

    Parameters
    ----------
    model : estimator or array of shape (n_components, n_features)
        A fitted estimator, or its components.
    image_shape : tuple of int, optional
        Rows and columns of an image, if the features are pixels.
    names : sequence of str, optional
        Names of the features; by default those of the fit, or else numbers.
    n_top : int, default 10
        Number of bars of a component. If the model was fitted with `scale`, they are relative to the scale
        of their columns, as in the report.

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
    >>> len(plot_components(model, image_shape=(8, 8)))
    16
    """
    components = table(getattr(model, "components_", model), "model", "(n_components, n_features)")
    k, n_features = components.shape
    with as_data_errors("image_shape and names"):
        if image_shape is not None and np.prod(image_shape) != n_features:
            raise ShapeError(f"The components have {n_features} features, got {image_shape=}.")
        labels = list(getattr(model, "feature_names_in_", range(n_features)) if names is None else names)
    if len(labels) != n_features:
        raise ShapeError(f"Expected {n_features} names of features, got {len(labels)}.")
    pyplot = import_optional("matplotlib.pyplot", extra="report", purpose="Plotting")
    n_columns, width, height = (8, 1.5, 1.65) if image_shape else (3, 3.4, 0.6 + 0.2 * n_top)
    n_columns, n_rows = min(n_columns, k), -(-k // n_columns)
    size = (width * n_columns, height * n_rows)
    grid = pyplot.subplots(n_rows, n_columns, figsize=size, squeeze=False, layout="constrained")[1].ravel()
    for axes in grid[k:]:
        axes.remove()
    # Columns compare with each other by their scale, not by their units.
    relative = components / getattr(model, "column_scale_", 1.0)
    for index, axes in enumerate(grid[:k]):
        axes.set_title(f"component {index}", fontsize="small")
        if image_shape:
            axes.imshow(components[index].reshape(image_shape), cmap="gray_r")
            axes.set_axis_off()
        else:
            best = np.argsort(-relative[index], kind="stable")[:n_top]
            axes.barh(np.arange(len(best)), relative[index, best])
            axes.set_yticks(np.arange(len(best)), [str(labels[at]) for at in best], fontsize="small")
            axes.invert_yaxis()
    return grid[:k]


def plot_consensus(model: Any) -> Any:
    """Plot how the restarts of a consensus agree.

    Parameters
    ----------
    model : ConsensusNMF or MutationalSignatures
        A fitted estimator.

    Returns
    -------
    array of matplotlib Axes
        Three panels: stability and error by rank, distances of components to their neighbors
        with the threshold that makes outliers, and all distances in the order of the clusters.
    """
    model = getattr(model, "consensus_", model)
    if not hasattr(model, "ranks_"):
        raise InvalidParameterError(f"Expected a fitted ConsensusNMF, got {type(model).__name__}.")
    pyplot = import_optional("matplotlib.pyplot", extra="report", purpose="Plotting")
    figure, panels = pyplot.subplots(1, 3, figsize=(13, 3.6), layout="constrained")
    curve, histogram, picture = panels
    rows = [rank.row() for rank in model.ranks_]
    candidates = [row["n_components"] for row in rows]
    curve.plot(candidates, [row["stability"] for row in rows], "o-", label="mean stability")
    curve.plot(candidates, [row["least_stable"] for row in rows], "o--", color="C0", alpha=0.5)
    curve.axvline(model.n_components_, linestyle="--", color="gray", linewidth=1)
    curve.set_xlabel("components")
    curve.set_ylabel("stability (dashed: least stable)", color="C0")
    curve.locator_params(axis="x", integer=True)
    other = curve.twinx()
    other.plot(candidates, [row["error"] for row in rows], "s-", color="C1")
    other.set_ylabel("error", color="C1")
    chosen = next(rank for rank in model.ranks_ if rank.n_components == model.n_components_)
    histogram.hist(np.minimum(chosen.density, 1.42), bins=np.linspace(0, 1.42, 60))
    histogram.axvline(model.density_threshold, linestyle="--", color="black", linewidth=1)
    histogram.set_title(f"{chosen.n_outliers} of {len(chosen.density)} are outliers", fontsize="small")
    histogram.set_xlabel("mean distance to the nearest components")
    shown = picture.imshow(chosen.distances, cmap="Blues_r", vmin=0, vmax=2**0.5)
    picture.set_title("distances, by cluster", fontsize="small")
    picture.set(xticks=[], yticks=[])
    figure.colorbar(shown, ax=picture)
    return panels


def plot_signatures(model: Any, *, names: Sequence[str] | None = None) -> Any:
    """Plot mutational signatures as bar charts in the usual six colors.

    Parameters
    ----------
    model : MutationalSignatures or array of shape (n_signatures, 96)
        A fitted estimator, or signatures in COSMIC's order.
    names : sequence of str, optional
        Names of the signatures; numbers by default.

    Returns
    -------
    matplotlib Figure
        One panel per signature.
    """
    signatures = table(getattr(model, "signatures_", model), "model", "(n_signatures, 96)")
    if signatures.shape[1] != len(CHANNELS):
        raise ShapeError(f"Expected signatures of {len(CHANNELS)} channels, got shape {signatures.shape}.")
    pyplot = import_optional("matplotlib.pyplot", extra="report", purpose="Plotting")
    figure, grid = pyplot.subplots(
        len(signatures), 1, figsize=(9, 1.6 * len(signatures) + 0.3), squeeze=False, layout="constrained"
    )
    colors = [color for color in SUBSTITUTION_COLORS.values() for _ in range(16)]
    for at, (axes, row) in enumerate(zip(grid[:, 0], signatures, strict=True)):
        axes.bar(np.arange(len(row)), 100 * row, color=colors, width=0.75)
        axes.set_xlim(-1, len(row))
        axes.set_xticks(np.arange(6) * 16 + 7.5, SUBSTITUTIONS if at == len(signatures) - 1 else [""] * 6)
        axes.tick_params(axis="x", length=0)
        axes.set_ylabel("%")
        axes.set_title(names[at] if names is not None else f"signature {at}", fontsize="small", loc="left")
    return figure
