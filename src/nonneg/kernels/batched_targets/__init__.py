"""Newton steps of the rows of many factors at once: `kernels.newton_targets`, one axis more."""

from __future__ import annotations

from typing import Any

from nonneg.kernels.batched_targets import array_api, triton


def batched_targets(factor: Any, gradient: Any, diagonal: Any, correlations: Any) -> tuple[Any, Any]:
    """Return the steps to the minimizers of the quadratic models of all rows.

    Parameters
    ----------
    factor : array of shape (batch, n_rows, k)
        The rows, nonnegative; not modified.
    gradient, diagonal : array of shape (batch, n_rows, k)
        Gradients, and diagonals of the Hessians.
    correlations : array of shape (batch, k, k)
        The Hessians scaled to a unit diagonal: the same for all rows of a factor.

    Returns
    -------
    direction : array of shape (batch, n_rows, k)
        The steps, as `kernels.newton_targets` has them.
    slopes : array of shape (batch, n_rows)
        Derivatives of the losses of the rows along them.
    """
    implementation = triton if triton.is_supported(factor) else array_api
    return implementation.batched_targets(factor, gradient, diagonal, correlations)
