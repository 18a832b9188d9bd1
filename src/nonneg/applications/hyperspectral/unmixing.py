"""Unmixing: endmembers of a hyperspectral image, and abundance maps."""

from __future__ import annotations

from collections import Counter
from dataclasses import KW_ONLY, dataclass, replace
from numbers import Real
from os import PathLike
from typing import Any, ClassVar

import numpy as np
from sklearn.utils.validation import check_is_fitted

from nonneg._arguments import is_count
from nonneg._random import Seed
from nonneg._threads import threads
from nonneg._typing import FloatArray
from nonneg.applications.hyperspectral.abundances import CONSTRAINTS, Mixtures, image_statements
from nonneg.applications.hyperspectral.endmembers import (
    AUTO,
    METHODS,
    N_SEARCHED,
    fixed_sample,
    search_endmembers,
)
from nonneg.applications.hyperspectral.library import LibraryMatch, SpectralLibrary, match_library
from nonneg.applications.hyperspectral.n_endmembers import estimate_n_endmembers
from nonneg.applications.hyperspectral.pixels import ImagePixels
from nonneg.applications.method_entries import check_search
from nonneg.certificates.certificate import Certificate
from nonneg.estimators.saving import Fields, SavableEstimator, StoredArray
from nonneg.exceptions import FileFormatError, InvalidParameterError, ShapeError, UnknownNameError
from nonneg.io.cube import as_cube


@dataclass(eq=False, repr=False)
class Unmixing(SavableEstimator):
    """Find the endmembers of a hyperspectral image and map their abundances.

    Parameters
    ----------
    n_endmembers : int or "auto", default "auto"
        The number of endmembers. "auto" takes the number that at least two of three published estimates agree
        on (`estimate_n_endmembers`); if they disagree, which is usual for real images, an error lists them.
    method : str, default "auto"
        How endmembers are found. "auto" proposes medians of extreme pixels in several geometries and keeps
        those whose mixtures leave the least of a pixel (Notes). Or "min-volume" (`nonneg.MinVolNMF`), for
        images without pure pixels, or a name in `nonneg.separable.METHODS`, such as "snpa" or "vca", which
        return pixels.
    constraint : {"normalized", "sum-to-one", "at-most-one", "nonnegative"}, default "normalized"
        The constraint on the abundances of a pixel. "sum-to-one": fully constrained least squares (FCLS), for
        images of even brightness. "at-most-one": the same with shade as one more endmember. "nonnegative":
        nonnegative least squares. "normalized": the same divided by their sum, so that the brightness of a
        pixel is free.
    negative_tol : float, default 0.05
        Entries below zero, down to this fraction of the largest one, are set to zero, and a warning counts
        them; entries further below are an error.
    method_params : dict or None
        Parameters of a named method. Iterations stop as in `nonneg.select_anchors` by default, which also has
        callbacks and checkpoints.
    random_state : int, RandomState, Generator or None
        The seed of methods that draw random numbers.
    verbose : int, default 0
        1 shows the progress of convex methods and of the mapping.
    {n_jobs}

    Attributes
    ----------
    endmembers_ : array of shape (n_endmembers, n_kept_bands)
        The spectra of the endmembers, in the bands that are used: medians of nearly pure pixels, or what the
        method returns.
    n_endmembers_ : int
        Number of endmembers.
    n_endmembers_estimates_ : dict of str to int or None
        What the estimates say; None if the number was given.
    pure_pixels_ : array of int of shape (n_endmembers, 2)
        Row and column of each pure pixel; for methods that average pixels, of the most extreme one.
    abundances_ : array of shape (n_rows, n_columns, n_endmembers)
        The abundance maps; NaN for pixels that are not used.
    residuals_ : array of shape (n_rows, n_columns)
        The norm of the residual of each pixel, relative to that of the pixel.
    relative_error_ : float
        The same for the whole image.
    unexplained_ : array of bool of shape (n_rows, n_columns)
        Pixels of which the mixtures leave far more than of others: corrupt ones, or of materials that were
        not found.
    isolated_pixels_ : array of int of shape (n_isolated, 2)
        Row and column of pixels that were set aside in the search: corrupt, or unlike all others.
    n_zero_ : int
        Pixels that are zero in every band. They are not used.
    mask_ : array of bool of shape (n_rows, n_columns)
        Which pixels were used.
    bands_ : array of bool of shape (n_bands,)
        Which bands were used.
    wavelengths_ : array of shape (n_kept_bands,) or None
        Wavelengths of the bands that were used.
    n_features_in_ : int
        Number of bands of the image.
    n_clipped_ : int
        Entries below zero that were set to zero.
    certificate_ : Certificate
        What is known about the result: the mean relative residual of every candidate, whether pixels lie
        outside the mixtures, the error beside its lower bound, and dim endmembers.
    result_ : SelectionResult
        The search for pure pixels, whose anchors are indices among the pixels that are used.

    Notes
    -----
    ``method="auto"`` leaves out pixels of zeros and isolated ones. It divides the pixels by brightness to the
    power 0, 1/2 or 1, projects them to `n_endmembers` - 1 principal directions and follows random directions
    as vertex component analysis does [1]_; an endmember is the median of the most extreme 1, 2 or 5% of the
    pixels, or of 3 x 3 averages of them. There are eight runs of each. What nonnegative mixtures leave of a
    pixel, on average over a fixed sample of pixels, judges. The best run of every setting exchanges
    endmembers for medians of pixels that are extreme beside all others while that lowers the number, and the
    best setting is kept; ``result_.details["candidates"]`` has the number for every one.

    References
    ----------
    .. [1] Nascimento & Dias (2005), IEEE Trans. Geoscience and Remote Sensing 43(4).

    Examples
    --------
    >>> from nonneg.applications import Unmixing
    >>> from nonneg.datasets import scene_like
    >>> scene = scene_like(20, 30, n_bands=40, n_materials=3, noise=0.0, rng=0)
    >>> model = Unmixing(3, random_state=0).fit(scene.X.reshape(20, 30, 40))
    >>> model.abundances_.shape
    (20, 30, 3)
    """

    n_endmembers: int | str = "auto"
    _: KW_ONLY
    method: str = "auto"
    constraint: str = "normalized"
    negative_tol: float = 0.05
    method_params: dict[str, Any] | None = None
    random_state: Seed = None
    verbose: int = 0
    n_jobs: int | None = None

    _stored: ClassVar[Fields] = {
        "n_endmembers_": int,
        "n_features_in_": int,
        "relative_error_": float,
        "n_clipped_": int,
        "n_zero_": int,
        "n_endmembers_estimates_": dict | None,
        "certificate_": Certificate,
        "endmembers_": StoredArray("n_endmembers_", "number of bands kept", nonnegative=True),
        "wavelengths_": StoredArray("number of bands kept", optional=True),
        "bands_": StoredArray("n_features_in_", kind="b"),
        "abundances_": StoredArray("n_rows", "n_columns", "n_endmembers_"),
        "residuals_": StoredArray("n_rows", "n_columns"),
        "mask_": StoredArray("n_rows", "n_columns", kind="b"),
        "pure_pixels_": StoredArray("n_endmembers_", 2, kind="i", below=("n_rows", "n_columns")),
        "unexplained_": StoredArray("n_rows", "n_columns", kind="b"),
        "isolated_pixels_": StoredArray("n_isolated", 2, kind="i", below=("n_rows", "n_columns")),
    }

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
        """Find the endmembers and map their abundances.

        Parameters
        ----------
        cube : Cube, path or array of shape (n_rows, n_columns, n_bands)
            The hyperspectral image, never modified. The default reads it in blocks, several times, so that a
            memory-mapped file need not fit in memory; named methods gather its pixels.
        {y}
        mask : array of bool of shape (n_rows, n_columns), optional
            True for pixels to use.
        bands : "all" or array of bool of shape (n_bands,), optional
            True for bands to use. By default those of the cube: of an ENVI file, the bands that its header
            does not flag as bad.
        wavelengths : array of shape (n_bands,), optional
            Wavelengths of all bands, instead of those of the cube.
        no_data : float, optional
            Pixels that have this value in every band are not used; it may be NaN.

        Returns
        -------
        Unmixing
            The fitted estimator.
        """
        self._check_parameters()
        scene = as_cube(cube, wavelengths=wavelengths, no_data=no_data, bands=bands)
        with threads(self.n_jobs):
            pixels = ImagePixels(scene, mask, float(self.negative_tol))
            pixels.tell()
            k, estimates = self._number(pixels)
            # A simplex has one corner more than dimensions; beyond that, no pixel has one answer.
            if k > pixels.n_bands + 1:
                raise InvalidParameterError(
                    f"n_endmembers={k} is too many: at most {pixels.n_bands + 1} spectra can be told apart, "
                    f"one more than bands ({pixels.n_bands}). Ask for fewer."
                )
            result, endmembers = search_endmembers(
                pixels,
                k,
                self.method,
                self.constraint,
                self.method_params or {},
                rng=self.random_state,
                verbose=self.verbose,
            )
            mixtures = Mixtures.of(pixels, endmembers, self.constraint, int(self.verbose))
        used = np.flatnonzero(pixels.mask)
        isolated = used[np.asarray(result.details.get("isolated", ()), dtype=np.intp)]
        self.endmembers_ = endmembers
        self.n_endmembers_ = len(endmembers)
        self.n_endmembers_estimates_ = estimates
        self.pure_pixels_ = np.column_stack(np.divmod(used[result.anchors], scene.shape[1])).astype(np.intp)
        self.isolated_pixels_ = np.column_stack(np.divmod(isolated, scene.shape[1])).astype(np.intp)
        self.unexplained_ = mixtures.unexplained().reshape(scene.shape[:2])
        self.abundances_ = mixtures.maps.reshape(*scene.shape[:2], -1)
        self.residuals_ = mixtures.residuals.reshape(scene.shape[:2])
        self.relative_error_ = mixtures.relative_error
        self.mask_ = pixels.mask
        self.bands_ = scene.kept
        self.wavelengths_ = scene.kept_wavelengths
        self.n_clipped_ = pixels.n_clipped
        self.n_zero_ = pixels.n_zero
        self.n_features_in_ = scene.shape[2]
        self.result_ = result
        self.certificate_ = result.certificate.with_statements(image_statements(mixtures, endmembers))
        return self

    def fit_transform(self, cube: Any, y: Any = None, **options: Any) -> FloatArray:
        """Find the endmembers and return the abundance maps.

        Parameters
        ----------
        cube : Cube, path or array of shape (n_rows, n_columns, n_bands)
            The hyperspectral image.
        {y}
        **options : Any
            As in `fit`.

        Returns
        -------
        array of shape (n_rows, n_columns, n_endmembers)
            `abundances_`.
        """
        return self.fit(cube, y, **options).abundances_

    def transform(self, cube: Any, *, mask: Any = None, no_data: float | None = None) -> FloatArray:
        """Map the endmembers in another image with the same bands.

        Parameters
        ----------
        cube : Cube, path or array of shape (n_rows, n_columns, n_bands)
            The hyperspectral image. Of the bands that it uses, those that were used in fit count.
        mask : array of bool of shape (n_rows, n_columns), optional
            True for pixels to use.
        no_data : float, optional
            The value of pixels without data.

        Returns
        -------
        array of shape (n_rows, n_columns, n_endmembers)
            The abundance maps; NaN for pixels that are not used.
        """
        check_is_fitted(self)
        scene = as_cube(cube, no_data=no_data)
        if scene.shape[2] != self.n_features_in_:
            raise ShapeError(
                f"Expected a cube with {self.n_features_in_} bands, as in fit, got {scene.shape[2]}."
            )
        shared = self.bands_ & scene.kept
        if shared.sum() < min(self.n_endmembers_, self.endmembers_.shape[1]):
            raise ShapeError(
                f"{int(shared.sum())} bands are used both in this image and in that of fit, too few for "
                f"{self.n_endmembers_} endmembers. read_cube(path, bands='all') uses all those of fit."
            )
        self._check_parameters()
        with threads(self.n_jobs):
            pixels = ImagePixels(replace(scene, bands=shared), mask, float(self.negative_tol))
            pixels.tell()
            endmembers = self.endmembers_[:, shared[self.bands_]]
            mixtures = Mixtures.of(pixels, endmembers, self.constraint, int(self.verbose))
        return mixtures.maps.reshape(*scene.shape[:2], -1)

    def match(self, library: SpectralLibrary | str | PathLike[str]) -> LibraryMatch:
        """Name the endmembers by the most similar spectra of a library.

        Parameters
        ----------
        library : SpectralLibrary or path
            Known spectra, or a file that `read_library` reads; interpolated to the bands of the image if
            their wavelengths differ.

        Returns
        -------
        LibraryMatch
            Names and angles in degrees.
        """
        check_is_fitted(self)
        return match_library(self.endmembers_, library, self.wavelengths_, self.bands_)

    def _complete_loaded(self) -> None:
        self._check_parameters()
        if self.bands_.sum() != self.endmembers_.shape[1]:
            raise FileFormatError(
                f"expected bands_ to keep {self.endmembers_.shape[1]} bands. The file is damaged."
            )

    def _check_parameters(self) -> None:
        number = self.n_endmembers
        if not is_count(number) and str(number) != AUTO:
            raise InvalidParameterError(
                f"n_endmembers must be 'auto' or a whole number of at least 1, got {number!r}."
            )
        tolerance = self.negative_tol
        if not isinstance(tolerance, Real) or isinstance(tolerance, bool) or not tolerance >= 0:
            raise InvalidParameterError(f"negative_tol must be a number of at least 0, got {tolerance!r}.")
        check_search(self, METHODS)
        UnknownNameError.check("constraint", self.constraint, CONSTRAINTS)

    def _number(self, pixels: ImagePixels) -> tuple[int, dict[str, int] | None]:
        """Return the number of endmembers, and the estimates behind it if it was not given."""
        if self.n_endmembers != AUTO:
            return int(self.n_endmembers), None
        estimates = estimate_n_endmembers(pixels.at(fixed_sample(np.flatnonzero(pixels.mask), N_SEARCHED)))
        number, votes = Counter(estimates.values()).most_common(1)[0]
        if votes == 1:
            listed = ", ".join(f"{name} {value}" for name, value in estimates.items())
            raise InvalidParameterError(
                f"The number of endmembers is not clear: estimates disagree: {listed}. Choose one with "
                "n_endmembers= (-k), and compare the results of several."
            )
        return number, estimates
