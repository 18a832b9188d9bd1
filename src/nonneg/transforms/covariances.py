"""Frames as their covariances: all that a transform depends on, factored to their rank.

The mean of squares of the transformed frames is ``phi' Sigma_n phi`` for every atom phi, so that S
realizations of a frame can be replaced by rank(Sigma_n) virtual ones with the same covariance.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from array_api_compat import array_namespace, is_array_api_obj

from nonneg._arrays import is_dask, is_float32, numpy_dtype, to_float64
from nonneg._typing import Array, FloatArray, Namespace
from nonneg.exceptions import (
    DataTypeError,
    InvalidDataError,
    InvalidParameterError,
    NonFiniteDataError,
    ShapeError,
)

# Eigenvalues below this share of a frame's largest, times their number, are rounding and left out: some 50
# units in the last place of float64, ten of float32.
NEGLIGIBLE = 1e-14
NEGLIGIBLE_SINGLE = 1e-6


@dataclass(frozen=True)
class FrameCovariances:
    """Covariances Sigma_n of frames, as virtual realizations.

    Attributes
    ----------
    virtual : array of shape (rank, n_frames, frame_length)
        ``Sigma_n = sum_r v_rn v_rn'``: the mean over realizations is absorbed.
    discarded : array of shape (n_frames,)
        Sum of the eigenvalues of each Sigma_n that were left out.
    error : float
        Largest difference of a variance (diagonal entry of Sigma_n) from that of the virtual realizations,
        relative to the largest variance of its frame; measured.
    n_realizations : int or None
        How many realizations there were; None where covariances were given.
    """

    virtual: Array
    discarded: FloatArray
    error: float
    n_realizations: int | None

    @property
    def row_ranges(self) -> tuple[None, None]:
        """Row ``r * n_frames + i`` of `rows` is realization r of frame i."""
        return None, None

    @property
    def rank(self) -> int:
        """Virtual realizations per frame."""
        return int(self.virtual.shape[0])

    @property
    def n_frames(self) -> int:
        """The number of frames."""
        return int(self.virtual.shape[1])

    @property
    def frame_length(self) -> int:
        """Samples per frame."""
        return int(self.virtual.shape[2])

    @property
    def rows(self) -> Array:
        """The virtual realizations one under the other, of shape (rank * n_frames, frame_length)."""
        return array_namespace(self.virtual).reshape(self.virtual, (-1, self.frame_length))

    def variances(self, transform: Array) -> Array:
        """Return the mean squares of transformed frames.

        Parameters
        ----------
        transform : array of shape (frame_length, frame_length)
            Rows are atoms.

        Returns
        -------
        array of shape (n_frames, frame_length)
            The paper's ``E_S(|Phi Y|^2)``, transposed.
        """
        X = self.virtual @ transform.T
        return array_namespace(X).sum(X * X, axis=0)


def checked_frames(Y: Any, *, n_frames: int = 2) -> Array:
    """Return real and finite frames with an axis of realizations, at least `n_frames` of them."""
    Y = _checked(Y, "X")
    if Y.ndim == 2:
        Y = Y[None, ...]
    if Y.ndim != 3:
        raise ShapeError(
            "Expected frames of shape (n_realizations, n_frames, frame_length) or (n_frames, frame_length), "
            f"got {tuple(Y.shape)}."
        )
    S, N, M = Y.shape
    if S < 1:
        raise InvalidDataError(f"Expected at least one realization of the frames, got shape {(S, N, M)}.")
    # In scikit-learn's words too: a frame is a sample there, and what is in it are features.
    if M < 2:
        raise InvalidDataError(
            f"Expected frames of at least two samples, got n_features={M}: there is nothing to rotate."
        )
    if n_frames > N:
        raise InvalidDataError(
            f"Expected at least {n_frames} frames, got n_samples={N}: any eigenvectors of one covariance "
            "diagonalize it. Use shorter frames or a smaller hop."
        )
    _check_finite(array_namespace(Y), Y, ("realization", "frame", "sample"))
    return Y


def frame_covariances(Y: Any) -> FrameCovariances:
    """Check frames and factor their covariances.

    Parameters
    ----------
    Y : array of shape (n_realizations, n_frames, frame_length) or (n_frames, frame_length)
        Real frames, of any namespace; never changed.

    Returns
    -------
    FrameCovariances
        In float32 for float32 and otherwise in float64, on the device of Y.

    Raises
    ------
    InvalidDataError
        If there are too few realizations, frames or samples, or nothing but silence.
    """
    Y = checked_frames(Y)
    S, N, _ = Y.shape
    xp = array_namespace(Y)
    if not bool(xp.any(Y != 0)):
        raise InvalidDataError("All frames are silent (zeros): there is nothing to learn from.")
    if not bool(xp.any(Y[..., :1] != Y)):
        raise InvalidDataError(
            "Every frame is constant: they span only one direction, for which no transform needs to be "
            "learned. Check how the signal was read and framed."
        )
    check_unit(float(xp.max(xp.abs(Y))), str(Y.dtype), "The largest sample")
    scaled = Y / S**0.5
    if S == 1:
        return FrameCovariances(scaled, np.zeros(N), 0.0, S)
    return _factored(scaled, S)


def covariances_of(covariances: Any) -> FrameCovariances:
    """Check covariance matrices and factor them.

    Parameters
    ----------
    covariances : array of shape (n_frames, frame_length, frame_length)
        Symmetric, without negative eigenvalues.

    Returns
    -------
    FrameCovariances
        On the same device.
    """
    matrices = _checked(covariances, "covariances")
    if matrices.ndim != 3 or matrices.shape[1] != matrices.shape[2]:
        raise ShapeError(
            f"Expected covariances of shape (n_matrices, m, m), got {tuple(matrices.shape)}. Pass frames to "
            "learn_transform."
        )
    N, M = matrices.shape[:2]
    if M < 2:
        raise InvalidDataError(
            f"Expected matrices of at least two rows, got {M}: there is nothing to rotate."
        )
    if N < 2:
        raise InvalidDataError(
            f"Expected at least two matrices, got {N}: the eigenvectors of one diagonalize it, and "
            "numpy.linalg.eigh finds them."
        )
    xp = array_namespace(matrices)
    _check_finite(xp, matrices, ("matrix", "row", "column"))
    symmetric = 0.5 * (matrices + xp.matrix_transpose(matrices))
    scale = float(xp.max(xp.abs(matrices)))
    if scale == 0:
        raise InvalidDataError("All covariances are zero: there is nothing to diagonalize.")
    check_unit(math.sqrt(scale), str(matrices.dtype), "The root of the largest covariance")
    single = is_float32(matrices.dtype)
    allowed = (1e-4 if single else 1e-9) * scale
    apart = xp.max(xp.reshape(xp.abs(matrices - symmetric), (N, -1)), axis=1)
    if float(xp.max(apart)) > allowed:
        raise InvalidDataError(
            f"Expected symmetric covariances: matrix {int(xp.argmax(apart))} differs from its transpose by "
            f"{2.0 * float(xp.max(apart)):.3g}."
        )
    values, vectors = xp.linalg.eigh(symmetric)
    if float(xp.min(values)) < -allowed:
        worst = int(xp.argmin(xp.min(values, axis=1)))
        raise InvalidDataError(
            f"Covariance {worst} has the negative eigenvalue {float(xp.min(values)):.3g}: it is not a "
            f"covariance matrix. Add a multiple of the identity, or leave it out."
        )
    diagonal = xp.linalg.diagonal(symmetric)
    return _from_spectra(values, xp.matrix_transpose(vectors), diagonal, None)


def check_eps0(data: FrameCovariances, eps0: float) -> None:
    """Reject an objective that is not bounded from below."""
    if eps0 > 0:
        return
    squares = to_float64(array_namespace(data.virtual).sum(data.virtual * data.virtual, axis=2))
    ranks = (squares > 0).sum(axis=0)
    if ranks.min() < data.frame_length:
        worst = int(np.argmin(ranks))
        what = "matrix" if data.n_realizations is None else "frame"
        raise InvalidParameterError(
            f"eps0=0 needs covariances of full rank {data.frame_length}, that of {what} {worst} has rank "
            f"{ranks[worst]}: an atom in its null space makes L minus infinity. Pass eps0 above 0, a small "
            "share of the mean power."
        )


def _factored(Y: Array, n_realizations: int) -> FrameCovariances:
    """Factor sum_s y_sn y_sn' of every frame, through the smaller one of the two Gram matrices."""
    xp = array_namespace(Y)
    S, _, M = Y.shape
    by_frame = xp.permute_dims(Y, (1, 0, 2))
    diagonal = xp.sum(Y * Y, axis=0)
    if S <= M:
        values, vectors = xp.linalg.eigh(by_frame @ xp.matrix_transpose(by_frame))
        # Rows of U'Y are orthogonal, with the eigenvalues as squared norms: no square root is taken of them.
        rows = xp.matrix_transpose(vectors) @ by_frame
        large = _large(values)
        if int(xp.sum(xp.astype(large, xp.int64))) == large.shape[0] * S:
            return FrameCovariances(Y, np.zeros(Y.shape[1]), 0.0, n_realizations)
        return _assembled(values, rows, large, diagonal, n_realizations)
    values, vectors = xp.linalg.eigh(xp.matrix_transpose(by_frame) @ by_frame)
    return _from_spectra(values, xp.matrix_transpose(vectors), diagonal, n_realizations)


def _from_spectra(
    values: Array, vectors: Array, diagonal: Array, n_realizations: int | None
) -> FrameCovariances:
    xp = array_namespace(values)
    large = _large(values)
    positive = xp.where(large, values, xp.zeros_like(values))
    return _assembled(values, vectors * xp.sqrt(positive)[..., None], large, diagonal, n_realizations)


def _large(values: Array) -> Array:
    xp = array_namespace(values)
    share = NEGLIGIBLE_SINGLE if is_float32(values.dtype) else NEGLIGIBLE
    top = xp.max(values, axis=1, keepdims=True)
    return values > share * values.shape[1] * xp.where(top > 0, top, xp.ones_like(top))


def _assembled(
    values: Array, rows: Array, large: Array, diagonal: Array, n_realizations: int | None
) -> FrameCovariances:
    """Keep the last `rank` rows of every frame (eigenvalues ascend), zeros where a frame has fewer."""
    xp = array_namespace(values)
    zero = xp.zeros_like(values)
    rank = max(1, int(xp.max(xp.sum(xp.astype(large, xp.int64), axis=1))))
    discarded = xp.sum(xp.where(large, zero, xp.where(values > 0, values, zero)), axis=1)
    used = xp.where(large[..., None], rows, xp.zeros_like(rows))[:, -rank:, :]
    # The largest first.
    virtual = xp.permute_dims(xp.flip(used, axis=1), (1, 0, 2))
    virtual = xp.asarray(virtual, copy=True)
    top = xp.max(diagonal, axis=1)
    difference = xp.max(xp.abs(xp.sum(virtual * virtual, axis=0) - diagonal), axis=1)
    error = float(xp.max(difference / xp.where(top > 0, top, xp.ones_like(top))))
    return FrameCovariances(virtual, to_float64(discarded).astype(np.float64), error, n_realizations)


def _checked(Y: Any, name: str) -> Array:
    if is_dask(Y):
        raise DataTypeError(f"{name} is needed as a whole: expected an array, got a Dask array. Compute it.")
    if isinstance(Y, np.ma.MaskedArray):
        raise DataTypeError(f"Expected {name} without missing entries, got a masked array. Fill them first.")
    if not is_array_api_obj(Y):
        try:
            Y = np.asarray(Y)
        except ValueError as error:
            raise ShapeError(
                f"{name} is not an array: {error}. All frames must have the same length."
            ) from error
    if getattr(Y, "requires_grad", False):
        Y = Y.detach()
    xp = array_namespace(Y)
    if not xp.isdtype(Y.dtype, ("real floating", "integral", "bool")):
        raise DataTypeError(
            f"{Y.dtype} data not supported: expected real numbers in {name}, not complex ones or words."
        )
    if Y.dtype in (xp.float32, xp.float64):
        return Y
    return xp.astype(Y, xp.float64)


def _check_finite(xp: Namespace, Y: Array, axes: tuple[str, str, str]) -> None:
    finite = xp.isfinite(Y)
    if bool(xp.all(finite)):
        return
    where = np.argwhere(to_float64(finite) == 0)[0]
    place = ", ".join(f"{name} {i}" for name, i in zip(axes, where, strict=True))
    raise NonFiniteDataError(
        f"Expected finite numbers, without NaN or infinity: got {float(to_float64(Y)[tuple(where)])} at "
        f"{place}. Repair or leave out the {'frame' if 'frame' in axes else axes[0]}."
    )


def check_unit(size: float, dtype: str, what: str) -> None:
    """Reject powers whose squares overflow: variances are divided by squares of variances."""
    limits = np.finfo(numpy_dtype(dtype))
    if not float(limits.tiny) <= size * size <= math.sqrt(float(limits.max)):
        verb, remedy = ("overflow", "Divide") if size > 1 else ("vanish", "Multiply")
        raise InvalidDataError(
            f"{what} is {size:.3g}: products of powers {verb} in {limits.dtype}. {remedy} the data by a "
            "power of ten."
        )
