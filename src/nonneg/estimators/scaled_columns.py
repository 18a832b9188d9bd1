"""Fitted components applied to new data, with columns divided by a scale that the fit found."""

from __future__ import annotations

import logging
from typing import Any, ClassVar

import numpy as np
from sklearn.utils.validation import check_is_fitted

from nonneg._arrays import is_non_numpy, to_device, to_float64
from nonneg._devices import device_work
from nonneg._threads import threads
from nonneg._typing import FloatArray
from nonneg.certificates.certificate import Certificate
from nonneg.data import DataMatrix, LocalMatrix
from nonneg.data.sparse import SparseMatrix
from nonneg.data.sparse_array import SparseArrayMatrix
from nonneg.data.views import ScaledMatrix
from nonneg.estimators._base import input_data
from nonneg.estimators.online import OnlineEstimator
from nonneg.estimators.preparation import beta_loss_of, lower_bound_statement, penalties_of
from nonneg.estimators.stored_fields import Fields, StoredArray
from nonneg.exceptions import UnsupportedInputError
from nonneg.iteration.progress import logger
from nonneg.solvers.encoding import encode

SCALES = ("max", "std", "sum")
# Columns dominate if a tenth of them, and no more than three, hold 95% of what the loss measures: proline
# among the 13 columns of wine (98%), two areas among the 30 of breast cancer; no pixels of digits.
_NEARLY_ALL, _PART, _MOST, _FEWEST = 0.95, 0.1, 3, 4


class ScalingEstimator(OnlineEstimator):
    """An estimator that may divide the columns of X by a scale; components are in the unit of X."""

    scale: str | None
    transform_max_iter: int | None
    column_scale_: FloatArray
    _stored: ClassVar[Fields] = {
        **OnlineEstimator._stored,
        "column_scale_": StoredArray("n_features_in_", nonnegative=True, optional=True),
    }

    def _scaled(self, data: DataMatrix, *, reset: bool = False) -> DataMatrix:
        """Divide the columns; `reset` takes their scale from these data."""
        if reset:
            self.__dict__.pop("column_scale_", None)
            if self.scale is not None:
                self.column_scale_ = column_scale(data, self.scale)
        return scaled_columns(data, getattr(self, "column_scale_", None))

    def _scaled_H(self, H: Any, power: int) -> Any:
        """Multiply the columns of H by a power of the scale: 1 to the unit of X, -1 from it."""
        scale = getattr(self, "column_scale_", None)
        if scale is None or H is None:
            return H
        if is_non_numpy(H):
            return H * to_device(scale**power, H, H.dtype)
        H = np.asarray(H)
        return H * (scale**power).astype(H.dtype if H.dtype.kind == "f" else np.float64)

    def _log_dominant_columns(self, data: DataMatrix, beta: float) -> None:
        # One more pass over the data, for those who look.
        if not logger.isEnabledFor(logging.INFO) or self.scale is not None:
            return
        if found := dominant_columns(data, beta):
            names = getattr(self, "feature_names_in_", None)
            said = ", ".join(str(at if names is None else names[at]) for at in found[0])
            logger.info(
                "%s: %.1f%% of what the loss measures is in %d of %d columns (%s), so the others hardly "
                "count. scale='max' balances them.",
                type(self).__name__, 100 * found[1], len(found[0]), data.shape[1], said,
            )  # fmt: skip

    def transform(self, X: Any, mask: Any = None) -> Any:
        """Transform the data X: minimize the objective over W for the fitted H.

        Parameters
        ----------
        X : array, sparse matrix, data frame, tensor or Dask array of shape (n_samples, n_features)
            Nonnegative data. Never modified.
        mask : bool array or sparse matrix of shape (n_samples, n_features), optional
            True where observed.

        Returns
        -------
        array of shape (n_samples, n_components)
            Transformed data W, of the same array type as X.
        """
        check_is_fitted(self)
        beta = beta_loss_of(self)
        data = self._scaled(input_data(self, X, reset=False, mask=mask, positive=beta <= 0))
        with threads(self.n_jobs), device_work(data):
            W, _ = encode(
                data,
                data.to_device(self._scaled_H(self.components_, -1).T),
                beta=beta,
                penalties=penalties_of(self, data),
                max_iter=self.transform_max_iter,
            )
        return data.to_caller(W)

    def certify(self, X: Any, *, sample_weight: Any = None, mask: Any = None) -> Certificate:
        """Compare the error with the Eckart-Young lower bound, and add the outcome to `certificate_`.

        Parameters
        ----------
        X : array, sparse matrix, data frame, tensor or Dask array of shape (n_samples, n_features)
            The training data.
        sample_weight, mask : array, optional
            Those passed to `fit`.

        Returns
        -------
        Certificate
            The certificate with the statement "eckart-young-bound", which costs as much as a few iterations.
        """
        check_is_fitted(self)
        data = self._scaled(input_data(self, X, reset=False, sample_weight=sample_weight, mask=mask))
        with threads(self.n_jobs):
            statement = lower_bound_statement(self, data, self._scaled_H(self.components_, -1))
        self.certificate_ = getattr(self, "certificate_", Certificate()).with_statements([statement])
        return self.certificate_


def column_scale(data: DataMatrix, kind: str) -> FloatArray:
    """Return the maximum, standard deviation or sum of the observed entries of every column."""
    largest, total, count = np.zeros(data.shape[1]), np.zeros(data.shape[1]), np.zeros(data.shape[1])
    for values, weights in _weighted_rows(data):
        largest = np.maximum(largest, np.where(weights > 0, values, 0.0).max(axis=0))
        total += np.sum(weights * values, axis=0)
        count += weights.sum(axis=0)
    scale = {"max": largest, "sum": total}.get(kind)
    if scale is None:
        mean = total / np.maximum(count, np.finfo(float).tiny)
        squares = sum(
            (np.sum(weights * (values - mean) ** 2, axis=0) for values, weights in _weighted_rows(data)),
            start=np.zeros(data.shape[1]),
        )
        deviation = np.sqrt(squares / np.maximum(count, np.finfo(float).tiny))
        # A column that is constant but for rounding has no deviation, and would outweigh all others.
        scale = np.where(deviation > 1e-9 * largest, deviation, largest)
    # Columns of zeros stay.
    return np.where(scale > 0, scale, 1.0)


def scaled_columns(data: DataMatrix, scale: FloatArray | None) -> DataMatrix:
    """Return the data with every column divided by its scale."""
    if scale is None:
        return data
    if not isinstance(data, LocalMatrix):
        raise _not_local()
    scaled = ScaledMatrix(data, column_scale=data.to_device(1.0 / scale)).materialized()
    scaled.numpy_out = data.numpy_out
    return scaled


def dominant_columns(data: DataMatrix, beta: float) -> tuple[list[int], float] | None:
    """Return the few columns that account for nearly all of the loss, and their share, if there are any."""
    # Each entry counts in a beta-divergence about as much as its power beta: all alike for Itakura-Saito.
    if beta <= 0 or data.shape[1] < _FEWEST:
        return None
    _, (sums,) = data.map_reduce_rows(_column_powers, n_out=0, beta=beta)
    sums = to_float64(sums)
    order = np.argsort(-sums, kind="stable")
    shares = np.cumsum(sums[order]) / max(float(sums.sum()), np.finfo(float).tiny)
    n_few = int(np.searchsorted(shares, _NEARLY_ALL)) + 1
    if n_few > min(_MOST, max(1, _PART * data.shape[1])):
        return None
    return order[:n_few].tolist(), float(shares[n_few - 1])


def _column_powers(block: LocalMatrix, *, beta: float) -> tuple[tuple[()], tuple[Any]]:
    xp = block.xp
    if isinstance(block, SparseArrayMatrix):
        return (), (block.column_powers(beta),)
    if isinstance(block, SparseMatrix):
        values = block.csr.data.astype(np.float64) ** beta
        if block.weights is not None:
            values *= np.repeat(np.asarray(block.weights), np.diff(block.csr.indptr))
        return (), (np.bincount(block.csr.indices, weights=values, minlength=block.shape[1]),)
    total = xp.zeros(block.shape[1], dtype=xp.float64, device=block.dense_rows(0, 1).device)
    for start, stop in block.row_blocks(1 << 20):
        rows = xp.astype(block.dense_rows(start, stop), xp.float64) ** beta
        if block.weights is not None:
            rows = rows * xp.astype(block.weights[start:stop], xp.float64)[:, None]
        total = total + xp.sum(rows, axis=0)
    return (), (total,)


def _weighted_rows(data: DataMatrix) -> Any:
    if not isinstance(data, LocalMatrix):
        raise _not_local()
    for start, stop in data.row_blocks(1 << 20):
        values = to_float64(data.dense_rows(start, stop))
        weights = np.ones_like(values)
        if data.observed is not None:
            weights = to_float64(data.observed.dense_rows(start, stop))
        if data.weights is not None:
            weights = weights * to_float64(data.weights[start:stop])[:, None]
        yield values, weights


def _not_local() -> UnsupportedInputError:
    return UnsupportedInputError(
        "scale divides the columns of data in memory, but X is a Dask array or a file that does not fit. "
        "Divide it yourself, for example X / X.max(axis=0), and leave scale out."
    )
