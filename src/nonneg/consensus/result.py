"""Consensus of one rank, and table of restarts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from nonneg._typing import FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class RankConsensus:
    """The consensus of the restarts with one number of components.

    Attributes
    ----------
    n_components : int
        The rank.
    spectra : array of shape (n_components, n_features)
        The median of the unit-length components of each cluster, scaled to sum to one, in the unit in which X
        was factorized (columns divided by `column_scale_`). Those with the largest share of usage come first.
    stability : array of shape (n_components,)
        Mean silhouette of the components in each cluster: 1 where all restarts agree.
    recurrence : array of shape (n_components,)
        Share of the restarts with a component in the cluster.
    usage : array of shape (n_components,)
        Mean share of each component in the samples.
    silhouette : float
        Mean silhouette of all components of all restarts, outliers included.
    silhouette_error : float
        Its standard error over restarts.
    error : float
        Frobenius norm of X - W H, or the square root of twice the beta-divergence, for the consensus spectra
        with refitted usages.
    cophenetic : float
        Cophenetic correlation of the consensus matrix of the samples (Brunet et al. 2004).
    labels : array of shape (n_restarts * n_components,)
        The cluster of each component of each restart, restart by restart; -1 for outliers.
    density : array of shape (n_restarts * n_components,)
        Mean distance of each component to its nearest neighbors. Components above `density_threshold` are
        outliers.
    distances : array
        Euclidean distances between components in the order of the clusters, thinned out, for the clustergram.
    distance_labels : array
        Their clusters.
    n_restarts : int
        Number of restarts.
    n_outliers : int
        Number of components that were left out.
    best_loss : float
        Lowest loss of a single restart.
    draws : array of shape (n_complete, n_components, n_features) or None
        The components of each restart that has one in every cluster, in the order of `spectra`, with sum one:
        how much the spectra vary. Kept for mutational signatures only.
    """

    n_components: int
    spectra: FloatArray
    stability: FloatArray
    recurrence: FloatArray
    usage: FloatArray
    silhouette: float
    silhouette_error: float
    error: float
    cophenetic: float
    labels: IntArray
    density: FloatArray
    distances: FloatArray
    distance_labels: IntArray
    n_restarts: int
    n_outliers: int
    best_loss: float
    draws: FloatArray | None = None

    def row(self) -> dict[str, Any]:
        """Return the numbers that compare ranks.

        Returns
        -------
        dict
            A line of the table behind the rank plot.
        """
        return {
            "n_components": self.n_components,
            "stability": self.silhouette,
            "stability_error": self.silhouette_error,
            "least_stable": float(self.stability.min()),
            "error": self.error,
            "cophenetic": self.cophenetic,
            "n_restarts": self.n_restarts,
            "n_outliers": self.n_outliers,
        }


@dataclass(frozen=True, eq=False)
class RestartTable:
    """The restarts of all ranks.

    Attributes
    ----------
    n_components, number : array of int
        Rank, and number of the restart within it.
    seed : array of uint32
        What its random numbers come from: ``NMF(k, init="random", tol=tol, random_state=seed)`` repeats it.
    loss : array
        Its final loss.
    n_iter : array of int
        Its number of iterations.
    converged : array of bool
        Whether it reached the tolerance `tol`.
    """

    n_components: IntArray
    number: IntArray
    seed: Any
    loss: FloatArray
    n_iter: IntArray
    converged: Any

    def __len__(self) -> int:
        return len(self.n_components)

    def of(self, k: int) -> Any:
        """Return the indices of the restarts of one rank.

        Parameters
        ----------
        k : int
            The rank.

        Returns
        -------
        array of int
            Indices into the arrays of the table.
        """
        return np.flatnonzero(self.n_components == k)
