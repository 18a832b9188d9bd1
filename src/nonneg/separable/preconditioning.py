"""Successive projections after a linear map that makes the anchors all but orthogonal."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from nonneg._arrays import to_float64
from nonneg.data import DataMatrix
from nonneg.data.spectral import truncated_svd
from nonneg.exceptions import InvalidDataError, UnknownNameError
from nonneg.separable.ellipsoid import smallest_ellipsoid
from nonneg.separable.preprocessing import gathered
from nonneg.separable.reduction import projected
from nonneg.separable.result import SelectionResult
from nonneg.separable.spa import TIE_TOL, spa

PRECONDITIONERS = ("ellipsoid", "whitening", "spa")


def preconditioned_spa(
    data: DataMatrix, n_components: int, *, preconditioner: str = "ellipsoid", tie_tol: float = TIE_TOL
) -> SelectionResult:
    """Reduce the points to their leading directions, precondition them, and run `spa`."""
    # The ellipsoid needs the reduced points, n_samples by n_components, in this process.
    # Gillis & Vavasis (2015), SIAM J. Optimization 25(1). Gillis & Ma (2015), SIAM J. Imaging Sciences 8(2),
    # for "whitening" and "spa".
    if preconditioner not in PRECONDITIONERS:
        raise UnknownNameError.of("preconditioner", preconditioner, PRECONDITIONERS)
    k = n_components
    if k > min(data.shape):
        raise InvalidDataError(
            f"n_components={k} is more than {min(data.shape)}, the smaller side of X: there are no more "
            "directions to precondition. Ask for fewer anchors, or use method='snpa' or 'xray'."
        )
    svd = truncated_svd(data, k)
    rank = int(np.sum(svd.s > 1e-12 * svd.s[0]))
    if rank < k:
        raise InvalidDataError(
            f"X has rank {rank}, which is less than n_components={k}: there are no more directions to "
            "precondition. Ask for fewer anchors, or use method='snpa' or 'xray'."
        )
    points = projected(data, svd.V)
    if preconditioner == "whitening":
        change = np.diag(svd.s[0] / svd.s)
    elif preconditioner == "spa":
        first = spa(points, k, tie_tol=tie_tol)
        _, s, turned = np.linalg.svd(to_float64(points.take_rows(first.anchors)))
        change = turned.T * (s[0] / s)
    else:
        values, turned = np.linalg.eigh(smallest_ellipsoid(gathered(points)))
        change = turned * np.sqrt(values / values[-1])
    condition = float(np.linalg.cond(change))
    found = spa(projected(points, change), k, tie_tol=tie_tol)
    facts: dict[str, Any] = {"preconditioner": preconditioner, "condition": condition}
    # As many picks as directions span them all: what is left says nothing.
    return replace(found, method="preconditioned-spa", best_left=None, facts=facts)
