"""The search for endmembers among the pixels of an image, and their spectra."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from os import PathLike
from typing import Any

import numpy as np

from nonneg._arguments import is_count
from nonneg._random import Seed
from nonneg._ties import fixed_vectors
from nonneg._typing import FloatArray
from nonneg.applications.hyperspectral.min_volume import METHODS, MIN_VOLUME, min_volume_endmembers
from nonneg.applications.hyperspectral.noise import noise_scale, smoothed_spectra
from nonneg.applications.hyperspectral.pixels import ImagePixels
from nonneg.applications.hyperspectral.robust import AUTO, PURE_DEPTH, robust_endmembers
from nonneg.exceptions import InvalidParameterError, UnsupportedError
from nonneg.iteration import Progress
from nonneg.separable.certificate import span_statement
from nonneg.separable.recovery_bounds import isolated_statement
from nonneg.separable.result import SelectionResult
from nonneg.separable.select import select_anchors
from nonneg.separable.vertices import aggregated

# What `method="auto"` comes down to for a single endmember, or fewer pixels or directions than it needs.
PLAIN = "smoothed-spa"
# Directions beyond the endmembers that tell the noise.
N_NOISE_DIRECTIONS = 5


@dataclass(frozen=True)
class EndmemberSearch:
    """How endmembers are looked for; the fields are parameters of `Unmixing`."""

    method: str
    n_endmembers: int | None
    constraint: str
    normalize: str | None
    whiten: bool | str
    smooth: int
    reduce: int | None
    method_params: dict[str, Any] = field(default_factory=dict)
    random_state: Seed = None
    n_jobs: int | None = None
    tol: float | None = None
    max_iter: int | None = None
    verbose: int = 0
    callback: Callable[[Progress], bool | None] | None = None
    checkpoint: str | PathLike[str] | None = None

    def check(self) -> None:
        """Raise an error if the parameters do not go together."""
        entry = METHODS.find(self.method)
        if self.reduce is not None and not entry.signed:
            raise UnsupportedError(
                f"method={self.method!r} needs nonnegative points, but reduce={self.reduce} makes signed "
                f"ones. Leave reduce at None, or use 'snpa'."
            )
        if self.normalize not in (None, "auto", "l1", "l2"):
            raise InvalidParameterError(
                f"normalize must be None, 'auto', 'l1' or 'l2', got {self.normalize!r}."
            )
        if self.whiten not in (True, False, "auto"):
            raise InvalidParameterError(f"whiten must be True, False or 'auto', got {self.whiten!r}.")
        if not is_count(self.smooth) or self.smooth % 2 == 0:
            raise InvalidParameterError(
                f"smooth must be an odd number of pixels, 1 for no smoothing, got {self.smooth!r}."
            )
        if self.reduce is not None and (self.smooth > 1 or self.whiten is True):
            raise UnsupportedError(
                "smooth and whiten need the pixels in memory, but reduce reads them block by block. Leave "
                "reduce at None."
            )
        if self.method == AUTO:
            self._check_auto()

    def _check_auto(self) -> None:
        METHODS.check_options(AUTO, self.method_params)
        names = ("tol", "max_iter", "callback", "checkpoint")
        given = [name for name in names if getattr(self, name) is not None]
        given += ["normalize"] if self.normalize != "auto" else []
        if given:
            raise InvalidParameterError(
                f"method='auto' does not accept {given[0]}, which other methods do. Choose one with method=, "
                f"such as {PLAIN!r}."
            )

    def run(self, pixels: ImagePixels, matrix: FloatArray | None) -> tuple[SelectionResult, FloatArray]:
        """Return what was found among all pixels, or in leading directions, and the spectra."""
        if matrix is None:
            return self._reduced(pixels)
        points = matrix if self.smooth == 1 else smoothed_spectra(pixels, matrix, self.smooth)
        scale = noise_scale(points, self.n_endmembers or 1, self.whiten)
        if scale is not None:
            points = points / scale.astype(points.dtype)
        found = self._search(points)
        spectra = points[found.anchors] if found.components is None else np.asarray(found.components)
        if scale is not None:
            spectra = spectra * scale
        return found, np.maximum(spectra, 0.0).astype(matrix.dtype)

    def _reduced(self, pixels: ImagePixels) -> tuple[SelectionResult, FloatArray]:
        robust = self.method == AUTO and (self.reduce or 0) >= (self.n_endmembers or 0) + N_NOISE_DIRECTIONS
        plain = self if robust or self.method != AUTO else replace(self, method=PLAIN)
        points, directions = reduced_pixels(pixels, self.reduce, None if robust else plain.norm())
        found = plain._search(points, normalize=False, ones=directions.sum(axis=0))
        used, width = np.flatnonzero(pixels.mask), pixels.cube.shape[1]
        if robust and found.method == AUTO:
            spectra = np.asarray(found.components) @ directions.T
        elif found.members is None:
            spectra = np.array([pixels.spectrum(*divmod(int(at), width)) for at in used[found.anchors]])
        else:
            # The average of a search in leading directions is taken again among the spectra.
            aggregate = str(found.facts.get("aggregate", "mean"))
            groups = [
                np.array([pixels.spectrum(*divmod(int(at), width)) for at in used[rows]])
                for rows in found.members
            ]
            spectra = np.stack([aggregated(group, aggregate) for group in groups])
        return found, np.maximum(spectra, 0.0).astype(pixels.dtype)

    def norm(self) -> str | None:
        """Return the norm by which spectra are divided in the search."""
        if self.normalize != "auto":
            return self.normalize
        return "l1" if METHODS.find(self.method).averages else None

    def _search(
        self, points: FloatArray, *, normalize: bool = True, ones: FloatArray | None = None
    ) -> SelectionResult:
        if self.method == AUTO:
            found = robust_endmembers(points, int(self.n_endmembers or 1), ones=ones)
            if found is None:
                return replace(self, method=PLAIN)._search(points, normalize=normalize)
            components = np.asarray(found.components)
            more = [isolated_statement(found.facts["isolated"]), span_statement(components)]
            return replace(found, certificate=found.certificate.with_statements(more))
        given: dict[str, Any] = {"callback": self.callback, "checkpoint": self.checkpoint}
        given |= {"tol": self.tol, "max_iter": self.max_iter}
        if METHODS.find(self.method).kind != "greedy":
            given["verbose"] = self.verbose
        options: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
        options |= {"method_params": self._params(), "rng": self.random_state, "n_jobs": self.n_jobs}
        if self.method == MIN_VOLUME:
            k = int(self.n_endmembers or 1)
            given = {"constraint": self.constraint, "normalize": self.normalize}
            return min_volume_endmembers(points, k, **given, **options)
        norm = self.norm() if normalize else None
        return select_anchors(points, self.n_endmembers, method=self.method, normalize=norm, **options)

    def _params(self) -> dict[str, Any]:
        """Return the parameters of the method, with the depth within which pixels are averaged."""
        given = dict(self.method_params)
        if "depth" in METHODS.find(self.method).options:
            given.setdefault("depth", PURE_DEPTH)
        return given


def reduced_pixels(
    pixels: ImagePixels, n_directions: int | None, norm: str | None
) -> tuple[FloatArray, FloatArray]:
    """Project the pixels, divided by a norm, onto the leading directions in two passes over the blocks."""
    bands = pixels.n_bands
    gram = np.zeros((bands, bands))
    for block in pixels.blocks():
        spectra = _scaled(block.spectra, norm)
        gram += spectra.T @ spectra
    k = min(int(n_directions or bands), bands)
    values, vectors = np.linalg.eigh(gram)
    # Fixed, so that the points do not depend on the library of linear algebra.
    directions = fixed_vectors(values[::-1][:k], vectors[:, ::-1][:, :k])
    points = np.empty((int(pixels.mask.sum()), directions.shape[1]), dtype=pixels.dtype)
    filled = 0
    for block in pixels.blocks():
        points[filled : filled + len(block.pixels)] = _scaled(block.spectra, norm) @ directions
        filled += len(block.pixels)
    return points, directions


def _scaled(spectra: FloatArray, norm: str | None) -> FloatArray:
    values = np.asarray(spectra, dtype=np.float64)
    if norm is None:
        return values
    sizes = np.linalg.norm(values, ord=int(norm[1:]), axis=1, keepdims=True)
    return values / np.where(sizes > 0, sizes, 1.0)
