"""How many communities: three estimates, and one recommendation with its reason."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
import scipy.sparse.linalg as sla

from nonneg._random import Seed, generator
from nonneg._typing import FloatArray, IntArray, SparseMatrix
from nonneg.applications.communities.eigenvectors import DENSE_NODES, NO_VALUE
from nonneg.applications.communities.symnmf import normalized_adjacency

EIGENGAP, BETHE, HELD_OUT = "eigengap", "non-backtracking", "held-out edges"
# Graphs of more nodes have half as many candidates: the eigenvectors of noise take long.
MOST, MANY_NODES = 30, 100_000
# Of the Lanczos method; a thousand times less changes nothing that counts and takes several times as long.
ROUGH = 1e-2
N_SPLITS, HIDDEN = 3, 0.1
# Pairs without an edge that stand for all that are hidden.
N_PAIRS = 100_000


@dataclass(frozen=True)
class CommunityCount:
    """A recommended number of communities.

    Attributes
    ----------
    n_communities : int
        The recommendation.
    reason : str
        Why, and whether the estimates agree.
    estimates : mapping of str to int
        The number that each method found.
    candidates : array of int of shape (n_candidates,)
        The numbers of communities of the curves.
    curves : mapping of str to array of shape (n_candidates,)
        "eigengap": the difference of an eigenvalue and the next; "held-out edges": the mean squared error on
        hidden pairs of nodes, relative to that of one community.
    """

    n_communities: int
    reason: str
    estimates: Mapping[str, int]
    candidates: IntArray
    curves: Mapping[str, FloatArray]

    def as_dict(self) -> dict[str, Any]:
        """Return it as plain values, ready for JSON.

        Returns
        -------
        dict
            Numbers, texts and lists of them.
        """
        return {
            "n_communities": self.n_communities,
            "reason": self.reason,
            "estimates": dict(self.estimates),
            "candidates": self.candidates.tolist(),
            "curves": {name: curve.tolist() for name, curve in self.curves.items()},
        }

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> CommunityCount:
        """Return the object from which `as_dict` was made.

        Parameters
        ----------
        plain : mapping
            What `as_dict` returned.

        Returns
        -------
        CommunityCount
            The same.
        """
        curves = {str(name): np.asarray(curve, dtype=float) for name, curve in plain["curves"].items()}
        candidates = np.asarray(plain["candidates"], dtype=np.intp)
        estimates = {str(name): int(k) for name, k in plain["estimates"].items()}
        return cls(int(plain["n_communities"]), str(plain["reason"]), estimates, candidates, curves)


def count_communities(
    adjacency: SparseMatrix, *, n_first: int | None = None, rng: Seed = None
) -> CommunityCount:
    """Estimate the number of communities of a graph without isolated nodes."""
    smaller = adjacency.shape[0] if n_first is None else min(n_first, adjacency.shape[0] - n_first)
    most = max(1, min(MOST if adjacency.shape[0] <= MANY_NODES else MOST // 2, smaller // 3))
    candidates = np.arange(1, most + 1)
    if most == 1:
        return CommunityCount(1, "The graph is too small to estimate the number.", {}, candidates, {})
    gaps = _eigengaps(adjacency, most)
    errors = _held_out_errors(adjacency, most, n_first, generator(rng))
    # Equal eigenvalues have gaps of the size of rounding; the first that are left out may be equal too.
    widest = int(np.argmax(gaps[1:])) if gaps[1:].max() > NO_VALUE else most - 2
    estimates = {
        EIGENGAP: int(candidates[1:][widest]),
        BETHE: bethe_hessian_count(adjacency, most, n_first),
        HELD_OUT: int(candidates[np.argmin(errors)]),
    }
    curves = {EIGENGAP: gaps, HELD_OUT: errors}
    k, reason = _recommended(estimates, most)
    return CommunityCount(k, reason, estimates, candidates, curves)


def _recommended(estimates: Mapping[str, int], most: int) -> tuple[int, str]:
    k = int(np.median(list(estimates.values())))
    said = ", ".join(f"{name} {count}" for name, count in estimates.items())
    agree = [name for name, count in estimates.items() if count == k]
    if len(agree) == 3:
        reason = f"All three estimates say {k}."
    elif len(agree) == 2:
        reason = f"Two of three estimates say {k} ({said})."
    else:
        reason = f"The estimates differ ({said}); {k} is their median."
    if k == most:
        reason += " Larger numbers were not tried."
    return k, reason


def _eigengaps(adjacency: SparseMatrix, most: int) -> FloatArray:
    values = _largest(normalized_adjacency(adjacency, 1.0), most + 1)
    return values[:-1] - values[1:]


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
        count += int(np.count_nonzero(_largest(rest, most) > r * r - 1.0))
    return max(1, min(count, most))


def _largest(matrix: SparseMatrix, k: int) -> FloatArray:
    """Return the largest eigenvalues, the largest one first."""
    n = matrix.shape[0]
    if n <= DENSE_NODES or k >= n - 1:
        return np.asarray(np.linalg.eigvalsh(matrix.toarray())[::-1][:k])
    start = np.random.default_rng(n).standard_normal(n)
    return np.sort(sla.eigsh(matrix, k, which="LA", v0=start, tol=ROUGH, return_eigenvectors=False))[::-1]


def _held_out_errors(
    adjacency: SparseMatrix, most: int, n_first: int | None, rng: np.random.Generator
) -> FloatArray:
    """Return the error on hidden pairs of nodes for every number of communities, relative to one community.

    Edge cross-validation (Li, Levina & Zhu, 2020): pairs are hidden, the matrix is completed by its leading
    eigenvectors, which predict the hidden pairs. Rows and columns are divided by the roots of the degrees
    that are left, so that hubs do not decide.
    """
    upper = sp.coo_array(sp.triu(adjacency, 1))
    total = np.zeros(most)
    for _ in range(N_SPLITS):
        hidden = rng.random(upper.nnz) < HIDDEN
        total += _split_errors(upper, hidden, adjacency, most, n_first, rng)
    return total / (total[0] or 1.0)


def _split_errors(
    upper: Any,
    hidden: Any,
    adjacency: SparseMatrix,
    most: int,
    n_first: int | None,
    rng: np.random.Generator,
) -> FloatArray:
    n = adjacency.shape[0]
    shown = sp.csr_array((upper.data[~hidden], (upper.row[~hidden], upper.col[~hidden])), shape=(n, n))
    shown = sp.csr_array(shown + shown.T)
    if not shown.nnz:
        return np.zeros(most)
    degrees = np.asarray(shown.sum(axis=1)).ravel()
    scales = 1.0 / np.sqrt(degrees + degrees.mean())
    scaled = sp.csr_array(sp.diags_array(scales) @ shown @ sp.diags_array(scales))
    if n <= DENSE_NODES or most >= n - 1:
        values, vectors = np.linalg.eigh(scaled.toarray())
    else:
        start = np.random.default_rng(n).standard_normal(n)
        which = "LM" if n_first is None else "LA"
        values, vectors = sla.eigsh(scaled, most, which=which, v0=start, tol=ROUGH)
    order = np.argsort(-np.abs(values) if n_first is None else -values, kind="stable")[:most]
    values, vectors = values[order] / (1.0 - HIDDEN), vectors[:, order]
    if n_first is not None:
        values = 2.0 * values
    rows, columns = upper.row[hidden], upper.col[hidden]
    truth = upper.data[hidden] * scales[rows] * scales[columns]
    edges = truth[:, None] - np.cumsum(vectors[rows] * vectors[columns] * values, axis=1)
    rows, columns, n_hidden = _pairs_without_edge(adjacency, n_first, rng)
    others = np.cumsum(vectors[rows] * vectors[columns] * values, axis=1)
    weight = HIDDEN * n_hidden / max(len(rows), 1)
    return np.sum(edges**2, axis=0) + weight * np.sum(others**2, axis=0)


def _pairs_without_edge(
    adjacency: SparseMatrix, n_first: int | None, rng: np.random.Generator
) -> tuple[IntArray, IntArray, float]:
    """Draw pairs of nodes that have no edge; also return how many there are."""
    n = adjacency.shape[0]
    n_pairs = n * (n - 1) / 2 if n_first is None else n_first * (n - n_first)
    drawn = int(min(N_PAIRS, 4 * n_pairs))
    if n_first is None:
        rows, columns = rng.integers(n, size=drawn), rng.integers(n - 1, size=drawn)
        columns += columns >= rows
    else:
        rows, columns = rng.integers(n_first, size=drawn), rng.integers(n_first, n, size=drawn)
    free = np.asarray(adjacency[rows, columns]).ravel() == 0
    return rows[free], columns[free], n_pairs - adjacency.nnz / 2
