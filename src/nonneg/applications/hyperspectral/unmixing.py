"""Unmixing: endmembers of a scene and how much of each is in every pixel."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.utils.validation import check_is_fitted

from nonneg._random import Seed
from nonneg._threads import threads
from nonneg._ties import vector_signs
from nonneg._typing import FloatArray
from nonneg.applications.hyperspectral.abundances import Mixtures, checked_constraint
from nonneg.applications.hyperspectral.library import LibraryMatch, SpectralLibrary, match_library
from nonneg.applications.hyperspectral.pixels import Block, ScenePixels
from nonneg.applications.hyperspectral.statements import scene_statements
from nonneg.certificates.certificate import Certificate
from nonneg.estimators.saving import SavableEstimator
from nonneg.estimators.stored_fields import Fields, Record, StoredArray, Value
from nonneg.exceptions import FileFormatError, InvalidParameterError, ShapeError, UnsupportedError
from nonneg.io.cube import as_cube
from nonneg.iteration.progress import StepCounter
from nonneg.separable.registry import METHODS, split_params
from nonneg.separable.select import select_anchors

ROWS = 1 << 14
"""So many pixels are unmixed at a time."""


def _is_whole(number: Any) -> bool:
    return isinstance(number, Integral) and not isinstance(number, bool)


class Unmixing(SavableEstimator):
    """Find the pure spectra of a scene and map them.

    Parameters
    ----------
    n_endmembers : int or None
        How many pure spectra. None lets "merit" find the number.
    method : str
        How pure pixels are found: a name in `nonneg.separable.METHODS`. "snpa" takes one pass over the
        pixels an endmember and is not misled by shade; "merit" is convex and compares all pairs of pixels, so
        that it is for scenes of a few thousand.
    constraint : {"shares", "sum-to-one", "at-most-one", "nonnegative"}
        What the abundances of a pixel do beside being nonnegative. "shares": the best weights are divided by
        their sum, so that a pixel may be brighter or darker than the pure ones. "sum-to-one": the best
        weights that sum to one (fully constrained least squares), for scenes of even brightness.
        "at-most-one": the same with shade as one more endmember. "nonnegative": nothing else.
    normalize : {"l1"} or None
        Look for pure pixels among spectra divided by their sums, whatever their brightness.
    reduce : int or None
        Look for pure pixels in so many leading directions. The cube is then read block by block and never
        held: the memory is `reduce` numbers a pixel beside the maps.
    negative_tol : float
        Entries below zero, down to this share of the largest one, are set to zero with a warning that counts
        them; further below is an error.
    method_options : dict or None
        Further options of the method.
    random_state : int, RandomState, Generator or None
        For methods that draw.
    verbose : int
        1 shows a line with the progress of convex methods and of the mapping.
    n_jobs : int or None
        Threads; None takes all cores.

    Attributes
    ----------
    endmembers_ : array of shape (n_endmembers, n_kept_bands)
        The spectra of the pure pixels, in the bands that count.
    n_endmembers_ : int
        How many.
    pure_pixels_ : array of int of shape (n_endmembers, 2)
        Row and column of each in the scene.
    abundances_ : array of shape (n_rows, n_columns, n_endmembers)
        The maps; NaN for pixels that do not count.
    residuals_ : array of shape (n_rows, n_columns)
        The length of what the mixture leaves of each pixel, relative to the pixel.
    relative_error_ : float
        The same for the whole scene.
    mask_ : array of bool of shape (n_rows, n_columns)
        Which pixels counted.
    bands_ : array of bool of shape (n_bands,)
        Which bands of the scene counted.
    wavelengths_ : array of shape (n_kept_bands,) or None
        Of the bands that count.
    n_features_in_ : int
        How many bands the scene has.
    n_clipped_ : int
        Entries below zero that were set to zero.
    certificate_ : Certificate
        What is known about the answer.
    result_ : SelectionResult
        The search for pure pixels, whose anchors are numbered among the pixels that count.

    Examples
    --------
    >>> from nonneg.applications import Unmixing
    >>> from nonneg.datasets import scene_like
    >>> scene = scene_like(20, 30, n_bands=40, n_materials=3, noise=0.0, rng=0)
    >>> model = Unmixing(3).fit(scene.X.reshape(20, 30, 40))
    >>> model.abundances_.shape
    (20, 30, 3)
    """

    _stored: ClassVar[Fields] = {
        "n_endmembers_": Value(int),
        "n_features_in_": Value(int),
        "relative_error_": Value(float),
        "n_clipped_": Value(int),
        "certificate_": Record(Certificate.from_dict),
        "endmembers_": StoredArray("n_endmembers_", "number of bands kept", nonnegative=True),
        "wavelengths_": StoredArray("number of bands kept", optional=True),
        "bands_": StoredArray("n_features_in_", kind="b"),
        "abundances_": StoredArray("n_rows", "n_columns", "n_endmembers_"),
        "residuals_": StoredArray("n_rows", "n_columns"),
        "mask_": StoredArray("n_rows", "n_columns", kind="b"),
        "pure_pixels_": StoredArray("n_endmembers_", 2, kind="i", below=("n_rows", "n_columns")),
    }

    def __init__(
        self,
        n_endmembers: int | None = None,
        *,
        method: str = "snpa",
        constraint: str = "shares",
        normalize: str | None = None,
        reduce: int | None = None,
        negative_tol: float = 0.05,
        method_options: Mapping[str, Any] | None = None,
        random_state: Seed = None,
        verbose: int = 0,
        n_jobs: int | None = None,
    ) -> None:
        self.n_endmembers = n_endmembers
        self.method = method
        self.constraint = constraint
        self.normalize = normalize
        self.reduce = reduce
        self.negative_tol = negative_tol
        self.method_options = method_options
        self.random_state = random_state
        self.verbose = verbose
        self.n_jobs = n_jobs

    def fit(
        self,
        cube: Any,
        y: Any = None,
        *,
        mask: Any = None,
        bands: Any = None,
        wavelengths: Any = None,
        no_data: float | None = None,
    ) -> Unmixing:
        """Find the endmembers and map them.

        Parameters
        ----------
        cube : Cube, path or array of shape (n_rows, n_columns, n_bands)
            The scene, never changed. A mapped file is read in blocks, and floating-point pixels that all
            count are not copied.
        y : Any
            Ignored.
        mask : array of bool of shape (n_rows, n_columns), optional
            True for pixels that count.
        bands : "all" or array of bool of shape (n_bands,), optional
            True for bands that count, instead of the cube's own: of an ENVI file those that its header does
            not flag as bad.
        wavelengths : array of shape (n_bands,), optional
            Of all bands, instead of the cube's own.
        no_data : float, optional
            Pixels that hold this value in every band do not count; NaN is such a value too.

        Returns
        -------
        Unmixing
            Itself.
        """
        constraint = checked_constraint(self.constraint)
        self._check_parameters()
        scene = as_cube(cube, wavelengths=wavelengths, no_data=no_data, bands=bands)
        pixels = ScenePixels(scene, mask, float(self.negative_tol))
        # A simplex has one corner more than dimensions; beyond that, no pixel has one answer.
        if (self.n_endmembers or 0) > pixels.n_bands + 1:
            raise InvalidParameterError(
                f"n_endmembers={self.n_endmembers} is too many: {pixels.n_bands} bands that count tell "
                f"{pixels.n_bands + 1} spectra apart at most. Ask for fewer."
            )
        with threads(self.n_jobs):
            matrix = pixels.gathered() if self.reduce is None else None
            points = self._reduced(pixels) if matrix is None else matrix
            pixels.tell()
            found = select_anchors(
                points,
                self.n_endmembers,
                method=self.method,
                normalize=None if matrix is None else self.normalize,
                rng=self.random_state,
                n_jobs=self.n_jobs,
                **split_params(
                    {"verbose": self.verbose if METHODS.find(self.method).kind == "convex" else 0}
                    | dict(self.method_options or {})
                ),
            )
            places = np.flatnonzero(pixels.mask)[found.anchors]
            rows, columns = np.divmod(places, scene.shape[1])
            endmembers = np.array([pixels.spectrum(r, c) for r, c in zip(rows, columns, strict=True)])
            mixtures = self._unmixed(pixels, matrix, endmembers, constraint)
        self.endmembers_ = endmembers
        self.n_endmembers_ = len(endmembers)
        self.pure_pixels_ = np.column_stack([rows, columns]).astype(np.intp)
        self._keep(mixtures, scene.shape)
        self.mask_ = pixels.mask
        self.bands_ = scene.kept
        self.wavelengths_ = scene.kept_wavelengths
        self.n_clipped_ = pixels.n_clipped
        self.n_features_in_ = scene.shape[2]
        self.result_ = found
        self.certificate_ = found.certificate.with_statements(
            scene_statements(mixtures, len(endmembers), constraint)
        )
        return self

    def fit_transform(self, cube: Any, y: Any = None, **options: Any) -> FloatArray:
        """Find the endmembers and return the maps.

        Parameters
        ----------
        cube : Cube, path or array of shape (n_rows, n_columns, n_bands)
            The scene.
        y : Any
            Ignored.
        **options : Any
            As in `fit`.

        Returns
        -------
        array of shape (n_rows, n_columns, n_endmembers)
            `abundances_`.
        """
        return self.fit(cube, y, **options).abundances_

    def transform(
        self, cube: Any, *, mask: Any = None, bands: Any = None, no_data: float | None = None
    ) -> FloatArray:
        """Map the endmembers in another scene of the same bands.

        Parameters
        ----------
        cube : Cube, path or array of shape (n_rows, n_columns, n_bands)
            The scene.
        mask : array of bool of shape (n_rows, n_columns), optional
            True for pixels that count.
        bands : "all" or array of bool of shape (n_bands,), optional
            True for bands that count, instead of the cube's own. Of these, the ones that counted in fit are
            used.
        no_data : float, optional
            The value of pixels without data.

        Returns
        -------
        array of shape (n_rows, n_columns, n_endmembers)
            The maps; NaN for pixels that do not count.
        """
        check_is_fitted(self)
        scene = as_cube(cube, no_data=no_data, bands=bands)
        if scene.shape[2] != self.n_features_in_:
            raise ShapeError(
                f"Expected a cube with {self.n_features_in_} bands, as in fit, got {scene.shape[2]}."
            )
        shared = self.bands_ & scene.kept
        if shared.sum() < min(self.n_endmembers_, self.endmembers_.shape[1]):
            raise ShapeError(
                f"{int(shared.sum())} bands count in this scene and in that of fit, which do not tell "
                f"{self.n_endmembers_} endmembers apart. Pass bands='all' to use all those of fit."
            )
        pixels = ScenePixels(replace(scene, bands=shared), mask, float(self.negative_tol))
        endmembers = self.endmembers_[:, shared[self.bands_]]
        with threads(self.n_jobs):
            mixtures = self._unmixed(pixels, None, endmembers, checked_constraint(self.constraint))
        pixels.tell()
        return mixtures.maps.reshape(*scene.shape[:2], -1)

    def match(self, library: SpectralLibrary) -> LibraryMatch:
        """Name the endmembers by the spectra of a library that they look like.

        Parameters
        ----------
        library : SpectralLibrary
            Known spectra; brought to the bands of the scene by its wavelengths where they differ.

        Returns
        -------
        LibraryMatch
            Names and angles in degrees.
        """
        check_is_fitted(self)
        fitting = library.in_bands(self.bands_, self.wavelengths_)
        return match_library(self.endmembers_, fitting, wavelengths=self.wavelengths_)

    def _complete_loaded(self) -> None:
        checked_constraint(self.constraint)
        if self.bands_.sum() != self.endmembers_.shape[1]:
            raise FileFormatError(
                f"expected bands_ to keep {self.endmembers_.shape[1]} bands. The file is damaged."
            )

    def _check_parameters(self) -> None:
        if self.reduce is not None and not METHODS.find(self.method).signed:
            raise UnsupportedError(
                f"method={self.method!r} needs nonnegative points, and reduce={self.reduce} makes signed "
                "ones. Leave reduce at None, or use 'snpa'."
            )
        wanted = self.n_endmembers
        if wanted is not None and not (_is_whole(wanted) and wanted >= 1):
            raise InvalidParameterError(
                f"n_endmembers must be None or a whole number of at least 1, got {wanted!r}."
            )
        if wanted is None and METHODS.find(self.method).kind != "convex":
            raise InvalidParameterError(
                f"method={self.method!r} needs n_endmembers, the number of pure spectra; 'merit' can do "
                "without."
            )
        if self.reduce is not None and not (_is_whole(self.reduce) and self.reduce >= (wanted or 1)):
            raise InvalidParameterError(
                f"reduce must be None or at least n_endmembers={self.n_endmembers}, got {self.reduce!r}."
            )
        if self.normalize not in (None, "l1"):
            raise InvalidParameterError(f"normalize must be None or 'l1', got {self.normalize!r}.")
        tolerance = self.negative_tol
        if not isinstance(tolerance, Real) or isinstance(tolerance, bool) or not tolerance >= 0:
            raise InvalidParameterError(f"negative_tol must be a number of at least 0, got {tolerance!r}.")

    def _reduced(self, pixels: ScenePixels) -> FloatArray:
        """Project the pixels onto the leading directions in two passes over the blocks."""
        bands = pixels.n_bands
        gram = np.zeros((bands, bands))
        for block in pixels.blocks():
            spectra = self._scaled(block.spectra)
            gram += spectra.T @ spectra
        directions = np.linalg.eigh(gram)[1][:, ::-1][:, : min(int(self.reduce or bands), bands)]
        # A fixed sign, so that the points do not depend on the library of linear algebra.
        directions = directions * vector_signs(directions)
        points = np.empty((int(pixels.mask.sum()), directions.shape[1]), dtype=pixels.dtype)
        filled = 0
        for block in pixels.blocks():
            points[filled : filled + len(block.pixels)] = self._scaled(block.spectra) @ directions
            filled += len(block.pixels)
        return points

    def _scaled(self, spectra: FloatArray) -> FloatArray:
        values = np.asarray(spectra, dtype=np.float64)
        if self.normalize is None:
            return values
        sums = values.sum(axis=1, keepdims=True)
        return values / np.where(sums > 0, sums, 1.0)

    def _unmixed(
        self, pixels: ScenePixels, matrix: FloatArray | None, endmembers: FloatArray, constraint: str
    ) -> Mixtures:
        rows, columns, _ = pixels.cube.shape
        mixtures = Mixtures.of(rows * columns, len(endmembers), pixels.n_bands, pixels.dtype)
        # Pixels that are in memory already are not read again.
        blocks = pixels.blocks() if matrix is None else [Block(np.flatnonzero(pixels.mask), matrix)]
        counter = StepCounter("Unmixing", int(pixels.mask.sum()), int(self.verbose))
        for block in blocks:
            for start in range(0, len(block.pixels), ROWS):
                part = slice(start, start + ROWS)
                mixtures.add(block.pixels[part], block.spectra[part], endmembers, constraint)
                counter.done("pixels mapped", len(block.pixels[part]))
        return mixtures

    def _keep(self, mixtures: Mixtures, shape: tuple[int, int, int]) -> None:
        self.abundances_ = mixtures.maps.reshape(*shape[:2], -1)
        self.residuals_ = mixtures.residuals.reshape(shape[:2])
        self.relative_error_ = math.sqrt(mixtures.squared_residual / mixtures.squared_norm)
