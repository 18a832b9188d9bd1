"""Draws of classes of two collections of documents, methods that find topics in them, and their scores."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import scipy.sparse as sp

from nonneg._lazy import cached_property
from nonneg._typing import FloatArray, IntArray
from nonneg.applications.topics.documents import (
    inverse_frequencies,
    rows_of_sum_one,
    term_weights,
    unit_rows,
    used_words,
)
from nonneg.applications.topics.methods import (
    GAP,
    find_anchor_words,
    least_squares_weights,
    reduced_words,
    topics_of_anchors,
)
from nonneg.iteration import Progress
from nonneg.metrics.clustering import clustering_accuracy
from nonneg.metrics.topics import npmi_coherence, top_words, umass_coherence
from reproduction import data as datasets
from reproduction.device import to_device
from reproduction.merit.gibbs_lda import N_SWEEPS, gibbs_lda

CORPORA = {"tdt2": "TDT2", "reuters21578": "Reuters-21578"}
"""Folders of the data home -> the paper's names."""
NUMBERS = (3, 4, 5, 6, 7, 8, 9, 10)
N_DRAWS = 50
ANCHOR_METHODS = {
    "spa": "SPA",
    "fast-anchor": "FastAnchor",
    "xray": "XRAY",
    "fast-gradient": "FastGradient",
    "merit": "MERIT",
    "merit(0)": "MERIT(0)",
    "merit of nonneg": "MERIT of nonneg",
}
"""Our names of searches for anchors -> the paper's; "of nonneg" with the defaults of `TopicModel`."""
N_TOP_WORDS = 20
N_CLUSTERINGS = 10
QUICK = "quick"
"""The name of a small made-up collection, for the quick setting."""


@dataclass(frozen=True)
class Draw:
    """Documents of a few classes."""

    counts: Any  # of words in two documents or more, and not in all
    y: IntArray  # the class of each document
    k: int  # the number of classes

    @cached_property
    def weights(self) -> Any:
        """TF-IDF weights, rows as they come."""
        return term_weights(self.counts, inverse_frequencies(self.counts))

    @cached_property
    def unit_weights(self) -> Any:
        """TF-IDF weights, rows of unit length."""
        return unit_rows(self.weights)

    @cached_property
    def points(self) -> FloatArray:
        """The words in twice as many dimensions as there are classes."""
        return reduced_words(self.weights, 2 * self.k)


@cache
def _corpus(name: str) -> Any:
    if name == QUICK:
        return None
    return {"tdt2": datasets.load_tdt2, "reuters21578": datasets.load_reuters21578}[name]()


def make_draw(corpus: str, k: int, draw: int) -> Draw:
    """Return the documents of a stored draw of classes."""
    if corpus == QUICK:
        made = datasets.text_like(120, 400, k, mean_length=60.0, rng=1000 * k + draw)
        return prepared_draw(sp.csr_array(made.X), np.asarray(made.labels), k)
    found = _corpus(corpus)
    rows = np.flatnonzero(np.isin(found.y, found.extras["class_subsets"][k][draw]))
    return prepared_draw(sp.csr_array(found.X[rows]), found.y[rows], k)


def prepared_draw(counts: Any, y: IntArray, k: int) -> Draw:
    """Drop uninformative words."""
    return Draw(sp.csr_array(counts[:, used_words(counts, 2, 1.0)]), y, k)


def run_method(draw: Draw, method: str, *, seed: int, n_clusterings: int = N_CLUSTERINGS) -> dict[str, Any]:
    """Find topics by a method and score them."""
    started = time.perf_counter()
    topics, memberships, facts = find_topics(draw, method, seed)
    seconds = time.perf_counter() - started
    words = top_words(topics, N_TOP_WORDS)
    return {
        "method": method,
        "coherence": float(umass_coherence(draw.counts, words).mean()),
        "npmi": float(npmi_coherence(draw.counts, words).mean()),
        "similarity": _similarity_count(words),
        "accuracy": clustered_accuracy(memberships, draw.y, draw.k, seed, n_clusterings),
        "argmax accuracy": clustering_accuracy(draw.y, np.argmax(memberships, axis=1)),
        "n_words": draw.counts.shape[1],
        "n_documents": draw.counts.shape[0],
        "seconds": round(seconds, 3),
    } | facts


def _similarity_count(words: IntArray) -> int:
    """Return the number of top words that topics share, summed over all pairs of topics."""
    sets = [set(topic) for topic in words.tolist()]
    return sum(len(one & other) for at, one in enumerate(sets) for other in sets[:at])


def find_topics(draw: Draw, method: str, seed: int) -> tuple[FloatArray, FloatArray, dict[str, Any]]:
    """Find topics and the memberships of the documents in them."""
    if method in ANCHOR_METHODS:
        name, _, ours = method.partition(" of ")
        options: dict[str, Any] = {}
        if name.startswith("merit"):
            options = {"recovery": False}
            if not ours:
                options |= {"callback": _one_step_after(GAP), "tol": 0.0}
        # The long searches can run on a device.
        points = to_device(draw.points) if name.startswith("merit") else draw.points
        found = find_anchor_words(points, draw.k, method=name.replace("(0)", "-0"), rng=seed, **options)
        topics = topics_of_anchors(draw.weights, found.anchors)
        facts: dict[str, Any] = {"n_iter": found.n_iter}
        if found.gap is not None:
            # Whether other words could have taken the place of the last anchor.
            facts |= {"gap": found.gap, "t_init": found.details.get("t_init"), "tied": found.margin == 0.0}
        return topics, least_squares_weights(draw.counts, topics), facts
    if method == "lda":
        return lda_topics(draw, seed)
    if method == "gibbs lda":
        return (*gibbs_lda(draw.counts, draw.k, seed), {"n_iter": N_SWEEPS})
    if method == "default":
        from nonneg.applications import TopicModel

        found_model = TopicModel(draw.k, random_state=seed)
        memberships = found_model.fit_transform(draw.counts)
        return found_model.topics_, memberships, {"n_iter": found_model.n_iter_}
    from nonneg import NMF

    kl = method == "kl"
    loss = "kullback-leibler" if kl else "frobenius"
    model = NMF(draw.k, init="nndsvda", beta_loss=loss, random_state=seed, max_iter=500)
    with warnings.catch_warnings():
        # Reaching max_iter is a valid result here.
        warnings.simplefilter("ignore")
        W = model.fit_transform(draw.counts if kl else draw.unit_weights)
    sums = model.components_.sum(axis=1)
    return rows_of_sum_one(model.components_), W * sums if kl else W, {"n_iter": model.n_iter_}


def _one_step_after(gap: float) -> Callable[[Progress], bool]:
    # The authors look at the gap of the iterate before a step once the step is done.
    before = [math.inf]

    def stop(progress: Progress) -> bool:
        enough = before[0] < gap
        before[0] = float(progress.history["gap"][-1])
        return enough

    return stop


def lda_topics(draw: Draw, seed: int) -> tuple[FloatArray, FloatArray, dict[str, Any]]:
    """Fit latent Dirichlet allocation by scikit-learn's variational method."""
    from sklearn.decomposition import LatentDirichletAllocation

    model = LatentDirichletAllocation(draw.k, random_state=seed)
    memberships = model.fit_transform(draw.counts)
    return rows_of_sum_one(model.components_), memberships, {"n_iter": int(model.n_iter_)}


def clustered_accuracy(memberships: FloatArray, y: IntArray, k: int, seed: int, n_runs: int) -> float:
    """Return the accuracy of k-means on memberships of unit length."""
    from sklearn.cluster import KMeans
    from sklearn.exceptions import ConvergenceWarning

    norms = np.linalg.norm(memberships, axis=1, keepdims=True)
    points = memberships / np.where(norms > 0, norms, 1.0)
    found = []
    with warnings.catch_warnings():
        # Fewer distinct memberships than clusters are a valid result here.
        warnings.simplefilter("ignore", ConvergenceWarning)
        for run in range(n_runs):
            labels = KMeans(k, n_init=10, random_state=1000 * seed + run).fit_predict(points)
            found.append(clustering_accuracy(y, labels))
    return float(np.mean(found))


def cost(setting: Mapping[str, Any]) -> float:
    """Return the relative cost of a trial."""
    words = {"tdt2": 5000 + 1500 * setting["k"], "reuters21578": 2200 + 500 * setting["k"]}
    n = words.get(setting["corpus"], 300) / 10_000
    each = {
        "greedy": 1.0,
        "merit": 5.0 * n,
        "merit of nonneg": 5.0 * n,
        "merit(0)": 5.0 * n,
        "nmf": 0.3,
        "default": 0.3,
        "kl": 1.0,
        "lda": 4.5,
        "gibbs lda": 4.5,
    }
    return each.get(setting["group"], 100.0 * n) * n * setting["k"] / 5.0 + 1.0
