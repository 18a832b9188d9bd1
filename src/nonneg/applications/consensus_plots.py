"""Plots of a consensus and of mutational signatures; `nonneg.plotting` is their public home."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from nonneg._arrays import to_numpy
from nonneg._optional import import_optional
from nonneg.applications.signatures.catalog import CHANNELS, SUBSTITUTION_COLORS, SUBSTITUTIONS
from nonneg.exceptions import InvalidParameterError, ShapeError


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
    rows = [each.row() for each in model.ranks_]
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
    chosen = next(each for each in model.ranks_ if each.n_components == model.n_components_)
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
    signatures = np.atleast_2d(to_numpy(getattr(model, "signatures_", model)))
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
