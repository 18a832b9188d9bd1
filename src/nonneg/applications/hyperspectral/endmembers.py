"""Endmembers of an image by the default or a named method, and their spectra."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from nonneg._arguments import is_count
from nonneg._random import generator
from nonneg._registry import Registry
from nonneg._typing import FloatArray
from nonneg.applications.hyperspectral.pixels import ImagePixels
from nonneg.applications.hyperspectral.proposals import proposed_endmembers, window_means
from nonneg.data import as_data_matrix
from nonneg.exceptions import InvalidDataError, InvalidParameterError
from nonneg.minvol.factorize import minimum_volume
from nonneg.separable.registry import METHODS as SEPARABLE
from nonneg.separable.registry import Method
from nonneg.separable.result import SelectionResult
from nonneg.separable.select import select_anchors

AUTO, MIN_VOLUME = "auto", "min-volume"
METHODS: Registry[Method] = Registry(
    "method",
    {
        **SEPARABLE,
        AUTO: Method(
            "nonneg.applications.hyperspectral.proposals:proposed_endmembers",
            "medians of extreme pixels in several geometries, judged by the mean relative residual",
            kind="volume",
        ),
        MIN_VOLUME: Method(
            "nonneg.minvol.factorize:minimum_volume",
            "the smallest simplex around the pixels, for images without pure ones",
            options=frozenset({"lam", "noise", "init", "n_init"}),
            kind="volume",
            signed=False,
        ),
    },
)
"""The default, the methods of `nonneg.select_anchors`, and minimum volume."""
# Side of the square windows of pixels that the default averages for half of its candidates.
WINDOW = 3


def check_search(model: Any) -> None:
    """Raise an error if the parameters of an `Unmixing` do not go together."""
    METHODS.find(model.method)
    if model.normalize not in (None, "auto", "l1", "l2"):
        raise InvalidParameterError(f"normalize must be None, 'auto', 'l1' or 'l2', got {model.normalize!r}.")
    if model.smooth is not None and (not is_count(model.smooth) or model.smooth % 2 == 0):
        raise InvalidParameterError(
            f"smooth must be None or an odd number of pixels, 1 for no smoothing, got {model.smooth!r}."
        )
    if model.method == AUTO:
        METHODS.check_options(AUTO, model.method_params or {})
        names = ("tol", "max_iter", "callback", "checkpoint")
        unused = [name for name in names if getattr(model, name) is not None]
        unused += ["normalize"] if model.normalize != "auto" else []
        if unused:
            raise InvalidParameterError(
                f"method='auto' does not accept {unused[0]}, which other methods do. Choose one with "
                "method=, such as 'smoothed-spa'."
            )


def search_endmembers(model: Any, pixels: ImagePixels, k: int | None) -> tuple[SelectionResult, FloatArray]:
    """Return what the method of an `Unmixing` finds among the pixels, and the spectra of the endmembers."""
    window = WINDOW if model.smooth is None else int(model.smooth)
    if model.method == AUTO:
        result = proposed_endmembers(pixels, int(k or 1), window, generator(model.random_state))
        return result, np.asarray(result.components, dtype=pixels.dtype)
    if model.smooth is None or window == 1:
        points = pixels.gathered()
    else:
        points = window_means(pixels, np.flatnonzero(pixels.mask), window).astype(pixels.dtype)
    options: dict[str, Any] = {
        name: getattr(model, name)
        for name in ("callback", "checkpoint", "tol", "max_iter")
        if getattr(model, name) is not None
    }
    if METHODS.find(model.method).kind != "greedy":
        options["verbose"] = model.verbose
    options |= {"method_params": model.method_params or {}, "rng": model.random_state, "n_jobs": model.n_jobs}
    norm = model.normalize
    if model.method == MIN_VOLUME:
        result = min_volume_endmembers(
            points, int(k or 1), constraint=model.constraint, normalize=norm, **options
        )
    else:
        if norm == "auto":
            norm = "l1" if METHODS.find(model.method).averages else None
        result = select_anchors(points, k, method=model.method, normalize=norm, **options)
    spectra = points[result.anchors] if result.components is None else np.asarray(result.components)
    return result, np.maximum(spectra, 0.0).astype(pixels.dtype)


def min_volume_endmembers(
    spectra: FloatArray,
    n_endmembers: int,
    *,
    constraint: str,
    normalize: str | None,
    method_params: Mapping[str, Any] | None,
    **options: Any,
) -> SelectionResult:
    """Find the smallest simplex around the pixels."""
    METHODS.check_options(MIN_VOLUME, method_params or {})
    # Abundances that only count relative to one another leave the brightness of a pixel free: the simplex is
    # that of the spectra divided by their sums. Its vertices get the mean brightness of the pixels, so that
    # abundances are shares of light; the brightness of an endmember and shade cannot be told apart.
    if normalize == "auto":
        normalize = "l1" if constraint in ("normalized", "nonnegative") else None
    free = normalize is not None
    if len(spectra) < n_endmembers:
        raise InvalidDataError(f"{len(spectra)} pixels are fewer than n_endmembers={n_endmembers}.")
    sizes = np.ones(len(spectra))
    if normalize is not None:
        sizes = np.linalg.norm(spectra.astype(np.float64), ord=int(normalize[1:]), axis=1)
    found = minimum_volume(
        as_data_matrix(np.ascontiguousarray(spectra / sizes[:, None] if free else spectra, spectra.dtype)),
        n_endmembers,
        constraint="at-most-one" if constraint == "at-most-one" and not free else "sum-to-one",
        caller="Unmixing",
        **(method_params or {}),
        **options,
    )
    W, H = np.asarray(found.W), np.asarray(found.H)
    return SelectionResult(
        anchors=W.argmax(axis=0),
        method=MIN_VOLUME,
        components=np.ascontiguousarray(H * H.dtype.type(sizes.mean() if free else 1.0)),
        history=found.history,
        certificate=found.certificate,
        lam=found.lam,
        n_iter=found.n_iter,
        stop_reason=found.stop_reason,
        facts={"noise_level": found.noise.sigma, "smallest_purity": float(found.purity.min())},
    )
