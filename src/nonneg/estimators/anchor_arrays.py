"""What a saved SeparableNMF holds beside its components: arrays by name, checked when they are read."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from nonneg.exceptions import FileFormatError


def anchor_arrays(model: Any) -> dict[str, Any]:
    """Return the arrays of a fitted model."""
    arrays = {
        "anchor_indices": np.asarray(model.anchor_indices_, dtype=np.int64),
        "sum_to_one": np.asarray([model.sum_to_one_]),
    }
    if model.duality_gap_ is not None:
        arrays["duality_gap"] = np.asarray([model.duality_gap_], dtype=np.float64)
    if model.coefficients_ is not None:
        columns = sp.csc_array(model.coefficients_)
        arrays["coefficient_values"] = columns.data
        arrays["coefficient_rows"] = columns.indices.astype(np.int64)
        arrays["coefficient_starts"] = columns.indptr.astype(np.int64)
    return arrays


def restore_anchor_arrays(model: Any, arrays: dict[str, Any], path: Any) -> None:
    """Set what `anchor_arrays` gave; the file may come from anywhere."""
    anchors = arrays["anchor_indices"]
    together = arrays["sum_to_one"]
    k = model.components_.shape[0]
    if anchors.dtype != np.int64 or anchors.shape != (k,) or (anchors < 0).any():
        raise FileFormatError(
            f"{path}: expected {k} indices of anchors, got {anchors!r}. The file is damaged."
        )
    if together.dtype != bool or together.shape != (1,):
        raise FileFormatError(f"{path}: expected whether weights sum to one, got {together!r}.")
    model.anchor_indices_ = anchors.astype(np.intp)
    model.sum_to_one_ = bool(together[0])
    model.duality_gap_ = float(arrays["duality_gap"][0]) if "duality_gap" in arrays else None
    model.coefficients_ = _coefficients(arrays, path) if "coefficient_values" in arrays else None


def _coefficients(arrays: dict[str, Any], path: Any) -> Any:
    values = arrays["coefficient_values"]
    rows, starts = arrays["coefficient_rows"], arrays["coefficient_starts"]
    n = len(starts) - 1
    good = (
        values.dtype in (np.float32, np.float64)
        and rows.dtype == starts.dtype == np.int64
        and values.ndim == rows.ndim == starts.ndim == 1
        and len(values) == len(rows)
        and n >= 1
        and starts[0] == 0
        and starts[-1] == len(rows)
        and bool((np.diff(starts) >= 0).all())
        and bool(((rows >= 0) & (rows < n)).all())
    )
    if not good:
        raise FileFormatError(f"{path}: the coefficients do not fit together. The file is damaged.")
    return sp.csc_array((values, rows, starts), shape=(n, n))
