"""GeoNMF: pure nodes as clusters of the longest rows (Mao, Sarkar & Chakrabarti, 2017)."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning

from nonneg._random import Seed, generator
from nonneg._ties import rounded
from nonneg._typing import FloatArray, IntArray
from nonneg.applications.communities.methods import ROUNDING, Memberships
from nonneg.exceptions import InvalidDataError, InvalidParameterError

# How far the search goes, as in the authors' file.
SLACK_STEP, SLACK_LIMIT, SLACK_FIRST = 0.025, 0.95, 0.4
QUANTILE_STEP = 0.01
# Graphs of smaller mean degree are noisier: corners of worse condition are accepted.
DENSE_DEGREE = 250.0


@dataclass(frozen=True)
class GeoNMFOptions:
    """Choices of GeoNMF, the authors' by default.

    Attributes
    ----------
    slack : float
        Nodes whose squared length is above (1 - slack) times the largest are nearly pure; it grows until the
        corners are well conditioned.
    quantile : float
        The node at this quantile of the lengths in a cluster represents the community.
    n_init : int
        Number of k-means initializations, of which the best is kept. The authors' code is meant to keep the
        best of 20 but keeps the last one; 1 corresponds to that.
    """

    slack: float = 0.25
    quantile: float = 0.95
    n_init: int = 20

    def __post_init__(self) -> None:
        if not 0 < self.slack <= SLACK_LIMIT or not 0 < self.quantile <= 1:
            raise InvalidParameterError(
                f"slack must be above 0 and at most {SLACK_LIMIT}, quantile above 0 and at most 1, got "
                f"{self.slack!r} and {self.quantile!r}."
            )
        if self.n_init < 1:
            raise InvalidParameterError(f"n_init must be at least 1, got {self.n_init!r}.")


class GeoNMFResult(NamedTuple):
    """Result of GeoNMF.

    Attributes
    ----------
    pure : array of int of shape (k,)
        One node per community.
    memberships : Memberships
        Coordinates, those below 0 set to 0, rows divided by their sum; rows of zeros stay.
    condition : float
        The condition number of the pure nodes' rows.
    n_rounds : int
        How often the nearly pure nodes were clustered.
    n_nearly_pure : int
        How many of them there were in the last round.
    """

    pure: IntArray
    memberships: Memberships
    condition: float
    n_rounds: int
    n_nearly_pure: int


def geonmf(
    values: FloatArray,
    vectors: FloatArray,
    degrees: FloatArray,
    *,
    options: GeoNMFOptions | None = None,
    rng: Seed = None,
) -> GeoNMFResult:
    """Find communities in the rows of the eigenvectors divided by the roots of the degrees.

    Parameters
    ----------
    values : array of shape (k,)
        The k largest eigenvalues, above 0.
    vectors : array of shape (n_nodes, k)
        Their eigenvectors.
    degrees : array of shape (n_nodes,)
        Above 0.
    options : GeoNMFOptions, optional
        Choices; the authors' by default.
    rng : None, int, Generator, RandomState or SeedSequence
        Random numbers for the initializations of k-means.

    Returns
    -------
    GeoNMFResult
        Pure nodes and memberships.

    Notes
    -----
    This follows the authors' code, without the random split of the nodes that the paper's analysis needs.

    References
    ----------
    .. [1] Mao, Sarkar & Chakrabarti (2017), "On mixed memberships and symmetric nonnegative matrix
       factorizations", ICML.
    """
    chosen = options or GeoNMFOptions()
    k = len(values)
    if not values.min() > 0:
        raise InvalidParameterError(
            f"GeoNMF needs {k} eigenvalues above 0, but the smallest of the leading ones is "
            f"{float(values.min()):.3g}. Ask for fewer communities, or choose another method."
        )
    source = generator(rng)
    roots = np.sqrt(degrees)
    points = vectors * np.sqrt(values) / roots[:, None]
    lengths = np.einsum("ij,ij->i", points, points)
    sparse_graph = float(degrees.mean()) < DENSE_DEGREE
    enough, lowest = (2.0, 0.7) if sparse_graph else (1.5, 0.8)
    slack, quantile = chosen.slack, chosen.quantile
    pure: IntArray | None = None
    near: IntArray = np.zeros(0, dtype=np.intp)
    condition, n_rounds = np.inf, 0
    while n_rounds == 0 or slack <= SLACK_LIMIT:
        slack, near = _nearly_pure(lengths, slack, k)
        seed = int(source.integers(2**31 - 1))
        found = _corners(points[near], lengths[near] * degrees[near], k, quantile, chosen.n_init, seed)
        n_rounds += 1
        if found is not None:
            pure = near[found]
            condition = float(np.linalg.cond(points[pure]))
        if condition < enough:
            break
        if slack > SLACK_FIRST:
            quantile -= QUANTILE_STEP
            if quantile <= lowest:
                break
        slack += SLACK_STEP
    if pure is None or not np.isfinite(condition):
        raise InvalidDataError(
            f"GeoNMF found fewer than {k} clusters among the nearly pure nodes. Ask for fewer communities, "
            "or choose another method."
        )
    memberships = np.linalg.solve(points[pure].T, points.T).T * roots[:, None] / roots[pure]
    memberships[memberships < 0] = 0.0
    sums = memberships.sum(axis=1)
    # A row of rounding is none.
    reached = sums > ROUNDING
    memberships[~reached] = 0.0
    memberships /= np.where(reached, sums, 1.0)[:, None]
    return GeoNMFResult(pure, Memberships(memberships, reached), condition, n_rounds, len(near))


def _nearly_pure(lengths: FloatArray, slack: float, k: int) -> tuple[float, IntArray]:
    near = np.flatnonzero(lengths > (1 - slack) * lengths.max())
    while len(near) < k and slack < SLACK_LIMIT:
        slack += SLACK_STEP
        near = np.flatnonzero(lengths > (1 - slack) * lengths.max())
    return slack, near


def _corners(
    points: FloatArray, strengths: FloatArray, k: int, quantile: float, n_init: int, seed: int
) -> IntArray | None:
    """Cluster the points and take one of each cluster; None where there are fewer points than clusters."""
    if len(np.unique(points, axis=0)) < k:
        return None
    with warnings.catch_warnings():
        # Points that are equal up to rounding make fewer clusters, which the caller answers.
        warnings.simplefilter("ignore", ConvergenceWarning)
        labels = KMeans(k, n_init=n_init, random_state=seed).fit(points).labels_
    corners = []
    strengths = rounded(strengths)
    for cluster in range(k):
        members = np.flatnonzero(labels == cluster)
        if not len(members):
            return None
        strength = strengths[members]
        # The weakest one that is not below the quantile (as MATLAB defines it).
        limit = np.quantile(strength, quantile, method="hazen")
        strong = members[strength >= limit]
        corners.append(int(strong[np.argmin(strengths[strong])]))
    # The numbers of the clusters mean nothing.
    return np.sort(np.asarray(corners, dtype=np.intp))
