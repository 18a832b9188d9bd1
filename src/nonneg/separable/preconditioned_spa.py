"""Successive projections after a linear map that makes the anchors nearly orthogonal."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from nonneg._arrays import to_float64
from nonneg.data import DataMatrix
from nonneg.data.spectral import truncated_svd
from nonneg.exceptions import InvalidDataError
from nonneg.separable.preprocessing import gathered
from nonneg.separable.reduction import projected
from nonneg.separable.result import SelectionResult
from nonneg.separable.spa import TIE_TOL, spa


def preconditioned_spa(
    data: DataMatrix, n_components: int, *, preconditioner: str = "ellipsoid", tie_tol: float = TIE_TOL
) -> SelectionResult:
    """Reduce the samples to their leading directions, precondition them, and run `spa`."""
    # The ellipsoid needs the reduced samples, n_samples by n_components, in this process.
    # Gillis & Vavasis (2015), SIAM J. Optimization 25(1). Gillis & Ma (2015), SIAM J. Imaging Sciences 8(2),
    # for "whitening" and "spa".
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
    # The anchors span all directions: the residuals carry no information.
    return replace(found, method="preconditioned-spa", best_left=None, facts=facts)


def smallest_ellipsoid(points: Any, *, tol: float = 1e-6, max_iter: int = 20_000) -> Any:
    """Return A of the minimum-volume ellipsoid x' A x <= 1 that contains all points."""
    # The dual problem maximizes log det of sum u_i x_i x_i' over the probability simplex (D-optimal design)
    # by Frank-Wolfe steps toward the outermost point and away steps from the innermost one with weight, each
    # with the exact step size. A step costs O(n k). The number of points with weight stays small. Todd &
    # Yildirim (2007), Discrete Applied Mathematics 155(13).
    points = np.asarray(points, dtype=np.float64)
    n, k = points.shape
    initial = _spread_points(points)
    if len(initial) < k:
        raise InvalidDataError(
            f"The samples span {len(initial)} of {k} dimensions: their smallest ellipsoid has no volume. Ask "
            "for fewer anchors."
        )
    weight = np.zeros(n)
    weight[initial] = 1.0 / k
    inverse = np.linalg.inv((points * weight[:, None]).T @ points)
    outward = np.einsum("ij,ij->i", points @ inverse, points)
    for step in range(max_iter):
        far = int(np.argmax(outward))
        carrying = np.flatnonzero(weight > 0)
        near = int(carrying[np.argmin(outward[carrying])])
        above, below = outward[far] / k - 1.0, 1.0 - outward[near] / k
        if above <= tol and below <= tol:
            break
        if above >= below or weight[near] >= 1.0:
            place, length = far, (outward[far] - k) / (k * (outward[far] - 1.0))
        else:
            place = near
            free = -weight[near] / (1.0 - weight[near])
            length = (outward[near] - k) / (k * (outward[near] - 1.0)) if outward[near] > 1.0 else free
            length = max(length, free)
        along = inverse @ points[place]
        products = points @ along
        weight *= 1.0 - length
        weight[place] += length
        weight[place] = max(weight[place], 0.0)
        shrink = 1.0 - length
        share = length / (shrink + length * outward[place])
        inverse = (inverse - share * np.outer(along, along)) / shrink
        outward = (outward - share * products**2) / shrink
        if step % 200 == 199:  # rounding errors accumulate in the updates
            inverse = np.linalg.inv((points * weight[:, None]).T @ points)
            outward = np.einsum("ij,ij->i", points @ inverse, points)
    return inverse / max(float(outward.max()), k)


def _spread_points(points: Any) -> Any:
    # One far point after another, as in successive projections: an initial design of full rank.
    left = np.array(points)
    selected: list[int] = []
    largest = float(np.einsum("ij,ij->i", left, left).max(initial=0.0))
    for _ in range(points.shape[1]):
        squares = np.einsum("ij,ij->i", left, left)
        best = int(np.argmax(squares))
        if not squares[best] > 1e-24 * largest:
            break
        selected.append(best)
        direction = left[best] / np.sqrt(squares[best])
        left = left - np.outer(left @ direction, direction)
    return selected
