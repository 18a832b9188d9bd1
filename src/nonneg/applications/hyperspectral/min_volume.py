"""Endmembers of images without pure pixels: the smallest simplex around the pixels."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from nonneg._registry import Registry
from nonneg._typing import FloatArray
from nonneg.data import as_data_matrix
from nonneg.exceptions import InvalidDataError
from nonneg.minvol.factorize import minimum_volume
from nonneg.separable.registry import METHODS as SEPARABLE
from nonneg.separable.registry import Method
from nonneg.separable.result import SelectionResult

MIN_VOLUME = "min-volume"
METHODS: Registry[Method] = Registry(
    "method",
    {
        "auto": Method(
            "nonneg.applications.hyperspectral.robust:robust_endmembers",
            "pure pixels, minimum volume or the edges of the pixels, depending on the data",
            kind="volume",
        ),
        **SEPARABLE,
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

# Pixels darker than this share of the median are mostly noise once they are divided by their sum.
DARK = 0.01


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
    sizes = np.ones(len(spectra)) if normalize is None else _sizes(spectra, normalize)
    kept = np.flatnonzero(sizes > DARK * np.median(sizes[sizes > 0]))
    if len(kept) < n_endmembers:
        raise InvalidDataError(
            f"{len(kept)} pixels are brighter than {DARK:g} of the median, fewer than "
            f"n_endmembers={n_endmembers}."
        )
    points = spectra if len(kept) == len(spectra) and not free else spectra[kept] / sizes[kept, None]
    found = minimum_volume(
        as_data_matrix(np.ascontiguousarray(points, dtype=spectra.dtype)),
        n_endmembers,
        constraint="at-most-one" if constraint == "at-most-one" and not free else "sum-to-one",
        caller="Unmixing",
        **(method_params or {}),
        **options,
    )
    W, H = np.asarray(found.W), np.asarray(found.H)
    scale = sizes[kept].mean() if free else 1.0
    return SelectionResult(
        anchors=kept[W.argmax(axis=0)],
        method=MIN_VOLUME,
        components=np.ascontiguousarray(H * H.dtype.type(scale)),
        history=found.history,
        certificate=found.certificate,
        lam=found.lam,
        n_iter=found.n_iter,
        stop_reason=found.stop_reason,
        facts={"noise_level": found.noise.sigma, "smallest_purity": float(found.purity.min())},
    )


def _sizes(spectra: FloatArray, norm: str) -> FloatArray:
    return np.asarray(np.linalg.norm(np.asarray(spectra, dtype=np.float64), ord=int(norm[1:]), axis=1))
