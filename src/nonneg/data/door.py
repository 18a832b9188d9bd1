"""The door of the library: X is classified, checked and wrapped here, once; errors say what to do."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Mapping, Set
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from array_api_compat import array_namespace

from nonneg._arrays import (
    checked_indices,
    is_dask,
    is_non_numpy,
    is_sparse_array,
    library_of,
    numpy_dtype,
    to_numpy,
)
from nonneg._typing import Array, MatrixLike
from nonneg.data import DataMatrix, as_data_matrix
from nonneg.data.annotated import annotated_matrix, check_labels, frame_labels
from nonneg.data.local import has_nan, observed_mask
from nonneg.data.observed import checked_entry_weights
from nonneg.data.sparse import SparseRows, check_sparse_array, on_host, scipy_matrix, sparse_tensor
from nonneg.data.streamed import StreamedMatrix, copied, fits_on
from nonneg.exceptions import (
    DataTypeError,
    InvalidDataError,
    InvalidParameterError,
    NegativeDataError,
    NonFiniteDataError,
    ShapeError,
    UnknownNameError,
    UnsupportedInputError,
    as_data_errors,
)
from nonneg.io.memory import memory_limit
from nonneg.io.read import as_stored
from nonneg.io.stored import ArrayRows, StoredMatrix

Labels = tuple[Any, Any] | None
KEEP = (
    "If they are noise around small values, pass negative='keep' (--negative keep), which the Frobenius loss "
    "allows: clipping biases the components."
)
BEFORE = "Pass the numbers from before X was centered or scaled, such as counts (adata.layers['counts'])."


@dataclass(frozen=True, eq=False)
class Request:
    """Requirements of a caller of `wrap` on the data."""

    sample_weight: Any = None  # of the rows
    mask: Any = None  # which entries were observed
    # The weights of the entries, or the standard deviations that they follow from, 1 / uncertainty^2; dense,
    # sparse, or a pair of a sparse matrix and the number for what it does not store.
    entry_weight: Any = None
    uncertainty: Any = None
    batch: bool = False  # whether there were or will be other samples, in which the columns have weights
    missing: str = "error"  # what NaN means: "error" or "mask"
    positive: bool = False  # whether zeros are rejected
    signed: bool = False  # whether negative entries are accepted
    # What the user said of negative entries: "keep" accepts them. None if the caller has no such parameter.
    negative: str | None = None
    who: str = "factorize"  # the function or class that messages name
    masks: bool = True  # whether that one accepts ``missing="mask"``, which messages then recommend
    # How data on the host become an array or a sparse matrix: `numpy.asarray` by default, scikit-learn's
    # `validate_data` in an estimator.
    convert: Callable[[Any], Any] | None = None
    # Called with arrays that `convert` does not see: tensors, Dask arrays and what is read from disk.
    check_shape: Callable[[Any], None] = lambda X: None
    verbose: int = 0  # whether a file that is read block by block shows how far it was read
    device: Any = None  # where data of the host are worked on; what does not fit there is streamed
    sparse_arrays: bool = False  # whether sparse tensors and CuPy's stay on their device, or become SciPy's

    def rows(self, shape: tuple[int, int]) -> tuple[Any, Any]:
        """Return row weights and mask or weights of entries, checked against the shape of X."""
        UnknownNameError.check("missing", self.missing, ("error", "mask"))
        mask = None if self.mask is None else _checked_mask(self.mask, shape)
        entries = {"mask": mask, "entry_weight": self.entry_weight, "uncertainty": self.uncertainty}
        names = [name for name, value in entries.items() if value is not None]
        if len(names) > 1:
            raise InvalidParameterError(
                f"{' and '.join(names)} are given, but each of them weights the entries. Pass one of them; a "
                "weight of 0 is a missing entry."
            )
        if names and mask is None:
            pair = entries[names[0]]
            values, absent = pair if isinstance(pair, tuple) and len(pair) == 2 else (pair, None)
            values = scipy_matrix(values, names[0]) if is_sparse_array(values) else values
            mask = checked_entry_weights(values, absent, shape, names[0], batch=self.batch)
        weights = None if self.sample_weight is None else _checked_weights(self.sample_weight, shape[0])
        return weights, mask


def wrap(X: MatrixLike, request: Request = Request()) -> DataMatrix:  # noqa: B008
    """Check type, shape and entries of X once, and wrap it; what is wrapped already was checked.

    Parameters
    ----------
    X : array, sparse matrix, data frame, AnnData, tensor, Dask array, array on disk or DataMatrix
        The data.
    request : Request
        What the caller asks of them.

    Returns
    -------
    DataMatrix
        The data operator; its `extremes` are known.
    """
    if isinstance(X, DataMatrix):
        if request.entry_weight is not None or request.uncertainty is not None:
            raise UnsupportedInputError(
                f"{request.who} cannot give weights to the entries of data that were opened before. Pass an "
                "array, or what nonneg.open_matrix returns."
            )
        request.check_shape(X)
        return X if request.sparse_arrays else on_host(X)
    labels: Labels = None
    advice = None
    annotated = annotated_matrix(X)
    if annotated is not None:
        X, advice = annotated.entries, annotated.source.advice()
        labels = annotated.row_names, annotated.column_names
    stored, device = as_stored(X), request.device
    if stored is not None and not stored.fits():
        request.check_shape(stored)
        return _streamed(stored, request, labels, advice)
    if stored is not None and not isinstance(X, np.memmap):
        X, stored = stored.read_all(), None
    if annotated is None:
        labels = frame_labels(X, unique=request.convert is not None)
    for name in ("mask", "entry_weight", "uncertainty"):
        check_labels(labels, getattr(request, name), name)
    X = _checked_array(X, request)
    if device is not None:
        if not fits_on(X, device):
            stored = ArrayRows(X, "X", memory_limit()) if stored is None else stored
            return _streamed(stored, request, labels, advice)
        X = copied(X, device)
    weights, mask = request.rows(X.shape)
    if request.missing == "mask" and has_nan(X):  # complete data keep the solvers for complete data
        mask = observed_mask(X, mask)
    data = as_data_matrix(X, weights=weights, mask=mask)
    data.numpy_out = device is not None
    check_entries(data, request, labels, advice)
    return data if request.sparse_arrays or device is not None else on_host(data)


def _streamed(stored: StoredMatrix, request: Request, labels: Labels, advice: str | None) -> StreamedMatrix:
    """Check what does not fit in memory, in its first pass."""
    _check_form(stored, request.who)
    if labels is None and stored.row_names is not None and stored.column_names is not None:
        labels = stored.row_names, stored.column_names
    weights, mask = request.rows(stored.shape)
    options = {"weights": weights, "mask": mask, "missing": request.missing, "verbose": request.verbose}
    data = StreamedMatrix(stored, device=request.device, **options)
    data.examine(lambda block, first_row: check_entries(block, request, labels, advice, first_row))
    check_entries(data, request, labels, advice)  # what only the whole matrix shows
    return data


# What makes data of frames of Dask and PySpark, of arrays of the package sparse, and of polars.LazyFrame.
CONVERSIONS = {"to_dask_array": "lengths=True", "toPandas": "", "to_scipy_sparse": "", "collect": ""}


def refuse_unsupported_types(X: MatrixLike, who: str) -> None:
    """Reject types that conversion to an array would misread or reject with an obscure message."""
    if isinstance(X, np.ma.MaskedArray):
        raise DataTypeError(
            f"{who} does not read the mask of a numpy.ma.MaskedArray. Pass X.data as X, and "
            "~numpy.ma.getmaskarray(X) as `mask` (True means observed)."
        )
    for method, options in CONVERSIONS.items():
        if hasattr(X, method):
            kind = f"{library_of(X.__class__)}.{type(X).__name__}"
            raise DataTypeError(f"{who} does not read a {kind}. Pass X.{method}({options}).")
    if isinstance(dtype := getattr(X, "dtype", None), np.dtype) and dtype.kind in "MmcV":
        raise _no_quantities(dtype, dtype.kind, who)
    no_table = isinstance(X, str | bytes | os.PathLike | Mapping | Set | Iterator)
    # Sparse matrices by keys are mappings too.
    if X is None or (no_table and not sp.issparse(X)):
        path = isinstance(X, str | os.PathLike)
        remedy = " Open the file with nonneg.open_matrix, or read it with pandas.read_csv." if path else ""
        raise DataTypeError(
            "Expected X as a table of numbers (an array, data frame, sparse matrix, Dask array or list of "
            f"rows), got {'None' if X is None else type(X).__name__}.{remedy}"
        )


def _checked_array(X: MatrixLike, request: Request) -> Any:
    refuse_unsupported_types(X, request.who)
    if is_sparse_array(X):
        X = sparse_tensor(X)
        request.check_shape(X)
        if len(X.shape) == 2:
            check_sparse_array(X)
    elif is_non_numpy(X):
        X = X.detach() if hasattr(X, "detach") else X
        if is_dask(X) and any(np.isnan(side) for side in X.shape):
            # On a copy: Dask writes the sizes into the array it is asked for.
            X = X.copy().compute_chunk_sizes()
        request.check_shape(X)
    else:
        with as_data_errors():
            X = checked_indices(X)
            X = request.convert(X) if request.convert else X if sp.issparse(X) else np.asarray(X)
    _check_form(X, request.who)
    return X


def _check_form(X: MatrixLike, who: str) -> None:
    """Reject what has not two dimensions, no entries, or entries that are not real numbers."""
    if len(X.shape) != 2:
        raise ShapeError(
            f"Expected 2D array X (samples in rows, features in columns), got {len(X.shape)}D array instead"
            f" with shape {tuple(X.shape)}. Reshape it, for example X.reshape(1, -1) for one sample."
        )
    dtype = X.dtype
    if isinstance(dtype, np.dtype):
        kind, good = str(dtype.kind), dtype.kind in "biuf"
    else:
        kind = "c" if "complex" in str(dtype) else str(dtype)
        # Of tensors that are the chunks of a Dask array as well.
        xp = array_namespace(X._meta if is_dask(X) else X)
        good = xp.isdtype(dtype, ("bool", "integral", "real floating"))
    if not good:
        raise _no_quantities(dtype, kind, who)
    if 0 in X.shape:
        raise InvalidDataError(
            f"Found array with shape {tuple(X.shape)}: {who} needs at least one sample and one feature."
        )


def _no_quantities(dtype: Any, kind: str, who: str) -> DataTypeError:
    what = "Complex data" if kind == "c" else f"Data of dtype {dtype}"
    why = "dates and durations are not quantities" if kind in "Mm" else "expected real numbers"
    how = "abs(X)" if kind == "c" else "X.astype(float)"
    return DataTypeError(f"{what} not supported by {who}: {why}. Convert X first, for example with {how}.")


def _checked_mask(mask: Any, shape: Any) -> Any:
    if is_sparse_array(mask):
        mask = scipy_matrix(mask, "mask") != 0
    elif not is_dask(mask):
        with as_data_errors("mask"):
            mask = checked_indices(mask, "mask") if sp.issparse(mask) else to_numpy(mask)
    if tuple(mask.shape) != tuple(shape):
        raise ShapeError(
            f"Expected a mask of the same shape as X, {tuple(shape)}, got {tuple(mask.shape)}. "
            "True means observed."
        )
    values = sp.csr_array(mask).data if sp.issparse(mask) else mask
    if not (is_dask(mask) or values.dtype.kind == "b" or np.isin(values, (0, 1)).all()):
        raise InvalidParameterError("A mask contains True and False only; entry_weight takes other weights.")
    return mask


def _checked_weights(weights: Any, n_rows: int) -> Array:
    try:
        weights = to_numpy(np.full(n_rows, weights) if np.isscalar(weights) else weights, np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise InvalidParameterError(
            f"Expected sample_weight as {n_rows} numbers, one per sample, got {str(weights)[:60]!r}."
        ) from error
    if weights.ndim != 1 or len(weights) != n_rows:
        raise ShapeError(
            f"sample_weight.shape == {weights.shape}, expected ({n_rows},): one weight per sample."
        )
    bad = np.flatnonzero(~(np.isfinite(weights) & (weights >= 0)))
    if bad.size:
        raise InvalidParameterError(
            f"sample_weight[{bad[0]}] is {weights[bad[0]]}: weights must be finite and not negative. "
            "Use 0 to leave a sample out."
        )
    # They count rows, exactly up to 2^53; products of small ones vanish.
    if not 1e-100 <= weights.max() <= weights.sum() <= 2.0**53:
        raise InvalidParameterError(
            f"sample_weight sums to {weights.sum():.3g}: one weight at least must be above zero, and none "
            "may be huge or tiny. Divide them by their mean: only the unit of the loss changes."
        )
    return weights


def check_entries(
    data: DataMatrix, request: Request, labels: Labels = None, advice: str | None = None, first_row: int = 0
) -> None:
    """Reject NaN and infinity, negative entries and zeros unless accepted, and squares that overflow.

    `advice` says what to do about negative entries, `labels` are the names of rows and columns.
    """
    if request.negative not in (None, "error", "keep"):
        raise UnknownNameError.of("negative", request.negative, ("error", "keep"))
    who = request.who
    low, high = data.extremes()

    def place(i: int, j: int) -> str:
        named = "" if labels is None else f" (row {labels[0][first_row + i]!r}, column {labels[1][j]!r})"
        return f"[{first_row + i}, {j}]{named}"

    if not (np.isfinite(low) and np.isfinite(high)):
        i, j, value = locate(data, lambda xp, block: ~xp.isfinite(block))
        what = "NaN" if np.isnan(value) else "infinity"
        remedy = "replace it by a number"
        if np.isnan(value):
            remedy = (
                "pass missing='mask' (--missing mask) to treat NaN as missing"
                if request.masks
                else "replace it by a number, or leave that sample or feature out"
            )
        raise NonFiniteDataError(
            f"Input X contains {what}: entry {place(i, j)} is {value}. {who} needs finite entries; {remedy}."
        )
    if low < 0 and not (request.signed or request.negative == "keep"):
        i, j, value = locate(data, lambda xp, block: block < 0)
        raise NegativeDataError(
            f"Negative values in data passed to {who} (input X): entry {place(i, j)} is {value}. "
            + (advice or (KEEP if request.negative else BEFORE))
        )
    _check_size(data, max(high, -low), who)
    if request.positive and low == 0:
        with contextlib.suppress(LookupError):  # zeros only where entries are missing
            i, j, _ = locate(data, lambda xp, block: block == 0)
            raise InvalidDataError(
                f"When beta_loss <= 0 and X contains zeros, the loss is infinite: entry {place(i, j)} is 0. "
                "Please add small values to X, for example X + 1e-6 * X.mean(), or use a positive beta_loss."
            )


def _check_size(data: DataMatrix, high: float, who: str) -> None:
    limits = np.finfo(numpy_dtype(data.dtype))
    most = float(limits.max) / (data.shape[0] * data.shape[1])
    if high > 0 and not float(limits.tiny) <= high * high <= most:
        i, j, value = locate(data, lambda xp, block: xp.abs(block) == high)
        what, power = ("overflow", "divide") if high > 1 else ("vanish", "multiply")
        raise InvalidDataError(
            f"The largest entry of X, [{i}, {j}], is {value:.3g}: sums of squares {what} in {limits.dtype}. "
            f"{who} needs other units; {power} X by a power of ten."
        )
    if data.is_weighted and not data.squared_norm() <= most:
        raise InvalidDataError(
            f"Squares of X times their weights, which are 1 / uncertainty^2, overflow in {limits.dtype}. "
            "Divide the weights, or multiply the uncertainties, by a power of ten, or pass X in float64."
        )


def locate(data: DataMatrix, condition: Callable[[Any, Array], Array]) -> tuple[int, int, float]:
    """Return row, column and value of the first observed entry that meets a condition."""
    offset = 0
    # Chunk by chunk, so that an error message does not need all data in memory.
    for block in data.local_blocks():
        xp = block.xp
        if isinstance(block, SparseRows) and not bool(
            xp.any(condition(xp, xp.zeros_like(block.csr.data[:1])))
        ):
            # Entries that are not stored, which are zeros, do not meet it.
            places = xp.nonzero(condition(xp, block.csr.data))[0]
            if places.shape[0]:
                entry = int(places[0])
                row = int(xp.sum(xp.astype(block.csr.indptr <= entry, xp.int64))) - 1
                return offset + row, int(block.csr.indices[entry]), float(block.csr.data[entry])
        else:
            for start, stop in block.row_blocks(1 << 20):
                rows = block.dense_rows(start, stop)
                met = condition(xp, rows)
                if block.observed is not None:
                    met = xp.logical_and(met, xp.asarray(block.observed.dense_rows(start, stop)) != 0)
                if bool(xp.any(met)):
                    i, j = (int(index[0]) for index in xp.nonzero(met))
                    return offset + start + i, j, float(rows[i, j])
        offset += block.shape[0]
    raise LookupError("no entry meets the condition")
