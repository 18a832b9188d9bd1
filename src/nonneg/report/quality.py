"""Quality of a factorization: the part of the data that it explains, and the part of each component."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from scipy import sparse

from nonneg._typing import FloatArray
from nonneg.certificates.svd_lower_bound import squared_residual_rows
from nonneg.data import DataMatrix
from nonneg.data.door import Request, wrap
from nonneg.estimators.scaled_columns import column_scale, dominant_columns, scaled_columns
from nonneg.kernels.rows import product_sum
from nonneg.losses.beta import objective
from nonneg.losses.penalties import Penalties
from nonneg.metrics import normalized_mutual_information, purity
from nonneg.report import wording
from nonneg.solvers.registry import beta_of

FAR = 4.0  # uncertainties beyond which an entry is not fitted: EPA PMF 5.0


def observed_relative_error(X: Any, W: FloatArray, H: FloatArray, scale: Any = None) -> float:
    """Measure the Frobenius norm of X - W H over that of X, on the entries that are not NaN."""
    data = _data(X, scale)
    squared_norm = data.squared_norm()
    weights, columns = data.to_sample_array(W), data.to_device(np.ascontiguousarray(H.T))
    _, (squared_error,) = data.map_reduce_rows(_squared_error, weights, n_out=0, Ht=columns)
    if squared_norm == 0.0:
        return 0.0 if squared_error == 0.0 else float("inf")
    return math.sqrt(max(squared_error, 0.0) / squared_norm)


def scaled_residuals(X: Any, uncertainty: Any, W: FloatArray, H: FloatArray) -> dict[str, float]:
    """Return the sums of squares of (X - W H) / uncertainty that source apportionment calls Q."""
    scaled = (X - W @ H) / uncertainty
    seen = np.isfinite(scaled) & np.isfinite(uncertainty)
    squares = scaled[seen] ** 2
    near = squares <= FAR**2
    expected = squares.size - H.shape[0] * sum(X.shape)
    return {
        "q_true": float(squares.sum()),
        "q_robust": float(squares[near].sum()),  # without the entries that the model does not fit
        "q_expected": expected,
        "q_ratio": float(squares.sum()) / max(expected, 1),
        "n_far": int(np.count_nonzero(~near)),
    }


def _squared_error(block: Any, W: Any, *, Ht: Any) -> tuple[tuple[()], tuple[float]]:
    if block.container != "sparse" or block.observed is not None:
        return squared_residual_rows(block, W, Ht=Ht)
    # Of sparse data W H does not exist.
    model = (W.T.astype(np.float64) @ W) * (Ht.T.astype(np.float64) @ Ht)
    return (), (block.squared_norm() - 2.0 * product_sum(block.times(Ht), W) + float(np.sum(model)),)


def explained_divergence(X: Any, divergence: float, loss: str | float, scale: Any = None) -> float | None:
    """Give the share of the divergence of the data from the means of their columns that a model explains."""
    beta = beta_of(loss)
    data = _data(X, scale)
    rows = data.to_sample_array(np.ones((data.shape[0], 1)))
    sums, counts = data.map_reduce_rows(_column_sums, n_out=0)[1]
    columns = data.to_device((sums / np.maximum(counts, 1))[:, None])
    total = objective(data, rows, columns, beta=beta, penalties=Penalties())
    return 1.0 - divergence / total if total > 0 and math.isfinite(total) else None


def _column_sums(block: Any) -> tuple[tuple[()], tuple[Any, Any]]:
    ones = np.ones((block.shape[0], 1), dtype=block.dtype)
    counts: Any = np.full(block.shape[1], float(block.shape[0]))
    if block.observed is not None:
        parts = (block.observed.dense_rows(start, stop) for start, stop in block.row_blocks(1 << 20))
        counts = sum(np.sum(part, axis=0, dtype=np.float64) for part in parts)
    return (), (block.transposed_times(ones)[:, 0].astype(np.float64), counts)


def dominance(
    X: Any, loss: str | float, names: Sequence[str] | None, scale: Any = None
) -> dict[str, Any] | None:
    """Name the columns that account for nearly all of the loss, if there are any."""
    found = dominant_columns(_data(X, scale), beta_of(loss))
    if found is None:
        return None
    return {
        "columns": [str(at) if names is None else names[at] for at in found[0]],
        "share": found[1],
        "n_columns": X.shape[1],
    }


def outweighed(dominance: Mapping[str, Any]) -> str:
    """Say which columns hide the others."""
    names = dominance["columns"]
    return (
        f"{wording.listed(names)} outweigh{'s' * (len(names) == 1)} the other "
        f"{dominance['n_columns'] - len(names)} columns, which may hardly count."
    )


def _data(X: Any, scale: Any) -> DataMatrix:
    return scaled_columns(wrap(X, Request(missing="mask", signed=True)), scale)


def scaled(X: Any, kind: str) -> Any:
    """Return the data with every column divided by its maximum, standard deviation or sum."""
    scale = column_scale(_data(X, None), kind)
    return sparse.csr_array(X @ sparse.diags_array(1.0 / scale)) if sparse.issparse(X) else X / scale


def label_summary(W: FloatArray, H: FloatArray, labels: Sequence[str], name: str | None) -> dict[str, Any]:
    """Compare the components with known classes: mean shares per class, purity and mutual information."""
    classes = sorted(set(labels), key=_natural)
    parts = W.astype(np.float64) * np.linalg.norm(H.astype(np.float64), axis=1)
    shares = parts / np.maximum(parts.sum(axis=1, keepdims=True), np.finfo(float).tiny)
    codes = np.array([classes.index(label) for label in labels])
    strongest = shares.argmax(axis=1)
    return {
        "name": name,
        "classes": classes,
        "counts": np.bincount(codes, minlength=len(classes)),
        "shares": np.array([shares[codes == at].mean(axis=0) for at in range(len(classes))]),
        "purity": purity(codes, strongest),
        "nmi": normalized_mutual_information(codes, strongest),
    }


def _natural(label: str) -> tuple[bool, float, str]:
    """Sort numbers by value, before words."""
    try:
        return False, float(label), label
    except ValueError:
        return True, 0.0, label


def component_strengths(W: FloatArray, H: FloatArray) -> FloatArray:
    """Give the share of each component: the norm of its rank-one part over the sum of these norms."""
    norms = np.linalg.norm(W.astype(np.float64), axis=0) * np.linalg.norm(H.astype(np.float64), axis=1)
    total = norms.sum()
    return norms / total if total > 0 else norms
