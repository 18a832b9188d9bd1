"""Frames of signals as users pass them."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from array_api_compat import array_namespace
from sklearn.utils.validation import validate_data

from nonneg._arrays import is_dask, is_non_numpy
from nonneg._typing import Array
from nonneg.data.annotated import is_anndata
from nonneg.estimators._base import FactorizingEstimator
from nonneg.exceptions import (
    DataTypeError,
    InvalidDataError,
    NonFiniteDataError,
    ShapeError,
)


def input_frames(estimator: FactorizingEstimator, X: Any, *, reset: bool) -> Array:
    """Check frames and return them with an axis of realizations."""
    who = type(estimator).__name__
    if is_dask(X):
        raise DataTypeError(
            f"{who} needs all frames at once: expected an array, got a Dask array. Compute it."
        )
    if is_anndata(X):
        raise DataTypeError(
            f"{who} learns a transform of frames of a signal: expected an array, got an AnnData object. Use "
            "NMF for the genes of cells."
        )
    if not is_non_numpy(X):
        if number_of_axes(X) >= 3:
            X = _real_array(X)
        else:
            # The finite entries are checked below, where a wrong one is named by its place.
            X = validate_data(
                estimator, X, reset=reset, dtype=[np.float64, np.float32], ensure_all_finite=False
            )
    if getattr(X, "requires_grad", False):
        X = X.detach()
    if len(X.shape) == 2:
        X = X[None, :, :]
    if len(X.shape) != 3:
        raise ShapeError(
            f"Expected frames of shape (n_frames, frame_length) or (n_realizations, n_frames, frame_length), "
            f"got {tuple(X.shape)}."
        )
    n_realizations, n_frames, length = (int(side) for side in X.shape)
    if n_realizations == 0 or n_frames == 0:
        raise InvalidDataError(
            f"Found array with shape {(n_realizations, n_frames, length)}: {who} needs at least one "
            "realization and one frame."
        )
    if reset:
        _check_sizes(n_frames, length)
        estimator.n_features_in_ = length
    elif length != estimator.n_features_in_:
        raise ShapeError(
            f"X has {length} features, but {who} is expecting {estimator.n_features_in_} features as input."
        )
    _check_finite(X, who)
    return X


def _check_sizes(n_frames: int, length: int) -> None:
    # In scikit-learn's words too: a frame is a sample there, and what is in it are features.
    if length < 2:
        raise InvalidDataError(
            f"Expected frames of at least two samples, got n_features={length}: a transform of one sample "
            f"is trivial."
        )
    if n_frames < 2:
        raise InvalidDataError(
            f"Expected at least two frames, got n_samples={n_frames}: any transform fits one. Use shorter "
            "frames or a smaller hop."
        )


def number_of_axes(X: Any) -> int:
    """Return how many axes an input has."""
    if sp.issparse(X) or hasattr(X, "iloc"):
        return 2
    return len(X.shape) if hasattr(X, "shape") else np.asarray(X).ndim


def _real_array(X: Any) -> Any:
    X = np.asarray(X)
    if X.dtype.kind not in "biuf":
        what = "Complex data" if X.dtype.kind == "c" else f"Data of dtype {X.dtype}"
        raise DataTypeError(f"{what} not supported: expected frames of real numbers.")
    return X if X.dtype == np.float32 else X.astype(np.float64)


def _check_finite(X: Array, who: str) -> None:
    xp = array_namespace(X)
    if bool(xp.all(xp.isfinite(X))):
        return
    wrong = np.argwhere(~np.isfinite(np.asarray(X.tolist() if not isinstance(X, np.ndarray) else X)))[0]
    raise NonFiniteDataError(
        f"Input X contains NaN or infinity: {who} found one in realization {wrong[0]}, frame {wrong[1]}, "
        f"sample {wrong[2]}. Replace it, or cut that part of the signal out."
    )
