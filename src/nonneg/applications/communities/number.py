"""Number of communities: the widest eigengap and the Bethe Hessian propose, hidden edges judge."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy.sparse as sp
import scipy.sparse.linalg as sla

from nonneg._typing import FloatArray, SparseMatrix
from nonneg.applications.communities.eigenvectors import DENSE_NODES, NO_VALUE, normalized_adjacency
from nonneg.applications.communities.methods import ERRORS_AHEAD, Problem, judged_number

EIGENGAP, BETHE = "eigengap", "non-backtracking"
# Limits of cost, not of the answer: how many eigenvalues are computed first, and how many multiplications may
# make the vectors of the Lanczos method orthogonal where more are needed (a second or so).
FIRST, MULTIPLICATIONS = 32, 1 << 30
# Tolerance of the Lanczos method: gaps that decide are far wider.
ROUGH = 1e-2


def count_communities(adjacency: SparseMatrix, *, n_first: int | None = None) -> dict[str, Any]:
    """Estimate the number of communities of a graph without isolated nodes.

    By the theorem of Davis and Kahan, noise E turns the space of the k leading eigenvectors by at most
    2 ||E|| over the gap to the next eigenvalue. ||E|| is the same for all k: the widest gap has the smallest
    bound. The first gap, which every connected graph has, does not count. The non-backtracking matrix says
    how many eigenvalues are more than noise: twice as many are candidates, so that as many gaps of noise are
    seen as others. Where the two disagree, hidden edges judge (Li, Levina & Zhu, 2020).
    """
    n = adjacency.shape[0]
    smaller = n if n_first is None else min(n_first, n - n_first)
    # The Lanczos method makes 2 k vectors orthogonal; a community has three nodes at least.
    most = max(1, min(smaller // 3, max(FIRST, math.isqrt(MULTIPLICATIONS // (4 * n)))))
    if most == 1:
        reason = "The graph is too small to estimate the number."
        empty: dict[str, Any] = {"estimates": {}, "ahead": [], "decided": False, "curves": {}}
        return {"n_communities": 1, "reason": reason, "candidates": [1], **empty}
    informative = bethe_hessian_count(adjacency, most, n_first)
    candidates = list(range(1, max(2, min(most, 2 * informative)) + 1))
    # The eigenvalues of a bipartite graph come in pairs of both signs.
    which = "LM" if n_first is None else "LA"
    sizes = np.sort(np.abs(_leading(normalized_adjacency(adjacency), len(candidates) + 1, which)))[::-1]
    gaps = sizes[:-1] - sizes[1:]
    # Equal eigenvalues have gaps of the size of rounding, and no widest one.
    apart = gaps[1:].max() > NO_VALUE
    k = candidates[1:][int(np.argmax(gaps[1:]))] if apart else informative
    estimates = {EIGENGAP: k, BETHE: informative} if apart else {BETHE: informative}
    reason = f"The widest gap of the eigenvalues, {gaps[k - 1]:.2g}, is after number {k}"
    ahead: list[float] = []
    decided = bool(apart and informative == k)
    if not apart:
        reason = f"The eigenvalues after the first have no gap; the {BETHE} matrix says {k}."
    elif informative == k:
        reason += f"; the {BETHE} matrix also says {k}."
    else:
        more = " or more" * (informative == most)
        reason += f". The estimates disagree: {EIGENGAP} {k}, {BETHE} {informative}{more}."
        # No communities are the null hypothesis.
        numbers = [1, k] if informative == 1 else [k, informative]
        if (judged := judged_number(Problem(adjacency, 1, n_first), numbers)) is not None:
            k, *ahead = judged
            decided = ahead[0] > ERRORS_AHEAD * ahead[1]
            told = f"{'are more likely with' if decided else 'do not speak against'} {k}"
            differ = f"log-likelihoods differ by {abs(ahead[0]):.2g}, standard error {ahead[1]:.2g}"
            reason += f" Hidden edges {told}: {differ}." + " No number stands out." * (not decided)
    reason += " Larger numbers were not tried." * (k == most)
    return {
        "n_communities": k,
        "reason": reason,
        "estimates": estimates,
        "ahead": ahead,
        "decided": decided,
        "candidates": candidates,
        "curves": {EIGENGAP: gaps.tolist()},
    }


def bethe_hessian_count(adjacency: SparseMatrix, most: int, n_first: int | None = None) -> int:
    """Count the informative eigenvalues of the non-backtracking matrix, by the Bethe Hessian.

    (r^2 - 1) I - r A + D with r the root of sum(d^2) / sum(d) - 1 has one eigenvalue below zero for every
    community, and with -r one for every community whose nodes avoid each other (Saade, Krzakala & Zdeborova,
    2014; Le & Levina, 2022). It counts edges, not weights.
    """
    ones = sp.csr_array((np.ones(adjacency.nnz), adjacency.indices, adjacency.indptr), shape=adjacency.shape)
    degrees = np.asarray(ones.sum(axis=1)).ravel()
    r = np.sqrt(max(float((degrees**2).sum() / degrees.sum()) - 1.0, 1.0))
    count = 0
    for sign in (1.0,) if n_first is not None else (1.0, -1.0):
        rest = sp.csr_array(sign * r * ones - sp.diags_array(degrees))
        n_values = min(FIRST, most)
        while (above := np.count_nonzero(_leading(rest, n_values, "LA") > r * r - 1.0)) == n_values < most:
            n_values = min(2 * n_values, most)
        count += int(above)
    return max(1, min(count, most))


def _leading(matrix: SparseMatrix, k: int, which: str) -> FloatArray:
    """Return the k largest eigenvalues, or ("LM") those of largest magnitude."""
    n = matrix.shape[0]
    if n <= DENSE_NODES or k >= n - 1:
        values = np.linalg.eigvalsh(matrix.toarray())
        return values[np.argsort(-np.abs(values) if which == "LM" else -values, kind="stable")[:k]]
    start = np.random.default_rng(n).standard_normal(n)
    return np.asarray(sla.eigsh(matrix, k, which=which, v0=start, tol=ROUGH, return_eigenvectors=False))
