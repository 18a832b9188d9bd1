"""The fourteen clustering methods of Tables VI and VII, and their scores."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np

from nonneg import NMF
from nonneg._typing import IntArray
from nonneg.metrics import normalized_mutual_information, purity
from reproduction.cr1.algorithm_runs import ALGORITHMS, has_converged, run_from
from reproduction.cr1.initializations import DETERMINISTIC, INITS, Samples, make_init, seeded, unit_rows
from reproduction.cr1.real_sets import load_set
from reproduction.cr1.spherical_kmeans import spherical_kmeans
from reproduction.scores import dice_coefficient, pair_dice

CLUSTERINGS = ("k-means", "spkm")
GROUPS = ("clusterings", *ALGORITHMS)
DEFAULT = "default of NMF"
METHODS = (*CLUSTERINGS, *(f"{init}+{algorithm}" for algorithm in ALGORITHMS for init in INITS), DEFAULT)
"""The rows of the tables, in the paper's order, and the default of the library beside them."""
ITERATIONS = {"mult": 2000, "nnlsb": 100, "hals": 1000}
"""Maximum numbers of iterations, as in the paper's programs."""
CLUSTERING_ITERATIONS = 1000
MEASURES = ("nmi", "dice", "purity")


def clustering_trials(set_runs: Mapping[str, int], **more: Any) -> list[dict[str, Any]]:
    """Return one setting per run, data set and group of methods."""
    runs = [
        {"set": name, "run": run, "group": group} | more
        for name, n_runs in set_runs.items()
        for run in range(n_runs)
        for group in GROUPS
    ]
    return runs + [{"set": name, "run": 0, "group": DEFAULT} | more for name in set_runs]  # nothing is drawn


def run_clusterings(setting: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Cluster a set by the methods of a group."""
    real = load_set(setting["set"])
    samples, run = Samples.of(real.X), setting["run"]
    assert real.y is not None
    if setting["group"] == "clusterings":
        found = {
            "k-means": k_means_labels(samples, real.k, seeded("k-means", run)),
            "spkm": spherical_labels(samples, real.k, seeded("spkm alone", run)),
        }
        return [{"method": method} | scores(real.y, labels) for method, labels in found.items()]
    if setting["group"] == DEFAULT:
        model = NMF(real.k, max_iter=ITERATIONS["hals"], random_state=0)
        W = np.asarray(model.fit_transform(real.X))
        labels = np.argmax(W * np.linalg.norm(model.components_, axis=1), axis=1)
        error = model.reconstruction_err_ / float(np.sqrt(samples.rows.squared_norm()))
        return [{"method": DEFAULT, "n_iter": model.n_iter_, "error": error} | scores(real.y, labels)]
    algorithm, records = setting["group"], []
    for kind in INITS:
        if kind in DETERMINISTIC and run > 0:
            continue
        init = make_init(kind, samples, real.k, seeded(kind, run))
        fit = run_from(algorithm, samples, init, max_iter=ITERATIONS[algorithm], until=has_converged)
        records.append(
            {"method": f"{kind}+{algorithm}", "n_iter": len(fit.errors), "error": fit.errors[-1]}
            | scores(real.y, fit.labels)
            | {"without lengths": scores(real.y, np.argmax(fit.W, axis=1))}
        )
    return records


def scores(y: IntArray, labels: IntArray) -> dict[str, float]:
    """Compare clusters with classes."""
    return {
        "nmi": normalized_mutual_information(y, labels),
        "dice": dice_coefficient(y, labels),
        "purity": purity(y, labels),
        "pair dice": pair_dice(y, labels),
    }


def k_means_labels(samples: Samples, k: int, rng: np.random.Generator) -> IntArray:
    """Cluster by k-means from k random samples, until no sample changes its cluster."""
    from sklearn.cluster import KMeans
    from sklearn.exceptions import ConvergenceWarning

    seed = int(rng.integers(2**31 - 1))
    method = KMeans(k, init="random", n_init=1, max_iter=CLUSTERING_ITERATIONS, tol=0.0, random_state=seed)
    with warnings.catch_warnings():
        # Fewer clusters than requested are a valid result here.
        warnings.simplefilter("ignore", ConvergenceWarning)
        labels: IntArray = method.fit_predict(samples.X)
    return labels


def spherical_labels(samples: Samples, k: int, rng: np.random.Generator) -> IntArray:
    """Cluster by spherical k-means from k random samples, until no sample changes its cluster."""
    chosen = rng.permutation(samples.rows.shape[0])[:k]
    # The mean cosine rises as long as a sample changes its cluster; after that it repeats to the last digit.
    centers = spherical_kmeans(
        samples.rows,
        k,
        rng=rng,
        max_passes=CLUSTERING_ITERATIONS,
        tol=1e-15,
        first=unit_rows(samples.X, chosen).T,
    )
    return np.argmax(np.asarray(samples.X @ centers), axis=1)
