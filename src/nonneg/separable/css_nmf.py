"""Convex smooth separable NMF: vertices as averages of samples that share the weight of a self-dictionary."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse as sp

from nonneg._arrays import numpy_dtype, to_float64
from nonneg._ties import rounded
from nonneg._typing import Array, FloatArray, IntArray
from nonneg.certificates.certificate import Certificate, Statement, Verdict
from nonneg.data import DataMatrix
from nonneg.iteration import History, Progress, iterate
from nonneg.iteration.progress import reporter
from nonneg.separable.fast_gradient import (
    MEMORY_LIMIT,
    AcceleratedStep,
    GradientState,
    check_memory,
    compressed,
)
from nonneg.separable.merit.recovery_conditions import ESTIMATED, hull_distance
from nonneg.separable.result import SelectionResult
from nonneg.separable.vertices import aggregated
from nonneg.separable.weights import anchor_weights

# The automatic weight as a fraction of ||X||^2 begins at its lowest value, which keeps near-duplicates
# together where there is no noise. This and the constants below were chosen on the choosing draws of the
# study `studies/near-duplicates`.
LOWEST_WEIGHT = 1e-4
# The weight changes at most by the factor 2 every 5 iterations, in the first 70% of them: then the last ones
# solve one problem.
WEIGHT_PERIOD, LARGEST_FACTOR, ADAPTING = 5, 2.0, 0.7
# Row sums from here on take part in the clustering. Without noise those of pure samples are at least 1, those
# of others 0; in strong noise, clusters of samples above the authors' threshold break up.
CLUSTERED = 0.25
# Copies of a vertex share its weight equally: a sample with less than half of the largest share in its
# cluster is a mixture. Matters at low noise.
EQUAL_SHARE = 0.5
# Averages of the same samples in another order differ by rounding.
SAME = 1e-10


def css_nmf(
    data: DataMatrix,
    n_components: int,
    *,
    lam: float | str = "auto",
    threshold: float = 0.95,
    aggregate: str = "mean",
    max_iter: int = 150,
    tol: float = 1e-8,
    callback: Callable[[Progress], bool | None] | None = None,
    verbose: int = 0,
    memory_limit: float = MEMORY_LIMIT,
) -> SelectionResult:
    r"""Minimize the self-dictionary problem of Pan, Leplat, Ng and Gillis, and average samples that share
    weight.

    .. math::

        \min_{C \in \Omega} \tfrac12 \|X^\top - X^\top C\|_F^2 + \tfrac{\lambda}{2} \|\mathrm{diag}(C)\|_2^2

    over Gillis and Luce's set :math:`\Omega = \{C \ge 0, c_{ii} \le 1, w_i c_{ij} \le w_j c_{ii}\}`, w the l1
    norms of the points. The square makes p near-duplicates of a vertex share its weight, 1/p each, where a
    trace, or the row maxima of MERIT, leave the split open.

    Parameters
    ----------
    data : DataMatrix
        The data, one point per row, in this process.
    n_components : int
        The number of vertices.
    lam : float or "auto", default "auto"
        The weight. "auto" makes the trace of C equal to `n_components`, as it is without noise: fitted noise
        raises the trace, the penalty lowers it.
    threshold : float, default 0.95
        The samples that are averaged have a row sum in C of at least this, as in the authors' code, and at
        least half of the largest diagonal entry in their cluster.
    aggregate : {"mean", "median"}, default "mean"
        How samples are averaged.
    max_iter : int, default 150
        Maximum number of iterations.
    tol : float, default 1e-8
        Stop when an iteration changed the diagonal by at most this fraction (1-norm).
    callback : callable, optional
        Called with a `Progress` after each iteration; True stops.
    verbose : int, default 0
        1 shows a line with the objective.
    memory_limit : float
        In bytes. Five arrays of n_samples by n_samples must fit.

    Returns
    -------
    SelectionResult
        With the averages as `components`, their samples as `members`, and the nearest samples as anchors.

    Notes
    -----
    Without noise, if vertex k is repeated p_k times and no vertex lies in the hull of the others, the minimum
    of ||diag(C)||^2 over the C with X' = X' C has c_ii = 1 / p_k at the copies of vertex k and 0 elsewhere: a
    pure sample is a combination of copies alone, so their entries sum to at least 1, and equal ones have the
    least squares.

    The samples with large row sums are clustered as in the authors' Algorithm 2, by the leading eigenvectors
    of C + C' among them; their labels come from a pivoted QR decomposition in place of k-means, which
    draws random numbers. O(n^2 m) operations per iteration and O(n^2) memory: for a few thousand points.

    References
    ----------
    .. [1] Pan, Leplat, Ng & Gillis (2025), "A provably-correct and robust convex model for smooth separable
       NMF", arXiv:2511.07109.
    .. [2] Damle, Minden & Ying (2019), Information and Inference 8(1) (labels by pivoted QR).
    """
    check_memory(data, memory_limit, "css-nmf")
    points, weights = compressed(data)
    size = float(data.squared_norm())
    adaptive = lam == "auto"
    step = _SquaredDiagonalStep(
        points,
        weights,
        target=float(n_components) if adaptive else None,
        lowest=LOWEST_WEIGHT * size,
        last=int(ADAPTING * max_iter),
    )

    def stop(history: History) -> bool:
        # Not while the weight changes.
        settled = len(history) > WEIGHT_PERIOD and history["lam"][-1] == history["lam"][-1 - WEIGHT_PERIOD]
        return settled and history["diagonal_change"][-1] <= tol

    run = iterate(
        step,
        step.initial_state(LOWEST_WEIGHT * size if adaptive else float(lam)),
        max_iter=max_iter,
        stop=stop,
        callback=callback,
        progress=reporter("css-nmf", verbose),
    )
    C = to_float64(run.state.coefficients)
    members = _members(C, to_float64(weights), n_components, threshold)
    rows = [to_float64(data.take_rows(group)) for group in members]
    vertices = np.stack([aggregated(group, aggregate) for group in rows])
    kept = _distinct(vertices)
    vertices, members, rows = vertices[kept], [members[at] for at in kept], [rows[at] for at in kept]
    anchors = np.array([_nearest(*pair) for pair in zip(members, _distances(rows, vertices), strict=True)])
    return SelectionResult(
        anchors=anchors,
        method="css-nmf",
        components=vertices,
        members=tuple(members),
        coefficients=sp.csc_array(C.astype(numpy_dtype(data.dtype), copy=False)),
        history=run.history,
        certificate=Certificate((_error_statement(data, C, members, vertices, aggregate),)),
        scores=np.array([float(np.diagonal(C)[group].sum()) for group in members]),
        lam=run.state.lam,
        objective=run.state.objective,
        n_iter=run.n_iter,
        stop_reason=run.stop_reason,
        stop_sentence=run.sentence,
        facts={"aggregate": aggregate, "n_averaged": [len(group) for group in members]},
    )


class _SquaredDiagonalStep(AcceleratedStep):
    # Half the squared norm of the diagonal as the penalty.
    def __init__(
        self, points: Array, weights: Array, *, target: float | None, lowest: float, last: int
    ) -> None:
        super().__init__(points, weights)
        self.target, self.lowest, self.last = target, lowest, last

    def step_size(self, lam: float) -> float:
        return 1.0 / (self.largest + lam) if self.largest + lam > 0 else 1.0

    def slopes(self, diagonal: Array, lam: float) -> Array:
        return lam * diagonal

    def penalty(self, diagonal: Array, lam: float) -> float:
        wide = self.xp.astype(diagonal, self.xp.float64)
        return 0.5 * lam * float(self.xp.sum(wide * wide))

    def __call__(self, state: GradientState) -> tuple[GradientState, Mapping[str, Any]]:
        after, measures = super().__call__(state)
        if self.target is None or after.age > self.last or after.age % WEIGHT_PERIOD:
            return after, measures
        # Without a restart: the extrapolation is worth more than an exact comparison of objectives.
        factor = measures["trace"] / self.target
        factor = min(max(factor, 1.0 / LARGEST_FACTOR), LARGEST_FACTOR)
        return replace(after, lam=max(self.lowest, factor * state.lam), objective=math.inf), measures


def _members(C: FloatArray, weights: FloatArray, k: int, threshold: float) -> list[IntArray]:
    """Return the samples that share the weight of each vertex, the vertex with most weight first."""
    # In the units of normalized samples, in which a diagonal entry bounds its row.
    filled = np.where(weights > 0, weights, 1.0)
    scaled = C * (weights[:, None] / filled)
    sums = scaled.sum(axis=1)
    used = np.flatnonzero(sums >= min(CLUSTERED, threshold))
    if len(used) < k:
        used = np.sort(np.argsort(-rounded(sums), kind="stable")[:k])
    labels = _clusters(scaled[np.ix_(used, used)], k)
    diagonal = np.diagonal(C)
    groups = []
    for label in range(k):
        group = used[labels == label]
        shares = diagonal[group] >= EQUAL_SHARE * diagonal[group].max()
        # At least one sample of every cluster.
        least = min(threshold, sums[group[shares]].max() * (1.0 - 1e-9))
        groups.append(group[shares & (sums[group] >= least)])
    return sorted(groups, key=lambda group: (-float(rounded(diagonal[group].sum())), int(group[0])))


def _clusters(affinity: FloatArray, k: int) -> IntArray:
    """Cluster samples by the leading eigenvectors of their mutual coefficients."""
    mutual = affinity + affinity.T
    degrees = mutual.sum(axis=1)
    scale = 1.0 / np.sqrt(np.where(degrees > 0, degrees, 1.0))
    n = len(mutual)
    _, vectors = scipy.linalg.eigh(scale[:, None] * mutual * scale, subset_by_index=(n - k, n - 1))
    # One row of every cluster, which the others are nearly multiples of; then the nearest rotation to it.
    _, _, pivots = scipy.linalg.qr(vectors.T, pivoting=True, mode="economic")
    left, _, right = np.linalg.svd(vectors[pivots[:k]].T)
    nearness = np.abs(vectors @ (left @ right))
    labels = np.argmax(nearness, axis=1)
    # A pivot is in its own cluster: none is empty.
    labels[pivots[:k]] = np.arange(k)
    return labels


def _distinct(vertices: FloatArray) -> IntArray:
    """Return the vertices that repeat none before: clusters of copies of one sample are one vertex."""
    apart = np.linalg.norm(vertices[:, None] - vertices[None], axis=2)
    same = apart <= SAME * float(np.linalg.norm(vertices, axis=1).max(initial=0.0))
    return np.flatnonzero(~np.tril(same, -1).any(axis=1))


def _distances(rows: list[FloatArray], vertices: FloatArray) -> list[FloatArray]:
    return [np.linalg.norm(group - vertex, axis=1) for group, vertex in zip(rows, vertices, strict=True)]


def _nearest(group: IntArray, distances: FloatArray) -> int:
    return int(group[np.argmin(rounded(distances))])


def _error_statement(
    data: DataMatrix, C: FloatArray, members: list[IntArray], vertices: FloatArray, aggregate: str
) -> Statement:
    """Bound the distance of the averages from the true vertices."""
    # Let all samples be within eps of the simplex, x_j within eps of the vertex w_k, s = sum_i c_ij and
    # r = ||x_j - sum_i c_ij x_i||. Then w_k is within r + (1 + s) eps + |1 - s| gamma of a convex combination
    # of the vertices, in which it has the weight 1 - sum_i c_ij (1 - h_ik) / s. It is kappa away from the
    # hull of the others: sum_i c_ij (1 - h_ik) <= eta = s (r + (1 + s) eps + |1 - s| gamma) / kappa. The
    # mean of 1 - h_ik over p samples with c_ij >= c is at most eta / (p c), and their average is that times
    # the diameter, plus eps, away from w_k.
    if aggregate != "mean":
        sentence = "The bound on the error of the vertices applies to means of samples, not to medians."
        return Statement("vertex-error", sentence, None, None, Verdict.NOT_VERIFIABLE)
    kappa = hull_distance(vertices) or 0.0
    gamma = float(np.linalg.norm(vertices, axis=1).max())
    diameter = float(max(np.linalg.norm(vertices - vertex, axis=1).max() for vertex in vertices))
    rows = to_float64(data.take_rows(np.arange(data.shape[0])))
    H = to_float64(anchor_weights(data, data.to_device(vertices), sum_to_one=True))
    eps = float(np.linalg.norm(rows - H @ vertices, axis=1).max())
    worst = 0.0
    for group in members:
        sums = C[:, group].sum(axis=0)
        left = np.linalg.norm(rows[group] - C[:, group].T @ rows, axis=1)
        eta = sums * (left + (1.0 + sums) * eps + np.abs(1.0 - sums) * gamma)
        least = C[np.ix_(group, group)].min(axis=0) * len(group)
        with np.errstate(divide="ignore", invalid="ignore"):
            bounds = np.where(least * kappa > 0, eta / (least * kappa), np.inf)
        # Which sample of a group is the pure one is not known.
        worst = max(worst, eps + diameter * float(bounds.max()))
    sentence = (
        f"Every vertex is within {worst:.4g} of the true one, {ESTIMATED}, if one sample of each average is "
        f"pure up to the largest residual, {eps:.4g}; half the distance of a vertex from the hull of the "
        f"others is {0.5 * kappa:.4g}."
    )
    quantities = {"eps": eps, "kappa": kappa, "diameter": diameter, "longest_vertex": gamma}
    verdict = Verdict.HOLDS if worst < 0.5 * kappa else Verdict.FAILS
    return Statement("vertex-error", sentence, worst, 0.5 * kappa, verdict, quantities)
