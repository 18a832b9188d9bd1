"""Generated data and their ground truth."""

from __future__ import annotations

from dataclasses import dataclass

from nonneg._typing import FloatArray, IntArray, MatrixLike


@dataclass(frozen=True)
class PlantedData:
    """Generated data with their ground truth.

    Attributes
    ----------
    X : array or scipy.sparse.csr_array of shape (n_samples, n_features)
        The data, nonnegative.
    H : array of shape (n_components, n_features)
        The planted components: directions, parts, spectra or topics.
    W : array of shape (n_samples, n_components) or None
        The planted coefficients; None where a sample is not a combination of `H`.
    labels : array of int of shape (n_samples,) or None
        The planted class of each sample, from 0; None where there is none.
    """

    X: MatrixLike
    H: FloatArray
    W: FloatArray | None = None
    labels: IntArray | None = None
