"""Rank correlation of memberships."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.optimize import linear_sum_assignment
from scipy.stats import rankdata

from nonneg._typing import FloatArray, IntArray
from nonneg.exceptions import InvalidDataError, InvalidParameterError, NonFiniteDataError, ShapeError


class RankMatching(NamedTuple):
    """A matching of communities by rank correlation.

    Parameters
    ----------
    permutation : array of int of shape (k,)
        Entry i is the column of `found` that matches true community i; -1 where none is left.
    correlations : array of shape (k,)
        Spearman's correlation of each pair; 0 where there is no match.
    """

    permutation: IntArray
    correlations: FloatArray


def averaged_rank_correlation(true: Any, found: Any, *, nan: str = "error") -> float:
    """Return Spearman's rank correlation of two membership tables, averaged over the communities.

    Parameters
    ----------
    true : array-like or sparse array of shape (n_nodes, k)
        Known memberships, one community per column.
    found : array-like or sparse array of shape (n_nodes, l)
        Estimated ones, in any order of the columns.
    nan : {"error", "omit"}, default "error"
        Whether nodes without memberships (isolated ones) raise an error or are left out.

    Returns
    -------
    float
        From -1 to 1: the mean over the true communities under the best matching.

    Examples
    --------
    >>> from nonneg.metrics import averaged_rank_correlation
    >>> true = [[1.0, 0.0], [0.7, 0.3], [0.0, 1.0]]
    >>> averaged_rank_correlation(true, [[0.1, 0.9], [0.2, 0.8], [1.0, 0.0]])
    1.0
    """
    return float(match_memberships(true, found, nan=nan).correlations.mean())


def match_memberships(true: Any, found: Any, *, nan: str = "error") -> RankMatching:
    """Return the one-to-one matching of communities with the largest sum of rank correlations.

    Parameters
    ----------
    true : array-like or sparse array of shape (n_nodes, k)
        Known memberships.
    found : array-like or sparse array of shape (n_nodes, l)
        Estimated ones; l may differ from k.
    nan : {"error", "omit"}, default "error"
        See `averaged_rank_correlation`.

    Returns
    -------
    RankMatching
        ``found[:, permutation]`` is in the order of `true`.

    Notes
    -----
    Equal values get the mean of their ranks, and the correlation is Pearson's of the ranks. A constant column
    has none; it counts as 0. The Hungarian method, O(k^3).
    """
    first, second = _table(true, "true"), _table(found, "found")
    if len(first) != len(second):
        raise ShapeError(
            f"Expected memberships of the same nodes, got {len(first)} rows in `true` and {len(second)} in "
            "`found`."
        )
    if nan not in ("error", "omit"):
        raise InvalidParameterError(f"nan must be 'error' or 'omit', got {nan!r}.")
    known = np.isfinite(first).all(axis=1) & np.isfinite(second).all(axis=1)
    if not known.all():
        if nan == "error":
            raise NonFiniteDataError(
                f"{int(np.sum(~known))} of {len(first)} nodes have NaN or infinite memberships (isolated "
                "nodes have none). Pass nan='omit' to leave them out."
            )
        first, second = first[known], second[known]
    if not len(first):
        raise InvalidDataError(
            "Expected at least one node with memberships, got none. The correlation is not defined."
        )
    correlations = _unit_ranks(first).T @ _unit_ranks(second)
    rows, columns = linear_sum_assignment(correlations, maximize=True)
    permutation = np.full(first.shape[1], -1, dtype=np.intp)
    permutation[rows] = columns
    best = np.zeros(first.shape[1])
    best[rows] = correlations[rows, columns]
    return RankMatching(permutation, np.clip(best, -1.0, 1.0))


def _table(values: Any, name: str) -> FloatArray:
    table = np.asarray(values.toarray() if sp.issparse(values) else values, dtype=np.float64)
    if table.ndim != 2 or table.shape[1] == 0:
        raise ShapeError(
            f"Expected `{name}` of shape (n_nodes, n_communities), one community per column, got "
            f"{table.shape}."
        )
    return table


def _unit_ranks(table: FloatArray) -> FloatArray:
    ranks = np.empty(table.shape)
    for column in range(table.shape[1]):
        ranks[:, column] = rankdata(table[:, column])
    ranks -= ranks.mean(axis=0)
    norms = np.linalg.norm(ranks, axis=0)
    return ranks / np.where(norms > 0, norms, 1.0)
