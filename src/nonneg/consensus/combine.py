"""Consensus of the restarts of one rank: outliers, clusters, medians, refitted usages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from nonneg._arrays import to_float64
from nonneg._typing import FloatArray, IntArray
from nonneg.consensus.clustering import cluster, distances_of, local_density, unit_spectra
from nonneg.consensus.restarts import Restart
from nonneg.consensus.result import RankConsensus, RestartTable
from nonneg.data import DataMatrix, LocalMatrix
from nonneg.losses.beta import objective
from nonneg.losses.penalties import Penalties
from nonneg.solvers.encoding import encode
from nonneg.solvers.result import reconstruction_error

# Rows of the thinned clustergram: more than a screen shows.
_SHOWN = 300


@dataclass(frozen=True)
class ConsensusOptions:
    """Options for combining components."""

    clustering: str = "kmeans"
    density_threshold: float = 0.5
    keep_draws: bool = False  # whether the components of the restarts are part of the result


def combine(
    data: DataMatrix,
    runs: Sequence[Restart],
    options: ConsensusOptions,
    *,
    beta: float,
) -> RankConsensus:
    """Return the consensus of restarts of one rank."""
    k = runs[0].n_components
    unit = unit_spectra(np.vstack([run.spectra for run in runs]))
    distances = distances_of(unit)
    density = local_density(distances, k)
    dense = np.flatnonzero(density < options.density_threshold)
    if len(dense) < 2 * k:  # medians need a few components per cluster
        dense = np.arange(len(density))
    clusters = cluster(unit, distances, k, dense, options.clustering)
    Ht = data.to_device(clusters.spectra.T)
    none = Penalties()
    W, loss = encode(data, Ht, beta=beta, penalties=none)
    loss = objective(data, W, Ht, beta=beta, penalties=none) if loss is None else loss
    sums = data.reduce_rows(_usage_shares, W)
    usage = to_float64(sums) / data.shape[0]
    # The largest first, as cNMF numbers its programs.
    order = np.argsort(-usage, kind="stable")
    place = np.empty(k + 1, dtype=np.int64)
    place[order], place[-1] = np.arange(k), -1
    labels, nearest = place[clusters.labels], place[clusters.nearest]
    members = [np.flatnonzero(nearest == a) for a in range(k)]
    shown, shown_labels = _thinned(distances, labels, density)
    restart_labels = np.array([run.labels for run in runs])
    by_restart = clusters.silhouettes.reshape(-1, k)
    means = np.nanmean(by_restart[~np.isnan(by_restart).all(axis=1)], axis=1)
    return RankConsensus(
        n_components=k,
        spectra=clusters.spectra[order],
        stability=np.array([float(np.mean(clusters.silhouettes[rows])) for rows in members]),
        recurrence=np.array([len(np.unique(np.flatnonzero(labels == a) // k)) / len(runs) for a in range(k)]),
        usage=usage[order],
        silhouette=float(np.nanmean(clusters.silhouettes)),
        silhouette_error=float(means.std(ddof=1) / np.sqrt(len(means))) if len(means) > 1 else 0.0,
        error=float(reconstruction_error(data, W, Ht, beta=beta, penalties=none, value=loss)),
        cophenetic=cophenetic_correlation(consensus_matrix(restart_labels)),
        labels=labels,
        density=density,
        distances=shown,
        distance_labels=shown_labels,
        n_restarts=len(runs),
        n_outliers=int(np.sum(labels < 0)),
        best_loss=min(run.loss for run in runs),
        draws=_draws(unit, labels, k) if options.keep_draws else None,
    )


def consensus_matrix(labels: IntArray) -> FloatArray:
    """Return the share of restarts in which two samples have the same strongest component."""
    # Short integers: all counts together stay in cache.
    total = np.zeros((labels.shape[1], labels.shape[1]), dtype=np.min_scalar_type(len(labels)))
    for run in labels:
        total += run[:, None] == run[None, :]
    return total / len(labels)


def cophenetic_correlation(consensus: FloatArray) -> float:
    """Return the cophenetic correlation of 1 - consensus with its average-linkage tree."""
    # Brunet, Tamayo, Golub & Mesirov (2004), PNAS 101(12), 4164-4169. Imported here, because a fit with a
    # given number of components should not wait for it.
    from scipy.cluster.hierarchy import cophenet, linkage

    distances = 1.0 - consensus[np.triu_indices(len(consensus), 1)]
    if distances.size < 2 or np.all((distances == 0.0) | (distances == 1.0)):
        return 1.0
    tree = cophenet(linkage(distances, "average"))
    if np.ptp(distances) == 0.0 or np.ptp(tree) == 0.0:
        # Every pair is together equally often: there are no clusters.
        return 0.0
    return float(np.corrcoef(distances, tree)[0, 1])


def _draws(unit: FloatArray, labels: IntArray, k: int) -> FloatArray:
    """Return the components of the restarts that have one in every cluster, in the order of the clusters."""
    complete = []
    for first in range(0, len(labels), k):
        places = {int(label): first + at for at, label in enumerate(labels[first : first + k])}
        if all(a in places for a in range(k)):
            complete.append(unit[[places[a] for a in range(k)]])
    draws = np.array(complete).reshape(-1, k, unit.shape[1])
    return (draws / draws.sum(axis=2, keepdims=True)).astype(np.float32)


def _usage_shares(block: LocalMatrix, W: Any) -> Any:
    xp = block.xp
    sums = xp.sum(W, axis=1, keepdims=True)
    return xp.sum(W / xp.where(sums > 0, sums, xp.ones_like(sums)), axis=0)


def _thinned(distances: FloatArray, labels: IntArray, density: FloatArray) -> tuple[Any, IntArray]:
    """Return distances in the order of clusters, of at most a few hundred components."""
    order = np.lexsort((density, labels))
    order = order[labels[order] >= 0]
    if len(order) > _SHOWN:
        order = order[np.linspace(0, len(order) - 1, _SHOWN).round().astype(int)]
    return distances[np.ix_(order, order)].astype(np.float32), labels[order]


def table_of(restarts: dict[int, list[Restart]]) -> RestartTable:
    """Return the list of all restarts."""
    runs = [run for k in sorted(restarts) for run in restarts[k]]
    return RestartTable(
        n_components=np.array([run.n_components for run in runs], dtype=np.int64),
        number=np.array([run.number for run in runs], dtype=np.int64),
        seed=np.array([run.seed for run in runs], dtype=np.uint32),
        loss=np.array([run.loss for run in runs]),
        n_iter=np.array([run.n_iter for run in runs], dtype=np.int64),
        converged=np.array([run.converged for run in runs], dtype=bool),
    )
